"""The random entries hold what they promise; a property test that never saw a broken pair proves little."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from hypothesis import find, given, settings

from firsthand.errors import MissingExtraError
from firsthand.projection.repair import repair
from firsthand.testing.random_entries import entry_lists, paired_paths, texts, trees
from firsthand.transcript import Entry, Media, Reasoning, Text, ToolCall, ToolResult, Unknown, path_to

Entries = tuple[Entry, ...]


def has(kind: type) -> Callable[[Entries], bool]:
    return lambda entries: any(isinstance(block, kind) for entry in entries for block in entry.blocks)


def repaired(kind: str) -> Callable[[Entries], bool]:
    return lambda entries: any(done.kind == kind for done in repair(entries).repairs)


@pytest.mark.parametrize("kind", [Text, Reasoning, ToolCall, ToolResult, Media, Unknown])
def test_all_kinds_of_blocks_occur(kind: type) -> None:
    assert find(entry_lists(), has(kind))
    assert find(paired_paths(), has(kind))


@pytest.mark.parametrize(
    "kind",
    ["entry-dropped", "call-answered", "call-renamed", "result-moved", "result-orphaned", "result-repeated"],
)
def test_all_faults_occur(kind: str) -> None:
    assert find(entry_lists(), repaired(kind), settings=settings(max_examples=5_000))


@pytest.mark.parametrize("sign", ["", "\ud83d", "\x00", "\n"])
def test_all_sorts_of_texts_occur(sign: str) -> None:
    assert find(texts(), lambda text: sign in text if sign else not text) is not None


@settings(max_examples=100, deadline=None)
@given(trees())
def test_trees_have_parents_before_children(entries: Entries) -> None:
    for entry in entries:
        assert path_to(entries, entry.id)[-1] is entry
    seen: set[str | None] = {None}
    for entry in entries:
        assert entry.parent in seen
        seen.add(entry.id)


def test_trees_branch() -> None:
    def forks(entries: Entries) -> bool:
        parents = [entry.parent for entry in entries if entry.parent]
        return len(set(parents)) < len(parents)

    assert find(trees(), forks)


def test_without_hypothesis_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(MissingExtraError, match=r"firsthand\[testing\]"):
        entry_lists()
