"""`coverage` by cases: what is decided, what stays whole, what the text looks like."""

from __future__ import annotations

import re

import pytest

from firsthand.budget import Budget, Occupancy
from firsthand.errors import ConfigError
from firsthand.projection.features.units import readable
from firsthand.projection.plan import Kept, Plan, Synthetic
from firsthand.projection.render import project
from firsthand.strategies import strategy_by_name
from firsthand.strategies.contract import CompactionRequest, Decision, DueState, Refused, Unchanged
from firsthand.strategies.coverage.strategy import Coverage
from firsthand.testing.builders import call, developer, filler, injected, result, said, system, user, view
from firsthand.tokens import EstimateCounter, entry_cost, total_cost
from firsthand.transcript import Entry, Text, ToolCall, ToolResult, View, typed_text

AUTOMATIC = CompactionRequest()
MANUAL = CompactionRequest(trigger="manual")
LIMIT = CompactionRequest(trigger="provider_context_limit")
estimate = EstimateCounter()


def budget(window: int = 32_000, fixed: int = 0, target: int | None = None) -> Budget:
    return Budget.of(window, fixed=fixed, counter=estimate, target=target)


def decide(
    history: View, request: CompactionRequest = MANUAL, limits: Budget | None = None, **options: int
) -> Decision:
    return Coverage(**options).plan(history, limits or budget(), request)


def planned(history: View, request: CompactionRequest = MANUAL, limits: Budget | None = None, **options: int) -> Plan:
    decision = decide(history, request, limits, **options)
    assert isinstance(decision, Plan), decision
    return decision


def excerpts(plan: Plan) -> str:
    return "\n".join(item.text for item in plan.items if isinstance(item, Synthetic))


def everything(history: View, plan: Plan) -> str:
    """All text that the projection shows."""
    return "\n".join(readable(block) for entry in project(history, plan) for block in entry.blocks)


def report(tokens: int, mark: object) -> str:
    """About as many tokens of lines that each name something else."""
    letters = [f"{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{chr(97 + n // 676)}" for n in range(tokens // 9)]
    return "\n".join(f"{mark}/row_{name} took {n * 7919 % 9973} ms in step_{n}" for n, name in enumerate(letters))


def loop(steps: int, tokens: int, first: int = 0) -> list[Entry]:
    return [
        part
        for n in range(first, first + steps)
        for part in (call("read", path=f"src/f{n}.py", id=f"x{n}"), result(f"x{n}", report(tokens, f"mark_{n}")))
    ]


# --- what is decided --------------------------------------------------------------------------------------------------------------------


def test_nothing_to_do() -> None:
    assert decide(view()) == Unchanged("the session is empty")
    assert decide(view(user("go"), *loop(3, 9_000)), CompactionRequest(auto=False)) == Unchanged(
        "automatic compaction is off"
    )
    assert isinstance(decide(view(user("go"), said("ok")), AUTOMATIC), Unchanged)


@pytest.mark.parametrize(
    "history",
    [view(user("hello")), view(system("be brief")), view(system("be brief"), developer("and kind"), user("hello"))],
    ids=["one entry", "only instructions", "instructions and one entry"],
)
def test_what_cannot_be_covered_stays_while_it_fits(history: View) -> None:
    assert decide(history) == Unchanged("nothing stands before the newest step, so there is nothing to cover")
    assert isinstance(decide(history, AUTOMATIC), Unchanged)
    refused = decide(history, LIMIT)
    assert isinstance(refused, Refused)
    assert refused.reason in ("no-valid-boundary", "budget-exceeded", "no-progress")


def test_one_message_above_the_limit_is_cut_with_its_id_or_refused() -> None:
    for entry in (user(filler(60_000)), system(filler(60_000))):
        decision = decide(view(entry), AUTOMATIC)
        if isinstance(decision, Plan):
            assert decision.tokens_after <= budget().input_limit
            assert "e1" in excerpts(decision)
        else:
            assert isinstance(decision, Refused)
            assert re.search(r"\d\d,\d{3} tokens", decision.message)


def test_fixed_tokens_alone_can_be_too_many() -> None:
    decision = decide(view(user("hi")), MANUAL, budget(fixed=30_000))
    assert isinstance(decision, Refused)
    assert (decision.reason, decision.sizes["fixed"]) == ("budget-exceeded", 30_000)


@pytest.mark.parametrize("window", [*range(2, 16), 40])
def test_windows_of_a_few_tokens_are_refused(window: int) -> None:
    decision = decide(
        view(user("hello"), said("hello " * 50), user("more"), said("and more " * 50)), MANUAL, budget(window)
    )
    assert isinstance(decision, Refused)
    assert decision.reason in ("budget-exceeded", "no-valid-boundary", "no-progress")


def test_the_trigger_fires_at_equality() -> None:
    strategy, limits, state = Coverage(), budget(200_000), DueState()
    assert strategy.due(Occupancy(limits.trigger - 1), limits, state) is None
    assert strategy.due(Occupancy(limits.trigger), limits, state) == "automatic"
    assert strategy.due(Occupancy(limits.trigger), limits, DueState(auto=False)) is None


@pytest.mark.parametrize(
    "options", [{"target": 0}, {"tail": 101}, {"prose": -1}, {"user": 200}, {"unknown": 1}], ids=str
)
def test_options_out_of_range_are_named(options: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        strategy_by_name("coverage", **options)


# --- sizes ------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [600, 2_000, 5_000, 12_000])
def test_a_target_is_filled_and_never_exceeded(target: int) -> None:
    history = view(system("be brief"), user("go"), *loop(30, 1_500), user("and?"), said("done"))
    for plan in (
        planned(history, limits=budget(200_000, target=target)),
        planned(history, limits=budget(200_000), target=target, fixed_target=True),
    ):
        shown = project(history, plan)
        assert plan.tokens_after == total_cost(shown, estimate)
        size = plan.tokens_after - entry_cost(history.entries[0], estimate)
        assert target * 0.85 <= size <= target


def test_at_size_holds_the_size() -> None:
    history = view(user("go"), *loop(30, 1_500))
    strategy = Coverage(prose=30).at_size(3_000)
    assert strategy.options() == {"target": 3_000, "fixed_target": True, "tail": 10, "prose": 30, "user": 60}
    plan = strategy.plan(history, budget(200_000), MANUAL)
    assert isinstance(plan, Plan)
    assert 2_700 <= plan.tokens_after <= 3_000


def test_a_refused_request_comes_out_smaller_than_it_was() -> None:
    # The estimate says 9,000 tokens, under the target; the provider said that it is too much.
    history = view(user("go"), *loop(6, 1_500), user("and?"), said("done"))
    plan = planned(history, LIMIT)
    assert plan.tokens_before == total_cost(history.entries, estimate)
    assert plan.tokens_after <= plan.tokens_before * 3 // 4
    again = Coverage().plan(history, budget(), LIMIT, previous=plan)
    assert isinstance(again, (Plan, Refused))
    if isinstance(again, Plan):
        assert again.tokens_after < plan.tokens_after


def test_a_small_window_gets_a_smaller_target() -> None:
    plan = planned(view(user("go"), *loop(30, 500)), limits=budget(8_000))
    limits = budget(8_000)
    assert int(plan.notes["target"]) == limits.max_target < 12_000
    assert plan.tokens_after <= limits.max_target


# --- user text, pins, tail --------------------------------------------------------------------------------------------------------------


def test_user_text_is_whole_up_to_its_share() -> None:
    asked = [user(filler(1_000, f"wish_{n}")) for n in range(7)]
    history = view(*(part for n, wish in enumerate(asked) for part in (wish, *loop(3, 1_500, 10 * n))))
    plan = planned(history, limits=budget(200_000))
    shown = [text for entry in project(history, plan) if entry.role == "user" for text in typed_text(entry)]
    assert shown == [text for entry in asked for text in typed_text(entry)]
    assert plan.notes["target"] == "12000"


def test_the_target_rises_for_user_text_and_not_when_it_is_fixed() -> None:
    asked = [user(filler(2_000, f"wish_{n}")) for n in range(8)]
    history = view(*(part for n, wish in enumerate(asked) for part in (wish, *loop(3, 3_000, 10 * n))))
    plan = planned(history, limits=budget(200_000))
    assert int(plan.notes["target"]) > 16_000 * 100 // 60
    shown = [text for entry in project(history, plan) if entry.role == "user" for text in typed_text(entry)]
    assert shown == [text for entry in asked for text in typed_text(entry)]
    for held in (
        planned(history, limits=budget(200_000), fixed_target=True),
        planned(history, limits=budget(200_000, target=12_000)),
    ):
        assert held.notes["target"] == "12000"
        assert held.tokens_after <= 12_000
        whole = [text for entry in project(history, held) if entry.role == "user" for text in typed_text(entry)]
        assert whole == [text for entry in asked for text in typed_text(entry)][-len(whole) :]


RULES = [
    "The exporter must never write outside of ./out.",
    "Keep the public names exactly as they are.",
    "Do not touch migrations/0007_initial.py.",
    "設定ファイルは絶対に変更しないでください。",
    "Bitte niemals die Datei settings.toml ändern.",
    "이 함수의 이름은 절대 바꾸지 마세요.",
]


@pytest.mark.parametrize("rule", RULES)
def test_rules_stay_when_user_text_is_cut(rule: str) -> None:
    """SE-12: a constraint stated early is in every projection, to the letter."""
    story = "\n".join(f"Line {n} tells how the day went on and nothing more." for n in range(400))
    entries = [user(f"{story}\n{rule}\n{story}"), said("noted"), *loop(4, 4_000), user("go on"), said("done")]
    for number in range(1, 4):
        history = view(*entries, *loop(4 * number, 4_000, 100))
        plan = planned(history, limits=budget(64_000, target=4_000))
        assert plan.tokens_after <= 4_000
        assert rule in everything(history, plan)


def test_pins_stay_whole_with_what_they_pair_with() -> None:
    history = view(user("go"), *loop(20, 1_000), user("and?"), said("done"), pins=["e5", "e8"])
    plan = planned(history, limits=budget(200_000, target=5_000))
    shown = {entry.id: entry for entry in project(history, plan)}
    for kept in ("e4", "e5", "e8", "e9"):
        assert shown[kept] == history[kept]


def test_pins_that_do_not_fit_are_said_and_not_dropped() -> None:
    history = view(user("go"), *loop(20, 3_000), pins=["e5", "e9", "e13"])
    refused = decide(history, limits=budget(200_000, target=5_000))
    assert isinstance(refused, Refused)
    assert refused.reason == "budget-exceeded"
    assert "take a pin back" in refused.message


def test_instructions_stay_in_place_and_once() -> None:
    """SE-14."""
    history = view(system("be brief"), injected("rules: tabs"), user("go"), developer("be kind"), *loop(20, 1_500))
    plan = planned(history, limits=budget(200_000))
    texts = [readable(block) for entry in project(history, plan) for block in entry.blocks]
    assert [texts.count(rule) for rule in ("be brief", "rules: tabs", "be kind")] == [1, 1, 1]
    assert not any(excerpt.entry in ("e1", "e4") for excerpt in plan.excerpts)


def test_the_newest_steps_are_sent_as_they_are() -> None:
    history = view(user("go"), *loop(20, 400))
    plan = planned(history, limits=budget(200_000, target=5_000))
    cut = history.positions[plan.cutoff] + 1
    tail = history.entries[cut:]
    assert 0 < sum(entry_cost(entry, estimate) for entry in tail) <= 500 + 400
    assert project(history, plan)[-len(tail) :] == tail
    assert any(isinstance(block, ToolCall) for block in tail[0].blocks)


def test_an_open_step_stays_whatever_it_takes() -> None:
    """SE-07."""
    history = view(user("go"), *loop(10, 1_500), call("write", filler(6_000), id="open"))
    plan = planned(history, limits=budget(64_000, target=8_000))
    assert project(history, plan)[-1] is history.entries[-1]


def test_a_newest_step_that_alone_is_too_large_is_cut_at_both_ends_under_its_id() -> None:
    """SE-17: bounded, with the id of the entry, and the original stays where it was."""
    lines = [f"line {n} of the log says value_{n:05}" for n in range(20_000)]
    history = view(
        user("run it"), *loop(3, 500), call("bash", command="make", id="big"), result("big", "\n".join(lines))
    )
    limits = budget(200_000)
    assert total_cost(history.entries, estimate) > 190_000
    plan = planned(history, AUTOMATIC, limits)
    assert plan.cutoff == history.entries[-1].id
    assert plan.tokens_after <= 12_000
    text = excerpts(plan)
    assert f"{history.entries[-1].id} bash result:" in text
    assert lines[0] in text
    assert lines[-1] in text
    spans = [excerpt for excerpt in plan.excerpts if excerpt.entry == history.entries[-1].id]
    assert spans


def test_the_newest_to_do_list_is_shown_and_older_ones_are_not() -> None:
    """SU-14."""

    def todo(state: str) -> list[Entry]:
        made = call("TodoWrite", todos=[{"content": f"ship the exporter {state}", "status": state}], id=f"t-{state}")
        return [made, result(f"t-{state}", "ok")]

    history = view(user("go"), *todo("pending"), *loop(10, 1_500), *todo("in_progress"), *loop(10, 1_500, 50))
    plan = planned(history, limits=budget(200_000, target=3_000))
    assert "ship the exporter in_progress" in excerpts(plan)
    assert "ship the exporter pending" not in excerpts(plan)


def test_a_session_of_talk_is_shown_as_it_is_where_it_fits() -> None:
    history = view(
        *(part for n in range(10) for part in (user(f"go on with {n}"), said(report(150, f"talk_{n}")))), user("now?")
    )
    plan = planned(history, limits=budget(200_000), target=3_000, fixed_target=True)
    covered = history.entries[: history.positions[plan.cutoff] + 1]
    assert [item.entry for item in plan.items if isinstance(item, Kept)] == [entry.id for entry in covered]


def test_a_plan_is_the_same_whatever_the_request_takes_now() -> None:
    """A checkpoint before makes the request smaller, never the history."""
    talk = [part for n in range(12) for part in (said(report(110, f"talk_{n}")), *loop(1, 900, n))]
    history = view(user("go"), *talk, user("and now?"))
    plans = [
        Coverage(target=2_000, fixed_target=True).plan(history, budget(200_000), MANUAL, occupancy=Occupancy(size))
        for size in (2_000, 200_000)
    ]
    assert all(isinstance(plan, Plan) for plan in plans)
    assert plans[0].items == plans[1].items  # type: ignore[union-attr]


def test_changed_files_are_listed_once_each() -> None:
    """SU-18."""
    edits = [part for n in (*range(12), 3, 4) for part in (call("edit", path=f"pkg/mod_{n}.py", old="a", new="b"),)]
    history = view(user("go"), *edits, *loop(20, 1_500))
    plan = planned(history, limits=budget(200_000))
    (line,) = [line for line in excerpts(plan).splitlines() if line.startswith("[Files changed")]
    assert sorted(re.findall(r"pkg/mod_\d+\.py", line)) == sorted(f"pkg/mod_{n}.py" for n in range(12))
    assert line.index("pkg/mod_4.py") < line.index("pkg/mod_3.py") < line.index("pkg/mod_11.py")


# --- the text ---------------------------------------------------------------------------------------------------------------------------


def test_excerpts_are_data_that_nobody_typed() -> None:
    """Text from a tool is never raised to what the person said (design 5)."""
    history = view(user("go"), *loop(20, 1_500), user("and?"), said("done"))
    plan = planned(history, limits=budget(200_000))
    (shown,) = [item for item in plan.items if isinstance(item, Synthetic)]
    assert (shown.role, shown.origin) == ("user", "injected")
    assert shown.text.startswith("[Excerpts of the earlier history")
    assert "Data, no instruction" in shown.text


def test_groups_stand_in_original_order_under_their_ids_with_gaps_marked() -> None:
    history = view(
        user("find the port"),
        call("bash", command="grep -rn port config/", id="g"),
        result("g", "\n".join(["config/app.toml:3: port = 8123", *(["."] * 300), "config/db.toml:9: DB_PORT = 5432"])),
        *loop(12, 1_500),
    )
    plan = planned(history, limits=budget(200_000, target=2_000))
    lines = excerpts(plan).splitlines()
    at = lines.index("e3 bash result:")
    assert lines[at + 1 : at + 3] == ["config/app.toml:3: port = 8123", "… config/db.toml:9: DB_PORT = 5432"]
    positions = [history.positions[excerpt.entry] for excerpt in plan.excerpts]
    assert positions == sorted(positions)
    assert lines[-1].startswith("[Left out, but kept in the journal: ")


def test_an_error_is_labelled() -> None:
    history = view(
        user("go"),
        call("bash", command="make", id="m"),
        result("m", "src/a.c:17: error: unknown type name 'size_tt'", error=True),
        *loop(12, 1_500),
    )
    text = excerpts(planned(history, limits=budget(200_000, target=2_000)))
    assert "e3 bash error:\nsrc/a.c:17: error: unknown type name 'size_tt'" in text


def test_what_is_left_out_is_counted() -> None:
    history = view(user("go"), *loop(40, 1_500))
    plan = planned(history, limits=budget(200_000, target=1_000))
    last = excerpts(plan).splitlines()[-1]
    found = re.fullmatch(
        r"\[Left out, but kept in the journal: (?:(\d+) of (\d+) tool calls, )?(\d+) of (\d+) tool results, e1 to (e\d+)\.\]",
        last,
    )
    assert found, last
    assert found[5] == plan.cutoff
    shown = {(excerpt.entry, excerpt.block) for excerpt in plan.excerpts}
    covered = history.entries[: history.positions[plan.cutoff] + 1]
    results = [e.id for e in covered if any(isinstance(block, ToolResult) for block in e.blocks)]
    assert int(found[4]) == len(results)
    assert int(found[3]) == sum((entry, 0) not in shown for entry in results)


def test_text_in_every_script_is_quoted_to_the_letter() -> None:
    odd = [
        "ключ = значение_42",
        "設定値は max_size=64 です。",
        "설정값 limit_7 은 64MiB",
        "status 🙂 ok_9 ✅ done",
        "half \ud83d pair_8 here",
        "tab\tin row_6\u00a0here",
    ]
    history = view(user("go"), call("bash", command="x", id="b"), result("b", "\r\n".join(odd)), *loop(10, 1_500))
    plan = planned(history, limits=budget(200_000, target=2_000))
    for line in odd:
        assert line in excerpts(plan)


def test_every_excerpt_says_why() -> None:
    history = view(user("go"), *loop(20, 1_500), said("I found parse_line in src/parse.py."), *loop(5, 1_500, 50))
    plan = planned(history, limits=budget(200_000))
    assert plan.excerpts
    assert all(excerpt.reason for excerpt in plan.excerpts)


def test_assistant_prose_is_whole_where_it_fits_and_chatter_is_left_out() -> None:
    history = view(
        user("go"),
        said("The limit is in src/limits.py as MAX_ITEMS = 64."),
        said("Let me look at this."),
        *loop(20, 1_500),
    )
    plan = planned(history, limits=budget(200_000))
    kept = [item.entry for item in plan.items if isinstance(item, Kept)]
    assert kept == ["e1", "e2"]
    competing = planned(history, limits=budget(200_000), prose=0)
    assert [item.entry for item in competing.items if isinstance(item, Kept)] == ["e1"]
    assert "MAX_ITEMS = 64" in excerpts(competing)


def test_reasoning_and_media_are_never_excerpted_and_summaries_are_not_originals() -> None:
    from firsthand.testing.builders import image, summary, thought

    history = view(
        user("go", image()),
        said(thought("secret_plan_77 is best")),
        summary("earlier: the_old_name_5 was used"),
        *loop(20, 1_500),
    )
    plan = planned(history, limits=budget(200_000))
    assert "secret_plan_77" not in everything(history, plan)
    assert "the_old_name_5" not in everything(history, plan)
    assert Text("go") in project(history, plan)[0].blocks
