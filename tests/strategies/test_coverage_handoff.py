"""`coverage+summary`: a model's handoff competes line by line; what fails, names nothing or is too long changes nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from real_sessions import shared

from firsthand.budget import Budget
from firsthand.formats import read_sessions
from firsthand.formats.wire import wire_by_name
from firsthand.journal import Journal
from firsthand.lab.summarisers import summariser
from firsthand.projection.plan import Plan, Synthetic
from firsthand.projection.render import project
from firsthand.projection.repair import repair
from firsthand.session.session import Session
from firsthand.strategies import strategy_by_name
from firsthand.strategies.contract import CompactionRequest, NeedsSummary, Summary, SummaryRequest
from firsthand.strategies.coverage.instruction import HEADINGS
from firsthand.strategies.coverage.summarised import CoverageSummarised
from firsthand.summary.model import HttpModel
from firsthand.testing.builders import call, result, said, session, user, view
from firsthand.testing.random_entries import entry_lists, paired_paths
from firsthand.testing.server import Failure, FakeServer, Reply
from firsthand.testing.validate import validate
from firsthand.tokens import EstimateCounter, total_cost
from firsthand.transcript import Entry, View

BUDGET = Budget.of(100_000, counter=EstimateCounter())
MANUAL = CompactionRequest(trigger="manual", phase="standalone")
LOG = "\n".join(
    f"worker wrote the file shard-{n}.bin after a while and then went on waiting for whatever would come next"
    for n in range(400)
)
LONG = (
    user("Port 8123 must stay free."),
    said("I read the log.", call("read", path="build/worker.log")),
    result("c1", LOG),
    said("I look further.", call("read", path="build/other.log")),
    result("c2", "nothing"),
)
TELLING = "- shard-17.bin, shard-18.bin, shard-19.bin, shard-20.bin, shard-21.bin, shard-22.bin, shard-23.bin come from build/worker.log."
EMPTY = "- The work goes on well and there is nothing else that anybody would have to know about it."
INVENTED = "- invented_one.py, invented_two.py, invented_three.py, invented_four.py and invented_five.py were changed."


def shown(decision: object) -> dict[str, str]:
    assert isinstance(decision, Plan)
    return {item.kind: item.text for item in decision.items if isinstance(item, Synthetic)}


def planned(text: str, target: int = 1_500, **options: int) -> Plan:
    strategy = CoverageSummarised(target=target, fixed_target=True, **options)
    decision = strategy.plan(view(*LONG), BUDGET, MANUAL, None, {"handoff": Summary(text)})
    assert isinstance(decision, Plan)
    return decision


def request_of(strategy: CoverageSummarised, seen: View, previous: Plan | None = None) -> SummaryRequest:
    decision = strategy.plan(seen, BUDGET, MANUAL, previous)
    assert isinstance(decision, NeedsSummary)
    return decision.requests[0]


def test_the_request_has_the_sessions_own_shape() -> None:
    request = request_of(CoverageSummarised(target=1_500), view(*LONG))
    assert (request.system, request.tools, request.requires) == (None, "session", HEADINGS)
    assert [getattr(item, "entry", None) for item in request.items] == ["e1", "e2", "e3", "e4", "e5"]
    assert all(f"\n{heading}\n" in request.instruction for heading in HEADINGS)
    assert request_of(CoverageSummarised(target=1_500, prompt="Sum up."), view(*LONG)).instruction == "Sum up."


def test_a_line_is_shown_when_it_names_more_for_its_tokens_than_the_originals() -> None:
    plan = planned(f"## Goal\n{EMPTY}\n## Done\n{TELLING}\n{INVENTED}\n## Open\n")
    label, *lines = shown(plan)["summary"].splitlines()
    assert "a model wrote" in label
    assert lines == ["## Done", TELLING]
    assert plan.notes["summary"].startswith("1 lines of it in ")
    assert plan.summary is not None
    assert INVENTED in plan.summary
    assert plan.rest == "summarised"


@pytest.mark.parametrize("text", [EMPTY, INVENTED, "## Goal\n## Done\n", f"## Goal\n{EMPTY}\n{INVENTED}"])
def test_a_summary_that_names_nothing_gets_nothing(text: str) -> None:
    plan = planned(text)
    alone = strategy_by_name("coverage", target=1_500, fixed_target=True).plan(view(*LONG), BUDGET, MANUAL)
    assert isinstance(alone, Plan)
    assert (plan.items, plan.excerpts) == (alone.items, alone.excerpts)
    assert plan.notes["summary"] == "nothing of it is worth its tokens"


def test_a_summary_keeps_to_its_share() -> None:
    text = "\n".join("- " + ", ".join(f"shard-{n}.bin" for n in range(start, start + 7)) for start in range(0, 399, 7))
    counter = BUDGET.counter
    for share in (0, 10, 30):
        found = shown(planned(text, 3_000, summary=share))
        assert counter.count(found.get("summary", "")) <= 30 * share
        assert bool(found.get("summary")) == (share > 0)
    assert total_cost(project(view(*LONG), planned(text, 3_000)), counter) <= 3_000


def test_a_failed_summary_leaves_the_excerpts() -> None:
    strategy = CoverageSummarised(target=1_500, fixed_target=True)
    plan = strategy.plan(view(*LONG), BUDGET, MANUAL, None, {"handoff": Summary(failure="the answer is empty")})
    alone = strategy_by_name("coverage", target=1_500, fixed_target=True).plan(view(*LONG), BUDGET, MANUAL)
    assert isinstance(plan, Plan)
    assert isinstance(alone, Plan)
    assert plan == msgspec.structs.replace(alone, notes={**alone.notes, "fallback": "the answer is empty"})


def test_a_summary_builds_on_the_last_one_that_was_written() -> None:
    strategy = CoverageSummarised(target=1_500, fixed_target=True)
    assert not strategy.recomputed
    first = planned(f"## Done\n{TELLING}")
    grown = view(*LONG, said("More.", call("read", path="more.log")), result("c3", LOG), said("Read."))
    assert json.dumps(f"## Done\n{TELLING}") in request_of(strategy, grown, first).instruction
    failed = strategy.plan(grown, BUDGET, MANUAL, first, {"handoff": Summary(failure="no answer")})
    assert isinstance(failed, Plan)
    assert failed.summary is None
    assert json.dumps(f"## Done\n{TELLING}") in request_of(strategy, grown, failed).instruction


def test_only_a_projection_that_can_be_made_asks_for_a_summary() -> None:
    short = CoverageSummarised().plan(view(user("hi"), said("Hello.")), BUDGET, CompactionRequest())
    assert type(short).__name__ == "Unchanged"


TEXTS = st.lists(
    st.sampled_from([*HEADINGS, TELLING, EMPTY, INVENTED, "- port 8123", "a/b.py: 17 ms. " * 30, "", "ß日本語 `x1`"]),
    max_size=12,
).map("\n".join)


@settings(max_examples=80)
@given(
    entries=st.one_of(entry_lists(12), paired_paths(5)),
    text=st.one_of(TEXTS, st.text(max_size=300)),
    target=st.sampled_from((100, 400, 1_500, 5_000)),
    share=st.sampled_from((0, 20, 100)),
)
def test_any_summary(entries: tuple[Entry, ...], text: str, target: int, share: int) -> None:
    """The target holds, every wire takes the result, and nothing is planned that `coverage` would not plan."""
    more = session(*LONG)
    seen = View((*entries, *(msgspec.structs.replace(entry, id=f"long-{entry.id}") for entry in more)))
    strategy = CoverageSummarised(target=target, fixed_target=True, summary=share)
    plan = strategy.plan(seen, BUDGET, MANUAL, None, {"handoff": Summary(text)})
    alone = strategy_by_name("coverage", target=target, fixed_target=True).plan(seen, BUDGET, MANUAL)
    assert isinstance(plan, Plan) == isinstance(alone, Plan)
    if not isinstance(plan, Plan):
        return
    entries_shown = project(seen, plan)
    assert plan.tokens_after == total_cost(entries_shown, BUDGET.counter)
    history = total_cost((e for e in entries_shown if e.role not in ("system", "developer")), BUDGET.counter)
    assert history <= target
    for wire in ("openai-chat", "openai-responses", "anthropic"):
        written = wire_by_name(wire).write(repair(entries_shown).entries)
        known = wire_by_name(wire).write(repair(project(seen, alone)).entries)
        assert {v.rule for v in validate(wire, written.messages, system=written.system)} <= {
            v.rule for v in validate(wire, known.messages, system=known.system)
        }


def test_an_extract_of_a_real_session_holds_the_target() -> None:
    [*_, found] = sorted(read_sessions(shared("pi/pi-before-compaction.jsonl.gz")), key=lambda one: len(one.path()))
    seen = View(found.view().entries[:200])
    strategy = CoverageSummarised(target=3_000, fixed_target=True)
    request = request_of(strategy, seen)
    answer = summariser("extractive", BUDGET.counter)(request, seen)
    plan = strategy.plan(seen, BUDGET, MANUAL, None, {"handoff": answer})
    assert isinstance(plan, Plan)
    assert total_cost(project(seen, plan), BUDGET.counter) <= 3_000


@pytest.mark.parametrize(
    ("reply", "kind", "strategy"),
    [
        (Reply("\n".join([*HEADINGS[:3], TELLING, *HEADINGS[3:]])), "applied", "coverage+summary"),
        (Reply("Sure, what should I do next?"), "fallback", "coverage"),
        (Failure("auth"), "fallback", "coverage"),
    ],
)
def test_in_a_session(tmp_path: Path, reply: Reply | Failure, kind: str, strategy: str) -> None:
    with Journal.open(tmp_path / "journal.db") as journal, FakeServer([reply]) as server:
        opened = Session.open(
            "s", journal=journal, window=64_000, model="fake-model", counter=EstimateCounter(),
            strategy=CoverageSummarised(target=1_500), summariser=HttpModel(server.url + "/v1", model="fake-model"),
        )  # fmt: skip
        opened.append(list(session(*LONG)))
        outcome = opened.compact()
        assert outcome.kind == kind, outcome.reason
        assert outcome.checkpoint is not None
        plan = outcome.checkpoint.plan
        assert plan.strategy == strategy
        assert ("summary" in shown(plan)) == (kind == "applied")
        assert (TELLING in str(opened.prepare().messages)) == (kind == "applied")
        assert server.requests[0].violations == ()
