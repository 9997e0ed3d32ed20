from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firsthand.checkpoint import resolve
from firsthand.errors import (
    ConfigError,
    ContextOverflowError,
    JournalError,
    OutputLimitError,
    ProviderError,
    RequestTooLargeError,
)
from firsthand.journal import Journal
from firsthand.session.cost import Prices
from firsthand.session.events import Event, LimitLearned, NearTrigger, Started
from firsthand.session.session import AsyncSession, Session
from firsthand.strategies import strategy_by_name
from firsthand.tokens import EstimateCounter

SYSTEM = "You are careful."
TOOLS = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]
RULE = "Only port 8123 is free for the stub."


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal.open(tmp_path / "journal.db") as opened:
        yield opened


def opened(journal: Journal, events: list[Event] | None = None, session_id: str = "s", **settings: Any) -> Session:
    listen = events.append if events is not None else None
    return Session.open(
        session_id, journal=journal, **{"window": 32_000, "counter": EstimateCounter(), "on_event": listen, **settings}
    )


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def calls(number: int, usage: dict[str, int] | None = None) -> dict[str, Any]:
    """A response that calls `read` once."""
    call = {
        "id": f"c{number}",
        "type": "function",
        "function": {"name": "read", "arguments": f'{{"path":"f{number}.py"}}'},
    }
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {
        "id": f"r{number}",
        "model": "m",
        "choices": [{"finish_reason": "tool_calls", "message": message}],
        "usage": usage,
    }


def says(text: str, finish: str = "stop", usage: dict[str, int] | None = None) -> dict[str, Any]:
    return {
        "id": "r",
        "model": "m",
        "choices": [{"finish_reason": finish, "message": {"role": "assistant", "content": text}}],
        "usage": usage,
    }


def result(number: int, tokens: int = 1_000) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"c{number}", "content": f"{number} " + "x" * (4 * tokens - 8)}


def work(session: Session, steps: range, tokens: int = 1_000) -> list[Any]:
    """So many steps of a tool loop; what `prepare` gave at each."""
    prepared = []
    for number in steps:
        prepared.append(session.prepare(system=SYSTEM, tools=TOOLS, max_output=4_000))
        session.record(calls(number))
        session.append([result(number, tokens)])
    return prepared


def is_extension(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> bool:
    return json.dumps(after)[: len(json.dumps(before)) - 1] == json.dumps(before)[:-1]


def test_it_compacts_by_itself_and_between_checkpoints_each_request_extends_the_last(journal: Journal) -> None:
    events: list[Event] = []
    session = opened(journal, events)
    session.append([user(RULE)])
    prepared = work(session, range(70))
    compacted = [number for number, request in enumerate(prepared) if request.outcome]
    assert len(compacted) >= 3
    for number in range(1, len(prepared)):
        assert is_extension(prepared[number - 1].messages, prepared[number].messages) is (number not in compacted)
    for request in prepared:
        assert request.occupancy.tokens <= request.budget.input_limit
        assert request.body["messages"][0] == {"role": "system", "content": SYSTEM}  # SE-13
        assert request.body["tools"] == TOOLS
        assert sum(message.get("content") == RULE for message in request.messages) == 1  # SE-12, SE-14
    names = [type(event).__name__ for event in events]
    assert names[:3] == ["NearTrigger", "Started", "Applied"]
    assert names.count("Applied") == len(compacted)
    assert journal.verify().ok


def test_after_a_restart_the_projection_is_byte_equal(journal: Journal) -> None:
    session = opened(journal)
    session.append([user(RULE)])
    work(session, range(40))
    before = session.prepare(system=SYSTEM, tools=TOOLS)
    assert session.checkpoint is not None
    again = opened(journal).prepare(system=SYSTEM, tools=TOOLS)  # IN-09
    assert json.dumps(again.body) == json.dumps(before.body)


def test_the_first_response_usage_anchors_and_stale_usage_does_not(journal: Journal) -> None:
    session = opened(journal, window=200_000)
    session.append([user("go")])
    session.record(calls(0, {"prompt_tokens": 150_000, "completion_tokens": 0}))
    session.append([result(0, 20_000)])
    request = session.preview()[1]
    assert request.tokens_before == 150_000 + 19_999 + 6  # AC-09
    prepared = session.prepare(system=SYSTEM, tools=TOOLS)
    assert prepared.outcome is not None
    assert prepared.occupancy.reported == 0  # AC-08: what the provider counted before the checkpoint is history
    assert prepared.occupancy.tokens < 40_000


def test_a_report_of_zero_is_no_report(journal: Journal) -> None:
    session = opened(journal, window=200_000)
    session.append([user("go")])
    session.record(calls(0, {"prompt_tokens": 50_000, "completion_tokens": 10}))
    session.append([result(0, 100)])
    session.record(calls(1, {"prompt_tokens": 0, "completion_tokens": 0}))
    session.append([result(1, 100)])
    found = session.prepare().occupancy
    assert found.reported == 50_010  # AC-07
    assert 50_200 < found.tokens < 50_300


def test_compacting_twice_without_news_gives_the_same_checkpoint(journal: Journal) -> None:
    session = opened(journal)
    session.append([user(RULE)])
    work(session, range(8))
    first, second = session.compact(), session.compact()
    assert first.kind == second.kind == "applied"
    assert first.checkpoint == second.checkpoint  # IN-02
    assert (first.reused, second.reused) == (False, True)
    assert [operation.state for operation in session.operations()] == ["completed"]


def test_nothing_to_do_is_an_outcome_of_its_own(journal: Journal) -> None:
    session = opened(journal)
    assert session.compact().kind == "unchanged"
    session.append([user("hi")])
    outcome = session.compact()
    assert outcome.kind == "unchanged"
    assert "nothing to cover" in outcome.reason
    session = opened(journal, session_id="short", strategy=strategy_by_name("coverage", tail=0))
    session.append([user("hi"), says("hello")["choices"][0]["message"], user("and?")])
    outcome = session.compact()
    assert outcome.kind == "unchanged"
    assert "not beneficial" in outcome.reason  # SU-11
    assert session.checkpoint is None


def test_undo_shows_the_history_again(journal: Journal) -> None:
    session = opened(journal)
    session.append([user(RULE)])
    work(session, range(8))
    before = session.prepare(system=SYSTEM)
    first = session.compact().checkpoint
    assert session.undo() == first
    assert session.prepare(system=SYSTEM).body == before.body
    assert session.undo() is None
    again = session.compact()
    assert again.kind == "applied"
    assert again.checkpoint != first


def test_pins_are_whole_from_the_next_checkpoint_and_not_before(journal: Journal) -> None:
    session = opened(journal)
    session.append([user(RULE)])
    work(session, range(2), 300)
    pinned = session.journal.view("s").entries[2]  # a tool result: it needs its call beside it
    work(session, range(2, 10))
    session.compact()
    before = session.prepare(system=SYSTEM, tools=TOOLS, max_output=4_000)
    session.pin(pinned.id)
    (after,) = work(session, range(10, 11))
    assert is_extension(before.messages, after.messages)
    assert result(0, 300) not in after.messages
    work(session, range(11, 30))
    session.compact()
    messages = session.prepare(system=SYSTEM).messages
    position = messages.index(result(0, 300))
    assert messages[position - 1]["tool_calls"][0]["id"] == "c0"


def test_a_late_result_extends_the_request_and_is_paired_at_the_next_checkpoint(journal: Journal) -> None:
    session = opened(journal)
    session.append([user(RULE)])
    two = calls(0)
    two["choices"][0]["message"]["tool_calls"].append(
        {"id": "late", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    )
    session.record(two)
    session.append([result(0, 100)])
    first = session.prepare(system=SYSTEM)
    session.append([user("still there?")])
    second = session.prepare(system=SYSTEM)
    session.append([{"role": "tool", "tool_call_id": "late", "content": "at last"}])
    third = session.prepare(system=SYSTEM)
    assert is_extension(first.messages, second.messages)
    assert is_extension(second.messages, third.messages)
    assert third.messages[-1]["role"] == "user"
    assert "at last" in third.messages[-1]["content"]
    assert opened(journal).prepare(system=SYSTEM).messages == third.messages


def test_a_fork_inherits_only_what_ends_before_it(journal: Journal) -> None:
    session = opened(journal)
    (rule,) = session.append([user(RULE)])
    work(session, range(8))
    middle = session.prepare(system=SYSTEM).entries[-1].id
    early = session.fork(at=rule.id)
    outcome = session.compact()
    assert outcome.checkpoint is not None
    late = session.fork()
    between = session.fork(at=middle)
    assert early.checkpoint is None  # JR-07
    assert late.checkpoint is not None
    assert late.checkpoint.id == outcome.checkpoint.id
    assert between.checkpoint is not None
    assert late.prepare(system=SYSTEM).messages == session.prepare(system=SYSTEM).messages
    session.append([user("more")])
    work(session, range(8, 30))
    assert late.prepare(system=SYSTEM).messages != session.prepare(system=SYSTEM).messages
    assert late.undo() is None


def test_a_warning_comes_ahead_and_compaction_can_be_put_off_to_the_limit(journal: Journal) -> None:
    events: list[Event] = []
    session = opened(journal, events, threshold=0.42)
    session.append([user(RULE)])
    work(session, range(13))
    assert [type(event) for event in events] == [NearTrigger]
    session.postpone()
    prepared = work(session, range(12, 23))
    assert not any(request.outcome for request in prepared)
    assert len(events) == 1
    (last,) = work(session, range(23, 24), 8_000)
    assert last.outcome is None
    assert session.prepare(system=SYSTEM, tools=TOOLS, max_output=4_000).outcome is not None


def test_a_smaller_model_compacts_before_its_first_request(journal: Journal) -> None:
    session = opened(journal, window=1_000_000)
    session.append([user(RULE)])
    for number in range(25):
        session.prepare()
        session.record(calls(number))
        session.append([result(number, 10_000)])
    session.append([user("and now?")])
    events: list[Event] = []
    small = opened(journal, events, window=128_000)
    prepared = small.prepare(max_output=16_000)
    assert prepared.outcome is not None
    assert prepared.occupancy.tokens <= 102_400  # OV-04
    (started,) = [event for event in events if isinstance(event, Started)]
    assert started.trigger == "model_context_downshift"


def test_what_cannot_fit_is_refused_with_sizes_and_loses_nothing(journal: Journal) -> None:
    session = opened(journal)
    session.append([{"role": "system", "content": "x" * 400_000}, user("go")])
    with pytest.raises(
        RequestTooLargeError, match=r"takes 100,0\d\d tokens and the input limit is 22,000.*nothing was sent"
    ) as caught:
        session.prepare()
    assert caught.value.sizes["input_limit"] == 22_000
    assert len(journal.view("s").entries) == 2  # SE-18


def test_automatic_off_still_compacts_when_asked(journal: Journal) -> None:
    session = opened(journal, auto=False)
    session.append([user(RULE)])
    work(session, range(20))
    assert session.checkpoint is None
    assert session.compact().kind == "applied"


def test_prices_say_what_a_turn_costs_and_when_a_compaction_has_paid(journal: Journal) -> None:
    session = opened(journal, prices=Prices(input=1.0, output=4.0, cache_read=0.02, currency="CNY"))
    session.append([user(RULE)])
    work(session, range(15))
    before = session.prepare(system=SYSTEM)
    assert before.cost is not None
    assert before.cost.per_turn_cold == pytest.approx(before.occupancy.tokens / 1e6)
    assert before.cost.saved_per_turn is None
    session.compact()
    after = session.prepare(system=SYSTEM)
    assert after.cost is not None
    assert after.cost.saved_per_turn == pytest.approx(
        (before.occupancy.tokens - after.occupancy.tokens) * 0.02 / 1e6, rel=0.01
    )
    assert after.cost.pays_after_turns == -int(
        -(after.occupancy.tokens * 0.98) // ((before.occupancy.tokens - after.occupancy.tokens) * 0.02)
    )


def test_settings_that_cannot_work(journal: Journal) -> None:
    with pytest.raises(ConfigError, match="wire is one of"):
        opened(journal, wire="soap")
    with pytest.raises(ConfigError, match="warn_at"):
        opened(journal, warn_at=0)


# --- overflow (failure kinds OV-*) ----------------------------------------------------------------------------------------------------------

OVERFLOW = json.dumps(
    {
        "error": {
            "code": "context_length_exceeded",
            "message": "This model's maximum context length is 8192 tokens. However, you requested 12000 tokens.",
        }
    }
)


def test_an_overflow_is_answered_by_one_compaction_and_one_retry(journal: Journal) -> None:
    events: list[Event] = []
    session = opened(journal, events, window=65_536)
    session.append([user(RULE)])
    work(session, range(10))
    sent = []

    def send(body: dict[str, Any]) -> dict[str, Any]:
        sent.append(body)
        if len(sent) == 1:
            raise ProviderError(400, OVERFLOW)
        return says("done")

    session.step(send, system=SYSTEM)
    assert len(sent) == 2
    assert len(json.dumps(sent[1])) < len(json.dumps(sent[0]))
    assert [event.limit for event in events if isinstance(event, LimitLearned)] == [8_192]  # OV-11
    assert session.prepare(max_output=1_000).budget.window == 8_192
    assert opened(journal, window=65_536).prepare(max_output=1_000).budget.window == 8_192


def test_overflow_for_ever_ends_after_one_retry(journal: Journal) -> None:
    session = opened(journal)
    session.append([user(RULE)])
    work(session, range(10))
    sent = []

    def send(body: dict[str, Any]) -> dict[str, Any]:
        sent.append(body)
        raise ProviderError(400, json.dumps({"error": {"code": "context_length_exceeded", "message": "too long"}}))

    with pytest.raises(ContextOverflowError, match="refused the compacted request"):
        session.step(send, system=SYSTEM)
    assert len(sent) == 2  # OV-10
    assert [operation.state for operation in session.operations()] == ["completed"]


def test_overflow_with_compaction_off_leaves_the_session_usable(journal: Journal) -> None:
    session = opened(journal, auto=False)
    session.append([user(RULE)])
    work(session, range(5))

    def send(body: dict[str, Any]) -> dict[str, Any]:
        raise ProviderError(400, json.dumps({"error": {"code": "context_length_exceeded", "message": "too long"}}))

    with pytest.raises(ContextOverflowError, match="automatic compaction is off"):
        session.step(send, system=SYSTEM)
    assert session.operations() == []  # OV-01
    assert opened(journal, window=200_000).prepare(system=SYSTEM).messages


@pytest.mark.parametrize("status", [429, 503, 529, 401])
def test_other_errors_are_the_callers(journal: Journal, status: int) -> None:
    session = opened(journal)
    session.append([user("go"), {"role": "assistant", "content": "the context window is full"}])

    def send(body: dict[str, Any]) -> dict[str, Any]:
        raise ProviderError(status, "tokens per minute, context window")

    with pytest.raises(ProviderError) as caught:
        session.step(send)
    assert caught.value.status == status  # OV-08, OV-09
    assert session.operations() == []


def test_a_length_stop_without_output_is_no_success(journal: Journal) -> None:
    session = opened(journal)
    session.append([user("go")])
    with pytest.raises(OutputLimitError):  # OV-13
        session.record(says("", "length"))


# --- operations of others -------------------------------------------------------------------------------------------------------------------


def test_an_operation_of_a_dead_process_is_reported_and_can_be_resolved(journal: Journal) -> None:
    session = opened(journal)
    session.append([user(RULE)])
    work(session, range(8))
    first = session.compact()
    assert first.checkpoint is not None
    session.undo()
    with journal.write() as connection:
        connection.exec_driver_sql(
            "UPDATE operations SET state = 'started', owner = replace(owner, substr(owner, instr(owner, ':')), ':999999999')"
        )
    (found,) = session.operations()
    assert found.unfinished
    outcome = session.compact()
    assert outcome.kind == "failed"
    assert f"session resolve {found.id} --failed" in outcome.reason  # IN-05
    session.prepare(system=SYSTEM)  # model steps are not blocked
    assert resolve(journal, found.id).state == "failed"
    with pytest.raises(JournalError, match="failed already"):
        resolve(journal, found.id)
    assert session.compact().kind == "applied"


def test_a_checkpoint_of_a_retired_algorithm_is_covered_again(journal: Journal) -> None:
    session = opened(journal)
    session.append([user(RULE)])
    work(session, range(8))
    full = session.prepare(system=SYSTEM)
    session.compact()
    with journal.write() as connection:
        connection.exec_driver_sql("UPDATE checkpoints SET algorithm = 'futureos-deterministic/v0'")
    again = opened(journal)
    assert again.checkpoint is None  # IN-10
    assert again.prepare(system=SYSTEM).messages == full.messages


# --- async ----------------------------------------------------------------------------------------------------------------------------------


def test_the_async_session_does_the_same(journal: Journal, tmp_path: Path) -> None:
    sync = opened(journal)
    sync.append([user(RULE)])
    expected = [request.body for request in work(sync, range(40))]

    async def main() -> list[Any]:
        bodies = []
        async with await AsyncSession.open(
            "s", journal=tmp_path / "other.db", window=32_000, counter=EstimateCounter()
        ) as session:
            await session.append([user(RULE)])
            for number in range(40):
                prepared = await session.prepare(system=SYSTEM, tools=TOOLS, max_output=4_000)
                bodies.append(prepared.body)
                await session.record(calls(number))
                await session.append([result(number)])
            assert [operation.state for operation in await session.operations()] == ["completed"] * len(
                await session.operations()
            )
        return bodies

    found = asyncio.run(main())
    # Checkpoints name entries by id, and ids differ between two sessions; everything else is the same.
    assert [len(body["messages"]) for body in found] == [len(body["messages"]) for body in expected]
    assert [body["messages"][-1] for body in found] == [body["messages"][-1] for body in expected]


# --- other strategies -----------------------------------------------------------------------------------------------------------------------


def test_a_strategys_reminder_is_appended_once_and_the_window_switches(journal: Journal) -> None:
    strategy = strategy_by_name(
        "codex-token-budget", reminder_threshold_tokens=25_000, reminder_message_template="{n_remaining} tokens left"
    )
    session = opened(journal, strategy=strategy, window=40_000)
    session.append([user(RULE)])
    prepared = work(session, range(20))
    reminders = [
        sum("tokens left" in str(message.get("content")) for message in request.messages) for request in prepared
    ]
    assert max(reminders) == 1
    assert reminders[-1] <= 1
    for number in range(1, len(prepared)):
        if not prepared[number].outcome:
            assert is_extension(prepared[number - 1].messages, prepared[number].messages)


def test_a_request_for_a_new_context_is_remembered_until_it_is_answered(journal: Journal) -> None:
    session = opened(journal, strategy=strategy_by_name("codex-token-budget"), window=200_000)
    session.append([user(RULE)])
    work(session, range(3))
    session.request_new_context()
    prepared = session.prepare(system=SYSTEM)
    assert prepared.outcome is not None
    assert prepared.outcome.kind == "applied"
    assert len(prepared.messages) < 8
    assert work(session, range(3, 5))[-1].outcome is None
