"""What arrives upstream is what was sent, byte for byte: in mode off, in shadow, and in mode on below the trigger."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from in_process import InProcess

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "wire"))
from wire_conversations import anthropic_conversations, chat_conversations, responses_conversations

Raw = dict[str, Any]
CONVERSATIONS = {
    "openai-chat": chat_conversations,
    "openai-responses": responses_conversations,
    "anthropic": anthropic_conversations,
}
MODES = ("off", "shadow", "on")
SETTINGS = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
THOROUGH = settings(max_examples=1_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(scope="module", params=MODES)
def gateway(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with InProcess(tmp_path_factory.mktemp("gateway"), mode=request.param, windows={"*": 100_000}) as running:
        yield running


@st.composite
def bodies(draw: Any, wire: str) -> list[bytes]:
    """The requests of one growing conversation, written as some client writes JSON."""
    drawn = draw(CONVERSATIONS[wire])
    messages, system = drawn if isinstance(drawn, tuple) else (drawn, None)
    style = draw(st.sampled_from(({}, {"indent": 1}, {"ensure_ascii": False}, {"separators": (",", ":")})))
    first = {"system": system} if system is not None else {}
    last = {"max_tokens": 100, "unknown": [1, {"a": None}], "metadata": {"n": 1.0}}
    name = "input" if wire == "openai-responses" else "messages"
    cuts = sorted({draw(st.integers(1, len(messages))), len(messages)})
    return [json.dumps({"model": "m", **first, name: messages[:cut], **last}, **style).encode() for cut in cuts]


def check(gateway: InProcess, wire: str, sent: list[bytes]) -> None:
    for body in sent:
        answer = gateway.send(wire, body)
        assert answer.status_code == 200, answer.text
        assert gateway.arrived.body == body
        assert "x-firsthand-error" not in answer.headers
        if answer.headers.get("x-firsthand-decision") == "passed":
            # Only the reasons that are documented: the old functions, nothing but instructions, a history elsewhere.
            assert answer.headers["x-firsthand-reason"].startswith(
                ("it has function messages", "it has no conversation", "mode off")
            )
    gateway.server._settings.log.clear()


@pytest.mark.parametrize("wire", CONVERSATIONS)
def test_any_conversation_arrives_as_it_was_sent(gateway: InProcess, wire: str) -> None:
    @SETTINGS
    @given(bodies(wire))
    def run(sent: list[bytes]) -> None:
        check(gateway, wire, sent)

    run()


@pytest.mark.slow
@pytest.mark.parametrize("wire", CONVERSATIONS)
def test_a_thousand_conversations_arrive_as_they_were_sent(gateway: InProcess, wire: str) -> None:
    @THOROUGH
    @given(bodies(wire))
    def run(sent: list[bytes]) -> None:
        check(gateway, wire, sent)

    run()


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'{"messages": {}}', b'{"messages": [1]}', b'{"messages": [], "messages": []}', b'{"messages":[{"role":"user","content":"\\ud83d"}]}', b"\xff\xfe"],
)  # fmt: skip
def test_what_is_no_request_goes_through_as_well(gateway: InProcess, body: bytes) -> None:
    gateway.send("openai-chat", body)
    assert gateway.arrived.body == body
