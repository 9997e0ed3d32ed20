"""Recall behind the gateway: what a new message asks for of the covered history comes with it, once found, always the same bytes."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from gatewayed import LIST, PATHS, WIRES, request, said, step, user
from in_process import InProcess
from test_projected import list_bytes

from firsthand.journal import Journal
from firsthand.session.recall.block import LABEL
from firsthand.testing.server import Failure, FakeServer

Raw = dict[str, Any]
WINDOW = 12_000
EACH_WIRE = pytest.mark.parametrize("wire", WIRES)


def history(wire: str, steps: int, start: int = 0) -> list[Raw]:
    """An agent that looked at so many racks, each output with names that stand nowhere else."""
    messages = [user(wire, "Look at all racks and tell me what is slow.")]
    for number in range(start, start + steps):
        lines = [f"node-{number:02d}x{line:03d} answered in {line * 7} ms" for line in range(60)]
        messages += step(wire, f"call_{number:04d}Abcdefghijklmn", "\n".join(lines), f"I look at rack {number}.")
    return messages


def gateway(folder: Path, **settings: Any) -> InProcess:
    return InProcess(folder, FakeServer(cache=False), windows={"*": WINDOW}, **{"target": 2_000, **settings})


def missing(running: InProcess) -> str:
    """A name of the covered history that the newest request does not show."""
    shown = running.arrived.body.decode()
    return next(
        name for number in range(8) for line in range(60) if (name := f"node-{number:02d}x{line:03d}") not in shown
    )


def compacted(running: InProcess, wire: str) -> tuple[list[Raw], str]:
    """A conversation behind a checkpoint, and what to ask for."""
    messages = history(wire, 20)
    answer = running.ask(wire, messages)
    assert (answer.status_code, answer.headers["x-firsthand-decision"]) == (200, "compacted"), answer.text
    assert "x-firsthand-recall" not in answer.headers
    return [*messages, said(wire, "I looked at everything.")], missing(running)


def blocks(body: bytes) -> int:
    return body.decode().count("[recall: lines from earlier in this session")


def recalled_in(message: bytes) -> list[str]:
    """The texts of a message that are recall blocks."""
    content = json.loads(message)["content"]
    return [part["text"] for part in content if isinstance(part, dict) and str(part.get("text")).startswith(LABEL)]


@EACH_WIRE
def test_the_block_comes_with_the_message_and_stays_the_same(tmp_path: Path, wire: str) -> None:
    with gateway(tmp_path) as running:
        messages, name = compacted(running, wire)
        messages.append(user(wire, f"How fast was {name}?"))
        answer = running.ask(wire, messages)
        assert answer.headers["x-firsthand-decision"] == "projected"
        assert running.arrived.violations == ()
        first = list_bytes(wire, running.arrived.body)
        assert blocks(running.arrived.body) == 1
        (block,) = recalled_in(first[-1])
        assert re.search(rf"^\| {name} answered in \d+ ms$", block, re.MULTILINE)
        # What the person typed stands before it, untouched, as a part of its own.
        assert json.loads(first[-1])["content"][-2]["text"] == f"How fast was {name}?"
        tokens = int(answer.headers["x-firsthand-recall"].removesuffix(" tokens"))
        assert 0 < tokens <= 1_006
        size = int(answer.headers["x-firsthand-tokens-after"])
        # A try of the same request, and what follows, say the same bytes.
        running.ask(wire, messages)
        assert list_bytes(wire, running.arrived.body) == first
        messages += [said(wire, "Fast."), user(wire, "Thank you very much.")]
        after = running.ask(wire, messages)
        assert list_bytes(wire, running.arrived.body)[: len(first)] == first
        assert blocks(running.arrived.body) == 1
        assert "x-firsthand-recall" not in after.headers
        assert int(after.headers["x-firsthand-tokens-after"]) > size
        assert running.arrived.violations == ()


@EACH_WIRE
def test_the_journal_knows_nothing_of_it(tmp_path: Path, wire: str) -> None:
    with gateway(tmp_path) as running:
        messages, name = compacted(running, wire)
        messages.append(user(wire, f"How fast was {name}?"))
        session = running.ask(wire, messages).headers["x-firsthand-session"]
        again = running.ask(wire, [*messages, said(wire, "Fast."), user(wire, "Good.")])
        assert again.headers["x-firsthand-session"] == session
    with Journal.open(tmp_path / "gateway.db") as journal:
        assert len(journal.sessions()) == 1
        view = journal.view(session)
        assert not any(LABEL in str(block) for entry in view.entries for block in entry.blocks)
        assert len(view.entries) == len(messages) + 2


@EACH_WIRE
def test_after_a_restart_it_is_sent_again(tmp_path: Path, wire: str) -> None:
    with gateway(tmp_path) as running:
        messages, name = compacted(running, wire)
        messages.append(user(wire, f"How fast was {name}?"))
        running.ask(wire, messages)
        before = list_bytes(wire, running.arrived.body)
    with gateway(tmp_path) as running:
        running.ask(wire, [*messages, said(wire, "Fast."), user(wire, "Good.")])
        assert list_bytes(wire, running.arrived.body)[: len(before)] == before
        assert blocks(running.arrived.body) == 1


@EACH_WIRE
def test_a_later_checkpoint_drops_it(tmp_path: Path, wire: str) -> None:
    with gateway(tmp_path) as running:
        messages, name = compacted(running, wire)
        messages.append(user(wire, f"How fast was {name}?"))
        running.ask(wire, messages)
        assert blocks(running.arrived.body) == 1
        messages += history(wire, 20, 50)[1:]
        answer = running.ask(wire, messages)
        assert answer.headers["x-firsthand-decision"] == "compacted"
        assert blocks(running.arrived.body) == 0


@EACH_WIRE
def test_nothing_without_a_checkpoint(tmp_path: Path, wire: str) -> None:
    """Below the trigger a body goes on byte for byte."""
    with gateway(tmp_path) as running:
        messages = [*history(wire, 2), said(wire, "Looked."), user(wire, "How fast was node-00x003?")]
        body = json.dumps({"model": "a-model", "max_tokens": 500, LIST[wire]: messages}, indent=1).encode()
        answer = running.send(wire, body)
        assert answer.headers["x-firsthand-decision"] == "forwarded"
        assert running.arrived.body == body


@EACH_WIRE
@pytest.mark.parametrize("how", ["header", "config", "shadow"])
def test_it_can_be_off(tmp_path: Path, wire: str, how: str) -> None:
    with gateway(tmp_path, **({"recall": 0} if how == "config" else {})) as running:
        messages, name = compacted(running, wire)
        headers = {"header": {"x-firsthand-recall": "off"}, "shadow": {"x-firsthand-mode": "shadow"}}.get(how)
        messages.append(user(wire, f"How fast was {name}?"))
        answer = running.ask(wire, messages, headers)
        assert blocks(running.arrived.body) == 0
        assert "x-firsthand-recall" not in answer.headers
        # Sent once without, so always without.
        running.ask(wire, messages)
        assert blocks(running.arrived.body) == 0


@EACH_WIRE
@pytest.mark.parametrize(
    "text",
    [
        "Please write a poem about the sea.",
        "Go on.\n<system-reminder>How fast was {name}?</system-reminder>",
        "<system-reminder>How fast was {name}?</system-reminder>\nGo on.",
    ],
    ids=["another", "glued behind", "glued before"],
)
def test_what_is_not_asked_for_brings_nothing(tmp_path: Path, wire: str, text: str) -> None:
    with gateway(tmp_path) as running:
        messages, name = compacted(running, wire)
        running.ask(wire, [*messages, user(wire, text.format(name=name))])
        assert blocks(running.arrived.body) == 0
        assert running.arrived.violations == ()


@EACH_WIRE
def test_it_is_bounded_by_its_setting(tmp_path: Path, wire: str) -> None:
    with gateway(tmp_path, recall=150) as running:
        messages, name = compacted(running, wire)
        asked = ", ".join(f"{name[:-3]}{line:03d}" for line in range(60))
        answer = running.ask(wire, [*messages, user(wire, f"How fast were {asked}?")])
        assert blocks(running.arrived.body) == 1
        assert 0 < int(answer.headers["x-firsthand-recall"].split()[0]) <= 156


@EACH_WIRE
def test_never_above_the_input_limit(tmp_path: Path, wire: str) -> None:
    """A block gets what room there is, in the end none."""
    limit = WINDOW - 500 - WINDOW // 16
    found: list[int] = []
    with gateway(tmp_path, threshold=0.98) as running:
        messages, name = compacted(running, wire)
        asked = "How fast were " + ", ".join(f"{name[:-3]}{line:03d}" for line in range(40)) + "?"
        size = 0
        while True:
            # Each is another branch behind the same checkpoint.
            answer = running.ask(wire, [*messages, said(wire, "please " * size), user(wire, asked)])
            after = int(answer.headers["x-firsthand-tokens-after"])
            assert after <= limit
            if answer.headers["x-firsthand-decision"] == "compacted":
                break
            found.append(int(answer.headers.get("x-firsthand-recall", "0 tokens").split()[0]))
            size += 400 if after < limit - 2_500 else 50
    assert found[0] > 300
    assert found[-1] < found[0], found


def test_an_error_of_a_tool_asks(tmp_path: Path) -> None:
    with gateway(tmp_path) as running:
        messages, name = compacted(running, "anthropic")
        call, result = step("anthropic", "call_9999Abcdefghijklmn", f"no route to {name}")
        messages.append(user("anthropic", "Go on."))
        running.ask("anthropic", [*messages, call, result])
        assert blocks(running.arrived.body) == 0
        result["content"][0] |= {"is_error": True, "cache_control": {"type": "ephemeral"}}
        call["content"][0]["id"] = result["content"][0]["tool_use_id"] = "call_9998Abcdefghijklmn"
        running.ask("anthropic", [*messages, call, result])
        assert running.arrived.violations == ()
        sent = running.arrived.messages[-1]["content"]
        assert sent[0] == result["content"][0]
        assert [part["type"] for part in sent] == ["tool_result", "text"]
        assert sent[1]["text"].startswith(LABEL)
        assert name in sent[1]["text"]


@pytest.mark.parametrize("wire", ["openai-chat", "openai-responses"])
def test_results_without_a_mark_for_errors_ask_nothing(tmp_path: Path, wire: str) -> None:
    with gateway(tmp_path) as running:
        messages, name = compacted(running, wire)
        messages += [user(wire, "Go on."), *step(wire, "call_9999Abcdefghijklmn", f"error: no route to {name}")]
        running.ask(wire, messages)
        assert blocks(running.arrived.body) == 0


@EACH_WIRE
def test_a_content_of_parts_gets_one_part_more(tmp_path: Path, wire: str) -> None:
    with gateway(tmp_path) as running:
        messages, name = compacted(running, wire)
        kind = "input_text" if wire == "openai-responses" else "text"
        part = {"type": kind, "text": f"How fast was {name}?"}
        if wire == "anthropic":
            part["cache_control"] = {"type": "ephemeral"}
        running.ask(wire, [*messages, {"role": "user", "content": [part]}])
        assert running.arrived.violations == ()
        sent = running.arrived.messages[-1]["content"]
        assert sent[0] == part
        assert [one["type"] for one in sent] == [kind, kind]
        assert set(sent[1]) == {"type", "text"}


@EACH_WIRE
def test_a_failure_costs_nobody_a_request(tmp_path: Path, wire: str) -> None:
    """Somebody deletes the session's search index behind the gateway's back."""
    with gateway(tmp_path) as running:
        messages, name = compacted(running, wire)
        with sqlite3.connect(tmp_path / "gateway.db") as connection:
            connection.execute("ALTER TABLE search_parts RENAME TO elsewhere")
        connection.close()
        messages.append(user(wire, f"How fast was {name}?"))
        answer = running.ask(wire, messages)
        assert (answer.status_code, answer.headers["x-firsthand-decision"]) == (200, "projected")
        assert answer.headers["x-firsthand-error"].startswith("recall: ")
        assert blocks(running.arrived.body) == 0
        assert "recall failed" in running.log.getvalue()
        assert name not in running.log.getvalue()


@EACH_WIRE
def test_the_same_message_at_the_same_time_is_sent_in_one_form(tmp_path: Path, wire: str) -> None:
    with gateway(tmp_path) as running:
        messages, name = compacted(running, wire)
        body = json.dumps(request(wire, [*messages, user(wire, f"How fast was {name}?")])).encode()

        async def both() -> None:
            await asyncio.gather(*(running._client.post(PATHS[wire], content=body) for _ in range(4)))

        running.do(both())
        sent = {got.body for got in running.server.requests[-4:]}
        assert len(sent) == 1
        assert blocks(sent.pop()) == 1


def test_a_server_that_takes_no_list_of_texts_gets_none(tmp_path: Path) -> None:
    """The refused request is sent once more without its block, and from then on there are none for this model."""
    wire = "openai-chat"
    with gateway(tmp_path) as running:
        messages, name = compacted(running, wire)
        messages.append(user(wire, f"How fast was {name}?"))
        running.server.push(Failure("invalid_request", status=422, message="invalid type: sequence, expected a string"))
        answer = running.ask(wire, messages)
        assert answer.status_code == 200
        assert answer.headers["x-firsthand-reason"] == "recall was left out after a refusal"
        assert [blocks(got.body) for got in running.server.requests[-2:]] == [1, 0]
        assert "x-firsthand-recall" not in answer.headers
        before = list_bytes(wire, running.arrived.body)
        messages += [said(wire, "Fast."), user(wire, f"How fast was {name[:-3]}059?")]
        running.ask(wire, messages)
        assert list_bytes(wire, running.arrived.body)[: len(before)] == before
        assert blocks(running.arrived.body) == 0
