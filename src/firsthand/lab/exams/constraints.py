"""`constraints`: whether the rules that the user typed are still there, whole and verbatim (measures.md, "Exams")."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

import msgspec

from ...transcript import Entry, Text, typed_text
from ..values import literal

__all__ = ["MOST", "Rule", "inserted", "rules"]

MOST = 120
"""Rules asked at one boundary; a person who pastes a whole manual would otherwise decide the score."""

_LEAST_LENGTH = 8
_MOST_LENGTH = 400
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_RULE = re.compile(
    r"\b(?:must(?:n't)?|never|only|do(?:es)? not|don'?t|always|at (?:most|least)|no (?:more|less|fewer) than|keep|cannot|can'?t|should(?:n'?t| not)?|"
    r"make sure|ensure|avoid|without|forbidden|required|prefer|instead of|leave .{1,40} alone)\b"
    r"|\b(?:muss|müssen|darf|dürfen|nie|niemals|nur|immer|höchstens|mindestens|doit|jamais|toujours|seulement|debe|nunca|siempre|solo)\b"
    r"|\b(?:нельзя|никогда|всегда|только|должен|должна|должны|не надо)\b"
    r"|必须|必須|不要|不得|禁止|只能|总是|一定|最多|至少|絶対|必ず|してはいけない|しないで|のみ"
    r"|반드시|절대|항상|하지\s?마|하지\s?말|말고|말아|금지|최대|최소|해야",
    re.I,
)
_TEMPLATES = (
    "Never write to the folder {name}-{number}.",
    "Only use port {number} for {name}.",
    "Keep at most {number} entries in {name}.",
    "The flag {name}_{number} must stay off.",
)
_NAMES = ("quill", "harrow", "tern", "osprey", "lintel", "marrow", "cinder", "gable")


@dataclass(frozen=True, slots=True)
class Rule:
    """A sentence of user text that sets a rule."""

    text: str
    position: int
    """Position of its entry."""


def rules(entries: Sequence[Entry], seed: int = 0) -> list[Rule]:
    """The sentences of typed user text that hold a rule, each once, in order; a draw of `MOST` where there are more."""
    found: dict[str, Rule] = {}
    for position, entry in enumerate(entries):
        if entry.role == "user":
            for text in typed_text(entry):
                for sentence in _sentences(literal(text)):
                    found.setdefault(sentence, Rule(sentence, position))
    every = list(found.values())
    if len(every) <= MOST:
        return every
    return sorted(Random(seed).sample(every, MOST), key=lambda rule: rule.position)


def _sentences(text: str) -> Iterator[str]:
    for part in _SENTENCE.split(text):
        sentence = part.strip()
        if _LEAST_LENGTH <= len(sentence) <= _MOST_LENGTH and _RULE.search(sentence):
            yield sentence


def inserted(entries: Sequence[Entry], seed: int, count: int = 4) -> tuple[tuple[Entry, ...], list[Rule]]:
    """The same entries with `count` made-up rules, each a line at the end of a user text drawn by seed, and those rules.

    For tests: the rules are known to be new, so that nothing else in the session can supply them.
    """
    rng = Random(seed)
    changed = list(entries)
    places = [place for place, entry in enumerate(entries) if entry.role == "user" and any(typed_text(entry))]
    added: list[Rule] = []
    for place in sorted(rng.sample(places, min(count, len(places)))):
        line = rng.choice(_TEMPLATES).format(name=rng.choice(_NAMES), number=rng.randrange(1_000, 10_000))
        blocks = list(changed[place].blocks)
        number = max(n for n, block in enumerate(blocks) if isinstance(block, Text) and block.origin == "typed")
        block = blocks[number]
        assert isinstance(block, Text)
        blocks[number] = msgspec.structs.replace(block, text=f"{block.text}\n{line}")
        changed[place] = msgspec.structs.replace(changed[place], blocks=tuple(blocks))
        added.append(Rule(line, place))
    return tuple(changed), added
