"""A run of the model as reader: every arm of every boundary is asked the same questions, in several replicates, within one budget."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from random import Random

from ...budget import Budget
from ...codec import compact_json
from ...projection.repair import repair
from ...samples import RECORDS_PER_STAGE, SCORED_STAGES
from ...tokens import Counter, EstimateCounter, O200kCounter, counter_for_model, entry_cost
from ...transcript import Entry, Transcript, View
from ..arms import Arm, Projected, size_of
from ..boundaries import EXAM_TAIL, Boundary, boundaries, exam_tail
from ..exams.cloze import question as masked
from ..exams.published import rendered
from ..questions import questions
from ..values import Value, homes, reading, shows
from .arms import projected, strategy_of
from .batches import Batch, ModelExam, batches
from .bodies import Way, question_body
from .endpoint import reply_json
from .jobs import Ask, Job, Jobs, Unanswered
from .paid_calls import BudgetSpentError, Call, UnresolvedCallError
from .parsing import Why, filled, named, said
from .results import Answer
from .shape import RequestShape, shape_of

__all__ = ["Place", "Plan", "Reading", "judge", "places", "read"]


@dataclass(frozen=True)
class Plan:
    """How a model is asked; the same for all sessions."""

    arms: tuple[Arm, ...]
    exams: tuple[ModelExam, ...] = ("recognition",)
    shares: tuple[int, ...] = (100,)
    values: int = 24
    """Values asked at each boundary in each exam but `published`, decoys not counted."""
    replicates: int = 3
    way: Way = "session"
    shape: RequestShape | None = None
    """A captured shape for all sessions; None for each session's own."""
    exam_tail: int = EXAM_TAIL
    """Tokens of the newest entries whose values are not asked; 0 asks all, for sessions that are shorter than the usual tail."""
    window: int = 200_000
    output_ceiling: int | None = None
    """Of the strategies' budgets."""
    profile: str = "product"
    chains: bool = False
    """The sessions are chains of the published experiment: cut at its records, counted as it counts."""
    max_output: int = 2_048
    temperature: float | None = 0.0
    seed: int = 0


@dataclass(frozen=True)
class Place:
    """One boundary of one session, with what is asked there and what each arm shows."""

    session: Transcript
    boundary: Boundary
    shape: RequestShape
    batches: tuple[Batch, ...]
    shown: tuple[tuple[Arm, Projected], ...]
    history: int
    """Tokens of the history before it, by the exact counter."""


@dataclass
class Reading:
    """What a run brought."""

    answers: list[Answer] = field(default_factory=list)
    """Of questions that all arms answered; a question that one arm was not asked is scored for none."""
    planned: int = 0
    """Calls that put questions, if all are made."""
    asked: int = 0
    """Of them, with a reply, now or in an earlier run."""
    unpaired: int = 0
    """Replies left out since another arm has none to the same question."""
    unresolved: list[str] = field(default_factory=list)
    """Calls of which no reply is known, one sentence each."""
    stopped: str | None = None
    """Why not all were made."""


@dataclass(frozen=True)
class _Draft:
    """A place whose projections are not made yet."""

    session: _Session
    place: Place
    budget: Budget


def places(sessions: Sequence[Transcript], plan: Plan, jobs: Jobs | None = None) -> Iterator[Place]:
    """The boundaries of all sessions with their questions and projections.

    Args:
        sessions: which ones.
        plan: the arms, exams and boundaries.
        jobs: write and pay for the summaries of arms whose summariser is the model; None where there are none.

    Raises:
        BudgetSpentError: a summary does not fit the budget.
        ProviderError: the endpoint refuses the key, or knows no such model.
        UnresolvedCallError: a summary was asked for before, and there is no reply.
    """
    counter = O200kCounter()
    drafts = _drafts([_Session(session, counter) for session in sessions], plan, counter)
    if jobs is None:
        for draft in drafts:
            shown = tuple((arm, _projection(draft, arm, counter, None)) for arm in plan.arms)
            yield _complete(draft, shown)
        return
    begun: list[_Draft] = []

    def each() -> Iterator[Job[tuple[Arm, Projected]]]:
        for draft in drafts:
            begun.append(draft)
            for arm in plan.arms:
                yield partial(_summarised, draft, arm, counter)

    with closing(jobs.in_order(each())) as made:
        for number, shown in enumerate(iter(lambda: tuple(islice(made, len(plan.arms))), ())):
            yield _complete(begun[number], shown)


def _drafts(found: Sequence[_Session], plan: Plan, counter: Counter) -> Iterator[_Draft]:
    for one in found:
        cloze = "cloze" in plan.exams
        strangers = _strangers(one, found) if cloze else []
        ambiguous = {line for line, times in one.gaps.items() if times > 1} if cloze else set()
        for boundary in _boundaries(one, plan):
            asked = questions(
                one.view.entries,
                boundary,
                one.costs,
                counter,
                exams=("recognition", *plan.exams),
                seeds=1,
                occurs=one.occurs,
                tail=exam_tail(one.view.entries, boundary.position, counter, plan.exam_tail),
            )
            shape = plan.shape or shape_of(one.session)
            before = zip(one.view.entries[: boundary.position], one.costs, strict=False)
            history = sum(cost for entry, cost in before if entry.role not in ("system", "developer"))
            put = tuple(
                batches(asked, plan.exams, plan.values, strangers=strangers, ambiguous=ambiguous, seed=plan.seed)
            )
            place = Place(one.session, boundary, shape, put, (), history)
            yield _Draft(one, place, _budget(one, plan, shape))


def _budget(one: _Session, plan: Plan, shape: RequestShape) -> Budget:
    counted: Counter = EstimateCounter() if plan.chains else counter_for_model(one.session.model)
    tools = counted.count(compact_json(list(shape.tools))) if shape.tools else 0
    fixed = counted.count(shape.system or "") + tools
    return Budget.of(plan.window, plan.output_ceiling, fixed=fixed, counter=counted, profile=plan.profile)


def _summarised(draft: _Draft, arm: Arm, counter: Counter, ask: Ask) -> tuple[Arm, Projected]:
    return arm, _projection(draft, arm, counter, ask)


def _projection(draft: _Draft, arm: Arm, counter: Counter, ask: Ask | None) -> Projected:
    place = draft.place
    return projected(
        arm,
        strategy_of(arm),
        draft.session.before(place.boundary.position),
        draft.budget,
        counter,
        ask=ask,
        shape=place.shape,
        identity=f"{place.session.id}/{place.boundary.label}/{arm.strategy}/{arm.target or '-'}/{arm.summariser}",
    )


def _complete(draft: _Draft, shown: Iterable[tuple[Arm, Projected]]) -> Place:
    return replace(draft.place, shown=tuple((arm, made) for arm, made in shown if made.outcome != "none"))


def _boundaries(one: _Session, plan: Plan) -> list[Boundary]:
    if plan.chains:
        ends = [(RECORDS_PER_STAGE * (stage + 1), stage) for stage in SCORED_STAGES]
        return [Boundary(records, f"{records} records", "records", stage) for records, stage in ends]
    recorded = any(arm.strategy == "recorded" for arm in plan.arms)
    return boundaries(one.view, plan.shares, one.costs, recorded=recorded)


class _Session:
    def __init__(self, session: Transcript, counter: Counter) -> None:
        self.session = session
        self.view = session.view()
        self.costs = [entry_cost(entry, counter) for entry in self.view.entries]
        self.text = "\n".join(reading(self.view.entries))

    def occurs(self, text: str) -> bool:
        return text in self.text

    @cached_property
    def homes(self) -> dict[str, Value]:
        return homes(self.view.entries)

    @cached_property
    def gaps(self) -> Tally[str]:
        """Its masked lines, and how many values would fill each."""
        return Tally(line for value in self.homes.values() if (line := masked(value)))

    def before(self, position: int) -> View:
        entries = self.view.entries[:position]
        ids = {entry.id for entry in entries}
        return View(entries, markers=tuple(marker for marker in self.view.markers if marker.after in ids))


def _strangers(own: _Session, every: Sequence[_Session]) -> list[Value]:
    """Values of the other sessions of which this one has neither the string nor a line that fits the gap."""
    return [
        value
        for other in every
        if other is not own
        for value in other.homes.values()
        if value.text not in own.text and (line := masked(value)) and line not in own.gaps
    ]


def read(
    found: Sequence[Place],
    plan: Plan,
    jobs: Jobs,
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Reading:
    """Puts all questions of all places to the model.

    All arms are asked a question before the next one is put, and each replicate is complete before the next begins, so that a budget that
    runs out leaves a fair comparison of fewer questions. The result is the same however many calls are made at a time.

    Raises:
        ProviderError: the endpoint refuses the key or knows no such model, or nothing was answered for some calls on end.
    """
    result = Reading(planned=plan.replicates * sum(len(place.batches) * len(place.shown) for place in found))
    every: list[Answer] = []
    unanswered = Unanswered(jobs.endpoint, result.unresolved)
    asked = (partial(_question, plan, *one) for one in _order(found, plan))
    with closing(jobs.in_order(asked)) as outcomes:
        try:
            for outcome in outcomes:
                if not isinstance(outcome, Answer):
                    unanswered.add(outcome)
                    continue
                unanswered.answered()
                result.asked += 1
                every.append(outcome)
                progress(result.asked, result.planned)
        except BudgetSpentError as error:
            result.stopped = str(error)
    arms = {arm for place in found for arm, _ in place.shown}
    result.answers = _paired(every, found, arms)
    result.unpaired = len(every) - len(result.answers)
    return result


def _question(
    plan: Plan, replicate: int, place: Place, batch: Batch, arm: Arm, made: Projected, ask: Ask
) -> Answer | Call | UnresolvedCallError:
    """One question; a call that failed, or the error of one that is not sent again, where there is no answer."""
    identity = (
        f"{place.session.id}/{place.boundary.label}/{batch.name}/{arm.strategy}/{arm.target or '-'}/{arm.summariser}/{plan.way}/"
        f"replicate {replicate}"
    )
    entries = repair(made.entries).entries
    body = question_body(
        plan.way, place.shape, entries, batch.text, max_output=plan.max_output, temperature=plan.temperature
    )
    try:
        call = ask(identity, body)
    except UnresolvedCallError as error:
        return error
    return call if call.state == "failed" else _answer(call, place, batch, arm, made, entries, replicate, plan)


def _order(found: Sequence[Place], plan: Plan) -> Iterator[tuple[int, Place, Batch, Arm, Projected]]:
    for replicate in range(1, plan.replicates + 1):
        for place in found:
            for batch in place.batches:
                # The order of the arms is drawn anew for each question: who comes first finds a colder cache.
                arms = list(place.shown)
                Random(f"{plan.seed}:{replicate}:{place.session.id}:{place.boundary.label}:{batch.name}").shuffle(arms)
                for arm, made in arms:
                    yield replicate, place, batch, arm, made


def judge(batch: Batch, call: Call, *, first: bool) -> tuple[frozenset[str], Why]:
    """The keys of a question that a reply claims, and why it is no answer.

    Args:
        batch: the question.
        call: with the reply.
        first: judge lists as the published exam does.
    """
    reply = said(reply_json(call.reply))
    if batch.exam != "cloze":
        judged = named(reply, {one.key for one in batch.asked}, first=first)
        return frozenset(judged.values), judged.why
    given, why = filled(reply, [one.key for one in batch.asked])
    # A gap that is filled with something else is no hit; on a decoy, any filling is wrong.
    return frozenset(
        one.key for one in batch.asked if one.key in given and (one.decoy or given[one.key] == one.value)
    ), why


def _answer(
    call: Call,
    place: Place,
    batch: Batch,
    arm: Arm,
    made: Projected,
    entries: Sequence[Entry],
    replicate: int,
    plan: Plan,
) -> Answer:
    claimed, why = judge(batch, call, first=plan.way == "published")
    return Answer(
        session=place.session.id,
        format=place.session.format,
        boundary=place.boundary.label,
        position=place.boundary.position,
        arm=arm,
        replicate=replicate,
        batch=batch,
        claimed=claimed,
        contained=contained_in(entries, batch),
        why=why,
        tokens=size_of(tuple(entries), O200kCounter()),
        history=place.history,
        outcome=made.outcome,
        window=plan.window,
        asks=made.asked,
    )


def contained_in(entries: Sequence[Entry], batch: Batch) -> frozenset[str]:
    """Keys of the values that a projection's text shows, as the literal reader says."""
    if batch.exam == "published":
        text = rendered(entries)
        return frozenset(one.key for one in batch.values if one.value in text)
    text = "\n".join(reading(entries))
    return frozenset(one.key for one in batch.values if shows(text, one.value))


def _paired(every: Sequence[Answer], found: Sequence[Place], arms: set[Arm]) -> list[Answer]:
    """The answers to questions that all arms of their place have answered."""
    wanted = {(place.session.id, place.boundary.label): len(place.shown) for place in found}
    counts: dict[tuple[str, str, str, int], int] = {}
    for answer in every:
        counts[answer.question] = counts.get(answer.question, 0) + 1
    return [answer for answer in every if counts[answer.question] == wanted[answer.session, answer.boundary]]
