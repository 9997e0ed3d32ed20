"""The fake model server in a thread of its own."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from ...errors import ConfigError, FirsthandError, MissingExtraError
from ...listening import listening
from ...tokens import Counter
from .received import Received
from .script import Answer, Lane
from .settings import AnswerFunction, Settings

if TYPE_CHECKING:
    from .serving import HttpServer

__all__ = ["FakeServer"]

_PATIENCE = 10.0
"""Seconds that start and stop may take each."""


class FakeServer:
    """A model server on this machine that answers by a script and keeps what it got.

    ::

        with FakeServer(["first answer", Reply(calls=(Call("bash", {"cmd": "ls"}),))]) as server:
            client = OpenAI(base_url=server.url + "/v1", api_key="any")
            ...
            assert server.requests[0].json["model"] == "some-model"

    It speaks OpenAI Chat Completions, OpenAI Responses and Anthropic Messages, streaming and not, under `/v1` or without it, lists its
    models and counts tokens. A request is first checked: an invalid one gets the provider's own kind of 400, one above `window` the
    provider's own overflow error, and neither uses up a reply. Then the script is asked. What is sent depends on the script and the
    order of the requests alone, byte for byte.

    Args:
        replies: answers in order (texts are replies with that text), or a function from a request to its answer. None: `default` for
            all, and without that a short text.
        default: the answer when the replies are used up; None refuses such requests with a 400 and notes them in `problems`.
        lanes: queues for side requests, asked first, in order.
        window: simulated context window in tokens by `counter`; None: no limit.
        overflow: above the window, `refuse`, or `truncate` silently and report only what fits (OV-12).
        provider: row of `firsthand.session.overflow.table` to refuse with; by default that of the wire that was called.
        validate: whether `firsthand.testing.validate` judges the messages. The fields that an API demands are always checked.
        cache: whether usage reports what a prefix cache would have served: the longest common prefix with an earlier request.
        models: names in the model list. Any model may be asked.
        counter: counts for usage and window; the plain estimate by default.
        host: the address to listen at.
        port: the port; 0 for a free one.
        on_request: called in the server's thread for each request after it was judged.

    Raises:
        ConfigError: a setting that cannot work, such as a window below 1; on entering: the address cannot be had.
        UnknownNameError: no overflow shape of that provider.
        MissingExtraError: on entering, when the extra `testing` is not installed.
    """

    def __init__(
        self,
        replies: Sequence[Answer | str] | AnswerFunction | None = None,
        *,
        default: Answer | None = None,
        lanes: Sequence[Lane] = (),
        window: int | None = None,
        overflow: Literal["refuse", "truncate"] = "refuse",
        provider: str | None = None,
        validate: bool = True,
        cache: bool = True,
        models: Sequence[str] = ("fake-model",),
        counter: Counter | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        on_request: Callable[[Received], None] | None = None,
    ) -> None:
        self._settings = Settings(
            replies,
            default=default,
            lanes=lanes,
            window=window,
            overflow=overflow,
            provider=provider,
            validate=validate,
            cache=cache,
            models=models,
            counter=counter,
            on_request=on_request,
        )
        self._host = host
        self._port = port
        self._server: HttpServer | None = None
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    @property
    def url(self) -> str:
        """The server's address, without `/v1`."""
        return f"http://{self._host}:{self._port}"

    @property
    def requests(self) -> list[Received]:
        """Everything that arrived so far, in order."""
        return list(self._settings.log)

    @property
    def turns(self) -> list[Received]:
        """The requests for a model's answer, in order; no model lists, counts or unknown paths."""
        return [got for got in self._settings.log if got.wire is not None]

    @property
    def problems(self) -> list[str]:
        """Requests that the script had no answer for, one sentence each."""
        return list(self._settings.problems)

    @property
    def left(self) -> int:
        """Scripted replies that no request has used yet."""
        return self._settings.left

    def push(self, *answers: Answer | str) -> None:
        """Appends answers to the script, also while the server runs."""
        self._settings.push(*answers)

    def start(self) -> Self:
        """Starts the server; returns when it accepts connections.

        Raises:
            ConfigError: the address cannot be had, or the server runs already.
            MissingExtraError: the extra `testing` is not installed.
        """
        if self._thread is not None:
            raise ConfigError("a fake model server starts once; make another one")
        try:
            from .serving import HttpServer
        except ImportError as error:
            if (error.name or "").partition(".")[0] not in ("uvicorn", "starlette"):
                raise
            raise MissingExtraError("the fake model server", "testing") from None
        opened = listening(self._host, self._port, backlog=512)
        self._port = opened.getsockname()[1]
        self._server = HttpServer(self._settings)
        self._thread = threading.Thread(
            target=self._run, args=(self._server, opened), name="fake model server", daemon=True
        )
        self._thread.start()
        if not self._settings.serving.wait(_PATIENCE) or self._failure is not None:
            self.stop()
            raise FirsthandError(
                f"the fake model server at {self.url} did not start: {self._failure or 'it took too long'}"
            )
        return self

    def stop(self) -> None:
        """Stops the server: streams in progress break off. Takes at most some seconds; a second call does nothing."""
        thread, server = self._thread, self._server
        if thread is None or server is None or not thread.is_alive():
            return
        loop, stopping = self._settings.loop, self._settings.stopping
        if loop is not None and stopping is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended by itself
                loop.call_soon_threadsafe(stopping.set)
        server.should_exit = True
        thread.join(_PATIENCE)
        if thread.is_alive():
            server.force_exit = True
            thread.join(_PATIENCE)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stops; an exception that the script's function raised is raised here, unless another one is on its way."""
        self.stop()
        if error is None and self._settings.errors:
            raise self._settings.errors[0]

    def _run(self, server: HttpServer, opened: socket.socket) -> None:
        try:
            server.run(sockets=[opened])
        except BaseException as error:  # the thread's end is the test's business, not the interpreter's
            self._failure = error
        finally:
            opened.close()
            self._settings.serving.set()
