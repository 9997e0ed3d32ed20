"""The exam of the published compaction experiment: does the projection still contain these values? After futureos.md 8.5.

Its weaknesses are kept, since it exists to compare with published numbers: values are pooled from the earliest history, at most 17 a
questionnaire, one draw. The other exams correct them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal, TypeAlias

from ...transcript import Entry, Text, ToolCall, ToolResult

__all__ = ["PooledSource", "Questionnaire", "questionnaire", "rendered"]

PooledSource: TypeAlias = Literal["assistant", "user", "tool"]

_PATH = re.compile(
    r"(?:(?<=[`\s(])|^)([\w.@-]+(?:/[\w.@-]+)*\.(?:rs|ts|tsx|js|py|md|json|html|css|kt|swift|yaml|toml|txt))\b", re.M
)
_HEX = re.compile(r"\b[0-9a-f]{7,12}\b")
_PULL = re.compile(r"(?:PR #|/pull/)(\d+)")
_SIZE = re.compile(r"\d+(?:\.\d+)?\s?(?:MiB|MB|GiB|GB|KB)\b")
_COUNT = re.compile(r"(\d+)\s?[个條条项項次行步轮輪份]")
_IDENTIFIER = re.compile(r"`([A-Za-z_]\w{4,60})`")
_PREFIXED = re.compile(r"\b(?:ver|trace|ACK|DEC|RSN)_\w{4,40}")
_CAP = re.compile(r"\b\d{2,5}\s?(?:MiB|MB)\b")
_PROJECT = re.compile(r"PROJECT=([A-Z]{3,12})\b")
_NUMBER = re.compile(r"\b\d{2,5}\b")

# Patterns of each source in order, with the most values that one record gives.
_PATTERNS: dict[PooledSource, tuple[tuple[re.Pattern[str], int], ...]] = {
    "assistant": (
        (_PATH, 6),
        (_HEX, 4),
        (_PULL, 3),
        (_SIZE, 3),
        (_COUNT, 3),
        (_IDENTIFIER, 6),
        (_PREFIXED, 6),
        (_CAP, 3),
        (_PROJECT, 2),
    ),
    "user": ((_SIZE, 2), (_NUMBER, 3), (_PATH, 2), (_CAP, 3)),
    "tool": ((_HEX, 6), (_PREFIXED, 6), (_SIZE, 2)),
}
_QUOTAS: dict[PooledSource, int] = {"assistant": 12, "user": 2, "tool": 3}
_DECOYS = 8
_LEAST_LENGTH = 3


@dataclass(frozen=True)
class Questionnaire:
    """What is asked at one boundary."""

    values: tuple[tuple[str, PooledSource], ...]
    """Values that occur in the history, with the source whose pool each came from."""
    decoys: tuple[str, ...]
    """Values of the same shapes that occur nowhere in it."""
    order: tuple[str, ...]
    """Both together, in the order in which they are asked."""

    def contained(self, projection: str) -> list[bool]:
        """For each value, whether the projection's text contains it."""
        return [value in projection for value, _ in self.values]


def questionnaire(entries: Sequence[Entry], stage: int) -> Questionnaire:
    """The questions on this history.

    Args:
        entries: the history up to the boundary.
        stage: 0, 3 or 7 for the three scored boundaries; seeds the draw.
    """
    rng = Random(9_000 + stage)
    history = rendered(entries)
    values: dict[str, PooledSource] = {}
    for source, quota in _QUOTAS.items():
        pool = list(_pool(entries, source, 4 * quota))
        rng.shuffle(pool)
        for value in pool[:quota]:
            if value in history:
                values.setdefault(value, source)
    decoys = _decoys(rng, history, values)
    order = [*values, *decoys]
    Random(1_000 + stage).shuffle(order)
    return Questionnaire(tuple(values.items()), tuple(decoys), tuple(order))


def rendered(entries: Iterable[Entry]) -> str:
    """Texts without role labels, joined by blank lines; calls and results on lines of their own (futureos.md 8.1)."""
    pieces: list[str] = []
    for entry in entries:
        for block in entry.blocks:
            match block:
                case Text(text=text):
                    pieces.append(text)
                case ToolCall(name=name, arguments=arguments):
                    pieces.append(f"[call {name} {arguments}]")
                case ToolResult():
                    pieces.append(f"[result {block.text}]")
                case _:
                    pass
    return "\n\n".join(pieces)


def _texts(entry: Entry, source: PooledSource) -> Iterator[str]:
    for block in entry.blocks:
        if (isinstance(block, ToolResult) and source == "tool") or (
            isinstance(block, Text) and block.origin == "typed" and entry.role == source
        ):
            yield block.text


def _pool(entries: Iterable[Entry], source: PooledSource, most: int) -> Iterator[str]:
    """The first `most` distinct values of a source, in order of records."""
    seen: set[str] = set()
    for entry in entries:
        for text in _texts(entry, source):
            for pattern, per_record in _PATTERNS[source]:
                for found in list(pattern.finditer(text))[:per_record]:
                    value = f"PR #{found[1]}" if pattern is _PULL else found[pattern.groups]
                    value = value.strip()
                    if len(value) >= _LEAST_LENGTH and value not in seen:
                        seen.add(value)
                        yield value
                        if len(seen) == most:
                            return


def _decoys(rng: Random, history: str, values: Iterable[str]) -> list[str]:
    taken = set(values)
    decoys: list[str] = []
    while len(decoys) < _DECOYS:
        decoy = _decoy(rng)
        if decoy not in taken and decoy not in history:
            taken.add(decoy)
            decoys.append(decoy)
    return decoys


def _decoy(rng: Random) -> str:
    match rng.randrange(6):
        case 0:
            return f"{rng.randrange(16**8):08x}"
        case 1:
            return f"PR #{rng.randrange(100, 999)}"
        case 2:
            return f"{rng.randrange(10, 99)}.{rng.randrange(10)}.{rng.randrange(10)}-diag"
        case 3:
            folder, name = rng.choice(("core", "tools", "infra")), rng.choice(("bridge", "ledger", "probe"))
            return f"{folder}/{name}.{rng.choice(('rs', 'py', 'ts'))}"
        case 4:
            return f"{rng.randrange(10, 99)}.{rng.randrange(10)} {rng.choice(('MiB', 'MB'))}"
        case _:
            return f"{rng.randrange(100, 2_000)} 测试"
