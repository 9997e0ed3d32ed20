"""One conversation of a Claude Code file, line by line: lines of one response become one entry (IM-04).

Lines that are no entry stay in the chain of parents, so that what follows them finds its place. A file's main conversation and each
of its sub-agents go through here by themselves.
"""

from __future__ import annotations

from typing import Any

from ....codec import encode
from ....transcript import Block, Entry, Marker, Role, Text, ToolCall, ToolResult
from ..base import Record, entry_id
from ..records import Names, Tally, record_of, string_of
from .attachments import attachment_blocks, is_queued
from .blocks import INTERRUPTED, assistant_blocks, usage_of, user_blocks
from .drafts import Compaction, Conversation, Draft
from .links import linked
from .markers import marker_of, preserved_lines

__all__ = ["Chain"]

_CUT_OFF = frozenset({"max_tokens", "model_context_window_exceeded"})


class Chain:
    """Collects the lines of one conversation with `add` and `skip`, then gives its entries, markers and leaf."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self.conversation = Conversation()
        self.tip: str | None = None
        """The newest line of the conversation, or the one that a `last-prompt` record after it names."""
        self._responses: dict[str, int] = {}
        self._seen: dict[str, int] = {}
        self._names = Names()
        self._said: dict[str, int] = {}
        """What was typed since the last response, and the draft that says it."""
        self._preserved: frozenset[str] = frozenset()

    def add(self, record: Record) -> None:
        """One line with the envelope of a conversation: user, assistant, attachment or system."""
        native = self._entered(record)
        match record.value.get("type"):
            case _ if native is None:
                return
            case "assistant":
                self._assistant(record, native)
            case "user":
                self._user(record, native)
            case "attachment":
                self._attachment(record, native)
            case _:
                self._system(record, native)

    def skip(self, record: Record) -> None:
        """A line that is no part of the conversation but may stand between two that are."""
        if (native := self._entered(record)) is not None:
            self._pass(native, record.value.get("parentUuid"))

    def finish(self, session: str) -> tuple[tuple[Entry, ...], tuple[Marker, ...], str | None]:
        """Entries in order of arrival, markers, and the id of the leaf."""
        order, parents, leaf = linked(self.conversation, self.tip)
        ids = {index: entry_id(session, self.conversation.drafts[index].native) for index in order}
        entries = tuple(
            self.conversation.drafts[index].entry(
                session, parent=None if (parent := parents[index]) is None else ids[parent], sequence=sequence
            )
            for sequence, index in enumerate(order)
        )
        rank = {index: position for position, index in enumerate(order)}
        markers = tuple(
            marker_of(self.conversation, compaction, session, ids, rank) for compaction in self.conversation.compactions
        )
        return entries, markers, None if leaf is None else ids[leaf]

    def _entered(self, record: Record) -> str | int | None:
        """The id under which a line is known from now on, or None when the very same line was there before."""
        value = record.value
        uuid = string_of(value.get("uuid"))
        if uuid is None:
            return self._names.give(None, record.line)
        parent = value.get("parentUuid")
        content = hash(encode([parent, value.get("message"), value.get("attachment"), value.get("content")]))
        if uuid in self._seen and self._seen[uuid] == content:
            self.tally.left_out["repeated line"] += 1
            return None
        uuid = str(self._names.give(uuid, record.line))
        self._seen[uuid] = content
        self.conversation.above[uuid] = parent if isinstance(parent, str) else None
        self.tip = uuid
        return uuid

    def _assistant(self, record: Record, native: str | int) -> None:
        value, message = record.value, record_of(record.value.get("message"))
        model = string_of(message.get("model"))
        made_up = model == "<synthetic>" or value.get("isApiErrorMessage") is True
        blocks = list(assistant_blocks(message.get("content"), "injected" if made_up else "typed"))
        group = string_of(message.get("id"))
        at = self._responses.get(group) if group else None
        self._said.clear()
        if at is None:
            draft = self._draft(record, native, "assistant", blocks)
            draft.group, draft.model = group, None if made_up else model
            if group:
                self._responses[group] = len(self.conversation.drafts) - 1
        else:
            draft = self.conversation.drafts[at]
            if any(isinstance(block, ToolCall) for block in blocks):
                known = {block.id for block in draft.blocks if isinstance(block, ToolCall)}
                blocks = [block for block in blocks if not (isinstance(block, ToolCall) and block.id in known)]
            draft.blocks += blocks
            draft.pieces.append((native, len(blocks)))
            if isinstance(native, str):
                self.conversation.at[native] = at
        draft.usage = usage_of(message.get("usage")) or draft.usage
        draft.stopped = draft.stopped or message.get("stop_reason") is not None
        if made_up:
            draft.status = "error"
        elif message.get("stop_reason") in _CUT_OFF:
            draft.status = "incomplete"
        self._goes_on(native)

    def _user(self, record: Record, native: str | int) -> None:
        value = record.value
        content = record_of(value.get("message")).get("content")
        if value.get("isCompactSummary") is True:
            self._summary(record, native, content)
            return
        if value.get("isVisibleInTranscriptOnly") is True:
            self.tally.left_out["user line for display only"] += 1
            self._pass(native, value.get("parentUuid"))
            return
        meta = value.get("isMeta") is True
        kind = string_of(record_of(value.get("origin")).get("kind"))
        blocks = list(
            user_blocks(content, human=kind == "human" if kind else None, origin="injected" if meta else None)
        )
        if (queued := self._queued_before(native, blocks)) is not None:
            self.tally.left_out["user line that repeats a queued message"] += 1
            if isinstance(native, str):
                self.conversation.at[native] = queued
            return
        if any(isinstance(block, Text) and block.text.startswith(INTERRUPTED) for block in blocks):
            self._interrupted(value)
        role: Role = "tool" if blocks and all(isinstance(block, ToolResult) for block in blocks) else "user"
        draft = self._draft(record, native, role, blocks)
        self._say(draft)
        if role == "tool" or draft.typed:
            self._goes_on(native)

    def _say(self, draft: Draft) -> None:
        if draft.typed:
            self._said.setdefault(_text(draft.blocks), len(self.conversation.drafts) - 1)

    def _interrupted(self, value: dict[str, Any]) -> None:
        """The person stopped the run. Only a response that had not come to its end was cut off by that."""
        named = self._responses.get(string_of(value.get("interruptedMessageId")) or "")
        at = self.conversation.at.get(string_of(value.get("parentUuid")) or "") if named is None else named
        if at is not None:
            draft = self.conversation.drafts[at]
            if draft.role == "assistant" and draft.status == "complete" and not draft.stopped:
                draft.status = "aborted"

    def _queued_before(self, native: str | int, blocks: list[Block]) -> int | None:
        """The queued message that this user line repeats: named by its id, or saying the same since the last response."""
        if isinstance(native, str) and native in self.conversation.at:
            return self.conversation.at[native]
        index = self._said.get(_text(blocks))
        if index is None:
            return None
        draft = self.conversation.drafts[index]
        return index if draft.aside and draft.blocks == blocks else None

    def _attachment(self, record: Record, native: str | int) -> None:
        attachment = record_of(record.value.get("attachment"))
        above = record.value.get("parentUuid")
        blocks = list(attachment_blocks(attachment))
        if not blocks:
            self.tally.left_out[f"attachment/{attachment.get('type')}"] += 1
            self._pass(native, above)
            return
        queued = is_queued(attachment)
        compaction = self.conversation.compactions[-1] if self.conversation.compactions else None
        if compaction and compaction.open and not queued and native not in self._preserved:
            compaction.restored.append(self._new(record, native, "user", blocks))
            self._pass(native, above)
            return
        source = string_of(attachment.get("source_uuid")) if queued else None
        if queued and self._typed_before(source, blocks):
            self.tally.left_out["queued message that repeats a user line"] += 1
            self._pass(native, above)
            return
        draft = self._draft(record, native, "user", blocks)
        draft.aside = True
        self._say(draft)
        if source:
            self.conversation.at.setdefault(source, len(self.conversation.drafts) - 1)

    def _typed_before(self, source: str | None, blocks: list[Block]) -> bool:
        """Whether a user line, the one of id `source` or one since the last response, already says what this queued message says."""
        if source in self._seen:
            return True
        index = self._said.get(_text(blocks))
        if index is None:
            return False
        draft = self.conversation.drafts[index]
        return not draft.aside and draft.blocks == blocks

    def _system(self, record: Record, native: str | int) -> None:
        value = record.value
        subtype = value.get("subtype")
        content = value.get("content")
        if subtype == "compact_boundary":
            compaction = self._boundary(record, native, value.get("logicalParentUuid"))
            compaction.details = record_of(value.get("compactMetadata"))
            self._preserved = frozenset(preserved_lines(self.conversation, compaction))
        elif subtype == "local_command" and isinstance(content, str) and content.strip():
            self._draft(record, native, "user", [Text(content, "injected")])
        else:
            self.tally.left_out[f"system/{subtype}"] += 1
            self._pass(native, value.get("parentUuid"))

    def _boundary(self, record: Record, native: str | int, logical: Any) -> Compaction:
        compaction = Compaction(
            native, len(self.conversation.drafts), string_of(logical), string_of(record.value.get("timestamp"))
        )
        self.conversation.compactions.append(compaction)
        if isinstance(native, str):
            self.conversation.boundaries[native] = compaction
        return compaction

    def _summary(self, record: Record, native: str | int, content: Any) -> None:
        parent = record.value.get("parentUuid")
        last = self.conversation.compactions[-1] if self.conversation.compactions else None
        if last is None or last.summary is not None:
            # Old clients wrote the summary without a boundary line before it.
            above = f"{native}#boundary"
            last = self._boundary(record, above, parent)
        else:
            above = parent if isinstance(parent, str) else str(last.native)
        self._pass(native, above)
        last.summary = self._new(record, native, "user", list(user_blocks(content, origin="summary")))

    def _goes_on(self, native: str | int) -> None:
        """The conversation goes on, so the newest compaction is over, unless the line is one that it preserved."""
        if self.conversation.compactions and native not in self._preserved:
            self.conversation.compactions[-1].open = False

    def _new(self, record: Record, native: str | int, role: Role, blocks: list[Block]) -> Draft:
        value = record.value
        return Draft(
            native,
            record.line,
            role,
            blocks,
            string_of(value.get("parentUuid")),
            "parentUuid" in value,
            string_of(value.get("timestamp")),
            pieces=[(native, len(blocks))],
        )

    def _draft(self, record: Record, native: str | int, role: Role, blocks: list[Block]) -> Draft:
        draft = self._new(record, native, role, blocks)
        if isinstance(native, str):
            self.conversation.at[native] = len(self.conversation.drafts)
        self.conversation.drafts.append(draft)
        return draft

    def _pass(self, native: str | int, parent: Any) -> None:
        if isinstance(native, str):
            self.conversation.passed[native] = parent if isinstance(parent, str) else None


def _text(blocks: list[Block]) -> str:
    return "".join(block.text for block in blocks if isinstance(block, Text))
