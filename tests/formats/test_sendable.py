"""What is read from real files can be sent again: the path of each session, unrepaired, breaks no rule but that calls were left open."""

from __future__ import annotations

from collections import Counter

import pytest
from real_sessions import shared

from firsthand.formats import read_sessions
from firsthand.formats.wire import wire_by_name
from firsthand.testing.validate import validate

OPEN_CALLS = {
    "claude-code/entire-cli-compact3.jsonl.gz": 0,
    "claude-code/flutter-image-compact4.jsonl.gz": 1,
    "claude-code/technocore-images.jsonl.gz": 0,
    "claude-code/entirecontext-korean.jsonl.gz": 0,
    "claude-code/viewer-sidechain-small.jsonl": 0,
    "codex/mise-compact3.jsonl.gz": 0,
    "codex/hk-compact2.jsonl.gz": 0,
    "pi/pi-before-compaction.jsonl.gz": 6,
    "pi/preloop-omp-thinking.jsonl.gz": 0,
}


@pytest.mark.parametrize("wire", ["anthropic", "openai-responses", "openai-chat"])
@pytest.mark.parametrize("name", OPEN_CALLS)
def test_paths_of_real_sessions_are_valid_but_for_calls_left_open(name: str, wire: str) -> None:
    for session in read_sessions(shared(name)):
        written = wire_by_name(wire).write(session.path())
        found = Counter(violation.rule for violation in validate(wire, written.messages, written.system))
        assert set(found) <= {"unanswered-call"}
        # One violation may name several calls of one message.
        assert bool(found) == bool(OPEN_CALLS[name])
        assert found.total() <= OPEN_CALLS[name]
