"""Counters: how many tokens a text is, by a fast estimate, by an exact encoding, or by an estimate corrected per model family.

Every number of tokens in firsthand comes from one of these and is shown with the counter's `name`. Bounds are kept in the
counter that the budget names; characters divided by four under-count real tokens (design.md 6), so the default is a
calibrated estimate.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Protocol

from .codec import compact_json, wire_safe
from .errors import MissingExtraError, UnknownNameError
from .transcript import Block, Entry, Media, Reasoning, Text, ToolCall, ToolResult, Unknown

__all__ = [
    "FRAMING",
    "MEDIA_TOKENS",
    "CalibratedCounter",
    "Counter",
    "EstimateCounter",
    "O200kCounter",
    "block_cost",
    "counter_by_name",
    "counter_for_model",
    "entry_cost",
    "total_cost",
]

FRAMING = 6
"""Tokens charged for each message beside its content (futureos.md 1.3)."""

MEDIA_TOKENS = 2048
"""Flat charge for an image or another attachment, whatever its bytes (futureos.md 1.3, failure kind AC-12)."""

# The ranges that the quarter-token rule charges 6 quarters for (futureos.md 1.2).
_WIDE = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002a6df]+")
_ASCII = bytes(range(128))


class Counter(Protocol):
    """Anything that counts the tokens of a text. Deterministic, offline, never negative; 0 for the empty text."""

    @property
    def name(self) -> str:
        """Short name, shown beside every number that the counter made."""
        ...

    @property
    def error(self) -> str:
        """What is known about how far it is off, in words."""
        ...

    def count(self, text: str) -> int:
        """Tokens of `text`."""
        ...


def _classes(text: str) -> tuple[int, int, int]:
    """Number of (ASCII, wide, other) characters in `text`."""
    length = len(text)
    if text.isascii():
        return length, 0, 0
    # In UTF-8 the bytes of other characters are all above 127, so that these can be looked at without the ASCII between them.
    rest = text.encode("utf-8", "surrogatepass").translate(None, _ASCII).decode("utf-8", "surrogatepass")
    wide = sum(map(len, _WIDE.findall(rest)))
    return length - len(rest), wide, len(rest) - wide


class EstimateCounter:
    """The quarter-token rule: an ASCII character is a quarter token, a CJK one six, any other two (futureos.md 1.2).

    Rounded up once per text; subadditive: joining two texts by a newline costs at most one token more than both.
    """

    name = "estimate"
    error = "real counts are about 1.0 to 2.0 times as high for ASCII text, 0.6 times for Chinese"

    def count(self, text: str) -> int:
        """Tokens of `text`, rounded up."""
        ascii_, wide, other = _classes(text)
        return (ascii_ + 6 * wide + 2 * other + 3) // 4


class CalibratedCounter:
    """The quarter-token rule times a ratio for the model's family: `narrow` for ASCII and other characters, `wide` for CJK.

    Ratios are in hundredths, so the arithmetic is exact on every machine.
    """

    def __init__(self, family: str, narrow: int, wide: int, error: str) -> None:
        self.name = f"calibrated:{family}"
        self.error = error
        self._narrow = narrow
        self._wide = wide

    def count(self, text: str) -> int:
        """Tokens of `text`, rounded up."""
        ascii_, wide, other = _classes(text)
        return ((ascii_ + 2 * other) * self._narrow + 6 * wide * self._wide + 399) // 400

    @property
    def ratio(self) -> float:
        """Tokens that it counts for each estimated token of ASCII text."""
        return self._narrow / 100


@lru_cache(maxsize=1)
def _o200k() -> Any:
    # The vocabulary is read once for all counters of a process.
    try:
        import bpe_openai
    except ImportError:
        raise MissingExtraError("the exact counter 'o200k'", "exact") from None
    return bpe_openai.get_encoding("o200k_base")


class O200kCounter:
    """Exact counts of the o200k encoding (GPT-4o and later), offline, through the extra `exact`.

    Raises:
        MissingExtraError: on construction, when `bpe-openai` is not installed.
    """

    name = "o200k"
    error = "exact for models that use o200k; others differ"
    # One call of the encoder is limited to 200,000 tokens; a token is at least a byte and a character at most four.
    _PIECE = 50_000

    def __init__(self) -> None:
        self._tokenizer = _o200k()

    def count(self, text: str) -> int:
        """Tokens of `text`; texts beyond 50,000 characters are cut at line ends where there are any."""
        text = wire_safe(text)
        if len(text) <= self._PIECE:
            return len(self._tokenizer.encode_ordinary(text))
        return sum(len(self._tokenizer.encode_ordinary(piece)) for piece in self._pieces(text))

    def _pieces(self, text: str) -> Iterable[str]:
        start = 0
        while start < len(text):
            end = min(len(text), start + self._PIECE)
            if end < len(text):
                end = text.rfind("\n", start, end) + 1 or end
            yield text[start:end]
            start = end


# Tokens per estimated token, in hundredths, on the safe side. Claude and unknown models: design.md 6 (1.5 prose, 1.7 tool output, 2.0 JSON;
# wide text about 0.6). OpenAI: `python benchmarks/ratios.py FILE...` on real Codex sessions gives 0.90 prose, 1.15 arguments, 1.19 tool output.
_FAMILIES: tuple[tuple[str, re.Pattern[str], int, int, str], ...] = (
    (
        "claude",
        re.compile(r"claude|anthropic|opus|sonnet|haiku", re.I),
        170,
        60,
        "prose about 12 % over, JSON about 15 % under",
    ),
    (
        "openai",
        re.compile(r"gpt|codex|(?:^|/)o[1-9]\b|openai", re.I),
        125,
        60,
        "tool output about 5 % over, prose about 40 % over",
    ),
)
_UNKNOWN = CalibratedCounter("unknown", 150, 60, "the model's family is unknown; expect up to 30 % either way")


def counter_for_model(model: str | None) -> Counter:
    """The calibrated counter for a model's family, by its name; a ratio of 1.5 for models that we do not know."""
    for family, pattern, narrow, wide, error in _FAMILIES:
        if model and pattern.search(model):
            return CalibratedCounter(family, narrow, wide, error)
    return _UNKNOWN


def counter_by_name(name: str) -> Counter:
    """The counter that a user asked for: `estimate`, `o200k`, `calibrated`, or `calibrated:MODEL`.

    Raises:
        UnknownNameError: there is none of that name.
        MissingExtraError: it needs an extra that is not installed.
    """
    kind, _, model = name.partition(":")
    if name == "estimate":
        return EstimateCounter()
    if name == "o200k":
        return O200kCounter()
    if kind == "calibrated":
        return counter_for_model(model)
    raise UnknownNameError("counter", name, ("estimate", "o200k", "calibrated", "calibrated:MODEL"))


def block_cost(block: Block, counter: Counter) -> int:
    """Tokens of one block on the wire (futureos.md 1.3).

    Each text piece is rounded up by itself. A call costs its name and its arguments, ids nothing; opaque reasoning is free, since
    no rule for it is known; a block that we have no word for costs its JSON.
    """
    match block:
        case Text(text=text) | Reasoning(text=text):
            return counter.count(text)
        case ToolCall(name=name, arguments=arguments):
            return counter.count(name) + counter.count(arguments)
        case ToolResult(content=content):
            return sum(block_cost(part, counter) for part in content)
        case Media():
            return MEDIA_TOKENS
        case Unknown(raw=raw):
            return counter.count(compact_json(raw))


def entry_cost(entry: Entry, counter: Counter) -> int:
    """Tokens of one entry as a message: its blocks plus the framing of a message (futureos.md 1.3)."""
    return FRAMING + sum(block_cost(block, counter) for block in entry.blocks)


def total_cost(entries: Iterable[Entry], counter: Counter) -> int:
    """Tokens of several entries as messages; the system prompt and tools are not among them."""
    return sum(entry_cost(entry, counter) for entry in entries)
