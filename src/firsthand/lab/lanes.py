"""Work in lanes: each process takes one group of tasks after the other, and helps with another's group when none is left."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from typing import TypeVar

__all__ = ["in_lanes"]

Task = TypeVar("Task")
Made = TypeVar("Made")


def in_lanes(
    work: Callable[[Task], Made], groups: Sequence[Sequence[Task]], lanes: Sequence[ProcessPoolExecutor]
) -> Iterator[Made]:
    """The outcome of every task, as they are finished.

    Args:
        work: a function of a module, so that another process can find it.
        groups: tasks that share something that is costly to make; a lane does one group after the other.
        lanes: executors of one process each; none: all is done here, in order.
    """
    if not lanes:
        for group in groups:
            yield from map(work, group)
        return
    waiting = deque(deque(group) for group in groups)
    own: list[deque[Task]] = [deque() for _ in lanes]
    running: dict[Future[Made], int] = {}

    def start(lane: int) -> None:
        if not own[lane]:
            own[lane] = waiting.popleft() if waiting else _half(max(own, key=len))
        if own[lane]:
            running[lanes[lane].submit(work, own[lane].popleft())] = lane

    for lane in range(len(lanes)):
        start(lane)
    while running:
        finished, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in finished:
            lane = running.pop(future)
            start(lane)
            yield future.result()


def _half(tasks: deque[Task]) -> deque[Task]:
    """Takes every other task away, beginning with the last."""
    every = list(tasks)
    taken = every[::-1][::2]
    tasks.clear()
    tasks.extend(task for task in every if task not in taken)
    return deque(reversed(taken))
