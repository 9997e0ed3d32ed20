"""Every reader on damaged files: real sessions with bytes flipped, lines cut, doubled, swapped or lost, NULs and bytes that are not UTF-8.

Whatever happens to a file, reading it is never a traceback and never a silent empty import; what could not be read is counted; and in
line-oriented formats every line that is still whole is still there.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from real_sessions import shared

from firsthand.errors import FormatError
from firsthand.formats import read_sessions, reader_by_name
from firsthand.formats.files import Input, Reader
from firsthand.transcript import Transcript

from .lines import all_texts, as_bytes, check_whole, unpacked
from .test_detect import ANTHROPIC, CHAT, RESPONSES

QUICK, THOROUGH = 25, 500
CLAUDE = ("user", "assistant", "attachment")
CODEX = ("response_item", "compacted")
PI = ("message", "compaction")
DISPLAY = ("toolUseResult", "details")


@dataclass(frozen=True)
class Base:
    """A part of a real file, small enough to be read some hundred times."""

    reader: str
    data: bytes
    lines: bool = True
    """Whether each line stands for itself."""
    kinds: tuple[str | None, ...] = (None,)
    """The types of lines that are messages; others only repeat them."""


def part(name: str, *ranges: tuple[int, int]) -> bytes:
    lines = unpacked(shared(name)).split(b"\n")
    return b"\n".join(line for start, stop in ranges for line in lines[start - 1 : stop])


def document(name: str, cut: Callable[[Any], Any]) -> bytes:
    return json.dumps(cut(json.loads(unpacked(shared(name)))), indent=1).encode()


BASES: dict[str, Callable[[], Base]] = {
    "claude-code": lambda: Base(
        "claude-code", part("claude-code/entirecontext-korean.jsonl.gz", (1, 40), (385, 432)), kinds=CLAUDE
    ),
    "claude-code, sub-agents": lambda: Base(
        "claude-code", part("claude-code/viewer-sidechain-small.jsonl", (1, 26)), kinds=CLAUDE
    ),
    "codex": lambda: Base("codex", part("codex/hk-compact2.jsonl.gz", (9, 24), (638, 656)), kinds=CODEX),
    "pi": lambda: Base("pi", part("pi/pi-before-compaction.jsonl.gz", (1, 2), (352, 368), (638, 646)), kinds=PI),
    "pi, fork": lambda: Base("pi", part("pi/preloop-omp-thinking.jsonl.gz", (1, 3), (5, 5), (134, 147)), kinds=PI),
    "cursor": lambda: Base("cursor", part("cursor/gdal-opus-4-6-small.jsonl", (1, 30))),
    "openhands": lambda: Base("openhands", _fewer_events(), lines=False),
    "aider": lambda: Base("aider", unpacked(shared("aider/aider-chat-history.md.gz"))[:40_000], lines=False),
    "opencode": lambda: Base("opencode", unpacked(shared("opencode/dump4-gpt-5-2.jsonl.gz"))[:60_000], lines=False),
    "gemini-cli": lambda: Base(
        "gemini-cli",
        document("gemini-cli/c-blosc2-gemini-3-pro.json", lambda d: {**d, "messages": d["messages"][:6]}),
        lines=False,
    ),
    "swe-agent": lambda: Base("swe-agent", unpacked(shared("swe-agent/pydicom-1458.traj")), lines=False),
    "tau-bench": lambda: Base(
        "tau-bench", document("tau-bench/gpt-4o-airline-tasks-a.json.gz", lambda d: d[:2]), lines=False
    ),
    "openai-chat": lambda: Base("openai-chat", as_bytes(*numbered(CHAT))),
    "anthropic": lambda: Base(
        "anthropic", json.dumps({"system": "Brief.", "messages": numbered(ANTHROPIC)}).encode(), lines=False
    ),
    "openai-responses": lambda: Base(
        "openai-responses", as_bytes(*numbered(RESPONSES)), kinds=(None, "function_call", "function_call_output")
    ),
}


def numbered(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Several times the same messages, with texts, arguments and ids of their own."""
    text = json.dumps(messages)
    return [
        message
        for number in range(8)
        for message in json.loads(
            text.replace("c1", f"c{number}")
            .replace('"go"', f'"go to number {number}"')
            .replace('"out"', f'"out of {number}"')
        )
    ]


def _fewer_events() -> bytes:
    runs = unpacked(shared("openhands/multi-swe-bench-3runs.jsonl")).split(b"\n")[:2]
    return as_bytes(*({**run, "history": run["history"][:8]} for run in map(json.loads, runs)))


def flipped(data: bytes, dice: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(dice.choice((1, 1, 3, 20))):
        out[dice.randrange(len(out))] ^= 1 << dice.randrange(8)
    return bytes(out)


def cut(data: bytes, dice: random.Random) -> bytes:
    return data[: dice.randrange(1, len(data))]


def beheaded(data: bytes, dice: random.Random) -> bytes:
    return data[dice.randrange(1, len(data) // 3) :]


def inserted(data: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(data))
    what = dice.choice(
        (
            b"\x00",
            b"\x00" * 300,
            b"\xff\xfe",
            b"\xed\xa0\xbd",
            b"\xc3(",
            b"\n",
            b"\r",
            b"\xef\xbb\xbf",
            b'"',
            b"{",
            b"}",
        )
    )
    return data[:at] + what + data[at:]


def shuffled(data: bytes, dice: random.Random) -> bytes:
    lines = data.split(b"\n")
    for _ in range(dice.choice((1, 2, 5))):
        at, other = dice.randrange(len(lines)), dice.randrange(len(lines))
        match dice.randrange(5):
            case 0:
                lines.insert(other, lines[at])
            case 1:
                lines[at], lines[other] = lines[other], lines[at]
            case 2 if len(lines) > 2:
                del lines[at]
            case 3:
                lines[at] = lines[at][: dice.randrange(len(lines[at]) + 1)]
            case 4:
                lines[at : at + 2] = [b"".join(lines[at : at + 2])]
    return dice.choice((b"\n", b"\n", b"\r\n")).join(lines)


DAMAGE = (flipped, cut, beheaded, inserted, shuffled)


def variants(data: bytes, number: int, name: str) -> Iterator[tuple[str, bytes]]:
    for seed in range(number):
        dice = random.Random(f"{name} {seed}")
        damaged = data
        how = []
        for _ in range(dice.choice((1, 1, 1, 2, 3))):
            if len(damaged) > 8:
                damage = dice.choice(DAMAGE)
                how.append(damage.__name__)
                damaged = damage(damaged, dice)
        yield f"seed {seed}: {', '.join(how)}", damaged


@pytest.mark.parametrize("name", BASES)
def test_damaged_files(name: str) -> None:
    check(name, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("name", BASES)
def test_many_damaged_files(name: str) -> None:
    check(name, THOROUGH)


def check(name: str, number: int) -> None:
    base = BASES[name]()
    reader = reader_by_name(base.reader)
    before = set(all_texts(reader.read(Input("base", base.data))))
    lines = base.data.split(b"\n") if base.lines else []
    texts = {line: [text for text in _strings(line, base.kinds) if text.strip() and text in before] for line in lines}
    assert not base.lines or sum(map(bool, texts.values())) > len(lines) // 3
    read = 0
    for how, data in variants(base.data, number, name):
        found = _read(reader, data)
        if found is None:
            assert not any(texts.get(line.rstrip(b"\r")) for line in data.split(b"\n")), how
            continue
        read += 1
        assert all(transcript.entries for transcript in found), how
        for transcript in found:
            check_whole(transcript)
        if base.lines:
            _check_lines(data, found, texts, how)
    # A document without its beginning cannot be told from anything else; what stands line by line can.
    assert read > number * (3 if base.lines else 2) // 4


def _read(reader: Reader, data: bytes) -> list[Transcript] | None:
    """What the reader finds, by its name or by the content; None when both refuse, saying why."""
    refusals = []
    for read in (reader.read, read_sessions):
        try:
            found = read(Input("base", data))
        except FormatError as error:
            refusals.append(str(error))
        else:
            assert found
            return found
    assert all(len(refusal) > 40 for refusal in refusals)
    return None


def _check_lines(data: bytes, found: list[Transcript], texts: dict[bytes, list[str]], how: str) -> None:
    after = set(all_texts(found))
    joined = "\0".join(after)
    reported = {damage.line for transcript in found for damage in transcript.damaged}
    for number, line in enumerate(data.split(b"\n"), start=1):
        for text in texts.get(line.rstrip(b"\r"), ()):
            inside = json.dumps(text, ensure_ascii=False)[1:-1]  # a text may stand in the arguments of a call
            assert text in after or text in joined or inside in joined, (
                f"{how}; line {number} is whole, but lost {text[:60]!r}"
            )
        if line.strip() and not _is_json(line) and not _is_several(line):
            assert number in reported, f"{how}; line {number} is damaged and was not counted"


def _strings(line: bytes, kinds: tuple[str | None, ...]) -> Iterator[str]:
    """All strings in a message's line, and all objects as compact JSON (the arguments of calls)."""
    record = json.loads(line) if line.strip() else {"type": "blank"}
    waiting = [record] if record.get("type") in kinds else []
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield json.dumps(value, ensure_ascii=False, separators=(",", ":"))
            waiting += (field for name, field in value.items() if name not in DISPLAY)
        elif isinstance(value, list):
            waiting += value


def _is_json(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line.strip(b"\xef\xbb\xbf \r\t").decode("utf-8", "surrogatepass")), dict)
    except (ValueError, RecursionError):
        return False


def _is_several(line: bytes) -> bool:
    """Whether a line holds whole objects only, run together."""
    text = line.decode("utf-8", "replace").strip()
    decoder = json.JSONDecoder()
    while text.startswith("{"):
        try:
            _, end = decoder.raw_decode(text)
        except (ValueError, RecursionError):
            return False
        text = text[end:].lstrip()
    return not text and "\ufffd" not in line.decode("utf-8", "replace")


@pytest.mark.parametrize("name", BASES)
def test_the_whole_bases_are_read_without_damage(name: str) -> None:
    """So that what the other tests find is what they did."""
    base = BASES[name]()
    found = reader_by_name(base.reader).read(Input("base", base.data))
    kinds = Counter(damage.line for transcript in found for damage in transcript.damaged)
    assert not kinds or name in ("opencode", "aider")  # these two are cut off
