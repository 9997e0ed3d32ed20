"""What the audit of a recorded compaction found: values, with the sums that reports print. Their JSON is what `lab audit --json` gives."""

from __future__ import annotations

import msgspec

__all__ = ["Audit", "Kept", "KindKept", "Ours", "ReReadRow", "Used"]


class KindKept(msgspec.Struct, frozen=True):
    """Blocks of one kind in the covered history, and those of them that were shown whole afterwards."""

    blocks: int = 0
    tokens: int = 0
    kept_blocks: int = 0
    kept_tokens: int = 0


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What the client put in place of the history, system prompt and tools excluded."""

    tokens: int
    """What can be read of it: everything below, with the framing of messages."""
    summary_tokens: int
    """Texts that stand for earlier history."""
    made_tokens: int
    """Other texts of the client's own making: files put back in, reminders, cut copies."""
    original_tokens: int
    """Originals that it showed whole."""
    originals: int
    """Entries shown whole."""
    unreadable: int
    """Items that only the provider can read; nothing in them counts as kept, or as lost."""


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """An older value that the agent used after the compaction."""

    value: str
    shape: str
    kind: str
    """Where it stands first: user, assistant, call or tool."""
    home: str
    """Id of the entry where it stands first."""
    line: str
    """The line where it stands first, cut around it."""
    used: str
    """Id of the entry that used it."""
    use: str
    """The line that used it, cut around it."""
    entries_later: int
    """Entries from the compaction to that use."""
    kept: bool
    """Whether what the client kept shows it."""
    ours: bool
    """Whether our projection shows it."""
    part: bool = False
    """Of a path: whether what the client kept shows at least its last name."""
    setting: bool = False
    """Whether it was used as the name of an argument, or as a plain number for one (`timeout`, 1000): it counts, but a tool's description
    may have brought it, so it is listed apart."""
    recent: bool = False
    """Whether the exam tail shows it; those do not count in the score."""


class ReReadRow(msgspec.Struct, frozen=True, kw_only=True):
    """A call that looked again at what had been seen before the compaction."""

    entry: str
    tool: str
    target: str
    tokens: int
    seen_tokens: int
    before: str
    named: bool
    """Whether what was kept at least names the target."""
    ours: bool
    """Whether our projection shows at least half of the lines of the earlier result."""


class Ours(msgspec.Struct, frozen=True, kw_only=True):
    """What our default strategy would have shown of the same history."""

    strategy: str
    at_size: bool
    """Whether it was asked for the size of what the client kept; else it comes at its natural size."""
    window: int
    tokens: int | None = None
    refused: str | None = None
    """Why it made no projection, where it made none."""
    kinds: dict[str, KindKept] = {}
    values_kept: int = 0
    used_kept: int = 0
    recent_kept: int = 0
    re_reads_kept: int = 0


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded compaction; a row of `firsthand lab audit --json`."""

    source: str
    session: str
    format: str
    title: str | None
    model: str | None
    number: int
    """Which of the session's compactions, from 1."""
    of: int
    marker: str
    after: str | None
    """Id of the newest entry before it."""
    time: str | None
    trigger: str | None
    readable: bool
    """False when the summary is an item that only the provider can read: then only retained messages are scored."""
    judged: bool
    """False when nothing could be measured: `note` says why."""
    note: str | None = None
    counter: str
    recorded_tokens_before: int | None
    """As the client wrote it, in the provider's tokens, system prompt and tools included."""
    recorded_tokens_after: int | None
    entries: int
    """Entries of the covered history: all originals before the compaction."""
    history_tokens: int
    """The same in tokens."""
    context_tokens: int
    """What the client's context held just before: what it showed after its compaction before this one, and all entries since."""
    kept: Kept
    kinds: dict[str, KindKept]
    values: int
    """Distinct values in the covered history."""
    values_kept: int
    steps: int
    """Model responses after it in which uses were looked for, at most."""
    exam_tail: int
    used: tuple[Used, ...]
    """Values that the next steps used, in order of their use; `recent` ones too."""
    brought_back: int
    """Older values that were used only after a tool result had brought them back, so that they are not asked."""
    re_reads: tuple[ReReadRow, ...]
    ours: Ours

    @property
    def asked(self) -> tuple[Used, ...]:
        """The values that count: continuation's questions."""
        return tuple(use for use in self.used if not use.recent)

    @property
    def lost(self) -> tuple[Used, ...]:
        """Those of them that what the client kept does not show."""
        return tuple(use for use in self.asked if not use.kept)

    @property
    def missed(self) -> tuple[Used, ...]:
        """The lost ones without names and plain numbers of arguments: what a person would call forgotten."""
        return tuple(use for use in self.lost if not use.setting)

    @property
    def re_read_tokens(self) -> int:
        """Tokens of the results of all re-reads."""
        return sum(row.tokens for row in self.re_reads)

    @property
    def seen_again_tokens(self) -> int:
        """Of those, tokens of lines that the agent had seen before the compaction."""
        return sum(row.seen_tokens for row in self.re_reads)
