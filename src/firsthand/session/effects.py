"""Effects as values, and the two short drivers that carry them out: one sync, one async.

The steps of a session are written once, as generators that yield what they need done and get the result back. A generator never blocks; the
driver does: the sync one right here, the async one in a thread (the journal is synchronous) or by awaiting (calls of a model, pauses).
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from dataclasses import dataclass
from inspect import isawaitable, iscoroutinefunction
from typing import Any, TypeAlias, TypeVar

from ..errors import ConfigError, FirsthandError, ProviderError

__all__ = ["AskModel", "Effect", "Pause", "Steps", "Store", "Summariser", "run", "run_async"]

T = TypeVar("T")

Summariser: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any] | Awaitable[Mapping[str, Any]]]
"""Sends a request body to a model and returns the response's JSON; raises `ProviderError` for an error. May be async in an `AsyncSession`.

Whatever else it raises counts as a model that could not be reached; only the error's type is told, since its text may hold a key."""


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
    """Carries the effects out without blocking the event loop.

    Once begun, a write to the journal is finished even when the task is cancelled, and what the steps do about the cancellation comes after it:
    else a claim could be made after it was withdrawn.
    """
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
    _in_background(lambda: summariser(body), box.append).join(deadline)
    if not box:
        raise ProviderError(None, "", f"no answer within {deadline:g} s")
    answer = _answer(box[0])
    if isawaitable(answer):
        if isinstance(answer, Coroutine):
            answer.close()
        raise ConfigError("an async summariser needs an AsyncSession")
    return answer


async def _called_async(summariser: Summariser, body: Mapping[str, Any]) -> Any:
    """The answer of a summariser of either kind. A blocking one gets a thread of its own: a pool would be waited for when the loop closes."""
    if iscoroutinefunction(summariser) or iscoroutinefunction(type(summariser).__call__):
        answer: Any = summariser(body)
    else:
        loop = asyncio.get_running_loop()
        arrived: asyncio.Future[Any] = loop.create_future()

        def arrive(outcome: Any) -> None:
            if not arrived.done():
                arrived.set_result(outcome)

        def tell(outcome: Any) -> None:
            # Nobody waits any more when the loop has closed meanwhile.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(arrive, outcome)

        _in_background(lambda: summariser(body), tell)
        answer = _answer(await arrived)
    try:
        return await answer if isawaitable(answer) else answer
    except Exception as error:
        raise _as_provider_error(error) from error


def _in_background(call: Callable[[], Any], tell: Callable[[Any], None]) -> threading.Thread:
    """Calls in a daemon thread and tells the answer and the error, one of them None."""

    def act() -> None:
        try:
            outcome: tuple[Any, BaseException | None] = (call(), None)
        except BaseException as error:
            outcome = (None, error)
        tell(outcome)

    thread = threading.Thread(target=act, daemon=True, name="firsthand-summary")
    thread.start()
    return thread


def _answer(outcome: tuple[Any, BaseException | None]) -> Any:
    answer, error = outcome
    if error is None:
        return answer
    raise _as_provider_error(error) from error


def _as_provider_error(error: BaseException) -> BaseException:
    if isinstance(error, FirsthandError) or not isinstance(error, Exception):
        return error
    return ProviderError(None, "", f"the summariser raised {type(error).__name__}")


async def _finished(action: Callable[[], Any]) -> Any:
    """What the action gives in a thread; a cancellation is raised once it has ended."""
    future = asyncio.ensure_future(asyncio.to_thread(action))
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait({future})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        future.exception()  # looked at, so that nobody complains; the cancellation is what counts
        raise cancelled
    return future.result()


async def _perform_async(effect: Effect) -> Any:
    match effect:
        case Store(action=action):
            return await _finished(action)
        case Pause(seconds=seconds):
            return await asyncio.sleep(seconds)
        case AskModel(summariser=summariser, body=body, deadline=deadline):
            try:
                async with asyncio.timeout(deadline):
                    return await _called_async(summariser, body)
            except TimeoutError:
                raise ProviderError(None, "", f"no answer within {deadline:g} s") from None
