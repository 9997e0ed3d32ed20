"""Runs strategies at the boundaries of many sessions, on all cores, and goes on where an interrupted run stopped."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Literal, TypeAlias

from ..budget import Budget
from ..codec import compact_json, encode
from ..formats import read_sessions
from ..projection.plan import Plan
from ..samples import RECORDS_PER_STAGE, SCORED_STAGES, chain
from ..strategies import strategy_by_name, strategy_names
from ..tokens import Counter, EstimateCounter, O200kCounter, counter_for_model, entry_cost
from ..transcript import Transcript, View
from .arms import Arm, Projected, run_arm, size_of
from .boundaries import Boundary, boundaries
from .exams.recognition import SEEDS
from .questions import EXAMS, READER, Questions, ask, questions
from .results import Cache, Row
from .survival import survive
from .values import reading

__all__ = [
    "CONTINUATION_SHARE",
    "Mode",
    "Origin",
    "Setup",
    "Task",
    "default_strategies",
    "measure",
    "replay",
    "run",
    "survey",
]

Mode: TypeAlias = Literal["forced", "deployed"]

CONTINUATION_SHARE = 90
"""Where `continuation` is asked instead of at the end, after which nothing follows."""

_CARRIED = (96, 180)
"""Records of a synthetic chain after which a compaction is made and nothing is asked (futureos.md 8.3)."""
_SERVER_SIDE = ("codex-remote-v1", "codex-remote-v2", "opencode-prune")
"""Left out unless named: their summaries come from a server, or they are one half of another strategy."""


@dataclass(frozen=True)
class Origin:
    """Where a session comes from: a file and its place in it, or the name of a synthetic chain."""

    path: str | None
    index: int = 0
    chain: str | None = None


@dataclass(frozen=True)
class Setup:
    """How sessions are measured; the same for all of them."""

    strategies: tuple[str, ...]
    shares: tuple[int, ...] = (40, 70, 100)
    mode: Mode = "forced"
    window: int = 200_000
    output_ceiling: int | None = None
    profile: str = "product"
    counter: str = "model"
    """Counter of the strategies' budgets: `model` for the calibrated one of the session's model, or `estimate`."""
    targets: tuple[int | None, ...] = (None,)
    target_of: str | None = None
    """A strategy whose measured size is the others' target at each boundary."""
    summarisers: tuple[str, ...] = ("none", "extractive")
    exams: tuple[str, ...] = EXAMS
    seeds: int = SEEDS
    carry: bool = False
    """Hand each strategy its own plan of the boundary before, as a running session does."""

    def arms(self) -> list[Arm]:
        """What is compared, before it is known which strategies ask for summaries."""
        return [Arm(name, target, by) for name in self.strategies for target in self.targets for by in self.summarisers]


@dataclass(frozen=True)
class Task:
    """One boundary of one session, for the strategies that the cache lacks."""

    origin: Origin
    setup: Setup
    boundary: Boundary
    exams: tuple[str, ...]
    keys: tuple[tuple[str, str], ...]
    """(strategy, cache key), in the setup's order."""


def default_strategies() -> tuple[str, ...]:
    """All strategies but those whose summaries only a server makes."""
    return tuple(name for name in strategy_names() if name not in _SERVER_SIDE)


class _Loaded:
    """A session with what every boundary needs of it."""

    def __init__(self, transcript: Transcript) -> None:
        self.counter: Counter = O200kCounter()
        self.transcript = transcript
        self.view = transcript.view()
        self.costs = [entry_cost(entry, self.counter) for entry in self.view.entries]
        self.text = "\n".join(reading(self.view.entries))
        self.digest = blake2b(b"".join(map(encode, self.view.entries)), digest_size=12).hexdigest()
        self._occurs: dict[str, bool] = {}
        self.plans: dict[tuple[Arm, int], Plan | None] = {}

    def occurs(self, text: str) -> bool:
        """Whether a string occurs anywhere in the session; decoys are the same at every boundary, so each is looked for once."""
        if text not in self._occurs:
            self._occurs[text] = text in self.text
        return self._occurs[text]

    def size(self, position: int) -> int:
        """Tokens of the history before a position, system prompt excluded."""
        before = zip(self.view.entries[:position], self.costs[:position], strict=True)
        return sum(cost for entry, cost in before if entry.role not in ("system", "developer"))

    def at(self, position: int) -> View:
        entries = self.view.entries[:position]
        ids = {entry.id for entry in entries}
        return View(entries, markers=tuple(m for m in self.view.markers if m.after in ids))


@lru_cache(maxsize=4)
def _file(path: str) -> list[Transcript]:
    return read_sessions(Path(path))


@lru_cache(maxsize=2)
def _loaded(origin: Origin) -> _Loaded:
    return _Loaded(chain(origin.chain) if origin.chain is not None else _file(origin.path or "")[origin.index])


@lru_cache(maxsize=1)
def _code() -> str:
    """Hash of our own source, so that no row outlives the code that made it."""
    digest = blake2b(digest_size=8)
    for path in sorted(Path(__file__).resolve().parents[1].rglob("*.py")):
        if "cli" not in path.parts and "gateway" not in path.parts:
            digest.update(path.read_bytes())
    return digest.hexdigest()


def survey(origin: Origin, setup: Setup) -> list[Task]:
    """The tasks of one session."""
    loaded = _loaded(origin)
    if not loaded.view.entries:
        return []
    tasks: list[Task] = []
    for boundary in _boundaries(loaded, origin, setup):
        exams = tuple(exam for exam in setup.exams if exam != "continuation" or boundary.position < len(loaded.view))
        if boundary.label == f"{CONTINUATION_SHARE}%" and CONTINUATION_SHARE not in setup.shares:
            exams = tuple(exam for exam in exams if exam == "continuation")
        keys = tuple((name, _key(loaded.digest, boundary, name, exams, setup)) for name in setup.strategies)
        tasks.append(Task(origin, setup, boundary, exams, keys))
    return tasks


def _boundaries(loaded: _Loaded, origin: Origin, setup: Setup) -> list[Boundary]:
    if origin.chain is not None:
        stages = dict(zip((RECORDS_PER_STAGE * (stage + 1) for stage in SCORED_STAGES), SCORED_STAGES, strict=True))
        return [Boundary(records, f"{records} records", "records", stage) for records, stage in stages.items()]
    found = boundaries(loaded.view, setup.shares, loaded.costs)
    if "continuation" in setup.exams and 100 in setup.shares:
        extra = boundaries(loaded.view, (CONTINUATION_SHARE,), loaded.costs, recorded=False)
        taken = {boundary.position for boundary in found}
        found += [boundary for boundary in extra if boundary.position not in taken]
    return sorted(found, key=lambda boundary: boundary.position)


def _key(digest: str, boundary: Boundary, strategy: str, exams: Sequence[str], setup: Setup) -> str:
    made = strategy_by_name(strategy)
    parts = [
        _code(), digest, boundary.position, boundary.stage, strategy, made.version, made.options(), exams, setup.mode, setup.window,
        setup.output_ceiling, setup.profile, setup.counter, setup.targets, setup.target_of, setup.summarisers, setup.seeds, setup.carry,
        setup.shares if setup.carry or setup.mode == "deployed" else None,
    ]  # fmt: skip
    return blake2b(compact_json(parts).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def measure(task: Task) -> list[tuple[str, list[Row]]]:
    """The rows of one task, by cache key."""
    loaded = _loaded(task.origin)
    setup = task.setup
    asked = questions(
        loaded.view.entries,
        task.boundary,
        loaded.costs,
        loaded.counter,
        exams=task.exams,
        seeds=setup.seeds,
        occurs=loaded.occurs,
    )
    wanted = _target(task, loaded)
    out: list[tuple[str, list[Row]]] = []
    for name, key in task.keys:
        rows: list[Row] = []
        for target in _sizes(name, setup, wanted):
            for by in setup.summarisers:
                arm = Arm(name, target, by)
                made = _projected(arm, task, loaded)
                if made is None:
                    break
                rows += _rows(arm, made, asked, task, loaded)
                if not made.asked and not _asks(name):
                    # It wants no summary, so the other summarisers would give the same.
                    break
        out.append((key, rows))
    return out


def _sizes(strategy: str, setup: Setup, wanted: int | None) -> tuple[int | None, ...]:
    """The sizes to ask for; a strategy without a knob for its size is a single point."""
    if strategy == setup.target_of or strategy_by_name(strategy).at_size(8_000) is None:
        return (None,)
    return setup.targets if wanted is None else (wanted,)


@lru_cache(maxsize=64)
def _asks(strategy: str) -> bool:
    """Whether a strategy wants summaries, tried on a chain that is too long for its window; so that its rows have one label throughout."""
    view = View(chain("export", 1).entries)
    budget = Budget.of(200_000, counter=EstimateCounter())
    return run_arm(Arm(strategy), strategy_by_name(strategy), view, budget, None, "forced", EstimateCounter()).asked


def _target(task: Task, loaded: _Loaded) -> int | None:
    if task.setup.target_of is None:
        return None
    made = _projected(Arm(task.setup.target_of, None, task.setup.summarisers[-1]), task, loaded)
    return size_of(made.entries, loaded.counter) if made is not None and made.outcome == "compacted" else None


def _projected(arm: Arm, task: Task, loaded: _Loaded) -> Projected | None:
    """What the arm shows at the task's boundary, or None where it has no such size or nothing was recorded."""
    strategy = arm.made()
    if strategy is None:
        return None
    setup = task.setup
    budget = _budget(loaded, setup, task.origin)
    made: Projected | None = None
    for position in _positions(task, loaded):
        previous = loaded.plans.get((arm, _before(position, task, loaded)))
        if position != task.boundary.position and (arm, position) in loaded.plans:
            continue
        made = run_arm(arm, strategy, loaded.at(position), budget, previous, setup.mode, loaded.counter)
        loaded.plans[arm, position] = made.plan
    return None if made is None or made.outcome == "none" else made


def _positions(task: Task, loaded: _Loaded) -> list[int]:
    """Where the arm compacts up to the boundary: only there, or also before, when it carries its state on."""
    last = task.boundary.position
    if not task.setup.carry and task.setup.mode == "forced":
        return [last]
    places = {boundary.position for boundary in _boundaries(loaded, task.origin, task.setup)}
    if task.origin.chain is not None:
        places |= set(_CARRIED)
    return sorted(place for place in places if place <= last)


def _before(position: int, task: Task, loaded: _Loaded) -> int:
    return max((place for place in _positions(task, loaded) if place < position), default=-1)


def _budget(loaded: _Loaded, setup: Setup, origin: Origin) -> Budget:
    counter = EstimateCounter() if setup.counter == "estimate" else counter_for_model(loaded.transcript.model)
    fixed = 0
    if origin.chain is None:
        tools = loaded.transcript.tools
        fixed = counter.count(loaded.transcript.system or "") + (
            counter.count(compact_json(list(tools))) if tools else 0
        )
    return Budget.of(setup.window, setup.output_ceiling, fixed=fixed, counter=counter, profile=setup.profile)


def _rows(arm: Arm, made: Projected, asked: Questions, task: Task, loaded: _Loaded) -> Iterator[Row]:
    size = size_of(made.entries, loaded.counter)
    history = loaded.size(task.boundary.position)
    for one in ask(asked, made.entries, size):
        yield Row(
            session=loaded.transcript.id,
            format=loaded.transcript.format,
            boundary=task.boundary.label,
            position=task.boundary.position,
            strategy=arm.strategy,
            target=arm.target,
            summariser=arm.summariser if made.asked or _asks(arm.strategy) else "-",
            mode=task.setup.mode,
            window=task.setup.window,
            outcome=made.outcome,
            exam=one.exam,
            reader=READER,
            source=one.source,
            hits=one.hits,
            of=one.of,
            values=one.values,
            false_positives=one.false_positives,
            tokens=size,
            history=history,
            milliseconds=made.milliseconds,
            oracle=one.oracle,
            by_age=one.by_age,
        )


def replay(origin: Origin, setup: Setup, windows: Sequence[int]) -> list[Row]:
    """Survival of one session: each strategy that needs no summary by rules, the others with the setup's last summariser.

    Strategies that are pure functions of the originals on request are replayed so, as a `Session` does by default.
    """
    transcript = _loaded(origin).transcript
    rows: list[Row] = []
    for name in setup.strategies:
        made = strategy_by_name(name)
        if name == "recorded":
            continue
        options = {"from_originals": True} if made.options().get("from_originals") is False else {}
        for window in windows:
            rows += survive(
                transcript,
                strategy_by_name(name, **options),
                window,
                O200kCounter(),
                summariser=setup.summarisers[-1],
                seeds=setup.seeds,
            )
    return rows


def run(
    origins: Sequence[Origin],
    setup: Setup,
    cache: Cache,
    *,
    workers: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Row]:
    """All rows, in the order of sessions, boundaries and strategies, whatever order they were measured in.

    Args:
        origins: the sessions.
        setup: how they are measured.
        cache: what was measured before is taken from it, and what is measured now is added at once.
        workers: processes; None for one per core, 1 for none beside this one.
        progress: called with the finished and the whole number of tasks.
    """
    workers = workers or os.cpu_count() or 1
    if workers == 1:
        return _run(origins, setup, cache, None, progress)
    # A fresh interpreter for each worker: a fork would copy the threads of a progress display.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        try:
            return _run(origins, setup, cache, pool, progress)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _run(
    origins: Sequence[Origin],
    setup: Setup,
    cache: Cache,
    pool: ProcessPoolExecutor | None,
    progress: Callable[[int, int], None],
) -> list[Row]:
    surveys = map(survey, origins, repeat(setup)) if pool is None else pool.map(survey, origins, repeat(setup))
    tasks = [task for found in surveys for task in found]
    missing = [part for task in tasks if (part := _missing(task, cache)) is not None]
    done = len(tasks) - len(missing)
    progress(done, len(tasks))
    if pool is None:
        for task in missing:
            for key, rows in measure(task):
                cache.add(key, rows)
            progress(done := done + 1, len(tasks))
    else:
        futures: list[Future[list[tuple[str, list[Row]]]]] = [pool.submit(measure, task) for task in missing]
        for future in as_completed(futures):
            for key, rows in future.result():
                cache.add(key, rows)
            progress(done := done + 1, len(tasks))
    return [row for task in tasks for _, key in task.keys for row in cache[key]]


def _missing(task: Task, cache: Cache) -> Task | None:
    keys = tuple(pair for pair in task.keys if pair[1] not in cache)
    return Task(task.origin, task.setup, task.boundary, task.exams, keys) if keys else None
