"""Every text of the real sessions is fetched again from the journal, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from real_sessions import shared

from firsthand.formats import read_sessions
from firsthand.journal import Journal
from firsthand.transcript import Text, ToolCall, ToolResult

FILES = [
    "claude-code/entire-cli-compact3.jsonl.gz", "claude-code/entirecontext-korean.jsonl.gz", "claude-code/flutter-image-compact4.jsonl.gz",
    "claude-code/technocore-images.jsonl.gz", "claude-code/viewer-sidechain-small.jsonl", "codex/hk-compact2.jsonl.gz",
    "codex/mise-compact3.jsonl.gz", "cursor/gdal-opus-4-6-small.jsonl", "gemini-cli/c-blosc2-gemini-3-pro.json",
    "opencode/dump4-gpt-5-2.jsonl.gz", "openhands/multi-swe-bench-3runs.jsonl", "pi/pi-before-compaction.jsonl.gz",
    "pi/preloop-omp-thinking.jsonl.gz", "swe-agent/pydicom-1458.traj", "tau-bench/gpt-4o-airline-tasks-a.json.gz",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
def test_every_text_comes_back_by_history_get(tmp_path: Path, file: str) -> None:
    asked = 0
    with Journal.open(tmp_path / "j.db") as journal:
        for session in read_sessions(shared(file)):
            journal.import_transcript(session)
            for entry in session.entries:
                for number, block in enumerate(entry.blocks):
                    match block:
                        case Text(text=text) | ToolCall(arguments=text):
                            wanted = text
                        case ToolResult(content=(Text(text=text),)):
                            wanted = text
                        case _:
                            continue
                    asked += bool(wanted)
                    assert fetched(journal, entry.id, number) == wanted if wanted else True
    assert asked > 20


def fetched(journal: Journal, entry: str, block: int) -> str:
    """A block's text, page by page."""
    pieces = []
    offset: int | None = 0
    while offset is not None:
        page = journal.get(entry, offset=offset, limit=10_007, block=block)
        pieces.append(page.text)
        offset = page.next_offset
    return "".join(pieces)
