"""What holds for every history on every wire: it is valid, no text is lost or changed, and what was sent stays a prefix of what is sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from real_sessions import shared
from wire_conversations import anthropic_conversations, chat_conversations, responses_conversations

from firsthand.codec import wire_safe
from firsthand.errors import UnknownNameError
from firsthand.formats import read_sessions
from firsthand.formats.wire import WIRES, wire_by_name
from firsthand.formats.wire.text import as_text
from firsthand.projection.repair import repair
from firsthand.testing.builders import call, image, injected, result, said, session, thought, user
from firsthand.testing.random_entries import entry_lists, paired_paths
from firsthand.testing.validate import assert_valid, validate
from firsthand.transcript import Entry, Text, ToolCall, ToolResult, Unknown

PROVIDERS = ("openai-chat", "openai-responses", "anthropic")
MANY = settings(max_examples=60, deadline=None)


def known_tools(entries: tuple[Entry, ...], wire: str) -> tuple[Entry, ...]:
    """The entries with names that this wire's own client could have sent: what it sends, its provider takes."""

    def named(entry: Entry) -> Entry:
        blocks = (msgspec.structs.replace(b, name="read") if isinstance(b, ToolCall) else b for b in entry.blocks)
        return msgspec.structs.replace(entry, blocks=tuple(blocks)) if entry.wire == wire else entry

    return tuple(map(named, entries))


@pytest.mark.parametrize("name", PROVIDERS)
def test_any_entries_make_a_valid_request(name: str) -> None:
    @settings(MANY, max_examples=120)
    @given(entry_lists())
    def check(entries: tuple[Entry, ...]) -> None:
        out = wire_by_name(name).write(repair(known_tools(entries, name)).entries)
        # A block of an unknown type goes back to its own wire as it is, whatever we think of it (GW-14).
        found = [v for v in validate(name, out.messages, out.system) if "novelty" not in v.explanation]
        assert found == [] or not out.messages
        assert json.loads(json.dumps({"m": out.messages, "s": out.system}, allow_nan=False).encode()) is not None

    check()


def texts_of(value: Any) -> Iterator[str]:
    """All strings that a model could read in messages, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts_of(item)
    elif isinstance(value, dict):
        for name in ("text", "refusal", "content", "output"):
            yield from texts_of(value.get(name))


def assert_in_order(wanted: list[str], found: list[str]) -> None:
    rest = iter(found)
    for text in wanted:
        assert any(have == text or have.endswith("]\n" + text) for have in rest), f"{text!r} is missing or out of order"


@pytest.mark.parametrize("name", PROVIDERS)
def test_every_text_is_there_once_and_in_order(name: str) -> None:
    """Per kind, since results and calls stand where the wire wants them."""

    def shown(text: str) -> bool:
        return bool(text.strip()) if name == "anthropic" else bool(text)

    @MANY
    @given(paired_paths())
    def check(entries: tuple[Entry, ...]) -> None:
        out = wire_by_name(name).write(entries)
        found = [*texts_of(out.system), *texts_of(out.messages)]
        for role in ("system", "user", "assistant", "developer"):
            wanted = [
                wire_safe(b.text)
                for e in entries
                if e.role == role
                for b in e.blocks
                if isinstance(b, Text) and shown(b.text)
            ]
            assert_in_order(wanted, found)
        results = [b for e in entries for b in e.blocks if isinstance(b, ToolResult)]
        for block in results:
            assert_in_order([wire_safe(p.text) for p in block.content if isinstance(p, Text) and shown(p.text)], found)

    check()


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_request_is_the_one_before_and_what_was_appended(name: str) -> None:
    """Design 3, "frozen between checkpoints": provider caches live from it (GW-10)."""

    @MANY
    @given(paired_paths())
    def check(entries: tuple[Entry, ...]) -> None:
        wire = wire_by_name(name)
        whole = wire.write(repair(entries).entries)
        for at in requests(entries):
            before = wire.write(repair(entries[:at]).entries)
            assert before.system == whole.system
            assert_prefix(before.messages, whole.messages)

    check()


SOURCES: dict[str, Any] = {
    "openai-chat": chat_conversations.map(lambda drawn: (drawn, None)),
    "openai-responses": responses_conversations.map(lambda drawn: (drawn, None)),
    "anthropic": anthropic_conversations,
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("target", PROVIDERS)
def test_so_is_one_of_another_clients_history(source: str, target: str) -> None:
    @settings(MANY, max_examples=20)
    @given(SOURCES[source])
    def check(drawn: tuple[list[Any], Any]) -> None:
        entries = wire_by_name(source).read(drawn[0], system=drawn[1])
        for message in drawn[0]:
            if isinstance(message.get("content"), list):
                for block in message["content"]:
                    block.pop("cache_control", None)
        wire = wire_by_name(target)
        whole = wire.write(repair(entries).entries)
        for at in requests(entries):
            assert_prefix(wire.write(repair(entries[:at]).entries).messages, whole.messages)

    check()


def assert_prefix(before: list[Any], after: list[Any]) -> None:
    """Where roles must alternate, the last message of one request may go on in the next; block by block it is a prefix still."""
    blocks, more = ([part for m in messages for part in parts(m)] for messages in (before, after))
    assert more[: len(blocks)] == blocks
    assert after[: len(before) - 1] == before[:-1]


def parts(message: dict[str, Any]) -> list[Any]:
    content = message.get("content")
    texts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    return [(message.get("role"), part) for part in texts] or [message]


def requests(entries: tuple[Entry, ...]) -> list[int]:
    """Where a request was made: before each response."""
    return [
        at
        for at in range(1, len(entries))
        if entries[at].role == "assistant" and entries[at - 1].role in ("user", "tool")
    ]


@pytest.mark.parametrize("name", PROVIDERS)
def test_ids_stay_different(name: str) -> None:
    """However long and alike."""
    ids = ["x" * 70, "x" * 71, "x" * 69 + "|", "x" * 69 + "/", "a|b", "a_b", "a/b"]
    path = session(
        user("go"), said(*(call("read", id=call_id) for call_id in ids)), *(result(call_id, "r") for call_id in ids)
    )
    out = wire_by_name(name).write(path).messages
    assert_valid(name, out)


REAL = (
    "claude-code/entire-cli-compact3.jsonl.gz",
    "claude-code/entirecontext-korean.jsonl.gz",
    "claude-code/flutter-image-compact4.jsonl.gz",
    "claude-code/technocore-images.jsonl.gz",
    "claude-code/viewer-sidechain-small.jsonl",
    "codex/hk-compact2.jsonl.gz",
    "codex/mise-compact3.jsonl.gz",
    "cursor/gdal-opus-4-6-small.jsonl",
    "gemini-cli/c-blosc2-gemini-3-pro.json",
    "opencode/dump4-gpt-5-2.jsonl.gz",
    "openhands/multi-swe-bench-3runs.jsonl",
    "pi/pi-before-compaction.jsonl.gz",
    "pi/preloop-omp-thinking.jsonl.gz",
    "swe-agent/pydicom-1458.traj",
    "tau-bench/gpt-4o-airline-tasks-a.json.gz",
    "aider/aider-chat-history.md.gz",
)


@pytest.mark.parametrize("file", REAL)
def test_real_sessions_are_valid_on_every_wire(file: str) -> None:
    for transcript in read_sessions(shared(file))[:25]:
        path = transcript.path()
        fixed = repair(path)
        words = [
            b.text
            for e in fixed.entries
            if e.role == "user"
            for b in e.blocks
            if isinstance(b, Text) and b.text.strip()
        ]
        for name in PROVIDERS:
            out = wire_by_name(name).write(fixed.entries)
            assert_valid(name, out.messages, out.system)
            assert_in_order([wire_safe(text) for text in words], list(texts_of(out.messages)))


@pytest.mark.parametrize("file", ["codex/hk-compact2.jsonl.gz", "codex/mise-compact3.jsonl.gz"])
def test_real_responses_items_come_back_byte_for_byte(file: str) -> None:
    import gzip

    items = []
    for line in gzip.decompress(shared(file).read_bytes()).splitlines():
        record = json.loads(line)
        if record.get("type") == "response_item":
            items.append(record["payload"])
    wire = wire_by_name("openai-responses")
    assert json.dumps(wire.write(wire.read(items)).messages) == json.dumps(items)
    assert len(items) > 1_000


def test_real_chat_messages_come_back_byte_for_byte() -> None:
    import gzip

    runs = json.loads(gzip.decompress(shared("tau-bench/gpt-4o-airline-tasks-a.json.gz").read_bytes()))
    wire = wire_by_name("openai-chat")
    for run in runs:
        assert json.dumps(wire.write(wire.read(run["traj"])).messages) == json.dumps(run["traj"])
    assert len(runs) == 100


def test_a_name_that_no_wire_has() -> None:
    with pytest.raises(UnknownNameError, match="anthropic, openai-chat, openai-responses, text"):
        wire_by_name("gemini")


def test_text_for_people() -> None:
    history = session(
        user("look", image()),
        injected("<env>"),
        said(thought("hm"), thought(signature="x"), "I look.", call("read", path="a.py"), call("run", "one\ntwo")),
        result("c1", "first line\nsecond line", image()),
        result("c2", "short", error=True),
        said(),
        said(Unknown({"type": "novelty"})),
    )
    assert as_text(history) == (
        "[user e1]\nlook\n[image image/png, 12 characters of base64]\n\n"
        "[user e2]\n(injected) <env>\n\n"
        "[assistant e3]\n(thinking) hm\n(thinking) [not readable]\nI look.\n"
        '-> read [c1] {"path":"a.py"}\n-> run [c2] one… (7 characters)\n\n'
        "[tool e4]\n<- [c1] first line… (22 characters) [image image/png, 12 characters of base64]\n\n"
        "[tool e5]\n<- [c2] failed short\n\n"
        "[assistant e7]\n[block of the type 'novelty']"
    )
    written = WIRES["text"].write(history).messages
    assert written[0] == {"role": "user", "content": "look\n[image image/png, 12 characters of base64]"}
    assert len(written) == 6
