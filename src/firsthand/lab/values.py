"""Values: the strings of a session that a person could be asked for, and how a text is read for them (measures.md, "Values").

Paths, identifiers, hashes and ids, numbers, versions, URLs, issue numbers, error names and quoted names, found by the patterns below. No strategy
may import this module and it imports nothing from the strategies, so that no gain can come from both sides looking for the same things.

Three things are fixed here for every exam: `literal` undoes JSON escapes, `shows` says whether a text shows a value on token boundaries, and `homes`
finds the line where each value first occurs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from ..codec import compact_json
from ..transcript import Block, Entry, Reasoning, Text, ToolCall, ToolResult, Unknown

__all__ = [
    "KINDS",
    "LINE_WORDS",
    "Found",
    "Homes",
    "Kind",
    "Shape",
    "Value",
    "around",
    "find_values",
    "homes",
    "literal",
    "pieces",
    "reading",
    "shows",
    "word_runs",
]

Kind: TypeAlias = Literal["user", "assistant", "call", "tool"]
"""Where a value stands: typed user text, the assistant's own words, the arguments of a call, or tool output."""

KINDS: tuple[Kind, ...] = ("user", "assistant", "call", "tool")

Shape: TypeAlias = Literal["path", "identifier", "id", "number", "version", "url", "issue", "error", "quoted"]

LINE_WORDS = 40
"""Words that a line is cut to around a value, half before and half after; lines without ends are common in tool output."""

_MOST = 200
"""Characters of the longest value; what is longer is data, and nobody would be asked for it."""

_WIDE = (
    "\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002fa1f"
)
_N = rf"[^\W{_WIDE}]"
"""A word character of a script that puts spaces between words; scripts that do not have no token boundaries of their own."""

_WORD = re.compile(_N)
_RUN = re.compile(rf"{_N}+")
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[\"\\/bfnrt])")
_PLAIN = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_PASSES = 64
"""Levels of escaping that are undone; real sessions have at most five or so, a hostile text could have one per character."""

_UNITS = (
    r"(?:ms|µs|us|ns|s|sec|secs|seconds?|mins?|minutes?|h|hrs?|hours?|days?|weeks?|[KMGTP]i?B|[kmg]b|bytes?|B|px|pt|em|rem|[kMG]?Hz|"
    r"[kM]?bps|rpm|fps|dpi|[kM]?W|V|km|cm|mm|kg|tokens?|req/s|ops/s|USD|EUR|CNY)"
)
_TOKEN = re.compile(
    r"(?P<url>\bhttps?://[^\s\"'`<>()\[\]{}\\|]+)"
    r"|(?P<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?Z?|(?<![\w:])\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?Z?(?![\w:]))"
    r"|(?P<issue>(?<![\w&])#\d{1,7}(?!\w))"
    r"|(?P<grouped>(?<![\w.,])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w,]))"
    # A dot begins a path's hidden part; elsewhere it is the end of a sentence or a call on what stands before it.
    rf"|(?P<token>(?:(?:~|(?<!\.))/\.?|(?<![\w./])(?:\.\./)+\.?|(?<![\w.])\.(?={_N}[\w.-]*/))?{_N}+(?:(?:/\.|[-./]|::){_N}+)*)"
)
_UNIT_AFTER = re.compile(rf"\s?(?:{_UNITS}(?!{_N})|%|[个個条條项項次行步轮輪份件种種秒分年月日号號개건번회초분줄])")
_GLUED = re.compile(rf"\d+(?:\.\d+)?{_UNITS}")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_VERSION = re.compile(r"(?:v\d+(?:\.\d+)+|\d+(?:\.\d+){2,})(?:[-.]\w+)*")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_HEX = re.compile(r"(?:0x[0-9a-fA-F]{2,64}|(?=\w*\d)(?=\w*[a-f])[0-9a-f]{7,64}|(?=\w*\d)(?=\w*[A-F])[0-9A-F]{7,64})")
_ERROR = re.compile(
    r"(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Warning|Failure|Fault|Interrupt|Timeout)|(?:ENOENT|EACCES|EEXIST|EPERM|EINVAL|ENOTDIR|EISDIR|ENOTEMPTY|ENAMETOOLONG|ENOEXEC|EFAULT|EPIPE|EAGAIN|EBUSY|ENOSPC|EMFILE|ENOMEM|ENOSYS|EROFS|EXDEV)"
    r"|E(?:CONN|ADDR|TIMED|HOST|NET|PROTO)[A-Z]+|[A-Z]{1,4}\d{2,6}"
)
_EXTENSION = re.compile(
    r".*[^./]\.(?:rs|tsx?|jsx?|mjs|cjs|py|pyi|go|java|kt|swift|rb|php|cs|cpp|cc|hpp|[chm]|scala|lua|sh|bash|zsh|ps1|sql|md|rst|txt|"
    r"adoc|json|jsonl|json5|ya?ml|toml|ini|cfg|conf|env|lock|log|csv|tsv|xml|html?|s?css|svg|png|jpe?g|gif|webp|pdf|zip|gz|tgz|tar|whl|"
    r"db|sqlite|proto|patch|diff|traj|ipynb|gradle|cmake|mk|snap|map|so|dll|exe|bin|wasm|parquet|dart|vue|svelte)"
)
_ID_PART = re.compile(r"(?=\w*\d)(?=\w*[A-Za-z])\w{6,}|\d{6,}")
_CAMEL = re.compile(rf"[^\W\d_]*[a-z0-9][A-Z]{_N}*|[A-Z]{{2,}}[a-z]{_N}+")
# `sed -n '60,80p'` and `2nd`: places in a listing, not names.
_COUNTED = re.compile(r"\d+(?:[pdqx]|st|nd|rd|th)")
_RANGE_AFTER = re.compile(r",\+?(?:\d+|\$)[pdq](?!\w)")
_STREAM = re.compile(r"/dev/(?:null|zero|tty|u?random|std(?:in|out|err)|fd/\d+)")
# What ends a here-document is chosen by whoever writes it.
_HERE = re.compile(r"<<[-~]?\s*$")
_MARKS = frozenset({"EOF", "EOT", "EOL", "END"})
_LETTER = re.compile(r"[^\W\d_]")
_JOINS = re.compile(r"[-./_]|::")
# A name in code marks may be any single word; in other quotes a name starts like one, and is no key of an object.
_QUOTED = re.compile(
    r"`([^\W\d_][\w$-]{2,39})`"
    r"|[\"“']([A-Z\u00c0-\uffff][^\"“”'\n\\<>{}=;]{1,48})[\"”'](?!\s*:)"
    r"|[「『《«]([^「『《«」』》»\n]{2,40})[」』》»]"
)
_LISTED = "→\t:|"


@dataclass(frozen=True, slots=True)
class Found:
    """A value in a text."""

    text: str
    shape: Shape
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Value:
    """A value and its home: the line where it first occurs."""

    text: str
    shape: Shape
    kind: Kind
    entry: str
    """Id of the home entry."""
    position: int
    """Position of the home entry in the sequence that was searched."""
    line: str
    """The home line, cut at `LINE_WORDS` words around the value."""


def literal(text: str) -> str:
    r"""The text with its JSON escapes undone, again and again until nothing is escaped.

    So `"a\\nb"` in call arguments, the same inside a string that holds JSON, and the plain two lines all read the same.
    """
    for _ in range(_PASSES):
        if "\\" not in text:
            return text
        undone = _ESCAPE.sub(_unescaped, text)
        if undone == text:
            return text
        text = undone
    return text


def _unescaped(match: re.Match[str]) -> str:
    escape = match[0]
    if escape[1] != "u":
        return _PLAIN[escape[1]]
    if len(escape) == 12:
        return chr(0x10000 + ((int(escape[2:6], 16) - 0xD800) << 10) + (int(escape[8:], 16) - 0xDC00))
    return chr(int(escape[2:], 16))


def shows(text: str, value: str) -> bool:
    """Whether a literal text contains the value on token boundaries: not as a part of a longer identifier, number or path."""
    if not value:
        return False
    path = "/" in value
    start = text.find(value)
    while start >= 0:
        if not _joined_before(text, start, path) and not _joined_after(text, start + len(value)):
            return True
        start = text.find(value, start + 1)
    return False


def word_runs(text: str) -> list[str]:
    """The runs of word characters of a text. A text that shows a value has each run of the value as a run of its own: none may go on."""
    return _RUN.findall(text)


def _word(char: str) -> bool:
    return _WORD.match(char) is not None


def _joined_before(text: str, start: int, path: bool) -> bool:
    """Whether the token that starts here, maybe a path with folders, goes on to the left."""
    if not start:
        return False
    edge, before = text[start], text[start - 1]
    if edge in "/~":
        return _word(before)
    if edge != "." and not _word(edge):
        return False
    if _word(before):
        return True
    left = text[start - 2] if start > 1 else " "
    if before == "/":
        # `./name` and `name` are one path; `/name` and `name` are two.
        return left != "." or (start > 2 and (_word(text[start - 3]) or text[start - 3] == "."))
    if edge == ".":
        return False
    if before in "-.":
        # `.name/file` is another path than `name/file`, and so is `folder/.name`.
        return _word(left) or (before == "." and (left == "/" or (path and left != ".")))
    if before == ",":
        # `628` is no number of its own in `44,628`.
        return left.isdigit() and edge.isdigit() and text[start : start + 3].isdigit()
    return before == left == ":" and start > 2 and _word(text[start - 3])


def _joined_after(text: str, end: int) -> bool:
    """Whether the token that ends here goes on to the right."""
    if end >= len(text) or not _word(text[end - 1]):
        return False
    after = text[end]
    if _word(after):
        return True
    if after == ",":
        return text[end - 1].isdigit() and end + 3 < len(text) and text[end + 1 : end + 4].isdigit()
    if after in "-./":
        return end + 1 < len(text) and _word(text[end + 1])
    return text.startswith("::", end) and end + 2 < len(text) and _word(text[end + 2])


def find_values(text: str) -> Iterator[Found]:
    """The values in a literal text, in order of their kinds of pattern; the same string may come more than once."""
    for match in _TOKEN.finditer(text):
        found = _found(text, match)
        if found is not None:
            yield found
    for match in _QUOTED.finditer(text):
        group = match.lastindex or 0
        inner = match[group]
        if (
            inner == inner.strip()
            and len(inner) >= 2
            and len(inner.split()) <= 4
            and _LETTER.search(inner)
            and inner not in _MARKS
            and not _HERE.search(text, max(0, match.start() - 8), match.start())
            and shape_of(inner) is None
        ):
            yield Found(inner, "quoted", *match.span(group))


def _found(text: str, match: re.Match[str]) -> Found | None:
    start, end = match.span()
    group = match.lastgroup
    if group == "url":
        while end > start and text[end - 1] in ".,;:!?*":
            end -= 1
        return Found(text[start:end], "url", start, end) if end - start <= _MOST else None
    if group == "time" or (start and (text[start - 1] == "%" or text.startswith("\x1b[", start - 2))):
        # Times of day are on every line of a log, `%20name` is an escaped space before a name, and a colour is none.
        return None
    if group == "issue":
        return Found(match[0], "issue", start, end)
    if group == "grouped":
        unit = _UNIT_AFTER.match(text, end)
        end = unit.end() if unit else end
        return Found(text[start:end], "number", start, end)
    token = match[0]
    if token[0].isdigit() and _NUMBER.fullmatch(token):
        unit = _UNIT_AFTER.match(text, end)
        if unit:
            return Found(text[start : unit.end()], "number", start, unit.end())
        if sum(map(str.isdigit, token)) < 3 or _line_number(text, start, end) or _RANGE_AFTER.match(text, end):
            return None
        return Found(token, "number", start, end)
    shape = shape_of(token)
    return None if shape is None else Found(token, shape, start, end)


def _line_number(text: str, start: int, end: int) -> bool:
    """Whether a number only counts the lines of a listing; it says nothing about what stands there."""
    if end >= len(text) or text[end] not in _LISTED:
        return False
    before = text[text.rfind("\n", 0, start) + 1 : start]
    return not before.strip()


@lru_cache(maxsize=200_000)
def shape_of(token: str) -> Shape | None:
    """The shape of one token, or None when it is an ordinary word or too short or long to ask for."""
    if not 3 <= len(token) <= _MOST:
        return None
    if _UUID.fullmatch(token) or _HEX.fullmatch(token):
        return "id"
    if _VERSION.fullmatch(token):
        return "version"
    if token[0].isdigit():
        if _GLUED.fullmatch(token):
            return "number"
        if _NUMBER.fullmatch(token):
            return "number" if sum(map(str.isdigit, token)) >= 3 else None
    if not _LETTER.search(token) or _COUNTED.fullmatch(token) or _STREAM.fullmatch(token):
        return None
    if "/" in token:
        return "path" if _is_path(token) else None
    if _EXTENSION.fullmatch(token):
        return "path"
    if _ERROR.fullmatch(token):
        return "error"
    return _name(token)


def _is_path(token: str) -> bool:
    """Whether a token with slashes is a path, and not two words with one between (`and/or`)."""
    segments = [segment for segment in token.split("/") if segment]
    if token[0] in "/~":
        return len(segments) > 1 or bool(segments and not segments[0].isalpha())
    return len(segments) > 2 or any(re.search(r"[\d_.-]", segment) for segment in segments)


def _name(token: str) -> Shape | None:
    parts = [part for part in _JOINS.split(token) if part]
    if any(_ID_PART.fullmatch(part) for part in parts):
        return "id"
    if len(parts) > 1:
        # Abbreviations (`e.g`) have no part that names anything.
        return "identifier" if any(len(part) > 2 for part in parts) else None
    if _CAMEL.fullmatch(token.strip("_")) or any(map(str.isdigit, token)):
        return "identifier"
    return None


def pieces(entry: Entry) -> Iterator[tuple[Kind, str]]:
    """The texts of an entry that can be a value's home, literally read, in order of its blocks.

    What a client injected, summaries and reasoning are no homes: nobody said them, or only the provider reads them.
    """
    for block in entry.blocks:
        match block:
            case Text(text=text, origin="typed") if entry.role in ("user", "assistant"):
                yield ("user" if entry.role == "user" else "assistant"), literal(text)
            case ToolCall(arguments=arguments):
                yield "call", literal(arguments)
            case ToolResult():
                yield "tool", literal(block.text)
            case _:
                pass


def reading(entries: Iterable[Entry]) -> list[str]:
    """What a projection shows, one literal text per message: all texts, readable reasoning, names and arguments of calls, results."""
    return [literal("\n".join(text for block in entry.blocks if (text := _shown(block)))) for entry in entries]


def _shown(block: Block) -> str:
    match block:
        case Text(text=text) | Reasoning(text=text):
            return text
        case ToolCall(name=name, arguments=arguments):
            return f"{name} {arguments}"
        case ToolResult():
            return block.text
        case Unknown(raw=raw):
            return compact_json(raw)
        case _:
            return ""


def around(text: str, start: int, end: int, words: int = LINE_WORDS) -> str:
    """The line of `text` around [start, end), cut at `words` words in all beside the value, half of them on each side."""
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", end)
    last = len(text) if last < 0 else last
    # A word of more than 60 characters on average is no word; the slices keep lines of megabytes cheap.
    half = words // 2
    before = text[max(first, start - 60 * half) : start]
    after = text[end : min(last, end + 60 * half)]
    return _last_words(before, half) + text[start:end] + _first_words(after, half)


def _last_words(text: str, words: int) -> str:
    starts = [match.start() for match in re.finditer(r"\S+", text)]
    return text[starts[-words] :] if len(starts) > words else text


def _first_words(text: str, words: int) -> str:
    ends = [match.end() for match in re.finditer(r"\S+", text)]
    return text[: ends[words - 1]] if len(ends) > words else text


def homes(entries: Sequence[Entry], known: Mapping[str, Value] | None = None, start: int = 0) -> dict[str, Value]:
    """The values of these entries, each with its home, in order of first occurrence.

    A value that its home entry does not show on token boundaries is left out: not even the original would answer the question.

    Args:
        entries: the entries, oldest first.
        known: values found before; they keep their homes and are part of the result.
        start: position of the first of these entries in the whole sequence.
    """
    values: dict[str, Value] = dict(known or {})
    for position, entry in enumerate(entries, start):
        for kind, text in pieces(entry):
            for found in find_values(text):
                if found.text in values:
                    continue
                line = around(text, found.start, found.end)
                if shows(line, found.text):
                    values[found.text] = Value(found.text, found.shape, kind, entry.id, position, line)
    return values


class Homes:
    """The values of a session at any position: each text is looked at once, however many positions are asked.

    Args:
        entries: the whole sequence, oldest first.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries
        self._read = 0
        self._found: dict[str, Value] = {}

    def before(self, position: int) -> dict[str, Value]:
        """What `homes` gives for the entries before a position."""
        if position > self._read:
            self._found = homes(self._entries[self._read : position], self._found, self._read)
            self._read = position
        # A home is a first occurrence, so what comes later takes none away.
        return {text: value for text, value in self._found.items() if value.position < position}
