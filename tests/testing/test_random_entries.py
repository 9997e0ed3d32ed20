"""The random entries hold what they promise; a property test that never saw a broken pair proves little."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, get_args

import pytest
from hypothesis import Phase, given, settings
from hypothesis.strategies import SearchStrategy

from firsthand.errors import MissingExtraError
from firsthand.projection.repair import RepairKind, repair
from firsthand.testing.random_entries import entry_lists, paired_paths, texts, trees
from firsthand.transcript import Entry, Media, Reasoning, Text, ToolCall, ToolResult, Unknown, path_to

Entries = tuple[Entry, ...]


def drawn(strategy: SearchStrategy[Any], number: int = 250) -> list[Any]:
    """What a strategy draws; nothing is shrunk, which would take a minute for each question asked of it."""
    out: list[Any] = []

    @settings(max_examples=number, phases=[Phase.generate], database=None, deadline=None, derandomize=True)
    @given(strategy)
    def draw(value: Any) -> None:
        out.append(value)

    draw()
    return out


@pytest.mark.parametrize("strategy", [entry_lists, paired_paths])
def test_all_kinds_of_blocks_occur(strategy: Callable[[], SearchStrategy[Entries]]) -> None:
    kinds = {type(block) for entries in drawn(strategy()) for entry in entries for block in entry.blocks}
    assert kinds == {Text, Reasoning, ToolCall, ToolResult, Media, Unknown}


def test_all_faults_occur() -> None:
    kinds = {done.kind for entries in drawn(entry_lists(), 400) for done in repair(entries).repairs}
    assert kinds == set(get_args(RepairKind))


def test_all_sorts_of_texts_occur() -> None:
    made = drawn(texts())
    assert "" in made
    for sign in ("\ud83d", "\x00", "\n"):
        assert any(sign in text for text in made)


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

    assert any(map(forks, drawn(trees(), 100)))


def test_without_hypothesis_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(MissingExtraError, match=r"firsthand\[testing\]"):
        entry_lists()
