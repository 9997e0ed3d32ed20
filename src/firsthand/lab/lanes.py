"""Work in lanes: each process takes one group of tasks after the other, and helps with another's group when none is left."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context
from typing import TypeVar

__all__ = ["Lanes", "in_lanes", "opened_lanes"]

Lanes = Sequence[ProcessPoolExecutor]
"""Executors of one process each; none: all work is done in this process."""

Task = TypeVar("Task")
Made = TypeVar("Made")


@contextmanager
def opened_lanes(workers: int | None) -> Iterator[Lanes]:
    """Lanes that stay open for several pieces of work, so that what a process has read and counted is there for the next one.

    Args:
        workers: processes; None for one per core, 1 for none beside this one.
    """
    workers = workers or os.cpu_count() or 1
    with ExitStack() as opened:
        # One process in each lane, so that what a session needs is made once; fresh interpreters: a fork would copy the threads of a display.
        lanes = [
            opened.enter_context(ProcessPoolExecutor(1, mp_context=get_context("spawn")))
            for _ in range(workers if workers > 1 else 0)
        ]
        try:
            yield lanes
        except BaseException:
            for lane in lanes:
                lane.shutdown(wait=False, cancel_futures=True)
            raise


def in_lanes(work: Callable[[Task], Made], groups: Sequence[Sequence[Task]], lanes: Lanes) -> Iterator[Made]:
    """The outcome of every task, as they are finished.

    Args:
        work: a function of a module, so that another process can find it.
        groups: tasks that share something that is costly to make; a lane does one group after the other.
        lanes: where; with none, all is done here, in order.
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
