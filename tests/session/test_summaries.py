"""Summaries over a real HTTP endpoint: the fake model server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firsthand.journal import Journal
from firsthand.session.events import Event, FellBack
from firsthand.session.session import Session
from firsthand.strategies.futureos.instruction import HEADINGS
from firsthand.strategies.futureos.strategies import FutureosSummarized
from firsthand.summary.model import HttpModel
from firsthand.testing.server import Call, Failure, FakeServer, Reply
from firsthand.tokens import EstimateCounter

GOOD = "\n".join([*HEADINGS, "- the stub listens on 8123"])
SYSTEM = "You are careful."
TOOLS = [
    {
        "type": "function",
        "function": {"name": "read", "description": "Read.", "parameters": {"type": "object", "properties": {}}},
    }
]
ANTHROPIC_TOOLS = [{"name": "read", "description": "Read.", "input_schema": {"type": "object", "properties": {}}}]
RESPONSES_TOOLS = [
    {"type": "function", "name": "read", "description": "Read.", "parameters": {"type": "object", "properties": {}}}
]


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal.open(tmp_path / "journal.db") as opened:
        yield opened


def session_at(
    journal: Journal, server: FakeServer, wire: str = "openai-chat", events: list[Event] | None = None, **settings: Any
) -> Session:
    session = Session.open(
        "s",
        journal=journal,
        **{
            "window": 64_000, "wire": wire, "model": "fake-model", "counter": EstimateCounter(),
            "strategy": FutureosSummarized(from_originals=True), "summariser": HttpModel(server.url + "/v1", wire=wire, model="fake-model"),
            "on_event": events.append if events is not None else None, **settings,
        },
    )  # fmt: skip
    session.append([user(wire, "Only port 8123 is free for the stub.")])
    for number in range(6):
        session.record(asks(wire, number))
        session.append([result(wire, number)])
    return session


def user(wire: str, text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def asks(wire: str, number: int) -> dict[str, Any]:
    if wire == "anthropic":
        return {
            "content": [{"type": "tool_use", "id": f"c{number}", "name": "read", "input": {"path": "a.py"}}],
            "stop_reason": "tool_use",
        }
    if wire == "openai-responses":
        return {
            "output": [{"type": "function_call", "call_id": f"c{number}", "name": "read", "arguments": "{}"}],
            "status": "completed",
        }
    call = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    return {
        "choices": [
            {"finish_reason": "tool_calls", "message": {"role": "assistant", "content": None, "tool_calls": [call]}}
        ]
    }


def result(wire: str, number: int) -> dict[str, Any]:
    text = f"{number} " + "x" * 8_000
    if wire == "anthropic":
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"c{number}", "content": text}]}
    if wire == "openai-responses":
        return {"type": "function_call_output", "call_id": f"c{number}", "output": text}
    return {"role": "tool", "tool_call_id": f"c{number}", "content": text}


def index_of(session: Session) -> str:
    assert session.checkpoint is not None
    return str(session.checkpoint.plan.items[-1].text)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("wire", "field", "tools"),
    [
        ("openai-chat", "messages", TOOLS),
        ("openai-responses", "input", RESPONSES_TOOLS),
        ("anthropic", "messages", ANTHROPIC_TOOLS),
    ],
)
def test_the_request_is_the_sessions_own_plus_one_instruction(
    journal: Journal, wire: str, field: str, tools: list[Any]
) -> None:
    with FakeServer([Reply(GOOD)]) as server:
        session = session_at(journal, server, wire)
        prepared = session.prepare(system=SYSTEM, tools=tools, max_output=4_000)
        outcome = session.compact()
        assert outcome.kind == "applied", outcome.reason
        (request,) = server.requests
        assert request.violations == ()
        sent = request.json
    for name in ("model", "system", "instructions", "tools"):
        assert sent.get(name) == prepared.body.get(name)  # SU-16
    before = json.dumps(prepared.body[field])
    after = json.dumps(sent[field])
    assert after[: len(before) - 1] == before[:-1] or wire == "anthropic"
    assert sent[field][: len(prepared.body[field]) - 1] == prepared.body[field][:-1]
    assert "8123" in index_of(session)
    assert outcome.usage[0].input_tokens > 10_000
    messages = session.prepare(system=SYSTEM, tools=tools).messages
    assert "Use exactly these headings" not in json.dumps(messages)  # SU-02


@pytest.mark.parametrize(
    ("replies", "reason", "requests"),
    [
        ([Reply("")], "the answer holds no text", 1),  # SU-04
        ([Reply("", reasoning="hm")], "the answer holds no text", 1),
        ([Reply(GOOD, finish="length")], "the answer ended with 'length'", 1),  # SU-05
        ([Reply(GOOD, calls=(Call("read"),))], "the answer ended with 'tool_calls'", 1),  # SU-06
        (
            [Reply("<function_calls><invoke name='read'/></function_calls>")],
            "the answer is the markup of a tool call",
            1,
        ),
        ([Reply("Sure, what should I do next?")], "the answer lacks the heading '## Objective'", 1),  # SU-07
        ([Failure("rate_limit"), Failure("unavailable"), Failure("overloaded")], "the summary call failed", 3),  # SU-08
        ([Failure("auth")], "the summary call failed", 1),
        ([Reply(GOOD + "x" * 40_000)], "the answer takes", 1),  # SU-03
    ],
)
def test_what_is_no_summary_falls_back_to_the_rules(
    journal: Journal, replies: list[Any], reason: str, requests: int
) -> None:
    events: list[Event] = []
    with FakeServer(replies) as server:
        session = session_at(journal, server, events=events)
        outcome = session.compact(system=SYSTEM, tools=TOOLS)
        assert len(server.requests) == requests
    assert outcome.kind == "fallback"
    assert outcome.reason.startswith(reason)
    (event,) = [event for event in events if isinstance(event, FellBack)]
    assert event.reason == outcome.reason
    assert "no model summary was generated" in index_of(session)
    assert [operation.state for operation in session.operations()] == ["completed"]


def test_a_passing_failure_is_retried_and_then_adopted(journal: Journal) -> None:
    with FakeServer([Failure("rate_limit"), Reply(GOOD)]) as server:
        session = session_at(journal, server)
        assert session.compact().kind == "applied"
        assert len(server.requests) == 2


def test_a_summary_request_that_is_too_large_is_made_smaller(journal: Journal) -> None:
    with FakeServer([Failure("overflow"), Reply(GOOD)]) as server:
        session = session_at(journal, server)
        assert session.compact().kind == "applied"  # SU-09
        first, second = [len(request.json["messages"]) for request in server.requests]
        assert second < first


def test_a_provider_that_hangs_is_given_up_at_the_deadline(journal: Journal) -> None:
    with FakeServer([Reply(GOOD, delay=5.0)] * 3) as server:
        session = session_at(journal, server, summary_deadline=0.2)
        outcome = session.compact()
    assert outcome.kind == "fallback"
    assert "no answer within 0.2 s" in outcome.reason  # SU-17


def test_without_a_model_the_rules_do_it(journal: Journal) -> None:
    with FakeServer([]) as server:
        session = session_at(journal, server, summariser=None)
        outcome = session.compact()
        assert len(server.requests) == 0
    assert (outcome.kind, outcome.reason) == ("fallback", "no model for summaries is set")


def test_the_summary_is_in_the_language_of_the_session(journal: Journal) -> None:
    with FakeServer([Reply(GOOD)]) as server:
        session = session_at(journal, server)
        session.append(
            [
                user(
                    "openai-chat",
                    "스텁은 8123 포트만 쓸 수 있으니 다른 포트는 절대로 건드리지 마세요. 테스트는 모두 그대로 두세요.",
                )
            ]
        )
        outcome = session.compact()
        assert "in the language of the session" in json.dumps(server.requests[0].json)  # SU-12
    assert outcome.kind == "fallback"
    assert outcome.reason == "the answer is in another language than the session"


def test_what_arrives_while_the_summary_is_written_stays_behind_the_tail_once(journal: Journal) -> None:
    other: list[Session] = []

    def slow(request: Any) -> Reply:
        other[0].append([user("openai-chat", "and please hurry")])
        return Reply(GOOD)

    with FakeServer(slow) as server:
        session = session_at(journal, server)
        other.append(Session.open("s", journal=journal, window=64_000))
        assert session.compact().kind == "applied"  # IN-06, IN-07
    messages = session.prepare(system=SYSTEM).messages
    assert sum(message.get("content") == "and please hurry" for message in messages) == 1
    assert messages[-1]["content"] == "and please hurry"


def test_six_rounds_never_nest_and_user_values_stay_verbatim(journal: Journal) -> None:
    with FakeServer([Reply(GOOD.replace("8123", f"round {number}")) for number in range(6)]) as server:
        session = session_at(journal, server)
        for number in range(6):
            session.append([user("openai-chat", f"step {number}")])
            session.record(asks("openai-chat", 100 + number))
            session.append([{**result("openai-chat", 100 + number), "content": "y" * 40_000}])
            assert session.compact().kind == "applied"
            text = index_of(session)
            assert text.count("## Objective") == 1  # SU-03
            assert f"round {number}" in text
    messages = json.dumps(session.prepare().messages)
    assert messages.count("Only port 8123 is free for the stub.") == 1  # SU-15
