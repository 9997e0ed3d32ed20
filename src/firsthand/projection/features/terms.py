"""Informative terms: the paths, names, numbers, hashes and rare words for whose sake a line is worth keeping.

A term is a number: a hash of its text, with its class in the lowest bits, so that it can be stored, counted and compared without the
text. Two texts may share a number (about once in 30,000 texts of 200,000); then a line counts as covered that is not, and nothing worse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from functools import lru_cache
from zlib import crc32

__all__ = [
    "CLASS_BITS",
    "TermClass",
    "class_of",
    "named_terms",
    "pieces_of",
    "places_of_units",
    "text_of",
    "unit_terms",
    "word",
]

CLASS_BITS = 3
_CLASS = (1 << CLASS_BITS) - 1


class TermClass(IntEnum):
    """What kind of term it is; the strategy weighs classes, and nothing else about a term's text."""

    SMALL_NUMBER = 0
    """A number of two digits."""
    WORD = 1
    """A plain word of four letters and more, or two characters of a script without spaces."""
    NUMBER = 2
    """Three digits and more, or with a unit, a dot or a `#`."""
    HASH = 3
    NAME = 4
    """An identifier of several parts, with a digit or with an inner capital."""
    PATH = 5
    QUOTED = 6
    """A single word that its writer put into quotes or code marks."""
    WRITTEN = 7
    """A stretch without blanks that is more than its names: an assignment, a call with its arguments, a flag with its value."""


_WORD = int(TermClass.WORD)
_WIDE = "\u1100-\u11ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002fa1f"
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f]+")
_W = rf"[^\W{_WIDE}]"
_COMPOUND = re.compile(
    rf"(?<![\d.,])\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?(?![\w,])|(?:#|~?/|\.{{1,2}}/|@|--?)?{_W}+(?:(?:::|[./\-]){_W}+)*|[가-힣]+"
)
# The same for ASCII text without commas, which most text is: no groups of digits, and no other letters.
_PLAIN_COMPOUND = re.compile(r"(?:#|~?/|\.{1,2}/|@|--?)?[a-zA-Z0-9_]+(?:(?:::|[./\-])[a-zA-Z0-9_]+)*")
_JOINT = re.compile(r"[^\W_][_.\-/:]+[^\W_]")
_DIGIT = re.compile(r"\d")
_INNER_CAPITAL = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2,}[a-z]")
_HEX = re.compile(r"(?:0x)?(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{6,}", re.I)
_NUMBER = re.compile(r"[#v]?\d[\d,_]*(?:\.\d+)*")
_WITH_UNIT = re.compile(r"\d+(?:\.\d+)?(?:[a-zA-Zµ]{1,3}|%)")
_QUOTES = "`\"'“”‘’"
_MAY_QUOTE = re.compile(rf"[{_QUOTES}].{{3,}}[{_QUOTES}]", re.DOTALL)
_PIECE = re.compile(rf"[{_WIDE}]|[a-zA-Z\u00aa-\u036f]{{1,7}}|[^\W\d_]{{1,2}}|\d{{1,3}}|_{{1,3}}|[^\w\s]{{1,3}}")
_PLAIN_PIECE = re.compile(r"[a-zA-Z]{1,7}|[^a-zA-Z0-9_\s]{1,3}|_{1,3}|[0-9]{1,3}")
"""The same for ASCII text."""
_UNIT = r" (?:(?:ms|µs|us|ns|s|secs?|seconds?|mins?|minutes?|hours?|days?|[KMGT]i?B|bytes|px|tokens?|Hz|[kM]Hz|rpm|fps)\b|%)"
_COUNTED = re.compile(rf"(?<![\d.a-zA-Z_])\d+(?:\.\d+)?[{_WIDE}]")
"""A number with its counter in a script without blanks: “6개”."""
_UNIT_AFTER = re.compile(rf"(?<![\w.])\d+(?:\.\d+)?{_UNIT}")
_UNIT_AFTER_DIGIT, _UNIT_AFTER_PLAIN_DIGIT = re.compile(rf"\d{_UNIT}"), re.compile(rf"[0-9]{_UNIT}")
"""Found sooner, since they begin with one kind of character."""
# fmt: off
_STOP = frozenset({
    "about", "above", "after", "again", "against", "also", "although", "always", "among", "another", "anything",
    "around", "because", "been", "before", "being", "below", "between", "both", "cannot", "could", "does", "doing",
    "done", "down", "during", "each", "either", "else", "even", "ever", "every", "everything", "first", "from",
    "further", "gets", "getting", "give", "given", "goes", "going", "gone", "have", "having", "here", "himself",
    "however", "inside", "instead", "into", "itself", "just", "keep", "kept", "know", "last", "least", "less",
    "lets", "like", "likely", "look", "looks", "made", "make", "makes", "making", "many", "maybe", "might", "more",
    "most", "much", "must", "need", "needs", "never", "next", "nothing", "okay", "once", "only", "onto", "other",
    "others", "otherwise", "over", "perhaps", "please", "quite", "rather", "really", "right", "same", "says", "seem",
    "seems", "several", "shall", "should", "show", "shows", "since", "some", "something", "still", "such", "sure",
    "take", "taken", "takes", "than", "that", "their", "them", "then", "there", "these", "they", "thing", "things",
    "think", "this", "those", "though", "through", "thus", "together", "took", "toward", "true", "false", "null",
    "none", "under", "unless", "until", "upon", "used", "uses", "using", "very", "want", "wants", "well", "went",
    "were", "what", "when", "where", "whether", "which", "while", "whom", "whose", "will", "with", "within",
    "without", "would", "your", "yours",
})
# fmt: on
_LONGEST = 200
_LONGEST_WRITTEN = 60
_EDGES = "`\"'“”‘’.,;:!?()[]{}<>|*#=…\\"
_WRITTEN = re.compile(r"\w(?:[^\w./:-]+|:|[./:-]{2,})\w")
"""Two names or numbers with more between them than the joints of a compound."""
_CONTRACTED = re.compile(r"[^\W\d_]+['’][^\W\d_]{1,2}")
"""“It's” is two plain words."""


def _number(text: str, kind: TermClass) -> int:
    return (crc32(text.encode("utf-8", "surrogatepass")) << CLASS_BITS | kind) & 0xFFFFFFFF


def class_of(term: int) -> TermClass:
    """The class of a term."""
    return TermClass(term & (1 << CLASS_BITS) - 1)


def text_of(term: int, line: str) -> str:
    """The text behind a term of a line; "" for numbers whose unit stands apart."""
    for part in line.split():
        if term in word(part)[1]:
            return next(text for text, found in _found(part) if found == term)
    return ""


@lru_cache(maxsize=1 << 17)
def word(text: str) -> tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Size and terms of one word, that is of a stretch of text without blanks.

    Returns:
        Its pieces (see `pieces_of`), its terms, those of them that are no plain words, and those that are, each once. The same words come
        again and again, hence the cache.
    """
    terms = tuple(dict.fromkeys([term for _, term in _found(text)]))
    names = tuple([term for term in terms if term & _CLASS != _WORD])
    plain = () if len(names) == len(terms) else tuple([term for term in terms if term & _CLASS == _WORD])
    return pieces_of(text), terms, names, plain


def pieces_of(text: str) -> int:
    """About how many tokens a stretch without blanks is, counted with a rule that no vocabulary is needed for.

    Runs of letters count one for seven letters, digits one for three, other marks one for two, a wide character one. Against o200k, whose
    counts it is proportional to within some percent on whole projections, it is right about single lines to within a token or two.
    """
    return len((_PLAIN_PIECE if text.isascii() else _PIECE).findall(text)) or 1


def unit_terms(line: str) -> list[int]:
    """Terms that only a line shows and none of its words alone: numbers whose unit stands apart."""
    return [_number(match[0], TermClass.NUMBER) for match in _UNIT_AFTER.finditer(line)]


def places_of_units(text: str) -> Iterator[int]:
    """Where in a text such terms may stand, without leaving one out."""
    return (
        match.start() for match in (_UNIT_AFTER_PLAIN_DIGIT if text.isascii() else _UNIT_AFTER_DIGIT).finditer(text)
    )


def named_terms(text: str) -> list[tuple[str, TermClass]]:
    """The terms of a stretch without blanks, as texts with their classes."""
    return [(name, class_of(term)) for name, term in _found(text)]


def _found(text: str) -> list[tuple[str, int]]:
    """The terms of a stretch without blanks with their texts."""
    out: list[tuple[str, int]] = []
    is_ascii = text.isascii()
    if _MAY_QUOTE.search(text):
        for match in _COMPOUND.finditer(text):
            found = match[0]
            term = _compound(found)
            if (
                (term is None or term & _CLASS == _WORD)
                and 3 <= len(found) <= _LONGEST
                and _is_quoted(text, *match.span())
            ):
                term = _number(found, TermClass.QUOTED)
            if term is not None:
                out.append((found, term))
    else:
        compounds = _PLAIN_COMPOUND if is_ascii and "," not in text else _COMPOUND
        out += [(found, term) for found in compounds.findall(text) if (term := _compound(found)) is not None]
    unspaced = () if is_ascii else _UNSPACED.findall(text)
    if not is_ascii:
        out += [(found, _number(found, TermClass.NUMBER)) for found in _COUNTED.findall(text)]
    whole = text.strip(_EDGES)
    if (
        4 <= len(whole) <= _LONGEST_WRITTEN
        and not (out and out[0][0] == whole and ":" not in whole and "," not in whole)
        and not unspaced
        and _WRITTEN.search(whole)
    ):
        out.append((whole, _number(whole, TermClass.WRITTEN)))
    for run in unspaced:
        out += [(run[at : at + 2], _number(run[at : at + 2].casefold(), TermClass.WORD)) for at in range(len(run) - 1)]
    return out


@lru_cache(maxsize=1 << 16)
def _compound(found: str) -> int | None:
    """The term of one compound that is not in quotes, or None where it says too little."""
    kind = _kind(found) if len(found) <= _LONGEST else None
    return None if kind is None else _number(found.casefold() if kind is TermClass.WORD else found, kind)


def _is_quoted(text: str, start: int, end: int) -> bool:
    return start > 0 and end < len(text) and text[start - 1] in _QUOTES and text[end] in _QUOTES


def _kind(found: str) -> TermClass | None:
    """The class of one compound, or None where it says too little."""
    if found.isalpha():
        if len(found) < 4:
            return None
        if _INNER_CAPITAL.search(found):
            return TermClass.NAME
        return TermClass.WORD if found.lower() not in _STOP else None
    has_digit = _DIGIT.search(found) is not None
    if has_digit:
        if _NUMBER.fullmatch(found):
            digits = sum(map(str.isdigit, found))
            if digits >= 3 or "." in found or found[0] in "#v":
                return TermClass.NUMBER
            return TermClass.SMALL_NUMBER if digits == 2 else None
        if _WITH_UNIT.fullmatch(found):
            return TermClass.NUMBER
        if _HEX.fullmatch(found):
            return TermClass.HASH
    if len(found) < 4:
        # "F10", "k8s"; two characters are as often a loop's variable.
        return TermClass.NAME if has_digit and len(found) == 3 and found.isalnum() else None
    plain = found.lstrip("-#@~./")
    if plain.isalpha() and not _INNER_CAPITAL.search(plain):
        if found[0] in "~/." and len(plain) >= 4:
            return TermClass.PATH
        return TermClass.WORD if len(plain) >= 4 and plain.lower() not in _STOP else None
    if "/" in found:
        return TermClass.PATH
    return TermClass.NAME if has_digit or _JOINT.search(found) or _INNER_CAPITAL.search(found) else TermClass.WORD
