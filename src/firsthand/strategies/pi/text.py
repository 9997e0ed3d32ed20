"""What Pi writes: the serialised conversation, the summary requests, the joined summary and the message that shows it (pi.md 3.1 and 7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...transcript import Entry, Reasoning, Text, ToolCall, ToolResult
from ..contract import SummaryRequest
from ..javascript import arguments_of, head, js_json, length
from . import prompts as pi_prompts
from .cut import Preparation
from .files import without_listing
from .path import Kind, Piece, bash_run, from_pi
from .rules import Rules

__all__ = ["HISTORY", "PREFIX", "Wording", "is_hidden", "joined", "requests", "serialised", "shown_summary", "tagged"]

HISTORY = "history"
PREFIX = "prefix"
"""Ids of the two summary requests."""

_RESULT_CHARS = 2_000
_BROKEN_END = "<\\/"
_NO_HISTORY = "(Nothing came before this turn.)"
_CAME_BACK = "I went another way first and came back from there. A summary of that branch:"
_SHOWN = "Earlier messages of this conversation are not shown any more. A model summarised them:"


@dataclass(frozen=True)
class Wording:
    """Texts of a user's own in place of ours."""

    history: str | None = None
    """Replaces the instructions of the history request, whether or not a previous summary goes with it."""
    prefix: str | None = None
    """Replaces the instructions of the turn-prefix request."""


def serialised(pieces: Iterable[Piece], rules: Rules) -> str:
    """The conversation as one text, so that no model takes it for its own and goes on with it (pi.md 7.2).

    Tool results are cut to 2,000 characters, and the cut says how many were left out. Nothing else is cut; images leave no trace.
    """
    return "\n\n".join(part for piece in pieces for part in _parts(piece, rules))


def _parts(piece: Piece, rules: Rules) -> Iterator[str]:
    if piece.checkpoint is not None:
        yield f"[User]: {shown_summary(piece.checkpoint.summary)}"
    elif piece.entry is None or is_hidden(piece.entry):
        return
    elif piece.kind == "assistant":
        yield from _assistant(piece.entry, rules)
    else:
        for block in piece.entry.blocks:
            if isinstance(block, ToolResult) and (
                text := "".join(p.text for p in block.content if isinstance(p, Text))
            ):
                yield f"[Tool result]: {_cut(text)}"
        if text := _said_by_user(piece.entry, piece.kind):
            yield f"[User]: {text}"


def is_hidden(entry: Entry) -> bool:
    """Whether the person ran this command with the wish that the model does not see it."""
    run = bash_run(entry)
    return run is not None and bool(run.get("excludeFromContext"))


def _said_by_user(entry: Entry, kind: Kind) -> str:
    run = bash_run(entry)
    if run is not None:
        return _ran(run)
    text = "".join(block.text for block in entry.blocks if isinstance(block, Text))
    return f"{_CAME_BACK}\n\n{tagged('summary', text)}" if kind == "branch" and from_pi(entry) else text


def _ran(run: Mapping[str, Any]) -> str:
    """A shell command that the person ran, as text (pi.md 3.1)."""
    output = str(run.get("output") or "")
    lines = [f"I ran `{run['command']}`", f"```\n{output}\n```" if output else "It printed nothing."]
    if run.get("cancelled"):
        lines.append("I stopped it before it ended.")
    elif run.get("exitCode"):
        lines.append(f"Its exit code was {run['exitCode']}.")
    if run.get("truncated") and run.get("fullOutputPath"):
        lines.append(f"Only a part is shown; the whole output is in {run['fullOutputPath']}")
    return "\n".join(lines)


def _assistant(entry: Entry, rules: Rules) -> Iterator[str]:
    # Other clients than Pi keep reasoning that has no readable part.
    thoughts = [block.text for block in entry.blocks if isinstance(block, Reasoning) and (block.text or from_pi(entry))]
    texts = [block.text for block in entry.blocks if isinstance(block, Text)]
    calls = [block for block in entry.blocks if isinstance(block, ToolCall)]
    if thoughts and rules.shows_thinking:
        yield "[Assistant thinking]: " + "\n".join(thoughts)
    if texts:
        yield "[Assistant]: " + "\n".join(texts)
    if calls:
        yield "[Assistant tool calls]: " + "; ".join(map(_call, calls))


def _call(call: ToolCall) -> str:
    arguments = arguments_of(call.arguments)
    try:
        if not isinstance(arguments, Mapping):
            return f"{call.name}({js_json(arguments)})"
        return f"{call.name}({', '.join(f'{name}={js_json(value)}' for name, value in arguments.items())})"
    except RecursionError:
        return f"{call.name}({call.arguments})"


def _cut(text: str) -> str:
    size = length(text)
    if size <= _RESULT_CHARS:
        return text
    start = head(text, _RESULT_CHARS)
    return f"{start}\n\n[{size - length(start):,} more characters are left out here]"


def requests(
    prepared: Preparation, rules: Rules, wording: Wording, focus: str | None, limits: tuple[int, int]
) -> tuple[SummaryRequest, ...]:
    """The calls that Pi makes for this cut, one or two, in its order.

    Args:
        prepared: the cut.
        rules: the release's rules.
        wording: texts of a user's own in place of ours.
        focus: the user's note on what matters.
        limits: output caps of the history and of the turn-prefix request, in tokens.
    """
    wanted: list[SummaryRequest] = []
    if prepared.history or not prepared.prefix:
        wanted.append(_request(HISTORY, _history_text(prepared, rules, wording, focus), limits[0]))
    if prepared.prefix:
        wanted.append(_request(PREFIX, _prefix_text(prepared, rules, wording, focus), limits[1]))
    return tuple(wanted)


def _request(name: str, text: str, max_output: int) -> SummaryRequest:
    return SummaryRequest(id=name, instruction=text, system=pi_prompts.SYSTEM, tools="none", max_output=max_output)


def _history_text(prepared: Preparation, rules: Rules, wording: Wording, focus: str | None) -> str:
    parts = [tagged("conversation", serialised(prepared.history, rules))]
    previous = prepared.previous.summary if prepared.previous else ""
    if previous:
        parts.append(tagged("previous-summary", previous))
    prompt = wording.history or (pi_prompts.UPDATE if previous else pi_prompts.FIRST)
    return "\n\n".join((*parts, pi_prompts.with_focus(prompt, focus)))


def _prefix_text(prepared: Preparation, rules: Rules, wording: Wording, focus: str | None) -> str:
    conversation = serialised(prepared.prefix, rules)
    prompt = wording.prefix or (pi_prompts.PREFIX_STANDALONE if rules.projects_first else pi_prompts.PREFIX)
    prompt = pi_prompts.with_focus(prompt, focus if rules.focuses_prefix else None)
    if rules.projects_first:
        return f"# Conversation\n{conversation}\n\n# Instructions\n{prompt}"
    return f"{tagged('conversation', conversation)}\n\n{prompt}"


def tagged(name: str, text: str) -> str:
    """`text` inside a tag. An end of that tag within the text is broken, so that nothing in it can step outside (SU-13)."""
    end = f"</{name}>"
    return f"<{name}>\n{text.replace(end, _BROKEN_END + name + '>')}\n{end}"


def joined(prepared: Preparation, rules: Rules, history: str | None, prefix: str | None) -> str:
    """The summary as it is stored, without the file lists (pi.md 7.4 and 7.6).

    Args:
        prepared: the cut.
        rules: the release's rules.
        history: the answer to the history request; None when there was none.
        prefix: the answer to the turn-prefix request; None when there was none.
    """
    if prefix is None:
        return history or ""
    if history is None:
        kept = prepared.previous.summary if prepared.previous and rules.keep_previous_summary else ""
        history = without_listing(kept) or _NO_HISTORY
    return f"{history}\n\n---\n\n**Turn Context (split turn):**\n\n{prefix}"


def shown_summary(summary: str) -> str:
    """The user message that shows a stored summary to the model (pi.md 3.1)."""
    return f"{_SHOWN}\n\n{tagged('summary', summary)}"
