"""A client's own compactions are known by their structure, sent with their whole history, and never confuse the journal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from gatewayed import Raw, agent_session, said, step, user
from in_process import InProcess

from firsthand.journal import Journal
from firsthand.testing.server import FakeServer

TOOLS = {
    "openai-responses": [{"type": "function", "name": "bash", "parameters": {}}],
    "anthropic": [{"name": "bash", "input_schema": {"type": "object"}}],
}
WIDE = {"*": 100_000}


def codex(messages: list[Raw]) -> tuple[list[Raw], dict[str, Any], dict[str, str]]:
    return [*messages, user("openai-responses", "Write a handoff.")], {"tools": []}, {}


def codex_by_header(messages: list[Raw]) -> tuple[list[Raw], dict[str, Any], dict[str, str]]:
    metadata = json.dumps({"turn_id": "t", "request_kind": "compaction"})
    tools = {"tools": TOOLS["openai-responses"]}
    return [*messages, user("openai-responses", "Write.")], tools, {"x-codex-turn-metadata": metadata}


def codex_remote(messages: list[Raw]) -> tuple[list[Raw], dict[str, Any], dict[str, str]]:
    return [*messages, {"type": "compaction_trigger"}], {"tools": TOOLS["openai-responses"]}, {}


def claude_code(messages: list[Raw]) -> tuple[list[Raw], dict[str, Any], dict[str, str]]:
    asked = json.loads(json.dumps(messages))
    asked[-1]["content"].append({"type": "text", "text": "Summarise the conversation."})
    return asked, {"tools": TOOLS["anthropic"]}, {}


def opencode(messages: list[Raw]) -> tuple[list[Raw], dict[str, Any], dict[str, str]]:
    text = "This is what was said:\n\n<conversation>\n[User]: \nFind MARK-USER\n</conversation>\nSummarise."
    return [{"role": "system", "content": "You summarise."}, user("openai-chat", text)], {}, {}


def pi(messages: list[Raw]) -> tuple[list[Raw], dict[str, Any], dict[str, str]]:
    asked, more, headers = opencode(messages)
    text = asked[-1]["content"].partition("\n\n")[2]
    return [asked[0], {"role": "user", "content": [{"type": "text", "text": text}]}], more, headers


def pi_split_turn(messages: list[Raw]) -> tuple[list[Raw], dict[str, Any], dict[str, str]]:
    text = (
        '# Conversation\n[User]: Find MARK-USER\n\n[Assistant tool calls]: bash(cmd="ls")\n\n# Instructions\nSummarise.'
    )
    asked = {"role": "user", "content": [{"type": "text", "text": text}]}
    return [{"role": "system", "content": "You summarise."}, asked], {}, {}


KINDS: dict[str, tuple[str, Any]] = {
    "codex": ("openai-responses", codex),
    "codex (header)": ("openai-responses", codex_by_header),
    "codex-remote": ("openai-responses", codex_remote),
    "claude-code": ("anthropic", claude_code),
    "opencode-or-pi": ("openai-chat", opencode),
    "opencode-or-pi (Pi)": ("openai-chat", pi),
    "opencode-or-pi (a turn's beginning)": ("openai-chat", pi_split_turn),
}


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_recognised_and_sent_as_it_came_and_not_recorded(tmp_path: Path, kind: str) -> None:
    wire, ask = KINDS[kind]
    tools = {"tools": TOOLS[wire]} if wire in TOOLS else {}
    with InProcess(tmp_path, FakeServer(cache=False), windows=WIDE) as gateway:
        *_, messages = agent_session(wire, 4)
        first = gateway.ask(wire, messages, **tools)
        asked, more, headers = ask(messages)
        answer = gateway.ask(wire, asked, headers, **more)
        assert answer.status_code == 200
        assert answer.headers["x-firsthand-reason"] == f"client-compaction: {kind.partition(' ')[0]}"
        assert gateway.arrived.messages == asked
        # The client goes on with what it made of the summary: another conversation, which shares nothing or a beginning.
        fresh = [user(wire, "Summary: MARK-USER was found."), *step(wire, "call_after0123456789", "ok")]
        after = gateway.ask(wire, fresh, **tools)
        assert after.headers["x-firsthand-decision"] == "forwarded"
        going_on = gateway.ask(wire, [*messages, said(wire, "ok"), user(wire, "go on")], **tools)
        assert going_on.headers["x-firsthand-session"] == first.headers["x-firsthand-session"]
    with Journal.open(tmp_path / "gateway.db") as journal:
        sessions = journal.sessions()
        text = "".join(str(entry) for info in sessions for entry in journal.entries(info.id))
        assert len(list(journal.entries(first.headers["x-firsthand-session"]))) == len(messages) + 2
    assert len(sessions) == 2
    assert not any(words in text for words in ("Write a handoff", "Summarise", "compaction_trigger"))


@pytest.mark.parametrize("kind", ["codex", "claude-code"])
def test_where_the_whole_history_does_not_fit_the_projection_goes(tmp_path: Path, kind: str) -> None:
    wire, ask = KINDS[kind]
    with InProcess(tmp_path, FakeServer(cache=False), windows={"*": 8_000}) as gateway:
        *_, messages = agent_session(wire, 14)
        assert gateway.ask(wire, messages, tools=TOOLS[wire]).headers["x-firsthand-decision"] == "compacted"
        asked, more, headers = ask(messages)
        answer = gateway.ask(wire, asked, headers, **more)
        assert (answer.status_code, answer.headers["x-firsthand-decision"]) == (200, "projected")
        assert answer.headers["x-firsthand-reason"] == f"client-compaction: {kind}"
        assert gateway.arrived.violations == ()
        last = gateway.arrived.json.get("input") or gateway.arrived.json["messages"]
        assert json.dumps(
            asked[-1]["content"] if wire == "openai-responses" else asked[-1]["content"][-1]
        ) in json.dumps(last[-1])


def test_a_provider_side_compaction_stays_and_nothing_before_it_is_covered(tmp_path: Path) -> None:
    wire = "openai-responses"
    opaque = {"type": "compaction", "id": "cmp_1", "encrypted_content": "OPAQUE"}
    with InProcess(tmp_path, FakeServer(cache=False), windows={"*": 8_000}) as gateway:
        *_, messages = agent_session(wire, 14)
        answer = gateway.ask(wire, [user(wire, "earlier"), opaque, *messages])
        assert (answer.status_code, answer.headers["x-firsthand-decision"]) == (200, "compacted"), answer.text
        assert gateway.arrived.messages[:2] == [user(wire, "earlier"), opaque]
        assert gateway.arrived.violations == ()


@pytest.mark.parametrize(
    "text",
    ["What does <conversation> mean?", "Look at this:\nlog line\nlog line\nlog line\n[User]: hi", "hi", ""],
)
def test_a_first_prompt_that_only_quotes_one_is_recorded(tmp_path: Path, text: str) -> None:
    with InProcess(tmp_path, FakeServer(cache=False), windows=WIDE) as gateway:
        answer = gateway.ask("openai-chat", [user("openai-chat", text)])
        assert answer.headers.get("x-firsthand-reason", "") == ""
        assert answer.headers["x-firsthand-session"]
