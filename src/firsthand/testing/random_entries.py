"""Hypothesis strategies for entries of all kinds, right and broken; for tests of strategies, wires and journals.

Needs the extra `testing`. What is drawn is small in number and wild in content: lone surrogates, blank texts, broken arguments, repeated ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ..codec import compact_json
from ..errors import MissingExtraError
from ..transcript import (
    Block,
    Entry,
    Media,
    Reasoning,
    Role,
    Status,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    Usage,
    chained,
)

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["blocks", "entry_lists", "json_objects", "paired_paths", "texts", "trees"]

_WIRES = (None, "openai-chat", "openai-responses", "anthropic", "elsewhere")


def _hypothesis() -> Any:
    try:
        from hypothesis import strategies
    except ImportError:
        raise MissingExtraError("drawing random entries", "testing") from None
    return strategies


@cache
def texts() -> SearchStrategy[str]:
    """Any text: empty, blank, several lines, all planes of Unicode, lone surrogates, NUL."""
    st = _hypothesis()
    words = (
        "",
        " ",
        "\n",
        "plain",
        "two\nlines",
        "\x00",
        "\ud83d",
        "a\udc00b",
        "日本語",
        "🙂",
        "<|endoftext|>",
        "\u202e",
        "[User]: x",
    )
    text: SearchStrategy[str] = st.one_of(
        st.sampled_from(words), st.text(max_size=12), st.text(st.characters(categories=["Cs", "L"]), max_size=4)
    )
    return text


@cache
def json_objects() -> SearchStrategy[dict[str, Any]]:
    """JSON objects, at most two levels deep."""
    st = _hypothesis()
    values = st.one_of(
        st.sampled_from((None, True, 0, -1, 2**60, 0.5, 1e-7, "", "é", [], [1, "a"], {}, {"deep": {"er": None}})),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=6),
    )
    keys = st.one_of(st.sampled_from(("path", "command", "z", "a", "")), st.text(max_size=4))
    objects: SearchStrategy[dict[str, Any]] = st.dictionaries(keys, values, max_size=3)
    return objects


@cache
def _arguments() -> SearchStrategy[str]:
    st = _hypothesis()
    broken = ("", " ", '{"path": "a', "[1]", "null", "free text", '{"a":"\\ud83d"}', '{"a":1e999}', '{"a":1} ')
    arguments: SearchStrategy[str] = st.one_of(json_objects().map(compact_json), st.sampled_from(broken), texts())
    return arguments


@cache
def _media() -> SearchStrategy[Media]:
    st = _hypothesis()
    fixed = (
        Media("image", "image/png", "aGk="),
        Media("image", "image/svg+xml", "aGk="),
        Media("image", None, None, "https://example.org/a.png"),
        Media("image", None, None, "file:///tmp/a.png"),
        Media("document", "application/pdf", "aGk="),
        Media("document", None, None, "https://example.org/a.pdf"),
        Media("audio", "audio/wav", "aGk="),
        Media("video", "video/mp4", "aGk="),
        Media("image"),
    )
    media: SearchStrategy[Media] = st.sampled_from(fixed)
    return media


@cache
def _unknown() -> SearchStrategy[Unknown]:
    return json_objects().map(lambda raw: Unknown({"type": "novelty", **raw}))


@cache
def _texts() -> SearchStrategy[Text]:
    st = _hypothesis()
    blocks: SearchStrategy[Text] = st.builds(Text, texts(), st.sampled_from(("typed", "injected", "summary")))
    return blocks


@cache
def _reasoning() -> SearchStrategy[Reasoning]:
    st = _hypothesis()
    opaque = st.sampled_from(
        (
            None,
            {"signature": "c2ln"},
            {"data": "cmVkYWN0ZWQ="},
            {"encrypted_content": "gAAA", "id": "rs_1"},
            {"id": "rs_2"},
        )
    )
    blocks: SearchStrategy[Reasoning] = st.builds(Reasoning, texts(), opaque)
    return blocks


def _calls(ids: SearchStrategy[str]) -> SearchStrategy[ToolCall]:
    st = _hypothesis()
    names = st.sampled_from(("read", "apply_patch", "mcp.server/tool", "", "über", "x" * 90))
    kinds = st.sampled_from(("function", "function", "function", "custom", "server", "shell_call"))
    blocks: SearchStrategy[ToolCall] = st.builds(ToolCall, ids, names, _arguments(), kinds)
    return blocks


def _results(ids: SearchStrategy[str]) -> SearchStrategy[ToolResult]:
    st = _hypothesis()
    content = st.lists(st.one_of(_texts(), _texts(), _media(), _unknown()), max_size=3).map(tuple)
    blocks: SearchStrategy[ToolResult] = st.builds(ToolResult, ids, content, st.booleans())
    return blocks


@cache
def _ids() -> SearchStrategy[str]:
    st = _hypothesis()
    ids: SearchStrategy[str] = st.sampled_from(("c1", "c1", "c1", "c2", "c2", "c1_2", "call|with bars", "x" * 70))
    return ids


@cache
def blocks(role: Role) -> SearchStrategy[Block]:
    """One block of any kind that an entry of the role can have; ids from a small set, so that they repeat."""
    st = _hypothesis()
    kinds: list[SearchStrategy[Any]] = [_texts(), _texts(), _unknown()]
    if role == "assistant":
        kinds += [_reasoning(), _calls(_ids()), _calls(_ids()), _media(), _results(_ids())]
    elif role == "user":
        kinds += [_media(), _results(_ids())]
    elif role == "tool":
        kinds = [_results(_ids()), _results(_ids()), _results(_ids()), _texts()]
    drawn: SearchStrategy[Block] = st.one_of(*kinds)
    return drawn


def entry_lists(max_size: int = 12) -> SearchStrategy[tuple[Entry, ...]]:
    """Any entries in any order: calls without results, results without calls, repeated ids, failed and empty responses, all wires."""
    st = _hypothesis()
    lists: SearchStrategy[tuple[Entry, ...]] = st.lists(_entry(), max_size=max_size).map(_numbered)
    return lists


@cache
def _entry() -> SearchStrategy[Entry]:
    st = _hypothesis()
    statuses: dict[Role, SearchStrategy[Status]] = {
        "assistant": st.sampled_from(("complete", "complete", "aborted", "error", "incomplete"))
    }

    def of(role: Role) -> SearchStrategy[Entry]:
        drawn: SearchStrategy[Entry] = st.builds(
            Entry,
            id=st.just(""),
            role=st.just(role),
            blocks=st.lists(blocks(role), max_size=3).map(tuple),
            status=statuses.get(role, st.just("complete")),
            wire=st.sampled_from(_WIRES),
        )
        return drawn

    roles: tuple[Role, ...] = ("user", "user", "assistant", "assistant", "tool", "tool", "system", "developer")
    entries: SearchStrategy[Entry] = st.one_of(*map(of, roles))
    return entries


def _numbered(drawn: Sequence[Entry]) -> tuple[Entry, ...]:
    return chained(msgspec.structs.replace(entry, id=f"e{number}") for number, entry in enumerate(drawn, start=1))


class _Step(NamedTuple):
    """One response with calls, and the results."""

    before: list[Text | Reasoning]
    pairs: list[tuple[ToolCall, ToolResult]]
    one_entry: bool
    one_result_entry: bool
    reverse: bool

    def entries(self, start: int) -> Iterator[Entry]:
        """The step with its calls numbered from `start`."""
        calls = [
            msgspec.structs.replace(call, id=f"c{number}", kind="function" if call.kind == "server" else call.kind)
            for number, (call, _) in enumerate(self.pairs, start)
        ]
        results = [
            msgspec.structs.replace(result, call_id=f"c{number}")
            for number, (_, result) in enumerate(self.pairs, start)
        ]
        if self.reverse:
            results.reverse()
        made: list[Block] = [*self.before, *calls]
        yield from _entries_of("assistant", made, self.one_entry)
        yield from _entries_of("tool", results, self.one_result_entry)


class _Turn(NamedTuple):
    """What a person says, what the agent does, and what it says in the end."""

    rule: list[Text]
    typed: Text
    attached: list[Media | Unknown]
    steps: list[_Step]
    said: Text
    usage: Usage | None


def _entries_of(role: Role, made: Sequence[Block], together: bool) -> Iterator[Entry]:
    if together:
        yield Entry(id="", role=role, blocks=tuple(made))
    else:
        for block in made:
            yield Entry(id="", role=role, blocks=(block,))


def paired_paths(max_turns: int = 3) -> SearchStrategy[tuple[Entry, ...]]:
    """A session as it should be: turns that begin with a user entry, each call answered once, ids unique, all kinds of blocks, some usage."""
    st = _hypothesis()
    paths: SearchStrategy[tuple[Entry, ...]] = st.builds(
        _path, st.lists(_texts(), max_size=1), st.lists(_turn(), min_size=1, max_size=max_turns)
    )
    return paths


@cache
def _turn() -> SearchStrategy[_Turn]:
    st = _hypothesis()
    ids = st.just("")
    typed = st.builds(Text, texts().map(lambda text: text or "go"))
    step = st.builds(
        _Step,
        st.lists(st.one_of(_texts(), _reasoning()), max_size=2),
        st.lists(st.tuples(_calls(ids), _results(ids)), min_size=1, max_size=3),
        st.booleans(),
        st.booleans(),
        st.booleans(),
    )
    usage = st.one_of(st.none(), st.builds(Usage, input_tokens=st.integers(0, 9_999), output_tokens=st.just(7)))
    turns: SearchStrategy[_Turn] = st.builds(
        _Turn,
        st.one_of(st.just([]), st.just([]), st.lists(typed, max_size=1)),
        typed,
        st.one_of(st.just([]), st.lists(st.one_of(_media(), _media(), _unknown()), max_size=1)),
        st.lists(step, max_size=2),
        typed,
        usage,
    )
    return turns


def _path(system: Sequence[Text], turns: Sequence[_Turn]) -> tuple[Entry, ...]:
    path = [Entry(id="", role="system", blocks=(block,)) for block in system]
    calls = 1
    for turn in turns:
        path += [Entry(id="", role="developer", blocks=(block,)) for block in turn.rule]
        path.append(Entry(id="", role="user", blocks=(turn.typed, *turn.attached)))
        for step in turn.steps:
            path += step.entries(calls)
            calls += len(step.pairs)
        path.append(Entry(id="", role="assistant", blocks=(turn.said,), usage=turn.usage))
    return _numbered(path)


def trees(max_entries: int = 16) -> SearchStrategy[tuple[Entry, ...]]:
    """Entries of a session with branches, in order of arrival, a parent before its children; several roots are possible."""
    st = _hypothesis()

    def branch(entries: tuple[Entry, ...], parents: Sequence[int]) -> tuple[Entry, ...]:
        out: list[Entry] = []
        for position, entry in enumerate(entries):
            back = parents[position]
            parent = out[position - back].id if 0 < back <= position else None
            out.append(msgspec.structs.replace(entry, parent=parent))
        return tuple(out)

    parents = st.lists(st.sampled_from((1, 1, 1, 1, 2, 3, 0)), min_size=max_entries, max_size=max_entries)
    drawn: SearchStrategy[tuple[Entry, ...]] = st.builds(branch, entry_lists(max_entries), parents)
    return drawn
