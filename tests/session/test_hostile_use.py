"""Uses that a session must survive although nobody means well: cancelled tasks, two objects at once, listeners that raise, branches."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agent_run import RULE, SYSTEM, TOOLS, calls, is_extension, opened, result, says, user, work

from firsthand.errors import ConfigError, OutputCeilingError, RequestTooLargeError
from firsthand.journal import Journal
from firsthand.session.events import Event, Unchanged
from firsthand.session.session import AsyncSession, Session
from firsthand.strategies import strategy_by_name
from firsthand.strategies.futureos.instruction import HEADINGS
from firsthand.strategies.futureos.strategies import FutureosSummarized
from firsthand.tokens import EstimateCounter
from firsthand.transcript import Entry, Text

SUMMARY = says("\n".join(HEADINGS))


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal.open(tmp_path / "journal.db") as opened:
        yield opened


def summarised(summariser: Any) -> dict[str, Any]:
    return {"strategy": FutureosSummarized(from_originals=True), "summariser": summariser, "window": 32_000}


# --- async ----------------------------------------------------------------------------------------------------------------------------------


def test_a_task_cancelled_in_a_summary_call_leaves_a_failed_receipt_and_a_whole_session(journal: Journal) -> None:
    async def main() -> None:
        asked = asyncio.Event()

        async def hangs(body: Any) -> Any:
            asked.set()
            await asyncio.Event().wait()

        session = await AsyncSession.open("s", journal=journal, counter=EstimateCounter(), **summarised(hangs))
        await session.append([user(RULE)])
        for number in range(6):
            await session.record(calls(number))
            await session.append([result(number)])
        before = (await session.prepare(system=SYSTEM)).body
        task = asyncio.create_task(session.compact())
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [(op.state, op.unfinished) for op in await session.operations()] == [("failed", False)]
        assert (await session.prepare(system=SYSTEM)).body == before

        async def answers(body: Any) -> Any:
            return SUMMARY

        session.settings = replace(session.settings, summariser=answers)
        assert (await session.compact()).kind == "applied"

    asyncio.run(main())
    assert journal.verify().ok


@pytest.mark.parametrize("step", ["claim", "commit", "fail"])
def test_a_task_cancelled_in_a_write_leaves_nothing_started(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The write goes on in its thread; what follows must wait for it, or a claim is made that nobody ever ends."""
    from firsthand.checkpoint import CheckpointStore

    inside, go_on = threading.Event(), threading.Event()
    original = getattr(CheckpointStore, step)

    def slow(self: CheckpointStore, *args: Any, **kwargs: Any) -> Any:
        if not inside.is_set():
            inside.set()
            go_on.wait(10)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(CheckpointStore, step, slow)

    def raises(body: Any) -> Any:
        raise ConfigError("no")

    async def main() -> None:
        summariser = raises if step == "fail" else (lambda body: SUMMARY)
        session = await AsyncSession.open("s", journal=journal, counter=EstimateCounter(), **summarised(summariser))
        await session.append([user(RULE)])
        for number in range(6):
            await session.record(calls(number))
            await session.append([result(number)])
        task = asyncio.create_task(session.compact())
        await asyncio.to_thread(inside.wait, 10)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        states = [operation.state for operation in await session.operations()]
        assert states == (["completed"] if step == "commit" else ["failed"])
        session.settings = replace(session.settings, summariser=lambda body: SUMMARY)
        again = await session.compact()
        assert (again.kind, again.reused) == ("applied", step == "commit")

    asyncio.run(main())


def test_a_blocking_summariser_that_hangs_does_not_keep_the_loop_from_closing(journal: Journal) -> None:
    release = threading.Event()

    def hangs(body: Any) -> Any:
        release.wait(20)
        return SUMMARY

    async def main() -> str:
        settings = {**summarised(hangs), "summary_deadline": 0.05}
        session = await AsyncSession.open("s", journal=journal, counter=EstimateCounter(), **settings)
        await session.append([user(RULE)])
        for number in range(6):
            await session.record(calls(number))
            await session.append([result(number)])
        return (await session.compact()).kind

    done: list[str] = []
    runner = threading.Thread(target=lambda: done.append(asyncio.run(main())), daemon=True)
    runner.start()
    runner.join(8)
    release.set()
    assert done == ["fallback"]


def test_an_async_summariser_may_use_the_running_loop_when_it_is_called(journal: Journal) -> None:
    async def answer() -> Any:
        return SUMMARY

    async def main() -> str:
        def summariser(body: Any) -> Any:
            return asyncio.ensure_future(answer())

        summariser.__name__ = "makes a future"

        class Model:
            async def __call__(self, body: Any) -> Any:
                return await asyncio.ensure_future(answer())

        session = await AsyncSession.open("s", journal=journal, counter=EstimateCounter(), **summarised(Model()))
        await session.append([user(RULE)])
        for number in range(6):
            await session.record(calls(number))
            await session.append([result(number)])
        return (await session.compact()).kind

    assert asyncio.run(main()) == "applied"


# --- the model's own code -------------------------------------------------------------------------------------------------------------------


def test_a_summariser_that_raises_anything_falls_back(journal: Journal) -> None:
    def broken(body: Any) -> Any:
        raise KeyError("secret-key-123")

    session = opened(journal, **summarised(broken))
    session.append([user(RULE)])
    work(session, range(6))
    outcome = session.compact()
    assert outcome.kind == "fallback"
    assert "KeyError" in outcome.reason
    assert "secret-key-123" not in outcome.reason


def test_a_failed_summary_without_a_fallback_can_be_asked_for_again(journal: Journal) -> None:
    answers: list[Any] = [says(""), says("a summary of what was done, long enough to be one")]
    session = opened(
        journal, strategy=strategy_by_name("codex-local"), fallback=None, summariser=lambda body: answers.pop(0)
    )
    session.append([user(RULE)])
    work(session, range(6))
    first = session.compact()
    assert first.kind == "failed"
    assert [operation.state for operation in session.operations()] == ["failed"]
    assert session.compact().kind == "applied"


# --- listeners ------------------------------------------------------------------------------------------------------------------------------


def test_a_listener_that_raises_changes_nothing(journal: Journal, caplog: pytest.LogCaptureFixture) -> None:
    def angry(event: Event) -> None:
        raise RuntimeError(f"no {type(event).__name__}")

    session = opened(journal, on_event=angry)
    session.append([user(RULE)])
    prepared = work(session, range(30))
    assert sum(request.outcome is not None for request in prepared) >= 1
    assert {operation.state for operation in session.operations()} == {"completed"}
    assert session.undo() is not None
    assert {record.name for record in caplog.records} == {"firsthand"}


def test_nothing_to_do_is_an_event_of_its_own(journal: Journal) -> None:
    events: list[Event] = []
    session = opened(journal, events)
    session.append([user("hi")])
    assert session.compact().kind == "unchanged"
    assert isinstance(events[-1], Unchanged)  # IN-03
    assert not any(type(event).__name__ == "Failed" for event in events)


# --- two objects, branches, forks -----------------------------------------------------------------------------------------------------------


def test_a_session_is_not_mistaken_for_one_whose_id_starts_alike(journal: Journal) -> None:
    opened(journal, session_id="task-2")
    session = opened(journal, session_id="task")
    session.append([user("hi")])
    assert session.id == "task"
    assert {info.id for info in journal.sessions()} == {"task", "task-2"}


def test_two_objects_that_take_turns_send_one_history(journal: Journal) -> None:
    one, other = opened(journal), opened(journal)
    one.append([user(RULE)])
    two = calls(0)
    two["choices"][0]["message"]["tool_calls"].append(
        {"id": "late", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    )
    other.record(two)
    one.append([result(0, 100)])
    sent = [one.prepare(system=SYSTEM).messages]
    other.append([user("still there?")])
    sent.append(other.prepare(system=SYSTEM).messages)
    one.append([{"role": "tool", "tool_call_id": "late", "content": "at last"}])
    sent.append(one.prepare(system=SYSTEM).messages)
    sent.append(other.prepare(system=SYSTEM).messages)
    assert is_extension(sent[0], sent[1])
    assert is_extension(sent[1], sent[2])
    assert sent[2] == sent[3] == opened(journal).prepare(system=SYSTEM).messages


def test_two_objects_see_each_others_checkpoints_and_undos(journal: Journal) -> None:
    one, other = opened(journal), opened(journal)
    one.append([user(RULE)])
    work(one, range(8))
    assert one.compact().kind == "applied"
    assert other.prepare(system=SYSTEM).messages == one.prepare(system=SYSTEM).messages
    assert other.undo() is not None
    assert other.prepare(system=SYSTEM).messages == one.prepare(system=SYSTEM).messages


@pytest.mark.parametrize("compacted", [False, True])
def test_a_branch_shows_its_own_path(journal: Journal, compacted: bool) -> None:
    session = opened(journal)
    (rule,) = session.append([user(RULE)])
    work(session, range(8))
    if compacted:
        assert session.compact().kind == "applied"
    session.append([Entry(id="b1", role="user", blocks=(Text("instead do this"),), parent=rule.id)])
    messages = session.prepare(system=SYSTEM).messages
    assert [message["content"] for message in messages] == [SYSTEM, RULE, "instead do this"]
    assert opened(journal).prepare(system=SYSTEM).messages == messages
    work(session, range(20, 34))
    assert session.compact().kind == "applied"


def test_one_append_may_branch_in_its_middle(journal: Journal) -> None:
    session = opened(journal)
    (rule,) = session.append([user(RULE)])
    first = Entry(id="b1", role="user", blocks=(Text("one way"),))
    second = Entry(id="b2", role="user", blocks=(Text("the other way"),), parent=rule.id)
    session.append([first, second])
    messages = session.prepare().messages
    assert messages == opened(journal).prepare().messages
    assert [message["content"] for message in messages] == [RULE, "the other way"]


def test_a_fork_of_a_fork_does_not_inherit_what_its_parent_did_not(journal: Journal) -> None:
    session = opened(journal)
    session.append([user(RULE)])
    work(session, range(8))
    child = session.fork()
    # What the first session makes of its history after the fork is its own affair, also where the fork is forked again.
    assert session.compact().kind == "applied"
    grandchild = child.fork()
    assert child.checkpoint is None
    assert grandchild.checkpoint is None
    assert child.compact().kind == "applied"
    assert child.fork().checkpoint == child.checkpoint


def test_what_a_session_undoes_after_a_fork_stays_in_force_there(journal: Journal) -> None:
    session = opened(journal)
    session.append([user(RULE)])
    work(session, range(8))
    session.compact()
    child = session.fork(new_id="child")
    before = child.prepare(system=SYSTEM).messages
    assert session.undo() is not None
    assert opened(journal, session_id="child").prepare(system=SYSTEM).messages == before


def test_undo_twice_and_the_next_request_does_not_compact_again(journal: Journal) -> None:
    session = opened(journal)
    session.append([user(RULE)])
    work(session, range(40))
    first = session.checkpoint
    assert first is not None
    session.compact()
    assert session.undo() != first
    assert session.checkpoint == first
    assert session.prepare(system=SYSTEM, max_output=4_000).outcome is None
    count = len(journal.view("s").entries)
    assert count == 81


def test_after_an_undo_another_strategy_may_make_it_again_by_itself(journal: Journal) -> None:
    session = opened(journal, threshold=8_000)
    session.append([user(RULE)])
    work(session, range(10))
    assert session.checkpoint is not None
    while session.undo() is not None:
        pass
    assert session.prepare(system=SYSTEM).outcome is None
    session.settings = replace(
        session.settings, **{k: v for k, v in summarised(lambda body: SUMMARY).items() if k != "window"}
    )
    outcome = session.prepare(system=SYSTEM).outcome
    assert outcome is not None
    assert (outcome.kind, outcome.reused) == ("applied", False)


def test_an_undo_elsewhere_puts_the_next_compaction_off_here_too(journal: Journal) -> None:
    session = opened(journal, threshold=8_000)
    session.append([user(RULE)])
    work(session, range(10))
    elsewhere = opened(journal)
    while elsewhere.undo() is not None:
        pass
    assert session.prepare(system=SYSTEM).outcome is None
    assert opened(journal, threshold=8_000).prepare(system=SYSTEM).outcome is None
    # It comes back with the next checkpoint, whoever makes it.
    assert elsewhere.compact().checkpoint is not None
    assert any(prepared.outcome for prepared in work(session, range(10, 30)))


# --- settings and limits --------------------------------------------------------------------------------------------------------------------


def test_a_pin_makes_it_another_compaction(journal: Journal) -> None:
    session = opened(journal)
    session.append([user(RULE)])
    work(session, range(8), 300)
    first = session.compact()
    assert session.compact().reused
    session.pin(journal.view("s").entries[2].id)
    # It would only make the projection larger, so the pin waits for something new to cover; but that is no answer to the old question.
    again = session.compact()
    assert (again.kind, again.reused) == ("unchanged", False)
    assert session.checkpoint == first.checkpoint
    work(session, range(8, 16), 1_000)
    session.compact()
    assert result(0, 300) in session.prepare(system=SYSTEM).messages


def test_an_output_ceiling_that_fills_the_window_is_refused_at_load(journal: Journal) -> None:
    with pytest.raises(OutputCeilingError):  # AC-01
        opened(journal, window=8_192, output_ceiling=8_192)


def test_anthropic_requests_always_ask_for_an_output_limit(journal: Journal) -> None:
    session = opened(journal, wire="anthropic", window=100_000)
    session.append([user(RULE)])
    prepared = session.prepare()
    assert prepared.body["max_tokens"] == prepared.budget.output_ceiling == 25_000
    assert "max_completion_tokens" not in opened(journal, session_id="c").prepare().body


@pytest.mark.parametrize("name", ["codex-local", "pi", "opencode-v1", "opencode-v2"])
def test_a_strategy_that_would_wait_too_long_is_asked_at_the_input_limit(journal: Journal, name: str) -> None:
    session = opened(
        journal, strategy=strategy_by_name(name), window=64_000, output_ceiling=30_000,
        summariser=lambda body: says("## Goal\nThe stub runs on port 8123; tests read files one by one.\n"),
    )  # fmt: skip
    session.append([user(RULE)])
    for number in range(40):
        prepared = session.prepare(system=SYSTEM)
        assert prepared.occupancy.tokens <= prepared.budget.input_limit
        session.record(calls(number))
        session.append([result(number)])
    assert session.checkpoint is not None


def test_more_tools_than_the_last_count_saw_are_counted(journal: Journal) -> None:
    session = opened(journal)
    session.append([user(RULE)])
    session.prepare()
    session.record(says("ok", usage={"prompt_tokens": 100, "completion_tokens": 10}))
    session.append([user("on")])
    small = session.prepare(system=SYSTEM).occupancy.tokens
    tools = [{**TOOLS["openai-chat"][0], "x": "y" * 4_000}]
    large = session.prepare(system=SYSTEM, tools=tools).occupancy.tokens
    assert large - small >= 1_000
    assert opened(journal).prepare(system=SYSTEM, tools=tools).occupancy.tokens == large
    with pytest.raises(RequestTooLargeError):
        session.prepare(system=SYSTEM, tools=[{"x": "y" * 100_000}])


def test_a_low_threshold_does_not_compact_at_every_step(journal: Journal) -> None:
    session = opened(journal, threshold=3_000)
    session.append([user("please " * 2_000)])
    prepared = work(session, range(24), 300)
    compactions = sum(request.outcome is not None and not request.outcome.reused for request in prepared)
    assert 1 <= compactions <= 4  # OV-02: what cannot be made smaller is not tried at every step


def test_compact_with_a_system_prompt_keeps_the_tools(journal: Journal) -> None:
    bodies: list[Any] = []

    def summariser(body: Any) -> Any:
        bodies.append(body)
        return SUMMARY

    session = opened(journal, **summarised(summariser))
    session.append([user(RULE)])
    work(session, range(6))
    session.compact(system=SYSTEM)
    assert bodies[0]["tools"] == TOOLS["openai-chat"]


def test_parallel_calls_of_one_id_keep_their_results(journal: Journal) -> None:
    session = opened(journal)
    session.append([user(RULE)])
    twice = calls(0)
    twice["choices"][0]["message"]["tool_calls"] *= 2
    session.record(twice)
    session.append([{**result(0, 10), "content": "first"}, {**result(0, 10), "content": "second"}])
    messages = session.prepare(system=SYSTEM).messages
    assert [message["content"] for message in messages if message["role"] == "tool"] == ["first", "second"]
    assert "late tool result" not in json.dumps(messages)


def test_opening_one_new_session_from_many_threads(journal: Journal) -> None:
    found: list[Any] = []

    def attempt() -> None:
        try:
            found.append(Session.open("new", journal=journal, window=32_000).id)
        except Exception as error:
            found.append(error)

    threads = [threading.Thread(target=attempt) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == ["new"] * 8
