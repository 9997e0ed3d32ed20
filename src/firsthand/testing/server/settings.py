"""What one fake model server is set to do, and what it collects; shared by its thread and the test's."""

from __future__ import annotations

import asyncio
import re
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Literal, TypeAlias

from ...errors import ConfigError
from ...session.overflow.table import shape_named
from ...tokens import Counter, EstimateCounter
from .received import Received
from .script import Answer, Lane, Reply

__all__ = ["AnswerFunction", "Settings"]

AnswerFunction: TypeAlias = Callable[[Received], Answer | Awaitable[Answer]]
"""A script as a function. It runs in the server's thread, one call at a time: it must be quick, or be a coroutine function."""


class _Queue:
    """Answers in order, and what comes after them."""

    def __init__(self, answers: Iterable[Answer | str], default: Answer | None, lane: Lane | None = None) -> None:
        self.answers: deque[Answer] = deque()
        self.push(answers)
        self.default = default
        self.lane = lane
        self.pattern = re.compile(lane.pattern.encode()) if lane and lane.pattern is not None else None

    def takes(self, got: Received) -> bool:
        """Whether a request belongs into this lane."""
        if self.pattern is not None and not self.pattern.search(got.body):
            return False
        wanted = self.lane.tools if self.lane else None
        return wanted is None or wanted == bool(got.tool_names)

    def push(self, answers: Iterable[Answer | str]) -> None:
        """Appends answers; a plain text is a reply with that text."""
        self.answers.extend(Reply(answer) if isinstance(answer, str) else answer for answer in answers)

    def next(self) -> Answer | None:
        """The next answer; None when there is none."""
        try:
            return self.answers.popleft()
        except IndexError:
            return self.default


class Settings:
    """Settings, script, log and problems of one server.

    Raises:
        ConfigError: a window below 1, a lane's pattern that is no regular expression.
        UnknownNameError: no overflow shape of the provider's name.
    """

    def __init__(
        self,
        replies: Sequence[Answer | str] | AnswerFunction | None,
        *,
        default: Answer | None,
        lanes: Sequence[Lane],
        window: int | None,
        overflow: Literal["refuse", "truncate"],
        provider: str | None,
        validate: bool,
        cache: bool,
        models: Sequence[str],
        counter: Counter | None,
        on_request: Callable[[Received], None] | None,
    ) -> None:
        if window is not None and window < 1:
            raise ConfigError(f"a window is a number of tokens, at least 1, not {window:,}")
        if overflow not in ("refuse", "truncate"):
            raise ConfigError(f"overflow is 'refuse' or 'truncate', not {overflow!r}")
        if provider is not None:
            shape_named(provider)
        self.window = window
        self.overflow = overflow
        self.provider = provider
        self.validate = validate
        self.cache = cache
        self.models = tuple(models)
        self.counter = counter or EstimateCounter()
        self.on_request = on_request
        self.log: list[Received] = []
        self.problems: list[str] = []
        self.errors: list[Exception] = []
        self.serving = threading.Event()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.stopping: asyncio.Event | None = None
        self._function = replies if callable(replies) else None
        if replies is None and default is None:
            default = Reply("ok")
        queued = [] if replies is None or callable(replies) else replies
        try:
            self._lanes = [_Queue(lane.replies, lane.default, lane) for lane in lanes]
        except re.error as error:
            raise ConfigError(f"a lane's pattern is no regular expression: {error}") from error
        self._main = _Queue(queued, default)

    def push(self, *answers: Answer | str) -> None:
        """Appends answers to the main queue; a plain text is a reply with that text."""
        self._main.push(answers)

    @property
    def left(self) -> int:
        """Answers of the main queue that no request has taken yet."""
        return len(self._main.answers)

    def next_answer(self, got: Received) -> Answer | Awaitable[Answer] | None:
        """What the script says to a request."""
        for lane in self._lanes:
            if lane.takes(got):
                return lane.next()
        return self._function(got) if self._function is not None else self._main.next()

    def started(self, loop: asyncio.AbstractEventLoop, stopping: asyncio.Event) -> None:
        """Called in the server's thread when it serves."""
        self.loop = loop
        self.stopping = stopping
        self.serving.set()
