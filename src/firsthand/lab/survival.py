"""Survival: what is left of a session after many compactions, replayed through a real `Session` (measures.md, "Survival").

A strategy that compacts its own output loses something each time; one that goes back to the originals does not. So a session is appended entry by
entry, the strategy's own trigger decides, and after the 1st, 5th and 20th compaction everything before it is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from ..budget import Budget, Occupancy
from ..codec import compact_json
from ..errors import RequestTooLargeError
from ..journal import Journal
from ..session.session import Session
from ..strategies.contract import CompactionRequest, DueState, Phase, Plan, Strategy
from ..tokens import Counter, counter_for_model, entry_cost, total_cost
from ..transcript import Entry, Transcript, View
from .arms import size_of
from .boundaries import Boundary
from .exams.recognition import draw
from .questions import READER, Measured, ask, questions
from .results import Row
from .searched import Occurring, Searched
from .steadiness import Line, chosen_lines, stayed
from .summarisers import CAP, extract, http_model, is_model, label
from .values import KINDS, Homes, homes, literal, reading

__all__ = ["AFTER", "EARLIEST_SHARE", "WINDOWS", "survive"]

AFTER = (1, 5, 20)
"""Compactions after which the exams are taken."""

WINDOWS = (32_000, 128_000, 200_000)

EARLIEST_SHARE = 5
"""Percent of a session's tokens whose values are asked as `earliest`."""

_EXAMS = ("recognition", "supported", "constraints")


def survive(
    transcript: Transcript,
    strategy: Strategy,
    window: int,
    counter: Counter,
    *,
    summariser: str = "none",
    model: str = "",
    after: Sequence[int] = AFTER,
    seeds: int = 1,
    target: int | None = None,
    own_counter: Counter | None = None,
) -> Iterator[Row]:
    """The rows of one replay. Their `boundary` says after which compaction; steps whose request no compaction makes small enough are passed over.

    Args:
        transcript: the session. What its client counted is left out: it was counted under other compactions.
        strategy: decides, and says when.
        window: of the session, in tokens.
        counter: measures sizes.
        summariser: `none`, so that a strategy that needs a summary falls back on rules, `extractive`, or the URL of an endpoint.
        model: the model's name there.
        after: the compactions after which exams are taken.
        seeds: draws.
        target: the size that the strategy was given, for the rows.
        own_counter: the session's; by default the calibrated one of the model's family.
    """
    entries = tuple(msgspec.structs.replace(entry, usage=None, parent=None) for entry in transcript.path())
    if not _may_compact(entries, transcript.model, strategy, window):
        return
    costs = [entry_cost(entry, counter) for entry in entries]
    occurs = Occurring("\n".join(reading(entries)))
    found = Homes(entries)
    calls: list[int] = []
    asks = _summariser(counter, calls, summariser, model)
    earliest = _Earliest(entries, costs)
    steady = _Steady()
    made = 0
    with TemporaryDirectory(prefix="firsthand-lab-") as folder, Journal.open(Path(folder) / "replay.db") as journal:
        session = Session.open(
            "replay",
            journal=journal,
            window=window,
            model=transcript.model,
            strategy=strategy,
            summariser=asks,
            counter=own_counter,
        )
        for position, entry in enumerate(entries):
            if entry.role == "assistant" and position and entries[position - 1].role != "assistant":
                try:
                    prepared = session.prepare()
                except RequestTooLargeError:
                    # A real agent would stop here. What is asked is how much is left once later steps fit again.
                    session.append([entry])
                    continue
                outcome = prepared.outcome
                if outcome is not None and outcome.checkpoint is not None and outcome.kind in ("applied", "fallback"):
                    made += 1
                    view = session.journal.view(session.id)
                    steady.add(view, outcome.checkpoint.plan)
                    if made in after:
                        asked = questions(
                            entries,
                            Boundary(position, f"compaction {made}"),
                            costs,
                            counter,
                            exams=_EXAMS,
                            seeds=seeds,
                            occurs=occurs,
                            found=found,
                        )
                        size = size_of(prepared.entries, counter)
                        equal = _same(strategy, session, outcome.checkpoint.plan, prepared.budget)
                        measured = [
                            *ask(asked, prepared.entries, size),
                            *earliest(prepared.entries),
                            *steady.measured(),
                        ]
                        for one in measured:
                            yield Row(
                                session=transcript.id,
                                format=transcript.format,
                                boundary=f"compaction {made}",
                                position=position,
                                strategy=strategy.name,
                                target=target,
                                summariser=label(summariser) if calls else "-",
                                mode="replay",
                                window=window,
                                outcome="compacted" if outcome.kind == "applied" else "fallback",
                                exam=one.exam,
                                reader=READER,
                                source=one.source,
                                hits=one.hits,
                                of=one.of,
                                values=one.values,
                                false_positives=one.false_positives,
                                tokens=size,
                                history=sum(costs[:position]),
                                milliseconds=0.0,
                                by_age=one.by_age,
                                equal=equal,
                            )
                    if made >= max(after):
                        return
            session.append([entry])


def _may_compact(entries: Sequence[Entry], model: str | None, strategy: Strategy, window: int) -> bool:
    """Whether the replay can come to a compaction: not where all of it, with a quarter more for what repairs add, is below the trigger."""
    budget = Budget.of(window, counter=counter_for_model(model))
    occupancy = Occupancy(total_cost(entries, budget.counter) * 5 // 4)
    phases: tuple[Phase, ...] = ("pre_turn", "mid_turn")
    return any(strategy.due(occupancy, budget, DueState(phase=phase)) is not None for phase in phases)


class _Earliest:
    """Values of the session's first tokens: `earliest` asks all of them, `early-drawn` as many of each kind as `recognition` draws."""

    def __init__(self, entries: Sequence[Entry], costs: Sequence[int]) -> None:
        first = sum(passed * 100 <= sum(costs) * EARLIEST_SHARE for passed in accumulate(costs))
        self._values = homes(entries[:first])
        self._drawn = draw(self._values, [0] * first, "").older

    def __call__(self, shown: Sequence[Entry]) -> Iterator[Measured]:
        searched = Searched("\n".join(reading(shown)))
        for source in KINDS:
            asked = [value.text for value in self._values.values() if value.kind == source]
            if asked:
                yield Measured("earliest", source, sum(map(searched.shows, asked)), len(asked), len(asked))
                drawn = [value.text for values in self._drawn for value in values if value.kind == source]
                yield Measured("early-drawn", source, sum(map(searched.shows, drawn)), len(drawn), len(set(drawn)))


class _Steady:
    """`lines-kept`: of the lines that a checkpoint chose, how many the next one still shows; over all pairs so far."""

    def __init__(self) -> None:
        self._lines: frozenset[Line] = frozenset()
        self._stayed = 0
        self._chosen = 0

    def add(self, view: View, plan: Plan) -> None:
        self._stayed += stayed(self._lines, view, plan)
        self._chosen += len(self._lines)
        self._lines = chosen_lines(view, plan)

    def measured(self) -> Iterator[Measured]:
        if self._chosen:
            yield Measured("lines-kept", "plan", self._stayed, self._chosen, len(self._lines))


def _same(strategy: Strategy, session: Session, plan: Plan, budget: Any) -> bool | None:
    """Whether the plan equals the one computed at once from the originals; None where that needs a summary."""
    view: View = session.journal.view(session.id)
    positions = view.positions
    if plan.cutoff not in positions:
        return None
    once = strategy.plan(view, budget, CompactionRequest(trigger=plan.trigger, phase=plan.phase), None)
    return (once.cutoff, once.items) == (plan.cutoff, plan.items) if isinstance(once, Plan) else None


def _summariser(counter: Counter, calls: list[int], name: str, model: str) -> Any:
    if name == "none":
        return None
    if is_model(name):
        ask = http_model(name, model)

        def asked(body: Mapping[str, Any]) -> dict[str, Any]:
            calls.append(len(body["messages"]))
            return ask(body)

        return asked

    def answer(body: Mapping[str, Any]) -> dict[str, Any]:
        calls.append(len(body["messages"]))
        texts = [literal(_text(message)) for message in body["messages"]]
        # A client that serialises the history puts all of it into one message.
        messages = texts[:-1] if len(texts) > 2 else [part for text in texts for part in text.split("\n\n")]
        cap = min(CAP, int(body.get("max_completion_tokens") or CAP))
        text = extract(messages, cap, counter)
        return {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}]}

    return answer


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else compact_json(content)
