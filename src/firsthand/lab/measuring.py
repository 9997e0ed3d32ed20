"""Measures one boundary of one session: runs the arms, at their own size or at a rival's, and puts the questions to what they show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, TypeAlias

from ..budget import Budget
from ..projection.plan import Plan
from ..projection.render import applies
from ..projection.repair import repair
from ..samples import RECORDS_PER_STAGE, SCORED_STAGES, chain
from ..strategies import strategy_by_name
from ..strategies.contract import Strategy
from ..tokens import EstimateCounter
from ..transcript import Entry, View
from .arms import Arm, Projected, run_arm, size_of
from .boundaries import Boundary, boundaries
from .exams.cloze import Recall
from .fitting import fitted
from .loaded import Loaded, Origin
from .questions import READER, Measured, Questions, ask, ask_with_recall, questions
from .results import Row
from .run_setup import Rival, Setup
from .strangers import Strangers
from .summarisers import Summariser, label, summariser

__all__ = ["CONTINUATION_SHARE", "Bench", "Job", "Kept", "Task", "boundaries_of", "measured"]

CONTINUATION_SHARE = 90
"""Where `continuation` is asked instead of at the end, after which nothing follows."""

_CARRIED = (96, 180)
"""Records of a synthetic chain after which a compaction is made and nothing is asked (futureos.md 8.3)."""


Kept: TypeAlias = dict[tuple[object, ...], Any]
"""Projections, questions and summarisers of one boundary, by what they depend on."""


@dataclass(frozen=True)
class Job:
    """One strategy at its own sizes, or at the size of one rival."""

    strategy: str
    rival: Rival | None = None


@dataclass(frozen=True)
class Task:
    """One boundary of one session, for the jobs that the cache lacks."""

    origin: Origin
    setup: Setup
    boundary: Boundary
    exams: tuple[str, ...]
    jobs: tuple[tuple[Job, str], ...]
    """Each with its cache key, in the setup's order."""
    strangers: Strangers = field(default_factory=Strangers)
    """What the other sessions of the run lend to decoys."""


def boundaries_of(loaded: Loaded, origin: Origin, setup: Setup) -> list[Boundary]:
    """Where a session is cut, oldest first."""
    if origin.chain is not None:
        stages = dict(zip((RECORDS_PER_STAGE * (stage + 1) for stage in SCORED_STAGES), SCORED_STAGES, strict=True))
        return [Boundary(records, f"{records} records", "records", stage) for records, stage in stages.items()]
    found = boundaries(loaded.view, setup.shares, loaded.costs)
    if "continuation" in setup.exams and 100 in setup.shares:
        extra = boundaries(loaded.view, (CONTINUATION_SHARE,), loaded.costs, recorded=False)
        taken = {boundary.position for boundary in found}
        found += [boundary for boundary in extra if boundary.position not in taken]
    return sorted(found, key=lambda boundary: boundary.position)


def measured(task: Task, loaded: Loaded, kept: Kept | None = None) -> list[tuple[str, list[Row]]]:
    """The rows of one task, by cache key.

    Args:
        task: the task.
        loaded: its session.
        kept: what earlier tasks at the same boundary made, and what this one makes is added to.
    """
    bench = Bench(task, loaded, kept)
    return [(key, list(bench.rows(job))) for job, key in task.jobs]


@lru_cache(maxsize=64)
def _asks(strategy: str) -> bool:
    """Whether a strategy wants summaries, tried on a chain that is too long for its window; so that its rows have one label throughout."""
    view = View(chain("export", 1).entries)
    budget = Budget.of(200_000, counter=EstimateCounter())
    return run_arm(Arm(strategy), strategy_by_name(strategy), view, budget, None, "forced", EstimateCounter()).asked


class Bench:
    """One boundary with its questions and what was made there already."""

    def __init__(self, task: Task, loaded: Loaded, kept: Kept | None = None) -> None:
        self.task = task
        self.setup = task.setup
        self.loaded = loaded
        self.position = task.boundary.position
        setup = task.setup
        stateful = setup.carry or setup.mode != "forced"
        # What a plan depends on, so that setups that differ in their questions or sizes only share what was made.
        self._planned = replace(
            setup, strategies=(), targets=(), rivals=(), summarisers=(), seeds=0, recall=None, timed=True,
            shares=setup.shares if stateful else (), exams=setup.exams if stateful else (),
        )  # fmt: skip
        self._kept: Kept = {} if kept is None else kept
        self._asked: Questions | None = None

    @property
    def asked(self) -> Questions:
        """The questions of the boundary, drawn when they are first needed."""
        if self._asked is None:
            key = ("asked", self.task.boundary, self.task.exams, self.setup.seeds, self.task.strangers)
            if key not in self._kept:
                self._kept[key] = self._drawn()
            self._asked = self._kept[key]
        return self._asked

    def _drawn(self) -> Questions:
        loaded = self.loaded
        return questions(
            loaded.view.entries,
            self.task.boundary,
            loaded.costs,
            loaded.counter,
            exams=self.task.exams,
            seeds=self.setup.seeds,
            occurs=loaded.occurs,
            found=loaded.homes,
            rare=loaded.rare,
            parts=self.task.strangers.parts,
            lines=self.task.strangers.lines,
        )

    def rows(self, job: Job) -> Iterator[Row]:
        """The rows of one job."""
        for arms in self._arms(job):
            for arm in arms:
                made = self.projected(arm, self.position)
                if made is None:
                    break
                yield from self._scored(arm, made)
                if not made.asked and not _asks(job.strategy):
                    # It wants no summary, so the other summarisers would give the same.
                    break

    def _arms(self, job: Job) -> Iterator[list[Arm]]:
        """What is run, in groups that differ in the summariser only."""
        name, summarisers = job.strategy, self.setup.summarisers
        sized = strategy_by_name(name).at_size(8_000) is not None
        if job.rival is None:
            for target in self.setup.targets if sized else (None,):
                yield [Arm(name, target, by) for by in summarisers]
        elif job.rival.strategy == name:
            yield [self.setup.rival_arm(job.rival)]
        elif sized:
            for tail in ("free", "forced"):
                yield [Arm(name, None, by, job.rival.label, tail) for by in summarisers]

    def projected(self, arm: Arm, position: int) -> Projected | None:
        """What the arm shows at a position, or None where it has no such size or nothing was recorded."""
        key = self._key(arm, position)
        if key not in self._kept:
            made = self._run(arm, position)
            self.loaded.plans[key] = made.plan if made is not None else None
            self._kept[key] = None if made is None or made.outcome == "none" else made
        found: Projected | None = self._kept[key]
        return found

    def _key(self, arm: Arm, position: int) -> tuple[object, ...]:
        """Equal for arms whose projection is the same one, whatever it is compared with."""
        compared = arm.tail in ("free", "forced")
        same = arm if compared else replace(arm, rival="", tail="")
        timed = self.setup.timed or (not compared and arm.target is None)
        return (self._planned, same, self.setup.summarisers[-1] if compared else "", timed, position)

    def _run(self, arm: Arm, position: int) -> Projected | None:
        previous = self._previous(arm, position)
        if arm.tail not in ("free", "forced"):
            if arm.target is None:
                view = self.loaded.at(position, strategy := strategy_by_name(arm.strategy))
                return self._plain(arm, strategy, view, previous, self.setup.counter)
            return self._fitted(arm, position, previous, arm.target, ())
        rival = self._rival(arm, position)
        if rival is None:
            return None
        tail = self._tail(rival, position) if arm.tail == "forced" else ()
        if arm.tail == "forced" and not tail:
            return self.projected(replace(arm, tail="free"), position)
        room = size_of(rival.entries, self.loaded.counter) - size_of(tail, self.loaded.counter)
        return self._fitted(arm, position - len(tail), previous, room, tail)

    def _rival(self, arm: Arm, position: int) -> Projected | None:
        """What the arm's rival shows; None where it made no projection, so that there is no size to be equal to."""
        rival = next(rival for rival in self.setup.rivals if rival.label == arm.rival)
        made = self.projected(self.setup.rival_arm(rival), position)
        return made if made is not None and made.plan is not None and made.outcome == "compacted" else None

    def _tail(self, rival: Projected, position: int) -> tuple[Entry, ...]:
        """What the rival shows byte for byte behind its cutoff."""
        assert rival.plan is not None
        return self.loaded.view.entries[self.loaded.view.positions[rival.plan.cutoff] + 1 : position]

    def _plain(
        self, arm: Arm, strategy: Strategy, view: View, previous: Plan | None, counter: str, tail: Sequence[Entry] = ()
    ) -> Projected:
        budget = self._budget(counter, remembering=False)
        return run_arm(
            arm,
            strategy,
            view,
            budget,
            previous,
            self.setup.mode,
            self.loaded.counter,
            tail=tail,
            summarise=self._summariser(arm),
        )

    def _fitted(
        self, arm: Arm, position: int, previous: Plan | None, room: int, tail: Sequence[Entry]
    ) -> Projected | None:
        """The arm in a room of so many tokens before a tail; `over` where it cannot be brought down to it.

        A strategy whose tail is an option makes none of its own before a tail that is there already.
        """
        strategy = strategy_by_name(arm.strategy)
        if tail and "tail" in strategy.options():
            strategy = strategy_by_name(arm.strategy, tail=0)
        if strategy.at_size(max(1, room)) is None:
            return None
        view = self.loaded.at(position, strategy)
        if room < 1 or not view.entries:
            # The rival shows its tail and nothing else, and so does whoever is put in its place.
            return Projected(repair(tail).entries, None, "compacted", 0.0, False)
        if previous is not None and not applies(previous, view):
            previous = None
        budget = self._budget(self.setup.sized_counter, remembering=True)
        behind = size_of(tail, self.loaded.counter)

        def run(wish: int) -> Projected:
            sized = strategy.at_size(wish)
            assert sized is not None
            return run_arm(
                arm,
                sized,
                view,
                budget,
                previous,
                self.setup.mode,
                self.loaded.counter,
                tail=tail,
                timed=False,
                summarise=self._summariser(arm),
            )

        def size(made: Projected) -> int | None:
            return None if not made.entries else size_of(made.entries, self.loaded.counter) - behind

        wish, made, fits = fitted(run, size, room)
        if self.setup.timed:
            sized = strategy.at_size(wish)
            assert sized is not None
            # Once more with nothing remembered, for the time.
            made = self._plain(arm, sized, view, previous, self.setup.sized_counter, tail)
        else:
            made = replace(made, milliseconds=0.0, cold=0.0)
        # A size that only a number asked for is a wish; what came out is measured beside it.
        compared = arm.tail in ("free", "forced") and made.outcome != "no-summary"
        return replace(made, outcome="over") if compared and not fits else made

    def _summariser(self, arm: Arm) -> Summariser:
        key = ("summariser", arm.summariser, self.setup.model)
        if key not in self._kept:
            self._kept[key] = summariser(
                arm.summariser, self.loaded.counter, model=self.setup.model, system=self.loaded.transcript.system
            )
        found: Summariser = self._kept[key]
        return found

    def _previous(self, arm: Arm, position: int) -> Plan | None:
        """The arm's own plan of the position before, where it carries its state on."""
        if not self.setup.carry and self.setup.mode == "forced":
            return None
        before = max((place for place in self._places() if place < position), default=None)
        if before is None:
            return None
        key = self._key(arm, before)
        if key not in self.loaded.plans:
            self.projected(arm, before)
        return self.loaded.plans[key]

    def _places(self) -> set[int]:
        places = {boundary.position for boundary in boundaries_of(self.loaded, self.task.origin, self.setup)}
        return places | set(_CARRIED) if self.task.origin.chain is not None else places

    def _budget(self, counter: str, *, remembering: bool) -> Budget:
        setup = self.setup
        return self.loaded.budget(
            setup.window,
            setup.output_ceiling,
            setup.profile,
            counter,
            remembering=remembering,
            fixed=self.task.origin.chain is None,
        )

    def _scored(self, arm: Arm, made: Projected) -> Iterator[Row]:
        size = size_of(made.entries, self.loaded.counter)
        history = self.loaded.size(self.position)
        target = arm.target
        if arm.tail in ("free", "forced"):
            rival = self._rival(arm, self.position)
            target = None if rival is None else size_of(rival.entries, self.loaded.counter)
        transcript = self.loaded.transcript
        found: list[tuple[Measured, int | None]] = [(one, None) for one in ask(self.asked, made.entries, size)]
        if (most := self.setup.recall) is not None and self.asked.exams & {"cloze", "published"}:
            recall = self._recall(made, most)
            found += [(one, most) for one in ask_with_recall(self.asked, made.entries, recall)]
        for one, recalled in found:
            yield Row(
                session=transcript.id,
                format=transcript.format,
                boundary=self.task.boundary.label,
                position=self.position,
                strategy=arm.strategy,
                target=target,
                rival=arm.rival,
                tail=arm.tail,
                summariser=label(arm.summariser) if made.asked or _asks(arm.strategy) else "-",
                mode=self.setup.mode,
                window=self.setup.window,
                outcome=made.outcome,
                exam=one.exam,
                reader=READER,
                recall=recalled,
                source=one.source,
                hits=one.hits,
                of=one.of,
                values=one.values,
                false_positives=one.false_positives,
                decoys=one.decoys,
                tokens=size,
                history=history,
                milliseconds=made.milliseconds,
                milliseconds_cold=made.cold,
                oracle=one.oracle,
                by_age=one.by_age,
            )

    def _recall(self, made: Projected, most: int) -> Recall:
        """What a user message brings of the history before the boundary, in a block of at most so many tokens."""
        from ..session.recall import Recallable

        if (key := ("recallable",)) not in self._kept:
            self._kept[key] = Recallable(self.loaded.view.entries[: self.position])
        history: Recallable = self._kept[key]
        block = history.over(made.entries, self.loaded.counter, most)
        return lambda message: [text] if (text := block(message)) else []
