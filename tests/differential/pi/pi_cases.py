"""Sessions as Pi's files hold them, given to both sides: generated trees, and the shared ones; and how ours reads them here.

Readers leave out lines that are no message (model changes, labels). Pi's cut looks at them, so here each becomes an entry without blocks.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import msgspec

from firsthand.formats.files.pi.messages import custom_entry, message_entry, summary_entry
from firsthand.transcript import Entry, Marker, Source, Text, Transcript, Usage, View, chained

Raw = dict[str, Any]


@dataclass
class Ask:
    """One question: the path that ends at a row, cut with this tail; or, with a target, the branch that is left for it."""

    leaf: int
    keep: int = 20_000
    target: int | None = None
    budget: int = 0
    answers: list[str] | None = None
    text: bool = False


@dataclass
class Case:
    """A session and what is asked about it."""

    entries: list[Raw]
    asks: list[Ask] = field(default_factory=list)

    def question(self) -> dict[str, Any]:
        asks = [{key: value for key, value in vars(ask).items() if value is not None} for ask in self.asks]
        return {"entries": self.entries, "estimates": True, "asks": [ask | {"maxTokens": 10_000} for ask in asks]}


def rows(entries: list[Raw]) -> list[Raw]:
    """The entries that are no header, with the ids and parents that the driver gives them."""
    header = next((raw for raw in entries if raw.get("type") == "session"), {"version": 3})
    listed = header.get("version", 1) < 2
    found = [dict(raw) for raw in entries if raw.get("type") != "session"]
    names = {raw["id"]: f"n{row}" for row, raw in enumerate(found) if "id" in raw}
    for row, raw in enumerate(found):
        if listed:
            raw["parentId"] = f"n{row - 1}" if row else None
            if (index := raw.pop("firstKeptEntryIndex", None)) is not None:
                raw["firstKeptEntryId"] = f"n{index - 1}"
        else:
            raw["parentId"] = names.get(raw.get("parentId"))
            for name in ("firstKeptEntryId", "fromId"):
                raw[name] = names.get(raw.get(name), raw.get(name))
        raw["id"] = f"n{row}"
    return found


def entry_of(raw: Raw, *, zero_usage: bool) -> Entry:
    """One row as an entry; without blocks where it is no message to Pi."""
    row = int(raw["id"][1:])
    made: Entry | None = None
    match raw.get("type"):
        case "message":
            message = raw["message"]
            made = message_entry(message, id=raw["id"], time=None, line=row + 1, native=raw["id"])
            if made is None and message.get("role") == "bashExecution":
                made = Entry(id=raw["id"], role="user", blocks=(Text(message["command"], "injected"),), extra=message)
            if (
                made is not None
                and zero_usage
                and made.role == "assistant"
                and made.usage is None
                and message.get("usage")
            ):
                made = msgspec.structs.replace(made, usage=Usage(input_tokens=0))
        case "custom_message":
            made = custom_entry(raw, id=raw["id"], line=row + 1, native=raw["id"])
        case "branch_summary" if raw.get("summary"):
            extra = {name: raw[name] for name in ("details", "fromHook", "fromId") if name in raw}
            made = summary_entry(raw["summary"], id=raw["id"], time=None, line=row + 1, native=raw["id"], extra=extra)
    made = made or Entry(id=raw["id"], role="system")
    return msgspec.structs.replace(made, source=Source("pi", row + 1, raw["id"]))


def path_of(found: list[Raw], leaf: int) -> list[Raw]:
    """The rows from the root to this one."""
    path: list[Raw] = []
    at: str | None = f"n{leaf}"
    while at is not None:
        raw = found[int(at[1:])]
        path.append(raw)
        at = raw["parentId"]
    return path[::-1]


def view_of(found: list[Raw], leaf: int, *, zero_usage: bool = False) -> View:
    """The path to a row; compactions become markers, as a reader makes them."""
    entries: list[Entry] = []
    markers: list[Marker] = []
    path = path_of(found, leaf)
    for at, raw in enumerate(path):
        if raw.get("type") == "compaction":
            markers.append(marker_of(raw, path[:at], entries[-1].id if entries else None))
        else:
            entries.append(entry_of(raw, zero_usage=zero_usage))
    return View(chained(entries), markers=tuple(markers))


def marker_of(raw: Raw, before: list[Raw], after: str | None) -> Marker:
    names = [earlier["id"] for earlier in before]
    first = raw.get("firstKeptEntryId")
    kept = [name for name in names[names.index(first) :] if name] if first in names else []
    shown: list[str | Entry] = [Entry(id=f"{raw['id']}s", role="user", blocks=(Text(raw["summary"], "summary"),))]
    extra = {name: raw[name] for name in ("details", "fromHook") if name in raw}
    return Marker(id=raw["id"], after=after, shown=(*shown, *kept), extra=extra or None)


def transcript_of(found: list[Raw]) -> Transcript:
    """The whole tree, for branch summaries; compactions hang their children on what they stand on."""
    above: dict[str, str | None] = {}
    entries: list[Entry] = []
    markers: list[Marker] = []
    for raw in found:
        parent = above.get(raw["parentId"], raw["parentId"]) if raw["parentId"] else None
        if raw.get("type") == "compaction":
            above[raw["id"]] = parent
            markers.append(marker_of(raw, path_of(found, int(raw["id"][1:]))[:-1], parent))
        else:
            entry = entry_of(raw, zero_usage=False)
            entries.append(msgspec.structs.replace(entry, parent=parent, sequence=len(entries)))
    return Transcript(id="t", format="pi", entries=tuple(entries), markers=tuple(markers))


class Tree:
    """A generated session file of version 3: every kind of line, branches, odd messages, several compactions."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.entries: list[Raw] = []
        self.leaf: str | None = None
        self.open: list[str] = []

    def grown(self) -> Tree:
        size = self.dice.randrange(1, 60)
        for _ in range(size):
            if self.entries and self.dice.random() < 0.06:
                self.leaf = self.dice.choice(self.entries)["id"]
                self.open = []
            self._step()
        return self

    def _add(self, kind: str, **fields: Any) -> None:
        name = f"{len(self.entries):08x}"
        self.entries.append(
            {"type": kind, "id": name, "parentId": self.leaf, "timestamp": "2026-07-01T00:00:00.000Z", **fields}
        )
        self.leaf = name

    def _message(self, role: str, **fields: Any) -> None:
        self._add("message", message={"role": role, "timestamp": 0, **fields})

    def _step(self) -> None:
        if self.open and self.dice.random() < 0.9:
            self._result(self.open.pop(0))
            return
        kinds = {
            "user": 20,
            "assistant": 40,
            "metadata": 12,
            "bash": 5,
            "custom": 6,
            "branch": 4,
            "compaction": 6,
            "stray": 2,
        }
        (kind,) = self.dice.choices(list(kinds), list(kinds.values()))
        getattr(self, f"_{kind}")()

    def text(self) -> str:
        size = self.dice.choice((0, 1, 3, 4, 5, 40, 400, 401, 1_999, 2_000, 2_001, 4_000))
        piece = self.dice.choice(("x", "word ", "é", "漢", "😀", "a\n\n[b] 12 ", '"\\'))
        return (piece * (size // len(piece) + 1))[:size]

    def content(self, *, images: bool = True) -> Any:
        if self.dice.random() < 0.3:
            return self.text()
        blocks: list[Raw] = [{"type": "text", "text": self.text()} for _ in range(self.dice.choice((0, 1, 1, 2)))]
        if images and self.dice.random() < 0.15:
            blocks.append({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"})
        return blocks

    def _user(self) -> None:
        self._message("user", content=None if self.dice.random() < 0.03 else self.content())

    def _assistant(self) -> None:
        blocks: list[Raw] = []
        if self.dice.random() < 0.3:
            blocks.append({"type": "thinking", "thinking": self.text(), "thinkingSignature": "opaque"})
        if self.dice.random() < 0.7:
            blocks.append({"type": "text", "text": self.text()})
        for _ in range(self.dice.choice((0, 0, 1, 1, 2, 3))):
            call = f"call_{self.dice.randrange(10**9)}"
            blocks.append({"type": "toolCall", "id": call, "name": self._tool(), "arguments": self._arguments()})
            self.open.append(call)
        stop = self.dice.choices(("stop", "toolUse", "error", "aborted", "length"), (60, 25, 5, 5, 5))[0]
        if stop in ("error", "aborted") and self.dice.random() < 0.5:
            self.open = []
        self._message(
            "assistant", content=blocks, api="x", provider="p", model="m", stopReason=stop, usage=self._usage()
        )

    def _tool(self) -> str:
        return self.dice.choice(("read", "write", "edit", "bash", "Read"))

    def _arguments(self) -> Raw:
        path = self.dice.choice(("a.py", "b.py", "src/c.py", "./a.py", "ä.txt", "😀.md", "\uff5e.md", "", 7, None))
        more = {"n": self.dice.choice((1, 2.5, 1e21, 0.1, -3, 12345678901234567890, True)), "s": self.text()}
        return {"path": path} | (more if self.dice.random() < 0.5 else {})

    def _usage(self) -> Raw:
        if self.dice.random() < 0.3:
            sent = made = read = 0
        else:
            sent, made, read = (self.dice.randrange(0, 90_000) for _ in range(3))
        usage = {"input": sent, "output": made, "cacheRead": read, "cacheWrite": 0}
        return usage | {"totalTokens": sum(usage.values()) if self.dice.random() < 0.8 else 0}

    def _result(self, call: str) -> None:
        content = self.content()
        content = [{"type": "text", "text": content}] if isinstance(content, str) else content
        self._message("toolResult", toolCallId=call, toolName="t", content=content, isError=self.dice.random() < 0.1)

    def _stray(self) -> None:
        self._result("call_of_nothing")

    def _bash(self) -> None:
        ran: Raw = {
            "command": "ls",
            "output": self.text(),
            "exitCode": self.dice.choice((0, 1)),
            "cancelled": False,
            "truncated": False,
        }
        hidden = {"excludeFromContext": True} if self.dice.random() < 0.2 else {}
        self._message("bashExecution", **ran, **hidden)

    def _custom(self) -> None:
        self._add("custom_message", customType="note", content=self.content(), display=True)

    def _branch(self) -> None:
        details = {"readFiles": ["old-read.py", "a.py"], "modifiedFiles": ["old-edit.py"]}
        more: Raw = {"details": details} if self.dice.random() < 0.5 else {}
        more |= {"fromHook": True} if self.dice.random() < 0.3 else {}
        self._add("branch_summary", fromId="root", summary=f"branch {len(self.entries)} " + self.text(), **more)

    def _metadata(self) -> None:
        kind, fields = self.dice.choice(
            (
                ("model_change", {"provider": "p", "modelId": "m"}),
                ("thinking_level_change", {"thinkingLevel": "low"}),
                ("label", {"targetId": "x", "label": "here"}),
                ("custom", {"customType": "state", "data": 1}),
                ("session_info", {"name": "named"}),
            )
        )
        for _ in range(self.dice.choice((1, 1, 2))):
            self._add(kind, **fields)

    def _compaction(self) -> None:
        path = [raw["id"] for raw in self._path() if raw["type"] != "compaction"]
        if not path:
            self._user()
            return
        kept = "absent" if self.dice.random() < 0.1 else self.dice.choice(path[-12:])
        details = {"readFiles": ["kept-read.py", "b.py"], "modifiedFiles": ["kept-edit.py"]}
        more: Raw = {"details": details} if self.dice.random() < 0.7 else {}
        more |= {"fromHook": True} if self.dice.random() < 0.2 else {}
        summary = f"summary {len(self.entries)} " + self.text()
        self._add("compaction", summary=summary, firstKeptEntryId=kept, tokensBefore=1, **more)

    def _path(self) -> list[Raw]:
        by_id = {raw["id"]: raw for raw in self.entries}
        path: list[Raw] = []
        at = self.leaf
        while at is not None:
            path.append(by_id[at])
            at = by_id[at]["parentId"]
        return path[::-1]


def generated(seed: int) -> Case:
    """A tree with questions about its end, two other places, and a branch."""
    tree = Tree(seed).grown()
    dice = random.Random(-seed - 1)
    last = len(tree.entries) - 1
    keeps = (1, 50, 100, 200, 400, 1_000, 3_000, 20_000)
    leaves = [last, *(dice.randrange(last + 1) for _ in range(2))]
    asks = [Ask(leaf, dice.choice(keeps), answers=["first answer", "second answer"], text=True) for leaf in leaves]
    asks += [Ask(dice.randrange(last + 1), target=dice.randrange(last + 1), budget=dice.choice((0, 100, 1_000, 5_000)))]
    return Case(tree.entries, asks)
