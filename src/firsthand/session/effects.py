"""Effects as values, and the two short drivers that carry them out: one sync, one async.

The steps of a session are written once, as generators that yield what they need done and get the result back. A generator never blocks; the
driver does: the sync one right here, the async one in a thread (the journal is synchronous) or by awaiting (calls of a model, pauses).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, TypeAlias, TypeVar

from ..errors import ProviderError

__all__ = ["AskModel", "Effect", "Pause", "Steps", "Store", "Summariser", "run", "run_async"]

T = TypeVar("T")

Summariser: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any] | Awaitable[Mapping[str, Any]]]
"""Sends a request body to a model and returns the response's JSON; raises `ProviderError` for an error. May be async in an `AsyncSession`."""


@dataclass(frozen=True)
class Store:
    """Read from or write to the journal. The name says which step it is, for whoever looks on."""

    name: str
    action: Callable[[], Any]


@dataclass(frozen=True)
class AskModel:
    """Call the model; a `ProviderError` without status when the deadline passes."""

    summariser: Summariser
    body: Mapping[str, Any]
    deadline: float


@dataclass(frozen=True)
class Pause:
    """Wait for so many seconds."""

    seconds: float


Effect: TypeAlias = Store | AskModel | Pause

Steps: TypeAlias = Generator[Effect, Any, T]


def run(steps: Steps[T]) -> T:
    """Carries the effects out here and now."""
    try:
        effect = next(steps)
        while True:
            try:
                result = _perform(effect)
            except BaseException as error:
                effect = steps.throw(error)
            else:
                effect = steps.send(result)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]


async def run_async(steps: Steps[T]) -> T:
    """Carries the effects out without blocking the event loop. Once begun, a write to the journal is finished even when the task is cancelled."""
    try:
        effect = next(steps)
        while True:
            try:
                result = await _perform_async(effect)
            except BaseException as error:
                effect = steps.throw(error)
            else:
                effect = steps.send(result)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]


def _perform(effect: Effect) -> Any:
    match effect:
        case Store(action=action):
            return action()
        case Pause(seconds=seconds):
            time.sleep(seconds)
            return None
        case AskModel(summariser=summariser, body=body, deadline=deadline):
            return _called(summariser, body, deadline)


def _called(summariser: Summariser, body: Mapping[str, Any], deadline: float) -> Any:
    """The answer, or a `ProviderError` at the deadline. A call that hangs is left to itself: nothing can stop another's blocking code."""
    box: list[Any] = []

    def call() -> None:
        try:
            box.append((summariser(body), None))
        except BaseException as error:
            box.append((None, error))

    thread = threading.Thread(target=call, daemon=True, name="firsthand-summary")
    thread.start()
    thread.join(deadline)
    if not box:
        raise ProviderError(None, "", f"no answer within {deadline:g} s")
    answer, error = box[0]
    if error is not None:
        raise error
    if isawaitable(answer):
        raise TypeError("an async summariser needs an AsyncSession")
    return answer


async def _perform_async(effect: Effect) -> Any:
    match effect:
        case Store(action=action):
            return await asyncio.shield(asyncio.to_thread(action))
        case Pause(seconds=seconds):
            return await asyncio.sleep(seconds)
        case AskModel(summariser=summariser, body=body, deadline=deadline):
            try:
                async with asyncio.timeout(deadline):
                    answer = await asyncio.to_thread(summariser, body)
                    return await answer if isawaitable(answer) else answer
            except TimeoutError:
                raise ProviderError(None, "", f"no answer within {deadline:g} s") from None
