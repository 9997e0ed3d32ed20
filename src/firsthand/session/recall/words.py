"""Words: how messages and lines are read for recall. The same reading for both, so that what is equal is found."""

from __future__ import annotations

import re

__all__ = ["is_short", "is_telling", "words_of"]

# Scripts that put no spaces between words are read in pairs of characters.
_WIDE = (
    "\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002fa1f"
)
_WORD = re.compile(rf"[{_WIDE}]+|[^\W_{_WIDE}]+")
_ASCII_WORD = re.compile("[a-z0-9]+")
_IS_WIDE = re.compile(f"[{_WIDE}]")
# An escape that JSON left in a text glues its letter to the word behind it.
_ESCAPE = re.compile(r"\\+[nrt\"](?=[^\W_]|\s|\\|$)")
_LONGEST = 64

_STOP_WORDS = """
    the and for with from that this have has had was were are but not you your our its can could will would should shall may might must what
    when where which while who why how there then than them they their these those into onto out over under about after before again also any
    all been being because does did doing done each few more most other some such only own same too very just now here if in is it of on or to
    as at be by do he me my no so up us we an am der die das und ist mit ein eine nicht auf les des une est que pour dans los las por con una
"""
_STOP = frozenset(_STOP_WORDS.split())


def words_of(text: str) -> list[str]:
    """The words of a text in order, lower case; parts of names and paths are words of their own, stop words are left out."""
    if "\\" in text:
        text = _ESCAPE.sub(" ", text)
    text = text.lower()
    if text.isascii():
        runs = _ASCII_WORD.findall(text)
        return [run[:_LONGEST] for run in runs if run not in _STOP and (len(run) > 1 or run.isdigit())]
    found: list[str] = []
    for run in _WORD.findall(text):
        if _IS_WIDE.match(run):
            found += [run[at : at + 2] for at in range(len(run) - 1)] or [run]
        elif run not in _STOP and (len(run) > 1 or run.isdigit()):
            found.append(run[:_LONGEST])
    return found


def is_short(word: str) -> bool:
    """Whether a word is too short to be looked up by itself in a trigram index; it only helps to rank."""
    return len(word) < 3 and word.isascii()


_INNER = re.compile(r"\w[-./:@#+=$~_]+\w|\w->\w|[a-z0-9][A-Z]|[A-Z]{2}[a-z]")


def is_telling(piece: str) -> bool:
    """Whether a piece of a message is a name, a path, a number or an id, and no ordinary word."""
    return len(piece) >= 3 and (any(map(str.isdigit, piece)) or _INNER.search(piece) is not None)
