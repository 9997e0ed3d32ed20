"""The audit as a page that one person shows another: the sentences, and the self-contained HTML around them.

The sentences are shared with the terminal, so both say the same. The page loads nothing: no script, no font, no picture from anywhere.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import MissingExtraError
from .audit_rows import Audit, Used
from .visible import visible

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = [
    "LEAST_ASKED",
    "Bar",
    "Part",
    "bars",
    "by_interest",
    "cautions",
    "headline",
    "html_page",
    "kept_in_words",
    "lesson",
    "rules",
    "used_in_words",
    "wholes_in_words",
]

LEAST_ASKED = 40
"""Questions, pooled over its compactions, under which a session is listed and not judged (measures.md, "Exams")."""


@dataclass(frozen=True)
class Part:
    """A stretch of a bar."""

    kind: str
    tokens: int
    label: str


@dataclass(frozen=True)
class Bar:
    """One line of the comparison of sizes."""

    name: str
    parts: tuple[Part, ...]

    @property
    def tokens(self) -> int:
        """All parts together."""
        return sum(part.tokens for part in self.parts)


def headline(row: Audit) -> str:
    """Which compaction it is, on one line."""
    facts = [f"compaction {row.number} of {row.of}", row.format, row.trigger, row.time]
    return " · ".join(visible(fact, 60) for fact in facts if fact)


def kept_in_words(row: Audit) -> str:
    """What the client kept, as a sentence."""
    if not row.judged:
        return f"Not measured: {row.note}."
    kept = row.kept
    pieces = [
        (kept.summary_tokens, f"a summary of {kept.summary_tokens:,}"),
        (kept.made_tokens, f"{kept.made_tokens:,} that the client put in anew"),
        (kept.original_tokens, f"{kept.original_tokens:,} in {kept.originals:,} {_many('original', kept.originals)}"),
    ]
    listed = ", ".join(words for tokens, words in pieces if tokens) or "nothing that can be read"
    hidden = (
        f" Its summary ({kept.unreadable:,} opaque {_many('item', kept.unreadable)}) can be read by the provider only: "
        "only retained messages are scored."
        if kept.unreadable
        else ""
    )
    share = f" ({_percent(kept.tokens, row.context_tokens)})" if row.context_tokens else ""
    return f"Of {row.context_tokens:,} tokens the client kept {kept.tokens:,}{share}: {listed}.{hidden}"


def used_in_words(row: Audit) -> str:
    """What the agent missed afterwards, as sentences."""
    if not row.judged:
        return ""
    asked, lost, settings = len(row.asked), len(row.lost), len(row.lost) - len(row.missed)
    if not asked:
        said = f"What followed (at most {row.steps} steps) used no older value that nothing had brought back."
    else:
        apart = f" ({settings} of them names or numbers of arguments)" if settings else ""
        where = "not in what can be read of it" if row.kept.unreadable else "gone"
        said = (
            f"The next {row.steps} steps used {asked:,} older {_many('value', asked)}; "
            f"{lost:,} {'was' if lost == 1 else 'were'} {where}{apart}."
        )
    if row.re_reads:
        again = len(row.re_reads)
        said += (
            f" The agent looked again at what it had seen before in {again:,} {_many('call', again)}: {row.re_read_tokens:,} tokens, "
            f"{row.seen_again_tokens:,} of them lines it had seen."
        )
    else:
        said += " The agent read nothing again that it had read before."
    return said


def lesson(row: Audit) -> str:
    """What our strategy would have shown, as a sentence."""
    ours = row.ours
    if not row.judged:
        return ""
    if ours.tokens is None:
        return f"{ours.strategy} would have made no projection: {ours.refused}."
    if ours.refused is not None:
        return f"{ours.strategy} would have left the history as it was ({ours.refused}): {ours.tokens:,} tokens."
    size = (
        f"asked for the same size, {ours.tokens:,} tokens"
        if ours.at_size
        else f"at its natural size of {ours.tokens:,} tokens ({_times(ours.tokens, row.kept.tokens)}; it cannot be set to a size)"
    )
    kept = len(row.asked) - len(row.lost)
    compared = (
        f"{ours.used_kept:,} of the {len(row.asked):,} used values instead of {kept:,}"
        if row.asked
        else "no used value, since there was none"
    )
    return f"{ours.strategy}, {size}, would have shown {compared}, without a model call."


def wholes_in_words(row: Audit) -> str:
    """How many originals of each kind stood whole in what was shown next, by the client and by ours, on one line."""
    ours = {kind: sums.kept_blocks for kind, sums in row.ours.kinds.items()}
    kinds = [
        f"{kind} {sums.kept_blocks:,} of {sums.blocks:,} (ours {ours.get(kind, 0):,})"
        for kind, sums in row.kinds.items()
    ]
    values = f"values that can still be read: {row.values_kept:,} of {row.values:,} (ours {row.ours.values_kept:,})"
    return f"Kept whole: {' · '.join(kinds)}; {values}."


def bars(row: Audit) -> tuple[Bar, ...]:
    """Sizes side by side: the context before, what the client kept, what ours would have shown."""
    kept = row.kept
    made: list[Bar] = [
        Bar("before", (Part("before", row.context_tokens, "context before"),)),
        Bar(
            "client",
            (
                Part("summary", kept.summary_tokens, "summary"),
                Part("made", kept.made_tokens, "put in anew"),
                Part("original", kept.original_tokens, "originals"),
            ),
        ),
    ]
    if row.ours.tokens is not None:
        made.append(Bar("ours", (Part("ours", row.ours.tokens, row.ours.strategy),)))
    return tuple(made)


def by_interest(used: Sequence[Used]) -> list[Used]:
    """Lost values, those first of which nothing is left: names and numbers of arguments last, paths whose last name is shown before them."""
    return sorted(used, key=lambda use: (use.setting, use.part, use.entries_later))


def cautions(rows: Sequence[Audit]) -> list[str]:
    """What keeps these numbers from being more than they are."""
    said: list[str] = []
    asked: Tally[tuple[str, str]] = Tally()
    for row in rows:
        asked[row.source, row.session] += len(row.asked)
    few = [key for key, number in asked.items() if number < LEAST_ASKED]
    if few:
        names = ", ".join(sorted({visible(source or session, 60) for source, session in few})[:6])
        more = f" and {len(few) - 6} more" if len(few) > 6 else ""
        said.append(f"Fewer than {LEAST_ASKED} values asked, so listed and not judged: {names}{more}.")
    if any(row.kept.unreadable for row in rows):
        said.append(
            "Where the summary cannot be read, a value counted as lost may well stand in it; such rows are no measure of that client's summaries."
        )
    if any(row.judged and not row.ours.at_size and row.ours.tokens for row in rows):
        names = ", ".join(sorted({row.ours.strategy for row in rows if row.judged}))
        said.append(
            f"{names} has no size to set and stands at its natural size: compare its values with the size printed beside them, not by themselves."
        )
    return said


def rules(rows: Sequence[Audit]) -> list[str]:
    """How it was counted."""
    row = rows[0]
    windows = sorted({one.ours.window for one in rows if one.ours.window})
    return [
        f"Tokens: {row.counter}, the same counter for the client and for ours; system prompt and tools are left out. "
        "What a client recorded itself is in its provider's tokens, with both.",
        "Used again: values (paths, names, ids, numbers, versions ...) of the history before the compaction, without those of its newest "
        f"{row.exam_tail:,} tokens, that the next {row.steps} model responses use (texts of user and assistant, arguments of calls) before any "
        "tool result showed them again. A value counts as kept when it stands in what was kept, letter by letter, on token boundaries.",
        "Read again: calls up to the next compaction whose file, page or command had been looked at before it, until something was written "
        "to it; not counted when half of the earlier result's lines stand in what was kept.",
        f"Ours: planned on the same originals, in a window of {' or '.join(f'{window:,}' for window in windows) or 'none'}. "
        "All by rules and literal reading; no model was asked.",
    ]


def html_page(rows: Sequence[Audit], *, command: str, version: str, sessions: int) -> str:
    """The whole page.

    Args:
        rows: the audited compactions.
        command: the command line that makes the page again.
        version: of firsthand.
        sessions: how many sessions were looked at.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """
    judged = [row for row in rows if row.judged]
    # What stands in an unreadable summary is unknown, so such rows are not summed up with the others while there are others.
    summed = [row for row in judged if not row.kept.unreadable] or judged
    return (
        _environment()
        .get_template("audit.html.j2")
        .render(
            rows=rows,
            judged=judged,
            summed=summed,
            command=command,
            version=version,
            sessions=sessions,
            compacted=len({(row.source, row.session) for row in rows}),
            asked=sum(len(row.asked) for row in summed),
            lost=sum(len(row.lost) for row in summed),
            missed=sum(len(row.missed) for row in summed),
            ours_lost=sum(len(row.asked) - row.ours.used_kept for row in summed),
            again=sum(len(row.re_reads) for row in judged),
            seen_tokens=sum(row.seen_again_tokens for row in judged),
            cautions=cautions(rows),
            rules=rules(rows) if rows else [],
        )
    )


def _environment() -> Environment:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise MissingExtraError("an HTML page", "lab") from None
    environment = Environment(
        loader=PackageLoader("firsthand.lab"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"visible": visible, "number": lambda number: f"{number:,}", "around": _around}
    environment.globals |= {
        "bars": bars,
        "by_interest": by_interest,
        "headline": headline,
        "kept_in_words": kept_in_words,
        "lesson": lesson,
        "percent": _percent,
        "used_in_words": used_in_words,
    }
    return environment


def _around(line: str, value: str) -> dict[str, str]:
    """A line in three parts, so that the template can mark the value in it."""
    before, found, after = visible(line).partition(visible(value))
    if not found:
        return {"before": visible(line, 160), "value": "", "after": ""}
    return {
        "before": before if len(before) <= 90 else f"…{before[-89:]}",
        "value": visible(value, 120),
        "after": after if len(after) <= 90 else f"{after[:89]}…",
    }


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "none"


def _times(ours: int, theirs: int) -> str:
    return f"{ours / theirs:.1f} times what the client kept" if theirs else "the client kept nothing that can be read"


def _many(word: str, number: int) -> str:
    return word if number == 1 else f"{word}s"
