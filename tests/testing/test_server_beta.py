"""Claude Code with its own choice of a model has system messages in the middle of a conversation; they need their beta header."""

from __future__ import annotations

import pytest

from firsthand.testing.server.checks import faults

USER, SYSTEM, SAID = (
    {"role": "user", "content": "hello"},
    {"role": "system", "content": "# Environment"},
    {"role": "assistant", "content": "yes"},
)


@pytest.mark.parametrize(
    ("beta", "messages", "valid"),
    [
        ("effort-2025-11-24,mid-conversation-tool-changes-2026-07-01", [USER, SYSTEM, SAID, USER], True),
        ("effort-2025-11-24", [USER, SYSTEM, SAID, USER], False),
        ("mid-conversation-tool-changes-2026-07-01", [USER, SYSTEM, USER], False),
        ("mid-conversation-tool-changes-2026-07-01", [SYSTEM], False),
    ],
)
def test_system_messages(beta: str, messages: list[dict[str, str]], valid: bool) -> None:
    body = {"model": "m", "max_tokens": 10, "messages": messages}
    assert (faults("anthropic", body, beta=beta) == []) is valid
