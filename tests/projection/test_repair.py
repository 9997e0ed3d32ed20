"""Every list of entries comes out with its pairs and order right; what was right comes out untouched."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings

from firsthand.projection.repair import NOT_EXECUTED, UNKNOWN_OUTCOME, Repair, repair
from firsthand.testing.builders import call, developer, result, said, session, user
from firsthand.testing.random_entries import entry_lists, paired_paths
from firsthand.transcript import Entry, Text, ToolCall, ToolResult


def told(entries: Sequence[Entry]) -> list[str]:
    """Entries as short words: `U:text`, `A:text`, `call c1`, `c1=text`, `c1!text` for an error."""
    out = []
    for entry in entries:
        words = []
        for block in entry.blocks:
            if isinstance(block, Text):
                words.append(f"{entry.role[0].upper()}:{block.text}")
            elif isinstance(block, ToolCall):
                words.append(f"call {block.id}")
            elif isinstance(block, ToolResult):
                words.append(f"{block.call_id}{'!' if block.is_error else '='}{block.text}")
        out.append(" + ".join(words))
    return out


U, A, ONE, TWO = user("hi"), said("ok"), call("read", id="c1"), call("read", id="c2")
LOST = f"!{UNKNOWN_OUTCOME}"

UNTOUCHED = {
    "nothing": [],
    "plain talk": [U, A, U, U, A],
    "a pair": [U, ONE, result("c1", "x"), A],
    "parallel calls in one entry, results reversed": [U, said(ONE, TWO), result("c2", "y"), result("c1", "x")],
    "parallel calls over two entries": [U, ONE, TWO, result("c1", "x"), result("c2", "y")],
    "both results in one entry": [U, said(ONE, TWO), user(result("c1", "x"), result("c2", "y"))],
    "a result with text behind it": [U, ONE, user(result("c1", "x"), "and now this")],
    "a provider's own call": [U, said(call("search", id="s1", kind="server"), "found")],
    "a provider's own pair": [U, said(call("search", id="s1", kind="server"), result("s1", "hits"), "found")],
    "a stopped response that said something": [U, said("half", status="aborted"), user("go on")],
    "an errored response that the user answered": [U, said("half", status="error"), user("go on")],
    "an empty complete response": [U, said(), U],
}


@pytest.mark.parametrize("entries", UNTOUCHED.values(), ids=UNTOUCHED)
def test_what_is_right_stays_the_same_object(entries: list[Entry]) -> None:
    path = session(entries)
    out, repairs = repair(path)
    assert repairs == ()
    assert len(out) == len(path)
    assert all(a is b for a, b in zip(out, path, strict=True))


REPAIRED: dict[str, tuple[list[Entry], list[str], list[Repair]]] = {
    "call without a result": (
        [U, ONE, U],
        ["U:hi", "call c1", "c1" + LOST, "U:hi"],
        [Repair("call-answered", "e2", "c1")],
    ),
    "call whose arguments broke off": (
        [U, call("read", '{"path": "a', id="c1")],
        ["U:hi", "call c1", f"c1!{NOT_EXECUTED}"],
        [Repair("call-answered", "e2", "c1")],
    ),
    "result without a call": (
        [U, result("c9", "x"), A],
        ["U:hi", "A:ok"],
        [Repair("result-orphaned", "e2", "c9")],
    ),
    "result before its call": (
        [U, result("c1", "x"), ONE],
        ["U:hi", "call c1", "c1" + LOST],
        [Repair("result-orphaned", "e2", "c1"), Repair("call-answered", "e3", "c1")],
    ),
    "a user message whose result is an orphan keeps its text (SE-08)": (
        [U, user(result("c9", "x"), "do it")],
        ["U:hi", "U:do it"],
        [Repair("result-orphaned", "e2", "c9")],
    ),
    "late result": (
        [U, ONE, user("wait"), A, result("c1", "x")],
        ["U:hi", "call c1", "c1=x", "U:wait", "A:ok"],
        [Repair("result-moved", "e5", "c1")],
    ),
    "developer message between call and result": (
        [U, ONE, developer("rule"), result("c1", "x")],
        ["U:hi", "call c1", "c1=x", "D:rule"],
        [Repair("result-moved", "e4", "c1")],
    ),
    "text in front of the second of two results": (
        [U, said(ONE, TWO), user(result("c1", "x"), "so"), result("c2", "y")],
        ["U:hi", "call c1 + call c2", "c1=x", "c2=y", "U:so"],
        [Repair("result-moved", "e4", "c2")],
    ),
    "one of two parallel results missing": (
        [U, said(ONE, TWO), result("c2", "y")],
        ["U:hi", "call c1 + call c2", "c1" + LOST, "c2=y"],
        [Repair("call-answered", "e2", "c1")],
    ),
    "two results for one call": (
        [U, ONE, result("c1", "x"), result("c1", "again"), A],
        ["U:hi", "call c1", "c1=x", "A:ok"],
        [Repair("result-repeated", "e4", "c1")],
    ),
    "one id in two turns (SE-09)": (
        [U, ONE, result("c1", "x"), U, ONE, result("c1", "y"), ONE, result("c1", "z")],
        ["U:hi", "call c1", "c1=x", "U:hi", "call c1_2", "c1_2=y", "call c1_3", "c1_3=z"],
        [Repair("call-renamed", "e5", "c1"), Repair("call-renamed", "e7", "c1")],
    ),
    "an id that a suffix would make": (
        [U, ONE, result("c1"), call("b", id="c1_2"), result("c1_2"), ONE, result("c1", "z")],
        ["U:hi", "call c1", "c1=", "call c1_2", "c1_2=", "call c1_3", "c1_3=z"],
        [Repair("call-renamed", "e6", "c1")],
    ),
    "parallel calls with one id": (
        [U, said(ONE, ONE), result("c1", "x"), result("c1", "y")],
        ["U:hi", "call c1 + call c1_2", "c1=x", "c1_2=y"],
        [Repair("call-renamed", "e2", "c1")],
    ),
    "the newer of two calls of one id is answered": (
        [U, ONE, U, ONE, result("c1", "y")],
        ["U:hi", "call c1", "c1" + LOST, "U:hi", "call c1_2", "c1_2=y"],
        [Repair("call-renamed", "e4", "c1"), Repair("call-answered", "e2", "c1")],
    ),
    "interleaved runs": (
        [U, said(ONE, TWO), result("c1", "x"), call("c", id="c3"), result("c2", "y"), result("c3", "z")],
        ["U:hi", "call c1 + call c2", "c1=x", "c2=y", "call c3", "c3=z"],
        [Repair("result-moved", "e5", "c2")],
    ),
    "a stopped response that said nothing (OV-03)": (
        [U, said(status="aborted"), user("go on")],
        ["U:hi", "U:go on"],
        [Repair("entry-dropped", "e2")],
    ),
    "failures at the end": (
        [U, said("ha", status="error"), said(status="error"), said("half", status="aborted")],
        ["U:hi"],
        [Repair("entry-dropped", "e2"), Repair("entry-dropped", "e3"), Repair("entry-dropped", "e4")],
    ),
    "a failure that was tried again": (
        [U, said("ha", status="error"), said("hallo")],
        ["U:hi", "A:hallo"],
        [Repair("entry-dropped", "e2")],
    ),
    "a call of a failed response": (
        [U, said("I will", ONE, status="error")],
        ["U:hi", "A:I will + call c1", "c1" + LOST],
        [Repair("call-answered", "e2", "c1")],
    ),
    "a result inside the assistant's entry": (
        [U, said(ONE, result("c1", "x"), "so"), A],
        ["U:hi", "call c1 + A:so", "A:ok", "c1=x"],
        [],
    ),
}


@pytest.mark.parametrize(("entries", "expected", "repairs"), REPAIRED.values(), ids=REPAIRED)
def test_what_is_wrong_is_repaired(entries: list[Entry], expected: list[str], repairs: list[Repair]) -> None:
    out = repair(session(entries))
    assert told(out.entries) == expected
    assert list(out.repairs) == repairs


def test_only_the_entries_in_question_are_new() -> None:
    path = session(U, said(ONE, TWO), user(result("c1", "x"), "so"), result("c2", "y"), A)
    out = repair(path).entries
    assert [e.id for e in out] == ["e1", "e2", "e3#0", "e4", "e3", "e5"]
    assert [e in path for e in out] == [True, True, False, True, False, True]
    assert out[1] is path[1]
    assert out[3] is path[3]


def assert_paired(entries: Sequence[Entry]) -> None:
    """Independent of the repair's own way of counting: walk once and keep the set of open calls."""
    seen: set[str] = set()
    open_calls: set[str] = set()
    answering = False
    for entry in entries:
        calls = [b for b in entry.blocks if isinstance(b, ToolCall) and b.kind != "server"]
        results = [b for b in entry.blocks if isinstance(b, ToolResult)]
        if entry.role == "assistant":
            assert not (answering and open_calls), "an assistant entry between the results of a run"
            answering = False
            results = []
            for block in calls:
                assert block.id not in seen, "a call id twice"
                seen.add(block.id)
                open_calls.add(block.id)
            continue
        if open_calls:
            assert results, "something else between a call and its results"
        for block in results:
            if block.call_id not in open_calls:
                assert block.call_id not in seen, "a result twice"
                assert any(
                    isinstance(b, ToolCall) and b.kind == "server" and b.id == block.call_id
                    for e in entries
                    for b in e.blocks
                ), "a result without its call"
            open_calls.discard(block.call_id)
            answering = True
    assert not open_calls, "a call without its result"


@settings(max_examples=200)
@given(entry_lists())
def test_any_list_comes_out_paired(entries: tuple[Entry, ...]) -> None:
    out = repair(entries)
    assert_paired(out.entries)
    assert repair(out.entries) == (out.entries, ()), "a second repair finds nothing to do"
    ids = [e.id for e in out.entries]
    assert len(set(ids)) == len(ids)


@settings(max_examples=200)
@given(entry_lists())
def test_no_word_is_lost_or_made_up(entries: tuple[Entry, ...]) -> None:
    """All texts of entries that were not dropped come out once and in order; placeholders are the only new texts."""
    out = repair(entries)
    dropped = {r.entry for r in out.repairs if r.kind == "entry-dropped"}
    before = [b.text for e in entries if e.id not in dropped for b in e.blocks if isinstance(b, Text)]
    assert [b.text for e in out.entries for b in e.blocks if isinstance(b, Text)] == before
    before_results = sum(isinstance(b, ToolResult) for e in entries for b in e.blocks)
    after_results = sum(isinstance(b, ToolResult) for e in out.entries for b in e.blocks)
    lost = sum(r.kind in ("result-orphaned", "result-repeated") for r in out.repairs)
    answered = sum(r.kind == "call-answered" for r in out.repairs)
    assert after_results == before_results - lost + answered


@settings(max_examples=60)
@given(paired_paths())
def test_a_right_path_is_left_alone(entries: tuple[Entry, ...]) -> None:
    out = repair(entries)
    assert out.repairs == ()
    assert all(a is b for a, b in zip(out.entries, entries, strict=True))


@settings(max_examples=40)
@given(paired_paths(), paired_paths())
def test_what_was_sent_stays_a_prefix_when_entries_are_added(
    first: tuple[Entry, ...], second: tuple[Entry, ...]
) -> None:
    """Without late results, a request is the previous one plus what was appended (design.md 3)."""
    both = session(
        first, [Entry(id="", role=e.role, blocks=e.blocks, status=e.status) for e in (user("go on"), *second)]
    )
    before, after = repair(both[: len(first)]).entries, repair(both).entries
    assert after[: len(before)] == before
