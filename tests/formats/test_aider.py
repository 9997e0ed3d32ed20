from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from real_sessions import shared

from firsthand.errors import EmptySessionError
from firsthand.formats.files.aider import AiderReader
from firsthand.formats.files.base import Input
from firsthand.transcript import Text, Transcript

from .reading import blocks, check, one, opened, raw, shapes

READER = AiderReader()
FILE = "aider/aider-chat-history.md.gz"


class Written:
    """A history as Aider writes it: each call appends what one event appends."""

    def __init__(self) -> None:
        self.text = ""

    def start(self, date: str = "2026-01-01 10:00:00") -> Written:
        self.text += f"\n# aider chat started at {date}\n\n"
        return self

    def input(self, text: str) -> Written:
        lines = "  \n#### ".join(text.splitlines() or ["<blank>"])
        self.text += f"\n#### {lines}".rstrip() + "  \n"
        return self

    def prose(self, text: str) -> Written:
        self.text += f"\n{text.strip()}\n\n"
        return self

    def notice(self, text: str) -> Written:
        """One of several lines gets its mark once."""
        self.text += f"> {text.strip()}".rstrip() + "  \n"
        return self

    def read(self) -> list[Transcript]:
        found = READER.read(opened(self.text, ".aider.chat.history.md"))
        for transcript in found:
            check(transcript)
        return found


def test_a_chat() -> None:
    made = Written().start().notice("Aider v0.50.0").notice("Model: gpt-4o with diff edit format")
    made.input("add a test\nfor this").prose("Sure:\n\n```python\nx = 1\n```").notice("Applied edit to a.py").notice(
        "Commit abc"
    )
    (found,) = made.read()
    assert shapes(found) == [
        ("user", "injected: Aider v0.50.0\nModel: gpt-4o with diff edit format"),
        ("user", "add a test\nfor this"),
        ("assistant", "Sure:\n\n```python\nx = 1\n```"),
        ("user", "injected: Applied edit to a.py\nCommit abc"),
    ]
    assert (found.title, found.client, found.model, found.time) == (
        "add a test",
        "v0.50.0",
        "gpt-4o",
        "2026-01-01T10:00:00",
    )
    assert [e.source.line for e in found.entries if e.source] == [4, 7, 10, 16]


def test_prose_that_looks_like_what_aider_writes_is_prose() -> None:
    text = "#### Heading\n\n> quoted\n> twice\n\n```\n#### x\n>>>>>>> REPLACE\n```"
    (found,) = Written().start().input("q").prose(text).input("next").read()
    assert shapes(found) == [("user", "q"), ("assistant", text), ("user", "next")]


def test_an_input_with_empty_lines_and_two_inputs_in_a_row() -> None:
    (found,) = Written().start().input("first").input("one\n\ntwo  three").read()
    assert shapes(found) == [("user", "first"), ("user", "one\n\ntwo  three")]


def test_echoes_of_commands_are_injected() -> None:
    made = Written().start().input("/clear").input("").input("/ask why\nso?").input(" why\nso?").prose("because")
    (found,) = made.input("/add a.py").input("/usr/bin is full").read()
    assert shapes(found) == [
        ("user", "injected: /clear"),
        ("user", "injected: <blank>"),
        ("user", "injected: /ask why\nso?"),
        ("user", " why\nso?"),
        ("assistant", "because"),
        ("user", "/add a.py"),
        ("user", "/usr/bin is full"),
    ]


def test_a_notice_of_several_lines() -> None:
    output = "==== test session starts ====\nplatform linux\ncode   \n\n>       assert x\nE       assert False\n    \n==== 1 failed ===="
    (found,) = Written().start().input("/run pytest").notice(output).notice("Add the output?").prose("I see").read()
    assert shapes(found) == [
        ("user", "/run pytest"),
        ("user", f"injected: {output}\nAdd the output?"),
        ("assistant", "I see"),
    ]


def test_a_notice_of_several_lines_right_behind_prose() -> None:
    (found,) = Written().start().input("q").prose("done").notice("Tokens: 5 sent.\nCost: $0.1 message.").read()
    assert shapes(found)[1:] == [("assistant", "done"), ("user", "injected: Tokens: 5 sent.\nCost: $0.1 message.")]


def test_chats_in_which_nothing_was_said_are_counted() -> None:
    made = (
        Written()
        .start("2026-01-01 10:00:00")
        .notice("Aider")
        .start("2026-01-01 10:00:00")
        .input("q")
        .start("2026-01-02 10:00:00")
    )
    (found,) = made.read()
    assert shapes(found) == [("user", "q")]
    assert found.warnings == ("2 chat(s) hold notices only and were left out",)
    assert found.extra == {"left_out": {"chat in which nothing was said": 2}}


def test_what_stands_before_the_first_heading_is_a_chat() -> None:
    made = Written().input("early").start().input("late")
    assert [(t.time, *shapes(t)) for t in made.read()] == [
        (None, ("user", "early")),
        ("2026-01-01T10:00:00", ("user", "late")),
    ]


def test_a_history_that_has_grown_gives_the_same_ids() -> None:
    made = Written().start().notice("a").input("q").start().notice("b").input("q")
    before = made.read()
    after = made.prose("a").start().input("q").read()
    assert [t.id for t in after[:2]] == [t.id for t in before]
    assert after[1].entries[:2] == before[1].entries
    assert len({t.id for t in after}) == 3


def test_a_file_whose_trailing_spaces_were_stripped() -> None:
    made = Written().start().notice("Aider").input("one\ntwo").prose("fine").notice("done")
    text = re.sub(r" +$", "", made.text, flags=re.M)
    assert shapes(one(READER, opened(text))) == shapes(one(READER, opened(made.text)))


def test_a_file_from_windows() -> None:
    made = Written().start().notice("Aider").input("one\ntwo").prose("fine\n\nso").notice("done")
    text = made.text.replace("\n", "\r\n")
    assert shapes(one(READER, opened(text))) == shapes(one(READER, opened(made.text)))


def test_bytes_that_are_not_utf8_are_counted() -> None:
    data = Written().start().input("q").prose("caf\u00e9").text.encode().replace(b"\xc3\xa9", b"\xe9")
    found = one(READER, opened(data))
    assert shapes(found)[1] == ("assistant", "caf\ufffd")
    assert len(found.damaged) == 1


WORDS = (
    st.text(st.characters(categories=("L", "N", "P"), include_characters=" "), min_size=1).map(str.strip).filter(bool)
)
PROSE = st.lists(WORDS, min_size=1, max_size=4).map("\n\n".join)
EVENTS = st.lists(st.tuples(st.sampled_from(["input", "prose", "notice"]), PROSE), min_size=1, max_size=8)


@given(EVENTS)
def test_what_aider_wrote_comes_back(events: list[tuple[str, str]]) -> None:
    """Whatever is written, every text comes back byte for byte, with its kind; notices and prose without a break go together."""
    made = Written().start().notice("Aider").input("q")
    expected: list[tuple[str, str]] = [("notice", "Aider"), ("input", "q")]
    for kind, text in events:
        kept = re.sub(r"\n+", "\n", text) if kind != "prose" else text
        getattr(made, kind)(kept)
        glued = "\n\n\n" if kind == "prose" else "\n"
        if expected and expected[-1][0] == kind and kind != "input":
            expected[-1] = (kind, expected[-1][1] + glued + kept)
        else:
            expected.append((kind, kept))
    (found,) = made.read()
    marks = {"input": "", "prose": "", "notice": "injected: "}
    assert [(s[0], s[1]) for s in shapes(found)] == [
        ("assistant" if kind == "prose" else "user", marks[kind] + text) for kind, text in expected
    ]


@pytest.mark.parametrize("text", ["# aider chat started at 2026-01-01 10:00:00\n", Written().start().notice("x").text])
def test_nothing_is_never_a_success(text: str) -> None:
    """IM-09."""
    assert READER.sniff(opened(text))
    with pytest.raises(EmptySessionError, match="no entry could be read"):
        READER.read(opened(text))


@pytest.mark.parametrize("text", ["", "# a heading\n#### x  \n", "see `# aider chat started at`"])
def test_what_is_not_recognised(text: str) -> None:
    assert not READER.sniff(opened(text))


# ---------------------------------------------------------------- the real history


def real() -> list[Transcript]:
    source = Input.open(shared(FILE))
    assert READER.sniff(source)
    return READER.read(source)


def test_the_real_history_by_numbers() -> None:
    """The sessions' README counts 1,133 chats, 1,559 user texts, 1,214 assistant texts and 2,816 notices, by the marks alone.

    Here: 452 of 1,134 chats (one stands before the first heading) hold notices only and are left out, 22 of them because what looked
    like prose was the rest of a notice. Inputs are counted one by one (1,768; those in a row together, 1,551, and 8 that were headings or
    quotations in prose, 1,559); 621 of them are echoes. 16,083 lines in notices of several lines are no prose, so 880 texts of the model
    remain, and 2,234 notices in the chats that were kept.
    """
    found = real()
    assert found[0].warnings == ("452 chat(s) hold notices only and were left out",)
    assert len(found) == len({t.id for t in found}) == 682
    kinds = Counter((e.role, b.origin) for t in found for e in t.entries for b in e.blocks if isinstance(b, Text))
    assert kinds == {("user", "typed"): 1_147, ("assistant", "typed"): 880, ("user", "injected"): 2_234 + 621}
    lines = raw(shared(FILE)).split("\n")
    inputs = rows = 0
    for transcript in found:
        check(transcript)
        entered = [
            e.source is not None and lines[(e.source.line or 0) - 1].startswith("####") for e in transcript.entries
        ]
        inputs += sum(entered)
        rows += sum(now and not before for before, now in pairwise([False, *entered]))
    assert (inputs, rows) == (1_768, 1_551)


def test_every_line_of_the_real_history_is_there_byte_for_byte() -> None:
    """A line is in an entry as it is, or without Aider's mark and its two spaces; headings and blank lines aside."""
    found = real()
    lines = raw(shared(FILE)).split("\n")
    starts = [0, *(n for n, line in enumerate(lines) if line.startswith("# aider chat started at ")), len(lines)]
    chats = dict(zip(starts, [lines[a:b] for a, b in pairwise(starts)], strict=False))
    for transcript in found:
        at = transcript.entries[0].source
        assert at is not None
        assert at.line is not None
        chat = chats[starts[bisect_right(starts, at.line - 1) - 1]]
        given = [line for line in chat if line.strip() and not line.startswith("# aider chat started at ")]
        kept = [line for b in blocks([transcript], Text) for line in b.text.split("\n")]
        possible = Counter(kept)
        for line in given:
            bare = re.sub(r"^(####|>) ?", "", line)
            variants = {line, line.removesuffix("  "), bare, bare.removesuffix("  ")}
            assert any(possible[v] for v in variants), line
        # Nothing is there twice, and nothing was lost: as many lines with anything but spaces and marks in them.
        said = re.compile(r"^(?:####|>)?\s*$")
        assert len([line for line in kept if line.strip()]) == len([line for line in given if not said.match(line)])
