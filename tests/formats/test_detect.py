"""Which format a file is, told by content; message lists; readers of other packages; and the errors."""

from __future__ import annotations

import gzip
import json
import pickle
from hashlib import sha256
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest
from real_sessions import SHARED, shared

from firsthand.errors import ConfigError, EmptySessionError, FormatError, UnknownFormatError, UnknownNameError
from firsthand.formats import detect, format_names, read_sessions, reader_by_name, wire_of
from firsthand.formats import files as registry
from firsthand.formats.files import READERS, Input
from firsthand.transcript import Entry, Text, Transcript

from .lines import as_bytes, check_whole, texts, unpacked

SESSIONS = {
    "aider/aider-chat-history.md.gz": ("aider", 682),
    "claude-code/entire-cli-compact3.jsonl.gz": ("claude-code", 1),
    "claude-code/entirecontext-korean.jsonl.gz": ("claude-code", 1),
    "claude-code/flutter-image-compact4.jsonl.gz": ("claude-code", 1),
    "claude-code/technocore-images.jsonl.gz": ("claude-code", 1),
    "claude-code/viewer-sidechain-small.jsonl": ("claude-code", 3),
    "codex/hk-compact2.jsonl.gz": ("codex", 1),
    "codex/mise-compact3.jsonl.gz": ("codex", 1),
    "cursor/gdal-opus-4-6-small.jsonl": ("cursor", 1),
    "gemini-cli/c-blosc2-gemini-3-pro.json": ("gemini-cli", 1),
    "opencode/dump4-gpt-5-2.jsonl.gz": ("opencode", 4),
    "openhands/multi-swe-bench-3runs.jsonl": ("openhands", 3),
    "pi/pi-before-compaction.jsonl.gz": ("pi", 1),
    "pi/preloop-omp-thinking.jsonl.gz": ("pi", 1),
    "swe-agent/pydicom-1458.traj": ("swe-agent", 1),
    "tau-bench/gpt-4o-airline-tasks-a.json.gz": ("tau-bench", 100),
}
CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "go"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "out"},
]
ANTHROPIC = [
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "out"}]},
]
RESPONSES = [
    {"role": "user", "content": "go"},
    {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "out"},
]
LISTS = {"openai-chat": CHAT, "anthropic": ANTHROPIC, "openai-responses": RESPONSES}


def test_every_collected_session_is_in_the_table() -> None:
    if not (SHARED / "sessions").is_dir():
        pytest.skip("needs the real sessions, which are not here")
    here = {str(path.relative_to(SHARED / "sessions")) for path in (SHARED / "sessions").glob("*/*")}
    assert here == set(SESSIONS)


@pytest.mark.parametrize("name", SESSIONS)
def test_real_sessions_are_told_by_their_content(name: str, tmp_path: Path) -> None:
    """A copy under a name that says nothing, unpacked, is read the same."""
    path = shared(name)
    other = tmp_path / "x.bin"
    other.write_bytes(unpacked(path))
    kind, number = SESSIONS[name]
    assert detect(other).name == detect(path).name == kind
    sessions = read_sessions(path)
    assert (len(sessions), {session.format for session in sessions}) == (number, {kind})
    for session in sessions:
        check_whole(session)
        assert session.entries
    assert len({session.id for session in sessions}) == number
    if kind not in (
        "cursor",
        "aider",
        "swe-agent",
    ):  # the ids of these take in the file's name, since the files hold none
        assert [session.id for session in read_sessions(other)] == [session.id for session in sessions]


def test_bytes_a_path_and_an_input_are_read_the_same() -> None:
    data = as_bytes(
        {"type": "session", "id": "s", "timestamp": "t", "cwd": "/"},
        {"type": "message", "message": {"role": "user", "content": "go"}},
    )
    (plain,) = read_sessions(data)
    assert read_sessions(gzip.compress(data)) == [plain]
    assert read_sessions(Input("x", data)) == [plain]
    assert texts(plain) == ["go"]


# --- message lists ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", LISTS)
@pytest.mark.parametrize("form", ["array", "body", "lines"])
def test_message_lists_in_three_shapes_of_three_wires(wire: str, form: str) -> None:
    messages = LISTS[wire]
    body = {"model": "m", ("input" if wire == "openai-responses" else "messages"): messages, "tools": [{"name": "f"}]}
    data = {
        "array": json.dumps(messages, indent=1).encode(),
        "body": json.dumps(body).encode(),
        "lines": as_bytes(*messages),
    }[form]
    assert detect(data).name == wire
    (t,) = read_sessions(data)
    assert texts(t)[-3:] == ["go", "f({})", "c1 = out"]
    assert t.format == wire
    assert {entry.wire for entry in t.entries} == {wire}
    assert (t.model, t.tools) == (("m", ({"name": "f"},)) if form == "body" else (None, None))
    check_whole(t)


def test_a_separate_system_prompt_is_read_with_the_messages() -> None:
    (t,) = read_sessions(json.dumps({"system": "Be brief.", "messages": [{"role": "user", "content": "go"}]}).encode())
    assert (t.format, t.entries[0].role, texts(t)) == ("anthropic", "system", ["Be brief.", "go"])
    (t,) = read_sessions(json.dumps({"instructions": "Be brief.", "model": "m", "input": "go"}).encode())
    assert (t.format, t.system, texts(t)) == ("openai-responses", "Be brief.", ["go"])


def test_lines_of_request_bodies_are_a_session_each() -> None:
    lines = [
        {"messages": [{"role": "user", "content": f"u{n}"}, {"role": "assistant", "content": "a"}]} for n in range(3)
    ]
    sessions = read_sessions(as_bytes(*lines))
    assert [texts(session) for session in sessions] == [[f"u{n}", "a"] for n in range(3)]
    assert len({session.id for session in sessions}) == 3


def test_a_list_that_grows_keeps_its_ids() -> None:
    short, whole = (read_sessions(json.dumps(CHAT[:length]).encode())[0] for length in (2, 4))
    assert short.id == whole.id
    assert [entry.id for entry in short.entries] == [entry.id for entry in whole.entries[:2]]


def test_damaged_messages_cost_themselves_only() -> None:
    lines = [
        CHAT[1],
        '{"role": "assistant", "content": "brok',
        {"role": "user", "content": {"not": "content"}},
        {"role": "user", "content": "on"},
    ]
    (t,) = read_sessions(as_bytes(*lines))
    assert texts(t) == ["go", "on"]
    assert len(t.damaged) == 2
    (cut,) = read_sessions(json.dumps(CHAT).encode()[:-30])
    assert texts(cut)[:3] == ["Be brief.", "go", "f({})"]
    assert cut.damaged


@pytest.mark.parametrize(
    ("messages", "body", "wire"),
    [
        ([{"role": "user", "content": "a"}], None, "openai-chat"),
        ([{"role": "user", "content": [{"type": "text", "text": "a"}]}], None, "openai-chat"),
        ([{"role": "user", "content": [{"type": "image", "source": {}}]}], None, "anthropic"),
        ([{"role": "user", "content": [{"type": "input_text", "text": "a"}]}], None, "openai-responses"),
        ([{"type": "message", "role": "user", "content": "a"}], None, "openai-responses"),
        ([{"type": "message", "role": "assistant", "content": [{"type": "tool_use"}]}], None, "anthropic"),
        ([{"type": "reasoning", "summary": []}], None, "openai-responses"),
        ([{"role": "user", "content": "a"}], {"system": "s"}, "anthropic"),
        ([{"role": "user", "content": "a"}], {"tools": [{"name": "f", "input_schema": {}}]}, "anthropic"),
        ([{"role": "user", "content": "a"}], {"input": []}, "openai-responses"),
        ([], None, "openai-chat"),
    ],
)
def test_what_only_one_wire_has_decides(messages: list[dict[str, Any]], body: Any, wire: str) -> None:
    assert wire_of(messages, body) == wire


# --- readers by name, and of other packages ---------------------------------------------------------------------------


def test_readers_have_distinct_names_and_are_found_by_them() -> None:
    names = [reader.name for reader in READERS]
    assert len(set(names)) == len(names)
    assert format_names() == names
    assert [reader_by_name(name).name for name in names] == names
    with pytest.raises(UnknownNameError, match="there is no format named 'word'; choose one of: aider, anthropic"):
        reader_by_name("word")


class Telegrams:
    """A reader of another package."""

    name = "telegrams"
    title = "Telegrams"

    def sniff(self, source: Input) -> bool:
        return source.data.startswith(b"STOP")

    def read(self, source: Input) -> list[Transcript]:
        entry = Entry(id="t1", role="user", blocks=(Text(source.data.decode()),))
        return [Transcript(id="t", format=self.name, entries=(entry,), leaf="t1")]


BROKEN = object()


def installed(monkeypatch: pytest.MonkeyPatch, name: str, what: str) -> None:
    points = EntryPoints([EntryPoint(name, f"{__name__}:{what}", registry.ENTRY_POINTS)])
    monkeypatch.setattr(registry, "entry_points", lambda **wanted: points.select(**wanted))
    registry._loaded.cache_clear()


def test_a_reader_of_another_package_is_asked_when_no_own_one_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownFormatError):
        read_sessions(b"STOP come home STOP")
    installed(monkeypatch, "telegrams", "Telegrams")
    assert texts(read_sessions(b"STOP come home STOP")[0]) == ["STOP come home STOP"]
    assert reader_by_name("telegrams").title == "Telegrams"
    assert format_names()[-1] == "telegrams"


def test_a_broken_reader_of_another_package_is_named_and_harms_no_known_file(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, "broken", "BROKEN")
    assert texts(read_sessions(json.dumps(CHAT).encode())[0])[1] == "go"
    with pytest.raises(ConfigError, match="broken"):
        read_sessions(b"STOP come home STOP")
    installed(monkeypatch, "gone", "Gone")
    with pytest.raises(ConfigError, match="the reader 'gone' of another package"):
        reader_by_name("gone")


# --- errors -----------------------------------------------------------------------------------------------------------


def test_an_unknown_format_says_what_was_looked_at_and_what_is_known() -> None:
    with pytest.raises(UnknownFormatError) as caught:
        read_sessions(as_bytes({"colour": "red", "size": 3}, {"colour": "blue"}))
    message = str(caught.value)
    assert "its first 2 JSON objects, whose commonest keys are 'colour', 'size'" in message
    assert "known formats: firsthand, claude-code, codex" in message
    assert str(pickle.loads(pickle.dumps(caught.value))) == message
    with pytest.raises(UnknownFormatError, match="which start 'Dear diary"):
        read_sessions(b"Dear diary, today")
    with pytest.raises(UnknownFormatError, match="is empty"):
        read_sessions(b" \n\x00")


def test_a_known_format_without_an_entry_is_no_success() -> None:
    with pytest.raises(EmptySessionError, match="Nothing was imported"):
        read_sessions(as_bytes({"type": "summary", "summary": "x", "leafUuid": "y"}))
    with pytest.raises(EmptySessionError):
        read_sessions(b"Dear diary, today", format="codex")


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot read"):
        read_sessions(tmp_path / "missing.jsonl")
    with pytest.raises(UnknownFormatError, match="is a folder"):
        read_sessions(tmp_path)
    (tmp_path / "broken.gz").write_bytes(b"\x1f\x8bnot gzip")
    with pytest.raises(FormatError, match="cannot be unpacked"):
        read_sessions(tmp_path / "broken.gz")


def test_a_gzip_stream_that_breaks_off_gives_what_it_held_and_says_so() -> None:
    data = as_bytes(*({"role": "user", "content": f"u{n}" * 50} for n in range(2_000)))
    (t,) = read_sessions(gzip.compress(data)[:-2_000])
    assert 100 < len(t.entries) < 2_000
    assert t.damaged[-1].reason.startswith("the gzip stream breaks off after ")


@pytest.mark.parametrize("cut", [-1, -8])
def test_a_stream_cut_behind_its_last_line_is_not_taken_for_whole(cut: int) -> None:
    data = as_bytes(*({"role": "user", "content": f"u{n}"} for n in range(100)))
    (t,) = read_sessions(gzip.compress(data)[:cut])
    assert len(t.entries) == 100
    assert [(damage.line, damage.reason.split(" (")[0]) for damage in t.damaged] == [
        (101, f"the gzip stream breaks off after {len(data):,} unpacked bytes")
    ]


def test_bytes_flipped_inside_a_gzip_stream_do_not_take_what_stands_before_them() -> None:
    lines = [{"role": "user", "content": sha256(str(n).encode()).hexdigest()} for n in range(5_000)]
    packed = bytearray(gzip.compress(as_bytes(*lines)))
    middle = len(packed) // 2
    packed[middle : middle + 8] = b"\xff" * 8
    (t,) = read_sessions(bytes(packed))
    # Up to the damage every entry is what it was; what a damaged stream unpacks to behind it may be noise, which is no entry.
    assert [entry.blocks[0].text for entry in t.entries[:2_000]] == [line["content"] for line in lines[:2_000]]
    assert len(t.entries) < 5_000
    assert "breaks off" in t.damaged[-1].reason


def test_members_of_a_gzip_stream_before_a_damaged_one_are_read() -> None:
    first, second = (as_bytes({"role": "user", "content": name}) for name in ("first", "second"))
    (t,) = read_sessions(gzip.compress(first + b"\n") + gzip.compress(second)[:-4])
    assert [entry.blocks[0].text for entry in t.entries] == ["first", "second"]
    assert len(t.damaged) == 1
