from __future__ import annotations

from typing import Any

import pytest
from codex_cases import SUMMARY, TURNS, asked, budget, planned, shown

from firsthand.budget import Budget
from firsthand.errors import ConfigError
from firsthand.formats.wire import wire_by_name
from firsthand.projection.render import project
from firsthand.strategies import strategy_by_name
from firsthand.strategies.codex.remote import CodexRemoteV2
from firsthand.strategies.codex.remote_v1 import CodexRemoteV1
from firsthand.strategies.codex.request import OUTPUT_NOTICE
from firsthand.strategies.codex.texts import NOTHING_SUMMARISED, OPAQUE, SUMMARY_PREFIX
from firsthand.strategies.contract import (
    CompactionRequest,
    Decision,
    Kept,
    NeedsSummary,
    Phase,
    Plan,
    Refused,
    Summary,
    SummaryRequest,
    Synthetic,
)
from firsthand.testing.builders import call, developer, filler, image, injected, result, said, summary, user, view
from firsthand.transcript import Entry, Media, Unknown, View


def remote(
    history: View,
    request: CompactionRequest | None = None,
    *,
    answer: Summary | None = None,
    previous: Plan | None = None,
    limits: Budget | None = None,
    v1: bool = False,
    **options: Any,
) -> Decision:
    strategy = (CodexRemoteV1 if v1 else CodexRemoteV2)(**options)
    given = None if strategy.compaction_item == "none" else {"compaction": answer or Summary("sum")}
    return strategy.plan(history, limits or budget(), request or asked(), previous, given)


def kept(history: View, request: CompactionRequest | None = None, **more: Any) -> Plan:
    decision = remote(history, request, **more)
    assert isinstance(decision, Plan), decision
    return decision


def requested(history: View, limits: Budget | None = None, *, v1: bool = False, **options: Any) -> SummaryRequest:
    decision = (CodexRemoteV1 if v1 else CodexRemoteV2)(**options).plan(history, limits or budget(), asked())
    assert isinstance(decision, NeedsSummary)
    return decision.requests[0]


LOCAL = f"{SUMMARY_PREFIX}\nsum"
ITEM = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"}


# --- retention --------------------------------------------------------------------------------------------------------------------------------


def test_three_tokens_hold_the_newest_and_the_ends_of_the_middle_one() -> None:
    history = view(user("old-old"), said("a"), user("middle1234"), said("b"), user("new"), said("c"))
    plan = kept(history, retained_message_tokens=3, compaction_item="none")
    assert shown(history, plan) == ["midd…1 tokens truncated…1234", "new", NOTHING_SUMMARISED]
    assert plan.notes == {
        "messages left out": "1",
        "message cut": "e3",
        "compaction item": "none: only what is retained",
    }


@pytest.mark.parametrize(
    ("charged", "room", "left"),
    [(True, 1_844, 1), (True, 1_843, 0), (False, 1, 1), (False, 0, 0)],
)
def test_a_picture_alone_costs_1844_tokens_or_1(charged: bool, room: int, left: int) -> None:
    history = view(user("one"), said("a"), user(image()), said("b"))
    plan = kept(history, retained_message_tokens=room, compaction_image_budget=charged)
    assert [item for item in plan.items if isinstance(item, Kept)] == [Kept("e3")] * left


def test_an_oversized_picture_lets_nothing_older_take_its_place() -> None:
    history = view(user("one"), said("a"), user(image()), said("b"))
    assert kept(history, retained_message_tokens=1_000).items == (Synthetic("summary", LOCAL, origin="summary"),)


def test_context_and_the_agent_s_own_words_take_nothing_of_the_room() -> None:
    huge = filler(9_000)
    history = view(
        developer(huge),
        injected(f"<environment_context>{huge}</environment_context>"),
        user("abcd"),
        said(huge),
        user("efgh"),
        said("b"),
    )
    plan = kept(history, retained_message_tokens=2)
    assert [item.entry for item in plan.items if isinstance(item, Kept)] == ["e3", "e1", "e2", "e5"]


def test_texts_are_consumed_first_to_last_and_media_stay_where_they_are_free() -> None:
    history = view(user("abcd", image(), "efghijklmnop", "qrst"), said("b"))
    plan = kept(history, retained_message_tokens=3, compaction_image_budget=False)
    assert plan.items[0] == Kept("e1", (0, 1, 2), {2: "efgh…1 tokens truncated…mnop"})
    assert kept(history, retained_message_tokens=1, compaction_image_budget=False).items[0] == Kept("e1", (0, 1))


def test_with_charged_pictures_parts_are_taken_last_to_first() -> None:
    framed = user('<image name="a">', image(), "</image>", "look here", image("aGk="))
    history = view(framed, said("b"))
    # The last picture and the text fit; the first picture with its frame does not.
    plan = kept(history, retained_message_tokens=1_844 + 3 + 1_843)
    assert plan.items[0] == Kept("e1", (3, 4))
    assert kept(history, retained_message_tokens=1_844 + 3 + 1_844 + 4 + 2).items[0] == Kept("e1")
    # Without room for the last picture the text before it is next.
    assert kept(history, retained_message_tokens=2).items[0] == Kept("e1", (3,), {3: "look…1 tokens truncated…here"})


def test_sound_is_free_and_stays_with_its_message() -> None:
    sound = Media("audio", "audio/wav", "x" * 90_000)
    assert kept(view(user("hear", sound), said("b")), retained_message_tokens=1).items[0] == Kept("e1")


def test_hook_prompts_are_kept_and_other_injected_messages_are_not() -> None:
    history = view(
        user("one"),
        said("a"),
        injected('<hook_prompt hook_run_id="h1">check the tests</hook_prompt>'),
        injected("<turn_aborted>\nx\n</turn_aborted>"),
        said("b"),
    )
    assert [item.entry for item in kept(history).items if isinstance(item, Kept)] == ["e1", "e3"]


def test_short_messages_of_other_agents_are_kept_but_no_reports_from_below() -> None:
    def agent(author: str, recipient: str, text: str = "x") -> Entry:
        return Entry(
            id="",
            role="user",
            blocks=(Unknown({"type": "agent_message", "author": author, "recipient": recipient, "text": text}),),
        )

    history = view(
        user("one"),
        said("a"),
        agent("/root/a", "/root/b"),
        agent("/root/a", "/root"),
        agent("/root", "/root/a", filler(10_001)),
        said("b"),
    )
    assert [item.entry for item in kept(history).items if isinstance(item, Kept)] == ["e1", "e3"]


def test_earlier_local_summaries_are_messages_and_earlier_compaction_items_are_not() -> None:
    history = view(*TURNS)
    by_local = planned(history)
    grown = view(*TURNS, said("more"), user("three"), said("b"))
    assert shown(grown, kept(grown, previous=by_local)) == ["one", "two", SUMMARY, "three", LOCAL]
    by_remote = kept(history)
    assert shown(grown, kept(grown, previous=by_remote, answer=Summary("new"))) == [
        "one",
        "two",
        "three",
        f"{SUMMARY_PREFIX}\nnew",
    ]
    opaque = kept(history, answer=Summary(raw=ITEM))
    assert shown(grown, kept(grown, previous=opaque)) == ["one", "two", "three", LOCAL]
    in_the_file = view(summary("the client's own"), user("one"), said("b"))
    assert shown(in_the_file, kept(in_the_file)) == ["the client's own", "one", LOCAL]


def test_an_earlier_summary_can_be_the_one_that_is_cut() -> None:
    history = view(*TURNS)
    by_local = planned(history, answer=Summary("x" * 4_000))
    grown = view(*TURNS, said("more"), user("abcd"), said("b"))
    plan = kept(grown, previous=by_local, retained_message_tokens=101)
    assert isinstance(plan.items[0], Synthetic)
    assert "tokens truncated…" in plan.items[0].text
    assert plan.items[1] == Kept("e8")


def test_developer_messages_of_the_client_s_caller_are_context_or_by_option_messages() -> None:
    history = view(developer("by the caller"), user("one"), said("a"), developer("x" * 400), user("two"), said("b"))
    assert [item.entry for item in kept(history).items if isinstance(item, Kept)] == ["e2", "e1", "e4", "e5"]
    retained = kept(history, retain_client_developer_messages=True, retained_message_tokens=2)
    assert shown(history, retained) == ["x" * 2 + "…99 tokens truncated…" + "x" * 2, "two", LOCAL]


# --- the compaction item ----------------------------------------------------------------------------------------------------------------------


def test_the_provider_s_item_is_last_and_shown_as_it_is() -> None:
    history = view(*TURNS)
    plan = kept(history, answer=Summary(raw=ITEM), compaction_item="opaque")
    assert project(history, plan)[-1].blocks == (Unknown(ITEM),)
    assert plan.items[-1] == Synthetic("summary", OPAQUE, origin="summary", raw=ITEM)
    assert plan.notes["compaction item"] == "the provider's"
    assert (plan.summary, plan.rest) == (None, "summarised")
    sent = wire_by_name("openai-responses").write(project(history, plan)).messages
    assert sent[-1] == ITEM


def test_a_local_summary_is_labelled_as_a_stand_in() -> None:
    plan = kept(view(*TURNS))
    assert plan.notes["compaction item"] == "a local summary in its place, not the provider's"
    assert plan.summary == "sum"


def test_without_an_item_no_model_is_asked() -> None:
    plan = kept(view(*TURNS), compaction_item="none")
    assert plan.rest == "omitted"
    assert plan.items[-1] == Synthetic("notice", NOTHING_SUMMARISED)
    again = view(*TURNS, said("b"), user("three"), said("c"))
    assert shown(again, kept(again, previous=plan, compaction_item="none")) == [
        "one",
        "two",
        "three",
        NOTHING_SUMMARISED,
    ]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Summary(raw=[]), "brought 0 among 0"),
        (Summary(raw=[ITEM, ITEM]), "brought 2 among 2"),
        (Summary(raw={"type": "message"}), "brought 0 among 1"),
        (Summary("just text"), "no compaction item"),
        (Summary(failure="timed out"), "timed out"),
    ],
)
def test_anything_but_one_item_is_refused(answer: Summary, words: str) -> None:
    decision = remote(view(*TURNS), answer=answer, compaction_item="opaque")
    assert isinstance(decision, Refused)
    assert decision.reason == "invalid-summary"
    assert words in decision.message


def test_other_items_beside_the_one_are_ignored() -> None:
    plan = kept(view(*TURNS), answer=Summary(raw=[{"type": "reasoning"}, ITEM]), compaction_item="opaque")
    assert plan.items[-1] == Synthetic("summary", OPAQUE, origin="summary", raw=ITEM)


def test_the_request_to_the_provider_ends_with_the_trigger_and_keeps_the_tools() -> None:
    request = requested(view(*TURNS), compaction_item="opaque")
    assert request.items[-1] == Synthetic("notice", "", raw={"type": "compaction_trigger"})
    assert (request.instruction, request.tools, request.system) == ("", "session", None)
    assert CodexRemoteV2(compaction_item="opaque").shrink(request) is None, (
        "a provider's compaction has no smaller form"
    )
    local = requested(view(*TURNS), prompt="Mine.")
    assert (local.instruction, local.tools) == ("Mine.", "session")
    smaller = CodexRemoteV2().shrink(local)
    assert smaller is not None
    assert len(smaller.items) == len(local.items) - 1


def test_the_newest_outputs_give_way_until_the_request_fits() -> None:
    long = "x" * 4_000
    turns = (
        user("one"),
        said("look"),
        call("read", path="a"),
        call("read", path="b"),
        result("c1", long),
        result("c2", long),
    )
    usable = budget(2_000, 100)  # 1,900 tokens
    items = requested(view(*turns), usable).items
    assert items == (*(Kept(f"e{n}") for n in range(1, 6)), Kept("e6", None, {0: OUTPUT_NOTICE}))
    both = requested(view(*turns), budget(1_000, 100)).items
    assert both[-2:] == (Kept("e5", None, {0: OUTPUT_NOTICE}), Kept("e6", None, {0: OUTPUT_NOTICE}))
    assert requested(view(*turns), budget(2_200, 100)).items[-1] == Kept("e6")
    # An output behind which something else stands is not touched, however big the request is.
    assert requested(view(*turns, said("then")), budget(1_000, 100)).items == tuple(Kept(f"e{n}") for n in range(1, 8))


def test_results_that_share_an_entry_give_way_from_the_last_one() -> None:
    long = "x" * 4_000
    both = Entry(id="", role="tool", blocks=(*result("c1", long).blocks, *result("c2", long).blocks))
    items = requested(
        view(user("one"), said(call("read", path="a"), call("read", path="b")), both), budget(2_000, 100)
    ).items
    assert items[-1] == Kept("e3", (0, 1), {1: OUTPUT_NOTICE})


# --- order ------------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phase", "order"),
    [("mid_turn", ["one", "rule", "two", LOCAL]), ("pre_turn", ["one", "two", LOCAL, "rule", "new"])],
)
def test_where_the_context_stands(phase: Phase, order: list[str]) -> None:
    history = view(developer("rule"), *TURNS, *([user("new")] if phase == "pre_turn" else []))
    assert shown(history, kept(history, asked(phase))) == order


def test_without_a_user_message_the_context_stands_before_the_summary_then_before_the_item() -> None:
    only_summary = view(developer("rule"), summary("old"), said("a"))
    assert shown(only_summary, kept(only_summary)) == ["rule", "old", LOCAL]
    nothing = view(developer("rule"), said("a"))
    assert shown(nothing, kept(nothing)) == ["rule", LOCAL]


def test_the_state_counts_windows_and_estimates_the_new_history() -> None:
    history = view(user("abcd"), said("a" * 900))
    plan = kept(history, answer=Summary(raw=ITEM))
    assert plan.state == {"window_number": 1, "last_usage_total": 1}, (
        "the item is smaller than the overhead that is taken off"
    )


# --- the first version ------------------------------------------------------------------------------------------------------------------------


def message(role: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def test_the_returned_list_is_filtered_and_originals_are_referred_to() -> None:
    returned = [
        message("developer", "rule"),
        message("user", "one"),
        message("user", "<environment_context>x</environment_context>"),
        message("user", "not in the history"),
        message("assistant", "answer one"),
        message("assistant", "reworded"),
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "c9", "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c9", "output": "x"},
        "no item at all",
        ITEM,
    ]
    history = view(developer("rule"), *TURNS)
    plan = kept(history, answer=Summary(raw=returned), v1=True, compaction_item="opaque")
    assert plan.items == (
        Kept("e2"),
        Kept("e1"),
        Synthetic("summary", "not in the history", origin="summary"),
        Kept("e3"),
        Synthetic("summary", "reworded", role="assistant", origin="summary"),
        Synthetic("summary", OPAQUE, origin="summary", raw=ITEM),
    )
    assert plan.notes == {"compaction item": "the provider's list", "items returned": "11"}


def test_equal_messages_are_referred_to_one_after_the_other() -> None:
    history = view(user("go"), said("a"), user("go"), said("b"))
    plan = kept(history, answer=Summary(raw=[message("user", "go")] * 3), v1=True)
    assert plan.items[:2] == (Kept("e1"), Kept("e3"))
    assert isinstance(plan.items[2], Synthetic)


def test_a_list_without_messages_is_refused() -> None:
    decision = remote(view(*TURNS), answer=Summary(raw=[{"type": "reasoning"}]), v1=True)
    assert isinstance(decision, Refused)
    assert decision.reason == "invalid-summary"


def test_the_first_version_asks_an_endpoint_of_its_own_and_charges_no_pictures() -> None:
    request = requested(view(*TURNS), v1=True, compaction_item="opaque")
    assert request.items == tuple(Kept(f"e{n}") for n in range(1, 7))
    assert request.instruction == ""
    history = view(user(image()), said("b"))
    assert kept(history, v1=True, retained_message_tokens=1).items[0] == Kept("e1")
    assert strategy_by_name("codex-remote-v1").options()["compaction_image_budget"] is False


@pytest.mark.parametrize(
    "wrong", [{"compaction_item": "some"}, {"retained_message_tokens": -1}, {"tool_output_token_limit": 0}]
)
def test_options_out_of_range(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        strategy_by_name("codex-remote-v2", **wrong)


def test_a_size_sets_the_room_for_messages() -> None:
    for name in ("codex-remote-v2", "codex-remote-v1"):
        sized = strategy_by_name(name).at_size(12_000)
        assert sized is not None
        assert (sized.name, sized.options()["retained_message_tokens"]) == (name, 10_000)
