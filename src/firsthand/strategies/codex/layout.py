"""What Codex's client sends again after a compaction, and in which order the new history stands (codex.md 6.5)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ...projection.boundaries import has_result
from ...projection.plan import Item, Kept
from ...transcript import Entry, Text
from .history import LiveHistory, opening_prompt
from .kinds import RULES_HEADING, Kind, beside, element, is_real_user, kind_of, texts_of

__all__ = ["arranged", "base_instructions", "initial_context"]

# What the client sends again as a user message whenever it changes.
_SENT_AGAIN = ("environment_context", "user_instructions", RULES_HEADING)


def base_instructions(history: LiveHistory, *, as_developer: bool) -> list[Entry]:
    """The entries that stand for the base instructions, which Codex keeps apart from its history: the system entries at the very start.

    Args:
        history: what is covered.
        as_developer: a developer entry at the very start that is plain text counts too; newer versions of the client send them like that, and
            their context in elements.
    """
    found: dict[tuple[str, ...], Entry] = {}
    for entry in history.originals:
        if entry.role != "system":
            break
        found.setdefault(texts_of(entry), entry)
    first = history.originals[0]
    if as_developer and first.role == "developer" and any(element(text) is None for text in texts_of(first)):
        return [first]
    return list(found.values())


def initial_context(
    history: LiveHistory, base: Sequence[Entry], retained: Collection[str], *, client_developer: bool = True
) -> list[Kept]:
    """The client's initial context, as far as the history recorded it.

    Codex makes it anew from its settings. In its place stand the system entries, the developer messages of the client's caller, and what the client
    itself put before the first prompt, or beside it, or sends again when it changes. A block of settings holds the newest text that was sent for
    it; a repeated entry is shown once (SE-14), and what the tail brings along is left to the tail.

    Args:
        history: what is covered.
        base: entries that are shown as base instructions.
        retained: ids of the entries that are shown as messages.
        client_developer: whether developer messages that the client's caller wrote belong to the context.
    """
    sent = _Context()
    opening = opening_prompt(history)
    skipped = {entry.id for entry in base} | set(retained)
    again = {texts_of(entry) for entry in (*history.tail, *base)}
    leading = True
    for entry in history.originals:
        leading = leading and entry.role != "assistant"
        if entry.id == opening:
            leading = False
            if entry.id not in skipped and (numbers := beside(entry)):
                sent.parts.append(_Sent(entry, numbers))
        elif not client_developer and kind_of(entry) == "developer":
            continue
        elif entry.id not in skipped and texts_of(entry) not in again and _is_context(entry, leading):
            sent.add(_Sent(entry))
    return [Kept(part.entry.id, part.numbers, part.newer) for part in sent.parts]


def _is_context(entry: Entry, leading: bool) -> bool:
    texts = texts_of(entry)
    if not any(text.strip() for text in texts):
        return False
    if entry.role == "system" or kind_of(entry) == "developer":
        return True
    if entry.role == "developer":
        # What the client tells the model in passing, a reminder for one, is not sent again.
        return leading or all(element(text) is not None for text in texts)
    if entry.role != "user" or has_result(entry) or is_real_user(entry):
        return False
    return leading or all(element(text) in _SENT_AGAIN for text in texts)


@dataclass
class _Sent:
    """An entry of the context, and the newer texts of its blocks of settings."""

    entry: Entry
    numbers: tuple[int, ...] | None = None
    newer: dict[int, str] = field(default_factory=dict)

    @cached_property
    def settings(self) -> dict[str, int] | None:
        """The elements that it consists of, with their numbers; None when it is not all elements of the client, each once."""
        if not all(isinstance(block, Text) and block.origin == "injected" for block in self.entry.blocks):
            return None
        names = [element(text) for text in texts_of(self.entry)]
        if None in names or len(set(names)) < len(names):
            return None
        # Other clients' reminders have one name and many contents.
        if self.entry.role == "user" and not set(names) <= set(_SENT_AGAIN):
            return None
        return {name: number for number, name in enumerate(names) if name is not None}


@dataclass
class _Context:
    """What was sent of the context so far."""

    parts: list[_Sent] = field(default_factory=list)
    plain: set[tuple[str, tuple[str, ...]]] = field(default_factory=set)
    """Role and texts of the parts that are no settings."""
    settings: list[int] = field(default_factory=list)
    """Positions of the parts that are."""

    def add(self, new: _Sent) -> None:
        """Adds an entry: in the place of one with the same elements, or inside an older one that has them all."""
        texts = texts_of(new.entry)
        if new.settings is None:
            if (new.entry.role, texts) not in self.plain:
                self.plain.add((new.entry.role, texts))
                self.parts.append(new)
            return
        for position in self.settings:
            old = self.parts[position]
            if (
                old.entry.role != new.entry.role
                or old.settings is None
                or not new.settings.keys() <= old.settings.keys()
            ):
                continue
            if old.settings == new.settings:
                self.parts[position] = new
            else:
                old.newer.update({old.settings[name]: texts[number] for name, number in new.settings.items()})
            return
        self.settings.append(len(self.parts))
        self.parts.append(new)


def arranged(
    base: Sequence[Item], messages: Sequence[tuple[Kind, Item]], context: Sequence[Item], *, context_inside: bool
) -> tuple[Item, ...]:
    """The new history in order.

    Args:
        base: base instructions.
        messages: the retained messages oldest first, and the summary or compaction item last.
        context: the client's initial context.
        context_inside: the context stands before the newest message that asks for something; where there is none before the newest summary, else
            before the newest compaction item. Otherwise it comes last, where the next turn begins.
    """
    items = [item for _, item in messages]
    at = len(items)
    if context_inside:
        for kinds in (("user", "agent"), ("summary",), ("compaction",)):
            places = [place for place, (kind, _) in enumerate(messages) if kind in kinds]
            if places:
                at = places[-1]
                break
    return (*base, *items[:at], *context, *items[at:])
