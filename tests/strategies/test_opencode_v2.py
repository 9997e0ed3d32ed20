"""`opencode-v2`: the vectors of opencode.md 8, and the rules of its section 3."""

from __future__ import annotations

from typing import Any

import pytest

from firsthand.budget import Budget, Occupancy
from firsthand.codec import decode_as, encode
from firsthand.errors import ConfigError
from firsthand.projection.fates import fates
from firsthand.projection.render import project
from firsthand.strategies import strategy_by_name
from firsthand.strategies.contract import (
    CompactionRequest,
    Decision,
    DueState,
    Kept,
    NeedsSummary,
    Plan,
    Refused,
    Summary,
    SummaryRequest,
    Unchanged,
)
from firsthand.strategies.opencode.prompts import checkpoint, request_text
from firsthand.strategies.opencode.v2 import OpencodeV2
from firsthand.testing.builders import call, developer, image, injected, result, said, system, thought, user, view
from firsthand.tokens import EstimateCounter
from firsthand.transcript import Entry, View

BUDGET = Budget.of(40_000, 8_000, counter=EstimateCounter())
AUTOMATIC = CompactionRequest(trigger="automatic", phase="pre_turn")
MANUAL = CompactionRequest(trigger="manual", phase="standalone")
FULL = Occupancy(30_000)

FIXED_NEW = len(request_text("", None))
FIXED_UPDATE = len(request_text("", "x")) - 1


def q(mark: str, size: int = 16_003) -> Entry:
    return user((f"Q{mark} " * size)[:size])


def a(mark: str, size: int = 16_003) -> Entry:
    return said((f"A{mark} " * size)[:size])


def text_of(entry: Entry) -> str:
    return entry.blocks[0].text  # type: ignore[union-attr]


def asked(
    strategy: OpencodeV2, history: View, previous: Plan | None = None, request: CompactionRequest = MANUAL
) -> SummaryRequest:
    decision = strategy.plan(history, BUDGET, request, previous, None, FULL)
    assert isinstance(decision, NeedsSummary), decision
    return decision.requests[0]


def decided(
    strategy: OpencodeV2,
    history: View,
    previous: Plan | None = None,
    summary: Summary | str = "SUMMARY",
    request: CompactionRequest = MANUAL,
) -> Decision:
    answers = {"summary": Summary(summary) if isinstance(summary, str) else summary}
    return strategy.plan(history, BUDGET, request, previous, answers, FULL)


def planned(*args: Any, **options: Any) -> Plan:
    decision = decided(*args, **options)
    assert isinstance(decision, Plan), decision
    assert decode_as(encode(decision), Plan) == decision
    return decision


FIRST = [q("1"), a("1"), q("2"), a("2"), q("3")]
SECOND = [*FIRST, a("3", 2), q("4", 8_003), a("4", 8_003), q("5"), a("5"), q("6", 8_003)]


# --- Vectors (opencode.md 8) ---------------------------------------------------------------------------------------------------------


def test_vector_7_the_prompt_that_waits_is_the_recent_text() -> None:
    history = view(FIRST)
    made = asked(OpencodeV2(), history, request=AUTOMATIC)
    assert len(made.instruction) - FIXED_NEW == 65_375 - 1_315
    assert (made.max_output, made.system, made.tools, made.items) == (4_096, "", "none", ())
    plan = planned(OpencodeV2(), history, request=AUTOMATIC)
    assert plan.state == {"recent": f"[User]: {text_of(q('3'))}"}
    assert len(plan.state["recent"]) == 16_011
    assert [entry.role for entry in project(history, plan)] == ["user"]
    assert plan.cutoff == "e5"


def test_vector_8_the_recent_text_of_before_opens_the_conversation() -> None:
    first = planned(OpencodeV2(), view(FIRST), summary="twelve chars")
    history = view(SECOND)
    made = asked(OpencodeV2(), history, first)
    assert len(made.instruction) - FIXED_UPDATE == 50_321 - 2_237
    assert made.instruction.startswith(
        f"<conversation>\n[User]: {text_of(q('3'))}\n\n[Assistant]: {text_of(a('3', 2))}\n\n"
    )
    assert "<prior-summary>\ntwelve chars\n</prior-summary>" in made.instruction
    plan = planned(OpencodeV2(), history, first)
    assert plan.state["recent"] == f"[Assistant]: {text_of(a('5'))}\n\n[User]: {text_of(q('6', 8_003))}"
    assert len(plan.state["recent"]) == 24_029


def test_vector_9_a_prompt_above_the_budget_is_left_to_the_summary() -> None:
    history = view(q("1", 400), a("1", 40_003), q("2", 44_003))
    plan = planned(OpencodeV2(), history)
    assert plan.state == {"recent": ""}
    assert [text_of(entry) for entry in project(history, plan)] == [checkpoint("SUMMARY", "")]
    assert "<recent-context>" not in checkpoint("SUMMARY", "")


# --- The trigger ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("follows", "tokens", "reported", "trigger"),
    [
        ("V2-b", 20_000, 39_000, None),
        ("V2-b", 20_001, 0, "automatic"),
        ("V2-a", 20_001, 0, "automatic"),
        ("V2-c", 29_000, 31_999, None),
        ("V2-c", 0, 32_000, "automatic"),
        ("V2-d", 19_999, 39_000, None),
        ("V2-d", 20_000, 0, "automatic"),
    ],
)
def test_due(follows: Any, tokens: int, reported: int, trigger: str | None) -> None:
    strategy = OpencodeV2(follows=follows)
    assert strategy.due(Occupancy(tokens, reported), BUDGET, DueState()) == trigger
    assert strategy.due(Occupancy(tokens, reported), BUDGET, DueState(auto=False)) is None


def test_limits_of_the_caller() -> None:
    # Where the output is larger than the buffer, the input limit comes first: it is the margin below the original's threshold.
    wide = Budget.of(200_000, 64_000, profile="futureos-e2")
    assert OpencodeV2().due(Occupancy(133_952), wide, DueState()) is None
    assert OpencodeV2().due(Occupancy(133_953), wide, DueState()) == "automatic"
    limited = OpencodeV2(follows="V2-d", limit_input=100_000)
    assert limited.due(Occupancy(79_999), wide, DueState()) is None
    assert limited.due(Occupancy(80_000), wide, DueState()) == "automatic"
    early = Budget.of(200_000, 8_000, threshold=50_000)
    assert OpencodeV2().due(Occupancy(49_999), early, DueState()) is None
    assert OpencodeV2().due(Occupancy(50_000), early, DueState()) == "automatic"


def test_without_an_occupancy_the_request_is_estimated_as_json() -> None:
    # Five messages of 16,003 characters with their JSON: 80,015 + 3 * 53 + 2 * 58 + 4 commas + 2 brackets = 80,296, which is 20,074.
    assert isinstance(OpencodeV2().plan(view(FIRST), BUDGET, AUTOMATIC), NeedsSummary)
    shorter = [*FIRST[:4], q("3", 15_706)]
    assert isinstance(OpencodeV2().plan(view(shorter), BUDGET, AUTOMATIC), Unchanged)
    fixed = Budget.of(40_000, 8_000, counter=EstimateCounter(), fixed=1)
    assert isinstance(OpencodeV2().plan(view(shorter), fixed, AUTOMATIC), NeedsSummary)


def test_overflow_recovery_does_not_ask_whether_compaction_is_switched_off() -> None:
    refused = CompactionRequest(trigger="provider_context_limit", auto=False)
    assert isinstance(OpencodeV2().plan(view(FIRST), BUDGET, refused), NeedsSummary)
    off = CompactionRequest(trigger="automatic", auto=False)
    assert isinstance(OpencodeV2().plan(view(FIRST), BUDGET, off), Unchanged)


# --- Selection -----------------------------------------------------------------------------------------------------------------------


def recent_of(strategy: OpencodeV2, *entries: Entry) -> str:
    recent = planned(strategy, view(*entries)).state["recent"]
    assert isinstance(recent, str)
    return recent


def test_whole_messages_newest_first_up_to_the_budget_and_equality_fits() -> None:
    entries = [q("1", 900), a("1", 27), q("2", 32), a("2", 27)]
    assert recent_of(OpencodeV2(keep_tokens=30), *entries) == (
        f"[Assistant]: {text_of(a('1', 27))}\n\n[User]: {text_of(q('2', 32))}\n\n[Assistant]: {text_of(a('2', 27))}"
    )
    assert recent_of(OpencodeV2(keep_tokens=29), *entries).startswith("[User]: Q2")
    assert recent_of(OpencodeV2(keep_tokens=9), *entries) == ""


def test_all_of_it_fits_or_nothing_is_there() -> None:
    assert isinstance(OpencodeV2().plan(view(user("a"), said("b")), BUDGET, MANUAL), Unchanged)
    assert isinstance(OpencodeV2().plan(view(), BUDGET, MANUAL), Unchanged)
    assert isinstance(OpencodeV2().plan(view(system("s"), injected("rules")), BUDGET, MANUAL), Unchanged)
    first = planned(OpencodeV2(), view(FIRST))
    assert isinstance(OpencodeV2().plan(view(FIRST), BUDGET, MANUAL, first), Unchanged)
    assert asked(OpencodeV2(), view(FIRST, a("3", 9)), first).instruction.startswith("<conversation>\n[User]: Q3")


def test_generation_a_cuts_the_boundary_message() -> None:
    strategy = OpencodeV2(follows="V2-a", keep_tokens=20)
    history = view(q("1", 200), said("0123456789" * 10), q("2", 32))
    made = asked(strategy, history)
    # The prompt takes 10 of 20 tokens, so the last 40 characters of the answer before it come along.
    assert made.instruction.endswith(
        f"[User]: {text_of(q('1', 200))}\n\n[Assistant]: {'0123456789' * 6}\n</conversation>"
    )
    plan = planned(strategy, history)
    assert plan.state["recent"] == f"{'0123456789' * 4}\n\n[User]: {text_of(q('2', 32))}"
    spans = {excerpt.entry: [(span.start, span.end) for span in excerpt.spans] for excerpt in plan.excerpts}
    assert spans == {"e2": [(60, 100)], "e3": [(0, 32)]}
    assert OpencodeV2(split_boundary=True).options()["split_boundary"] is True


def test_generation_c_begins_the_recent_text_at_a_user_message() -> None:
    strategy = OpencodeV2(follows="V2-c", keep_tokens=20)
    entries = [q("1", 200), a("1", 200), q("2", 200), a("2", 200), said("end")]
    assert recent_of(strategy, *entries).startswith("[User]: Q2")
    assert recent_of(strategy, *entries[:3]).startswith("[User]: Q2")
    made = asked(strategy, view(entries))
    assert made.max_output == 8_000
    one = view(q("1", 200), a("1", 200))
    assert planned(strategy, one).state == {"recent": ""}


def test_generation_d_shares_the_prefix_of_the_session() -> None:
    strategy = OpencodeV2(follows="V2-d", keep_tokens=20)
    start = [system("s"), q("1", 200), said(call("read", path="a")), result("c1", "x" * 400), a("1", 99), q("2", 200)]
    made = asked(strategy, view(start))
    assert made.items == tuple(Kept(f"e{n}") for n in range(1, 6))
    assert (made.system, made.tools, made.max_output) == (None, "session", 8_000)
    first = planned(strategy, view(start), summary="## Objective\n- it")
    later = view(start, a("2", 99), q("3", 200), a("3", 99), q("4", 200))
    again = asked(strategy, later, first)
    assert again.items == (*first.items, Kept("e7"), Kept("e8"), Kept("e9"))
    refused = decided(strategy, view(start), summary="sure, I will")
    assert isinstance(refused, Refused)
    assert refused.reason == "invalid-summary"


# --- The request and the checkpoint ------------------------------------------------------------------------------------------------------


def test_the_request_is_not_made_where_it_would_not_fit() -> None:
    # 40,000 less 4,096 are 35,904 tokens, which is 143,617 characters at most.
    most = 143_617 - FIXED_NEW - len("[User]: ")
    assert isinstance(OpencodeV2().plan(view(q("1", most), a("1", 40)), BUDGET, MANUAL), NeedsSummary)
    refused = OpencodeV2().plan(view(q("1", most + 1), a("1", 40)), BUDGET, MANUAL)
    assert isinstance(refused, Refused)
    assert refused.reason == "budget-exceeded"
    assert refused.sizes["summary_request"] == 35_905


def test_a_declined_request_changes_nothing_while_the_session_fits() -> None:
    budget = Budget.of(10_000, 1_000, counter=EstimateCounter())
    # Line ends take twice the room where free text is written as JSON.
    history = view(said(call("t", "\n" * 18_500 + "x")), result("c1", ""), user("x"))
    assert isinstance(OpencodeV2(keep_tokens=10).plan(history, budget, MANUAL), Unchanged)


def test_the_cap_is_never_above_the_output_of_the_model() -> None:
    small = Budget.of(40_000, 1_000, counter=EstimateCounter())
    decision = OpencodeV2().plan(view(FIRST), small, MANUAL)
    assert isinstance(decision, NeedsSummary)
    assert decision.requests[0].max_output == 1_000


@pytest.mark.parametrize("summary", [Summary(failure="the provider is away"), Summary(" \n")])
def test_without_a_summary_nothing_changes(summary: Summary) -> None:
    decision = decided(OpencodeV2(), view(FIRST), summary=summary)
    assert isinstance(decision, Refused)
    assert decision.reason == "invalid-summary"


def test_the_users_prompt_and_note() -> None:
    made = asked(
        OpencodeV2(prompt="WRITE A POEM"),
        view(FIRST),
        request=CompactionRequest(trigger="manual", instructions="MY NOTE"),
    )
    assert made.instruction.endswith("\n\nWRITE A POEM\n\nMY NOTE")


def test_the_checkpoint_is_one_message_and_instructions_stay() -> None:
    history = view(
        system("s"), injected("rules"), q("1"), a("1"), developer("new rule"), q("2"), a("2", 900), q("3", 900)
    )
    plan = planned(OpencodeV2(), history)
    shown = project(history, plan)
    assert [(entry.id, entry.role) for entry in shown[:3]] == [("e1", "system"), ("e2", "user"), ("e5", "developer")]
    assert [entry.role for entry in shown[3:]] == ["user"]
    text = text_of(shown[3])
    assert text.startswith("<conversation-checkpoint>\n")
    assert text.endswith("\n</recent-context>\n</conversation-checkpoint>")
    assert "new rule" not in text
    assert "[System update]: new rule" in asked(OpencodeV2(keep_tokens=1_000), history).instruction
    assert sum("new rule" in str(entry.blocks) for entry in shown) == 1


def test_a_call_that_waits_for_its_result_stays() -> None:
    history = view(q("1"), a("1"), q("2"), said(call("run", command="make")))
    plan = planned(OpencodeV2(), history)
    assert [entry.id for entry in project(history, plan)[1:]] == ["e4"]
    assert plan.cutoff == "e3"
    later = view(q("1"), a("1"), q("2"), said(call("run", command="make")), result("c1", "ok"), a("3"), q("4"))
    assert (
        '[Assistant tool call]: run({"command":"make"})\n[Tool result]: ok'
        in asked(OpencodeV2(), later, plan).instruction
    )


def test_fates_tell_what_the_recent_text_quotes() -> None:
    history = view(
        q("1"),
        a("1"),
        user("look", image()),
        said(thought("hm"), "I look", call("read", '{"path": "a"}'), call("read", '{"path":"b"}')),
        result("c1", "x" * 3_000),
        result("c2", "short"),
    )
    plan = planned(OpencodeV2(), history)
    found = {(fate.entry.id, fate.number): fate.fate for fate in fates(history, plan)}
    assert found == {
        ("e1", 0): "summarised",
        ("e2", 0): "excerpted",
        ("e3", 0): "excerpted",
        ("e3", 1): "indexed",
        ("e4", 0): "excerpted",
        ("e4", 1): "excerpted",
        ("e4", 2): "indexed",
        ("e4", 3): "excerpted",
        ("e5", 0): "excerpted",
        ("e6", 0): "excerpted",
    }
    shown = text_of(project(history, plan)[-1])
    for excerpt in plan.excerpts:
        block = history[excerpt.entry].blocks[excerpt.block]
        original = getattr(block, "arguments", None) or block.text  # type: ignore[union-attr]
        for span in excerpt.spans:
            assert original[span.start : span.end] in shown


# --- Options -----------------------------------------------------------------------------------------------------------------------------


def test_options_round_trip_by_name() -> None:
    strategy = strategy_by_name("opencode-v2", follows="V2-d", buffer=1)
    assert isinstance(strategy, OpencodeV2)
    assert OpencodeV2(**strategy.options()).options() == strategy.options()
    assert strategy.options() == {
        "follows": "V2-d",
        "keep_tokens": 15_000,
        "buffer": 1,
        "limit_input": None,
        "split_boundary": False,
        "align_user": True,
        "share_prefix": True,
        "tool_output_max_chars": 2_000,
        "prompt": None,
    }


@pytest.mark.parametrize("options", [{"follows": "V2-z"}, {"keep_tokens": -1}, {"buffer": -1}])
def test_options_that_cannot_work(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        OpencodeV2(**options)


def test_at_size_comes_out_near_that_size() -> None:
    budget = Budget.of(200_000, counter=EstimateCounter())
    history = view(*[part for n in range(30) for part in (q(str(n), 900), a(str(n), 900))])
    answers = {"summary": Summary("s" * 4_000)}
    plan = OpencodeV2().at_size(8_000).plan(history, budget, MANUAL, None, answers)
    assert isinstance(plan, Plan)
    assert 7_000 < plan.tokens_after < 8_500
