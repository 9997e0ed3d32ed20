"""The vectors of pi.md 6.9: where Pi cuts, in all four releases. Their numbers came from Pi's own functions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from firsthand.strategies.pi.cut import Preparation, prepare
from firsthand.strategies.pi.path import Checkpoint, Piece, context, kind_of, path
from firsthand.strategies.pi.rules import Rules
from firsthand.testing.builders import call, entry, image, injected, result, said, session, summary, used, user
from firsthand.transcript import Entry, Source, View

PI = Source("pi")


def x(count: str) -> str:
    return "x" * int(count)


def built(words: str) -> tuple[View, dict[str, list[Checkpoint]]]:
    """A path from the notation of pi.md 6.9: `U400 A400 K100>e0`; checkpoints take a number as the entries do."""
    entries: list[Entry] = []
    made: dict[str, list[Checkpoint]] = {}
    for number, word in enumerate(words.split()):
        kind, count, kept = re.fullmatch(r"([A-Z]+)(\d*)(?:>(\w+))?", word).groups()  # type: ignore[union-attr]
        name = f"e{number}"
        fields: Any = {"id": name, "source": PI}
        match kind:
            case "U":
                entries.append(user(x(count), **fields))
            case "UI":
                entries.append(user(x(count), image(), **fields))
            case "A":
                entries.append(said(x(count), usage=used(0), **fields))
            case "AC":
                entries.append(said(x(count), call("read", path=f"f{number}", id=name), usage=used(0), **fields))
            case "T" | "TI":
                entries.append(result(entries[-1].id, x(count), *([image()] if kind == "TI" else []), **fields))
            case "B":
                extra = {"command": "c" * 10, "output": "x" * (int(count) - 10)}
                entries.append(injected("as shown", extra=extra, **fields))
            case "C":
                entries.append(injected(x(count), **fields))
            case "S":
                entries.append(summary(x(count), **fields))
            case "M":
                entries.append(entry("system", **fields))
            case "K":
                made.setdefault(entries[-1].id, []).append(Checkpoint(x(count), kept))
    return View(session(entries)), made


def unmended(follows: Any) -> Rules:
    return Rules.of(follows, False, {})


def cut(words: str, keep: int, rules: Rules) -> Preparation | str:
    view, made = built(words)
    return prepare(path(view, made, rules), keep, rules)


class Row(NamedTuple):
    kept: str
    split: bool
    history: int
    prefix: int = 0
    before: int | None = None
    previous: int | None = None


def row(found: Preparation | str, *, before: bool = True) -> Row | str:
    if isinstance(found, str):
        return "refused"
    return Row(
        found.first_kept.id,
        found.is_split,
        len(found.history),
        len(found.prefix),
        found.tokens_before if before else None,
        len(found.previous.summary) if found.previous else None,
    )


VECTORS: dict[str, tuple[str, int, Row | str, Mapping[str, Row | str]]] = {
    "V1": ("U400 A400 U400 A400 U400 A400", 200, Row("e4", False, 4, 0, 600), {}),
    "V2": ("U40 AC40 T400 AC40 T400 A40", 150, Row("e3", True, 0, 3, 250), {}),
    "V3": ("U400 A400 U40 AC400 T400 AC400 T400 A400", 300, Row("e5", True, 2, 3, 720), {}),
    "V4": ("U40 A40 U40 A40", 20_000, "refused", {"Mar": Row("e0", False, 0)}),
    "V5": (
        "U400 A400 U40 AC40 T4000",
        200,
        Row("e3", True, 2, 1, 1225),
        {"Jul": "refused", "Mar": Row("e0", False, 0)},
    ),
    "V6": ("U400 A400 M M U400 A400", 200, Row("e2", True, 0, 2, 400), {}),
    "V7": ("U400 A400 B400 A400 U400 A400", 400, Row("e2", False, 2, 0, 600), {"Mar": Row("e2", True, 2)}),
    "V8": ("U400 A400 C4000 A40 U40 A40", 500, Row("e2", False, 2, 0, 1230), {"Mar": Row("e0", False, 0)}),
    "V9": (
        "U400 A400 U400 A400 K100>e2 U400 A400 U400 A400",
        200,
        Row("e7", False, 4, 0, 625, 100),
        {"Mar": Row("e7", False, 2, 0, None, 100)},
    ),
    "V10": ("U400 A400 K100>absent U400 A400 U400 A400", 200, Row("e5", False, 2, 0, 425, 100), {}),
    "V11": ("U400 A400 K100>e0", 200, "refused", {}),
    "V12": ("U400 A400 UI0 A400", 400, Row("e2", False, 2, 0, 1500), {"Mar": Row("e0", False, 0)}),
    "V13": ("U400 A400 U4 AC4 TI0 A400", 400, Row("e5", True, 2, 3, 1507), {}),
    "V14": (
        "U400 A400 U40 AC400 T400 K100>e2 AC400 T400 AC400 T400",
        250,
        Row("e8", True, 0, 5, 650, 100),
        {"Mar": Row("e8", False, 2, 0, None, 100)},
    ),
    "V15": ("U400 A400 S400 U400 A400", 200, Row("e3", False, 3, 0, 500), {"Mar": Row("e2", True, 2)}),
}


@pytest.mark.parametrize("follows", ["Mar", "Jul", "Sep", "Nov"])
@pytest.mark.parametrize("name", VECTORS)
def test_cut_of_the_vector(name: str, follows: str) -> None:
    words, keep, expected, by_release = VECTORS[name]
    wanted = by_release.get(follows, expected)
    found = row(cut(words, keep, unmended(follows)), before=follows != "Mar")
    if follows == "Mar" and isinstance(wanted, Row):
        # Mar trusted the vectors' zero usage, so its size of the context differs.
        wanted = wanted._replace(before=None)
    assert found == wanted


@pytest.mark.parametrize("name", VECTORS)
def test_jul_with_its_fixes_cuts_as_sep(name: str) -> None:
    words, keep, expected, _ = VECTORS[name]
    assert row(cut(words, keep, Rules.of("Jul", True, {}))) == expected


def roles(pieces: list[Piece]) -> list[str]:
    return [f"summary({len(p.checkpoint.summary)})" if p.checkpoint else kind_of(p.entry) for p in pieces]  # type: ignore[arg-type]


CONTEXTS = [
    (
        "Sep",
        "U4 A4 K10>e0 U4 A4 K20>e1 U4",
        ["summary(20)", "assistant", "user", "assistant", "user"],
    ),
    (
        "Jul",
        "U4 A4 K10>e0 U4 A4 K20>e1 U4",
        ["summary(20)", "assistant", "summary(10)", "user", "assistant", "user"],
    ),
    ("Jul", "U4 A4 K10>absent U4", ["summary(10)", "user"]),
    ("Jul", "", []),
]


@pytest.mark.parametrize(("follows", "words", "expected"), CONTEXTS)
def test_context_of_the_vector(follows: str, words: str, expected: list[str]) -> None:
    view, made = built(words)
    rules = unmended(follows)
    assert roles(context(path(view, made, rules), rules)) == expected


def test_checks_of_the_estimate() -> None:
    rules = unmended("Jul")
    view = View(session(said(call("edit", path="a.py", n=1, s='é"')), user("😀😀😀"), user(image())))
    assert [piece.tokens for piece in path(view, {}, rules)] == [9, 2, 1200]
