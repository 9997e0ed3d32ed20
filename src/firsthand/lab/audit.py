"""What became of a session at each compaction that its client really made (measures.md, "Audit of a recorded compaction").

For each recorded marker: what the client put in place of the history, what is not in it, which of those values the agent used again, what it had
to read again, and what our default strategy would have shown of the same history. All by rules and literal reading; no model is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from ..budget import Budget
from ..errors import CompactionRefusedError, OutputCeilingError
from ..projection.fates import KINDS as BLOCK_KINDS
from ..projection.fates import block_kind
from ..quick import compact_view
from ..strategies import DEFAULT_STRATEGY, strategy_by_name
from ..strategies.contract import CompactionRequest, Strategy
from ..tokens import Counter, block_cost, entry_cost, total_cost
from ..transcript import Entry, Marker, Text, Transcript, Unknown, View, typed_text
from .audit_rows import Audit, Kept, KindKept, Ours, ReReadRow, Used
from .boundaries import EXAM_TAIL, exam_tail
from .exams.continuation import STEPS, continuation
from .rereads import ReRead, kept_lines, lines_of, re_reads
from .searched import Searched
from .settings import is_setting
from .values import Value, around, find_values, homes, pieces, reading

__all__ = ["WINDOW", "audit", "markers_of"]

_PATH = re.compile(r"\S+")

WINDOW = 200_000
"""Window that our strategy is given where the session file names none, in tokens."""


def markers_of(transcript: Transcript) -> list[Marker]:
    """The session's recorded compactions in order of their places, those off the active path included."""
    order = {entry.id: position for position, entry in enumerate(transcript.entries)}
    return sorted(transcript.markers, key=lambda marker: order.get(marker.after or "", -1))


def audit(
    transcript: Transcript, counter: Counter, *, source: str = "", strategy: str = DEFAULT_STRATEGY
) -> Iterator[Audit]:
    """Audits each recorded compaction of a session, oldest first.

    Args:
        transcript: the session.
        counter: counts everything; the same for the client and for us.
        source: name of the file, for reports.
        strategy: name of the strategy to compare with; it must need no model.

    Raises:
        UnknownNameError: no strategy of that name.
        ConfigError: the strategy needs a model.
    """
    chosen = strategy_by_name(strategy)
    active = transcript.path()
    positions = {entry.id: position for position, entry in enumerate(active)}
    markers = markers_of(transcript)
    values: dict[str, Value] = {}
    read = 0
    shown: tuple[Entry, ...] = ()
    since = 0
    for number, marker in enumerate(markers, start=1):
        facts = _Facts(transcript, marker, number, len(markers), source, counter)
        if marker.after is None or marker.after not in positions:
            yield facts.unjudged(
                "it came before any entry that is on record"
                if marker.after is None
                else "it lies on a branch that the session left"
            )
            continue
        boundary = positions[marker.after] + 1
        values = homes(active[read:boundary], values, read)
        read = max(read, boundary)
        later = (positions[other.after] + 1 for other in markers[number:] if other.after in positions)
        end = next((place for place in later if place > boundary), len(active))
        context = total_cost((*shown, *active[since:boundary]), counter)
        kept = facts.kept_entries(active[:boundary])
        yield facts.judged(active, boundary, end, values, kept, context, chosen)
        shown, since = kept, boundary


@dataclass(frozen=True)
class _Facts:
    transcript: Transcript
    marker: Marker
    number: int
    of: int
    source: str
    counter: Counter

    def kept_entries(self, history: Sequence[Entry]) -> tuple[Entry, ...]:
        """What the client showed, without what nobody can read."""
        by_id = {entry.id: entry for entry in history}
        found = (by_id.get(shown) if isinstance(shown, str) else _readable(shown) for shown in self.marker.shown)
        return tuple(entry for entry in found if entry is not None)

    def unjudged(self, note: str) -> Audit:
        return self._row(
            judged=False,
            note=note,
            history=(),
            context=0,
            kept=self._kept(
                tuple(shown for shown in self.marker.shown if isinstance(shown, Entry) and _readable(shown))
            ),
            ours=Ours(strategy=DEFAULT_STRATEGY, at_size=False, window=0, refused="not measured"),
        )

    def judged(
        self,
        active: tuple[Entry, ...],
        boundary: int,
        end: int,
        values: Mapping[str, Value],
        kept: tuple[Entry, ...],
        context: int,
        strategy: Strategy,
    ) -> Audit:
        history = active[:boundary]
        size = self._kept(kept)
        ours, projection = _projection(View(history), strategy, _window(self.transcript), size.tokens, self.counter)
        theirs, own = _Read(kept), _Read(projection)
        tail = exam_tail(active, boundary, self.counter)
        asked = continuation(active, boundary, tail, values)
        used = [
            _used(value, position, active, boundary, theirs, own, recent)
            for recent, pairs in ((False, asked.asked), (True, asked.recent))
            for value, position in pairs
        ]
        rows = [
            _re_read_row(found, theirs, own)
            for found in re_reads(active, boundary, end, theirs.lines, self.counter, self.transcript.cwd)
        ]
        return self._row(
            judged=True,
            history=history,
            context=context,
            kept=size,
            kinds=_kinds(history, kept, self.counter),
            values=len(values),
            values_kept=theirs.count(values),
            used=tuple(sorted(used, key=lambda use: use.entries_later)),
            brought_back=len(asked.brought_back),
            re_reads=tuple(rows),
            ours=msgspec.structs.replace(
                ours,
                kinds=_kinds(history, projection, self.counter),
                values_kept=own.count(values),
                used_kept=sum(use.ours for use in used if not use.recent),
                recent_kept=sum(use.ours for use in used if use.recent),
                re_reads_kept=sum(row.ours for row in rows),
            ),
        )

    def _kept(self, kept: tuple[Entry, ...]) -> Kept:
        made = [entry for entry in self.marker.shown if isinstance(entry, Entry)]
        ids = {entry.id for entry in made}
        summaries = [
            entry for entry in made if any(isinstance(b, Text) and b.origin == "summary" for b in entry.blocks)
        ]
        summary = sum(entry_cost(entry, self.counter) for entry in kept if entry.id in {one.id for one in summaries})
        own = total_cost((entry for entry in kept if entry.id in ids), self.counter)
        originals = [entry for entry in kept if entry.id not in ids]
        original = total_cost(originals, self.counter)
        unreadable = sum(any(isinstance(block, Unknown) for block in entry.blocks) for entry in made)
        return Kept(
            tokens=own + original,
            summary_tokens=summary,
            made_tokens=own - summary,
            original_tokens=original,
            originals=len(originals),
            unreadable=unreadable,
        )

    def _row(
        self,
        *,
        judged: bool,
        history: Sequence[Entry],
        context: int,
        kept: Kept,
        ours: Ours,
        note: str | None = None,
        kinds: dict[str, KindKept] | None = None,
        values: int = 0,
        values_kept: int = 0,
        used: tuple[Used, ...] = (),
        brought_back: int = 0,
        re_reads: tuple[ReReadRow, ...] = (),
    ) -> Audit:
        transcript, marker = self.transcript, self.marker
        return Audit(
            source=self.source,
            session=transcript.id,
            format=transcript.format,
            title=transcript.title,
            model=transcript.model,
            number=self.number,
            of=self.of,
            marker=marker.id,
            after=marker.after,
            time=marker.time,
            trigger=marker.trigger,
            readable=marker.readable,
            judged=judged,
            note=note,
            counter=self.counter.name,
            recorded_tokens_before=marker.tokens_before,
            recorded_tokens_after=marker.tokens_after,
            entries=len(history),
            history_tokens=total_cost(history, self.counter),
            context_tokens=context,
            kept=kept,
            kinds=kinds or {},
            values=values,
            values_kept=values_kept,
            steps=STEPS,
            exam_tail=EXAM_TAIL,
            used=used,
            brought_back=brought_back,
            re_reads=re_reads,
            ours=ours,
        )


class _Read:
    """A projection as the reader sees it."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        texts = reading(entries)
        self.text = "\n".join(texts)
        self._searched = Searched(self.text)
        self.lines = frozenset(line for text in texts for line in lines_of(text))

    def shows(self, value: str) -> bool:
        return self._searched.shows(value)

    def names(self, target: str) -> bool:
        """Whether the last name of a path stands there, alone or in another path; of what is no path, the whole."""
        name = target.rstrip("/").rsplit("/", 1)[-1] if _PATH.fullmatch(target) else target
        return re.search(rf"(?<![\w-]){re.escape(name)}(?!\w)", self.text) is not None

    def count(self, values: Iterable[str]) -> int:
        return sum(self.shows(value) for value in values)


def _readable(entry: Entry) -> Entry | None:
    """The entry without blocks that only the provider can read; None when nothing is left."""
    blocks = tuple(block for block in entry.blocks if not isinstance(block, Unknown))
    if not blocks:
        return None
    return entry if len(blocks) == len(entry.blocks) else msgspec.structs.replace(entry, blocks=blocks)


def _window(transcript: Transcript) -> int:
    return transcript.window if transcript.window and transcript.window > 0 else WINDOW


def _projection(
    view: View, strategy: Strategy, window: int, size: int, counter: Counter
) -> tuple[Ours, tuple[Entry, ...]]:
    sized = strategy.at_size(size) if size else None
    ours = Ours(strategy=strategy.name, at_size=sized is not None, window=window)
    request = CompactionRequest(trigger="manual", phase="standalone")
    try:
        budget = Budget.of(window, counter=counter, target=size if sized is not None else None)
        plan, shown, _ = compact_view(view, budget, sized or strategy, request)
    except CompactionRefusedError as error:
        return msgspec.structs.replace(ours, refused=f"{error.reason}: {error}"), ()
    except OutputCeilingError as error:
        # A window that a file names may be anything.
        return msgspec.structs.replace(ours, refused=f"no-window: {error}"), ()
    if plan is None:
        return msgspec.structs.replace(ours, tokens=total_cost(shown, counter), refused="nothing to compact"), shown
    return msgspec.structs.replace(ours, tokens=total_cost(shown, counter)), shown


def _used(
    value: Value, position: int, active: Sequence[Entry], boundary: int, theirs: _Read, ours: _Read, recent: bool
) -> Used:
    return Used(
        value=value.text,
        shape=value.shape,
        kind=value.kind,
        home=value.entry,
        line=value.line,
        used=active[position].id,
        use=_line_of(active[position], value.text),
        entries_later=position - boundary + 1,
        kept=theirs.shows(value.text),
        ours=ours.shows(value.text),
        part=value.shape == "path" and theirs.names(value.text),
        setting=is_setting(active[position], value.text, value.shape),
        recent=recent,
    )


def _line_of(entry: Entry, value: str) -> str:
    for kind, text in pieces(entry):
        if kind != "tool":
            for found in find_values(text):
                if found.text == value:
                    return around(text, found.start, found.end)
    return ""


def _re_read_row(found: ReRead, theirs: _Read, ours: _Read) -> ReReadRow:
    return ReReadRow(
        entry=found.entry,
        tool=found.tool,
        target=found.target,
        tokens=found.tokens,
        seen_tokens=found.seen_tokens,
        before=found.before,
        named=theirs.names(found.target),
        ours=kept_lines(found.lines, ours.lines),
    )


def _kinds(history: Sequence[Entry], kept: Sequence[Entry], counter: Counter) -> dict[str, KindKept]:
    """By kind of block: all of the history, and what of it stands whole in `kept`."""
    whole = {(entry.id, id(block)) for entry in kept for block in entry.blocks}
    # Client-made user messages that repeat what a person typed (cut copies are told by their text) keep it as well.
    typed = {text for entry in kept if entry.role == "user" for text in typed_text(entry)}
    sums: dict[str, list[int]] = {}
    for entry in history:
        for block in entry.blocks:
            kind = block_kind(entry, block)
            cost = block_cost(block, counter)
            stays = (entry.id, id(block)) in whole or (
                kind == "user" and isinstance(block, Text) and block.text in typed
            )
            sum_ = sums.setdefault(kind, [0, 0, 0, 0])
            sum_[0] += 1
            sum_[1] += cost
            sum_[2] += stays
            sum_[3] += cost * stays
    return {kind: KindKept(*sums[kind]) for kind in BLOCK_KINDS if kind in sums}
