"""What V1 makes of a summary: the pair, the tail, the message that is sent again, and the continue message (opencode.md 2.7 to 2.10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from ...budget import Budget
from ...projection.plan import BlockRef, Item, Kept, Plan, Synthetic
from ...transcript import Media, Text, View
from ..contract import CompactionRequest, Refused, Strategy
from .layout import AUTOMATIC, checked, laid_out, refs
from .messages import Message
from .prompts import CONTINUE, MEDIA_REMOVED, QUESTION
from .size import type_of
from .state import Pair, State
from .text import attached

__all__ = ["Defects", "Selection", "Session", "failed", "installed"]


class Defects(msgspec.Struct, frozen=True, kw_only=True):
    """Defects of the original, each off unless it is asked for."""

    lose_head_on_failure: bool = False
    """A failed request for a summary drops everything before the tail, with nothing in its place (opencode.md 2.10; its issue 42282)."""
    accept_empty_summary: bool = False
    """A summary without text counts as one (opencode.md 2.10; its issues 44080 and 41571)."""
    resurface_old_pairs: bool = False
    """A tail that reaches back before an older compaction shows that one's question and summary again (opencode.md 2.7), and the
    next request for a summary takes that older one for the prior summary: it looks for the last one shown."""
    duplicate_replayed: bool = False
    """The tail shows the message that is sent again, and what the model had done about it, once more (opencode.md 2.7)."""

    @property
    def on(self) -> tuple[str, ...]:
        """The names of those in force."""
        return tuple(name for name in self.__struct_fields__ if getattr(self, name))


@dataclass(frozen=True)
class Session:
    """The projection that is to be compacted."""

    view: View
    previous: Plan | None
    state: State
    visible: Sequence[Message]
    """Its messages, without questions and summaries."""
    before: int
    """Its tokens by the budget's counter, fixed ones included."""


@dataclass(frozen=True)
class Selection:
    """What a compaction does with the visible messages."""

    head: Sequence[Message]
    """What the summary is about."""
    tail: Sequence[Message]
    replayed: Message | None = None
    """The user message that is sent again."""
    dropped: Sequence[Message] = ()
    """What the model had done about it: in neither the summary nor the tail (opencode.md 2.9)."""


def installed(
    strategy: Strategy,
    session: Session,
    selection: Selection,
    budget: Budget,
    request: CompactionRequest,
    summary: str,
    defects: Defects,
    autocontinue: bool,
) -> Plan | Refused:
    """The plan once there is a summary; its text may be empty where that defect is asked for."""
    replayed = selection.replayed
    tail = list(selection.tail)
    omitted = refs(part for message in selection.dropped for part in message.blocks())
    downgraded: dict[tuple[int, int], str] = {}
    follow_up: tuple[Synthetic, ...] = ()
    if replayed is not None and defects.duplicate_replayed:
        follow_up = (_copy(replayed),)
        if tail:
            tail += [replayed, *selection.dropped]
            omitted = ()
        else:
            omitted += refs(replayed.blocks())
    elif replayed is not None:
        tail.append(replayed)
        downgraded = _downgraded(replayed)
    elif request.trigger in AUTOMATIC and autocontinue:
        notice = f"{MEDIA_REMOVED}\n\n" if request.trigger == "provider_context_limit" else ""
        follow_up = (Synthetic("notice", notice + CONTINUE),)
    pair = Pair(
        session.view.entries[-1].id,
        replayed=replayed is not None and not defects.duplicate_replayed,
        summary=summary if defects.resurface_old_pairs and summary.strip() else None,
    )
    older = session.state.pairs if defects.resurface_old_pairs else ()
    items, cutoff = laid_out(
        session.view, _pair(summary), tail, budget, downgraded=downgraded, between=_older(session.view, older, tail)
    )
    return _finished(
        strategy,
        session,
        budget,
        request,
        items=items,
        cutoff=cutoff,
        omitted=_still(session.previous, omitted, items),
        rest="summarised" if summary.strip() else "omitted",
        follow_up=follow_up,
        summary=summary.strip() or None,
        state=State((*session.state.pairs, pair), session.state.pruned).json(),
        notes={"tail": f"{len(tail)} messages"}
        | ({"replayed": "the newest user message"} if replayed is not None else {})
        | ({"defects": ", ".join(defects.on)} if defects.on else {}),
    )


def failed(
    strategy: Strategy,
    session: Session,
    selection: Selection,
    budget: Budget,
    request: CompactionRequest,
    failure: str,
    defects: Defects,
) -> Plan | Refused:
    """What follows when there is no summary: nothing is changed, unless the defect is asked for that loses the head.

    The original loses it only where it had chosen a tail and the request for the summary was not itself too large.
    """
    if not defects.lose_head_on_failure or not selection.tail or _is_too_large(failure):
        return Refused("invalid-summary", f"there is no summary: {failure}; nothing was changed, try again")
    tail = [*selection.tail, *((selection.replayed,) if selection.replayed else ()), *selection.dropped]
    older = session.state.pairs if defects.resurface_old_pairs else ()
    between = _older(session.view, older, tail)
    items, cutoff = laid_out(session.view, _pair(""), tail, budget, between=between)
    return _finished(
        strategy,
        session,
        budget,
        request,
        items=items,
        cutoff=cutoff,
        state=session.state.json(),
        notes={"tail": f"{len(tail)} messages", "failure": failure, "defects": ", ".join(defects.on)},
    )


def _is_too_large(failure: str) -> bool:
    return any(sign in failure.lower() for sign in ("overflow", "too large", "too long"))


def _finished(
    strategy: Strategy, session: Session, budget: Budget, request: CompactionRequest, **fields: object
) -> Plan | Refused:
    plan = Plan(
        strategy=strategy.name,
        version=strategy.version,
        covered_from=session.view.entries[0].id,
        trigger=request.trigger,
        phase=request.phase,
        instructions=request.instructions,
        **fields,  # type: ignore[arg-type]
    )
    return checked(plan, session.view, budget, request, session.before)


def _pair(summary: str) -> list[Item]:
    """The question, and the summary as its answer where there is one."""
    question = Synthetic("notice", QUESTION)
    return [question, Synthetic("summary", summary, "assistant", "summary")] if summary.strip() else [question]


def _older(view: View, pairs: Sequence[Pair], tail: Sequence[Message]) -> dict[int, list[Item]]:
    """The older pairs that stand within the tail, by the position after which they stand."""
    first = min((message.first for message in tail), default=len(view.entries))
    positions = [(view.positions.get(pair.after, -1), pair.summary) for pair in pairs]
    return {at: _pair(summary) for at, summary in positions if at >= first and summary}


def _is_downgraded(media: Media) -> bool:
    kind = type_of(media)
    return kind == "image" or kind.startswith("image/") or kind == "application/pdf"


def _downgraded(message: Message) -> dict[tuple[int, int], str]:
    """What stands for images and documents in a message that is sent again."""
    return {
        (part.position, part.number): attached(part.block)
        for part in message.blocks()
        if isinstance(part.block, Media) and _is_downgraded(part.block)
    }


def _copy(message: Message) -> Synthetic:
    """The message once more, as text."""
    texts = (
        part.block.text if isinstance(part.block, Text) else attached(part.block)
        for part in message.blocks()
        if isinstance(part.block, Text | Media)
    )
    sources = tuple(dict.fromkeys(part.entry.id for part in message.blocks()))
    return Synthetic("excerpts", "\n".join(texts), origin="typed", sources=sources)


def _still(previous: Plan | None, omitted: tuple[BlockRef, ...], items: Sequence[Item]) -> tuple[BlockRef, ...]:
    """What was omitted before or is now, and is not shown."""
    shown = {item.entry: item.blocks for item in items if isinstance(item, Kept)}
    every = dict.fromkeys((*(previous.omitted if previous else ()), *omitted))
    return tuple(
        ref
        for ref in every
        if ref.entry not in shown or (shown[ref.entry] is not None and ref.block not in (shown[ref.entry] or ()))
    )
