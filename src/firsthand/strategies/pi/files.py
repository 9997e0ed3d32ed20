"""The lists of files that Pi appends to a summary (pi.md 8)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...transcript import ToolCall, ToolResult
from ..javascript import arguments_of, js_order
from .path import Piece
from .rules import Rules

__all__ = ["file_lists", "listing", "without_listing"]

_LISTING = re.compile(
    r"(?:\n\n<read-files>\n(?:(?!</read-files>).)*\n</read-files>)?(?:\n\n<modified-files>\n(?:(?!</modified-files>).)*\n</modified-files>)?\Z",
    re.DOTALL,
)


def file_lists(
    pieces: Iterable[Piece], rules: Rules, read: Iterable[str] = (), modified: Iterable[str] = ()
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The files that were only read, and the files that were written or edited, each sorted.

    Args:
        pieces: the messages whose calls count; failed calls count as well. Only calls named exactly read, write or edit with a `path` do.
        rules: the release's rules: Nov also sees the calls recorded inside a tool result.
        read: the list of the previous checkpoint.
        modified: the list of the previous checkpoint.
    """
    seen, changed = set(read), set(modified)
    for piece in pieces:
        for name, arguments in _calls(piece, rules):
            where = arguments.get("path") if isinstance(arguments, Mapping) else None
            if isinstance(where, str) and where:
                if name == "read":
                    seen.add(where)
                elif name in ("write", "edit"):
                    changed.add(where)
    return tuple(sorted(seen - changed, key=js_order)), tuple(sorted(changed, key=js_order))


def _calls(piece: Piece, rules: Rules) -> Iterator[tuple[str, Any]]:
    if piece.entry is None:
        return
    for block in piece.entry.blocks:
        if isinstance(block, ToolCall) and piece.kind == "assistant":
            if block.name in ("read", "write", "edit"):
                yield block.name, arguments_of(block.arguments)
        elif isinstance(block, ToolResult) and rules.follows == "Nov":
            yield from _nested(block.extra or piece.entry.extra or {})


def _nested(extra: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    nested = extra.get("nestedCalls")
    calls = nested.get("calls") if isinstance(nested, Mapping) else None
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, Mapping):
            yield str(call.get("name")), call.get("arguments")


def listing(read: Iterable[str], modified: Iterable[str]) -> str:
    """What is appended to a summary: a block for each list that holds something."""
    blocks = [
        f"\n\n<{name}>\n" + "\n".join(files) + f"\n</{name}>"
        for name, files in (("read-files", tuple(read)), ("modified-files", tuple(modified)))
        if files
    ]
    return "".join(blocks)


def without_listing(summary: str) -> str:
    """`summary` without the blocks at its end, which the next ones repeat (issue 9945)."""
    return _LISTING.sub("", summary, count=1)
