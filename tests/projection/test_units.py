"""Units: what each kind of text is cut into, exactly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand.projection.features.units import Source, cuts, readable, source_of
from firsthand.testing.builders import call, image, injected, result, said, summary, system, thought, user
from firsthand.testing.random_entries import texts
from firsthand.transcript import Text, ToolCall, Unknown


def units(text: str, *, prose: bool = False) -> list[str]:
    return [text[start:end] for start, end in cuts(text, prose=prose)]


LINES = {
    "code": ("def f(x):\n    return x  \n\n  # end\r\n", ["def f(x):", "return x", "# end"]),
    "every line end": ("a\rb\x0bc\u2028d\x85e\x1cf", ["a", "b", "c", "d", "e", "f"]),
    "log": (
        "2026-01-02 10:00:00 INFO start\n2026-01-02 10:00:01 ERROR E42 at x.py:7\n",
        ["2026-01-02 10:00:00 INFO start", "2026-01-02 10:00:01 ERROR E42 at x.py:7"],
    ),
    "table": ("| a | b |\n|---|---|\n| 1 | 2 |", ["| a | b |", "|---|---|", "| 1 | 2 |"]),
    "diff": (
        "@@ -1,2 +1,2 @@\n-old = 1\n+new = 2\n context",
        ["@@ -1,2 +1,2 @@", "-old = 1", "+new = 2", "context"],
    ),
    "emoji": ("🙂🎉 done 👩\u200d👩\u200d👧\n✅", ["🙂🎉 done 👩\u200d👩\u200d👧", "✅"]),
    "lone surrogate": ("bad \ud83d surrogate\nok", ["bad \ud83d surrogate", "ok"]),
    "blank": (" \n\t\n\u3000\n", []),
    "empty": ("", []),
}


@pytest.mark.parametrize("name", LINES)
def test_lines(name: str) -> None:
    text, expected = LINES[name]
    assert units(text) == expected


SENTENCES = {
    "short lines stay whole": ("Short. Very short.", ["Short. Very short."]),
    "English": (
        "First sentence is here and it is long enough to count. Second one! Third one follows after that; a fourth part of it ends the line here.",
        [
            "First sentence is here and it is long enough to count.",
            "Second one! Third one follows after that;",
            "a fourth part of it ends the line here.",
        ],
    ),
    "no cut inside a version or a path": (
        "Use version 1.2.3 of the package from ./vendor/lib.tar.gz and nothing else than that, please. Then run the whole suite once.",
        [
            "Use version 1.2.3 of the package from ./vendor/lib.tar.gz and nothing else than that, please.",
            "Then run the whole suite once.",
        ],
    ),
    "Japanese": (
        "重要なのは、この関数の名前と引数を絶対に変更しないことです。" * 4
        + "次に、テストを実行してください。結果を教えて。",
        ["重要なのは、この関数の名前と引数を絶対に変更しないことです。"] * 4
        + ["次に、テストを実行してください。結果を教えて。"],
    ),
    "Korean": (
        "이 설정 파일의 이름은 어떤 경우에도 절대 수정하지 마세요. " * 4,
        ["이 설정 파일의 이름은 어떤 경우에도 절대 수정하지 마세요."] * 4,
    ),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_prose(name: str) -> None:
    text, expected = SENTENCES[name]
    assert units(text, prose=True) == expected


def test_a_long_line_is_cut_at_blanks_and_commas_and_never_inside_a_word() -> None:
    assert [len(unit) for unit in units("word " * 200)] == [164, 164, 164, 164, 164, 174]
    assert {unit[-1] for unit in units("a,b;" * 200)} <= {",", ";"}
    assert units("x" * 1_000) == ["x" * 1_000]


def test_whose_words_a_block_holds() -> None:
    def sources(entry):  # type: ignore[no-untyped-def]
        return [source_of(entry, block) for block in entry.blocks]

    assert sources(user("a", image(), Unknown({"type": "odd"}))) == [Source.USER, None, None]
    assert sources(said(thought("hm"), "a", ToolCall("c", "read", "{}"))) == [None, Source.ASSISTANT, Source.CALL]
    assert sources(result("c", "x")) == [Source.RESULT]
    assert sources(result("c", "x", error=True)) == [Source.ERROR]
    assert sources(injected("rules")) == [Source.INJECTED]
    assert sources(summary("earlier")) == [None]
    assert sources(system("be brief")) == [None]


ARGUMENTS = {
    '{"path":"a.py","content":"x = 1\\ny = 2"}': "path: a.py\ncontent: x = 1\ny = 2",
    '{"n":3,"deep":{"a":[1,2]},"none":null}': 'n: 3\ndeep: {"a":[1,2]}\nnone: null',
    '{"edits":[{"old":"a","new":"b\\nc"},{"old":"d"}]}': "edits: old: a\nnew: b\nc\nold: d",
    "{}": "",
    '{"path": "a': '{"path": "a',
    "[1]": "[1]",
    "*** Begin Patch\n*** End Patch": "*** Begin Patch\n*** End Patch",
}


@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_the_readable_text_of_arguments(arguments: str) -> None:
    assert readable(call("edit", arguments).blocks[0]) == ARGUMENTS[arguments]


def test_the_readable_text_of_a_result_is_that_of_its_texts() -> None:
    assert readable(result("c", "one", image(), "two").blocks[0]) == result("c", "one", image(), "two").blocks[0].text  # type: ignore[union-attr]
    assert readable(Text("as it is ")) == "as it is "
    assert readable(image()) == readable(Unknown({"type": "odd"})) == ""


@given(st.one_of(texts(), st.text(max_size=800), st.text("ab. \n,;。", min_size=300, max_size=1_500)), st.booleans())
def test_units_are_in_order_apart_from_each_other_and_leave_out_blanks_only(text: str, prose: bool) -> None:
    at = 0
    for start, end in cuts(text, prose=prose):
        assert at <= start < end <= len(text)
        assert not text[at:start].strip()
        assert text[start:end] == text[start:end].strip()
        assert len(text[start:end].splitlines()) == 1
        at = end
    assert not text[at:].strip()
