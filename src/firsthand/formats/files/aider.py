"""Aider's chat history: one Markdown file per project to which every chat is appended; each chat is one session.

Aider ends every line that it writes itself, of the person's input (`#### `) and of its own notices (`> `), with two spaces, and the
lines of the model's prose with none. That tells them from lines of prose that merely look alike, such as headings and quotations. A
notice of several lines has the mark on its first line only and the two spaces on its last. In a file whose trailing spaces have been
stripped, the marks alone decide.

Entries are the inputs (typed), the prose of the model, and the notices, which are shown to the person and only partly to the model
(injected, in the role `user`). Of the inputs, commands without arguments, empty ones, and commands whose argument comes again as an
input of its own (`/ask ...`) are echoes, so injected. Every text stands without marks and trailing spaces. The text of files and the
repository map that the model saw are not in the file. Chats in which nothing was said, only notices shown, are counted and left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import msgspec

from ...transcript import Damage, Entry, Origin, Source, Text, Transcript, chained
from .base import Input, entry_id
from .documents import text_of
from .records import Tally
from .values import made_id

__all__ = ["AiderReader"]

_FORMAT = "aider"
_HEADING = "# aider chat started at "
_INPUT = "####"
_NOTICE = ">"
_END = "  "
_COMMAND = re.compile(r"/[a-z][\w-]*(?:\s+(.*))?$", re.S)
_VERSION = re.compile(r"Aider (v\S+)")
_MODEL = re.compile(r"(?:Main model|Model|Models): (\S+)")


class AiderReader:
    """Reads Aider's chat histories."""

    name = _FORMAT
    title = "Aider"

    def sniff(self, source: Input) -> bool:
        """Whether a line opens a chat."""
        return re.search(rf"^{re.escape(_HEADING)}", source.head, re.M) is not None

    def read(self, source: Input) -> list[Transcript]:
        """One session for each chat in which something was said, in the order of the file.

        Raises:
            EmptySessionError: there is no such chat.
        """
        damaged: list[Damage] = []
        text = text_of(source.data, damaged)
        # A file written on Windows ends all its lines so; single ones belong to what was quoted.
        lines = text.split("\r\n" if text.count("\r\n") == text.count("\n") else "\n")
        tally = Tally()
        out: list[Transcript] = []
        silent = 0
        dates: Counter[str] = Counter()
        marked = any(line.endswith(_END) for line in lines if line.startswith((_INPUT, _NOTICE)))
        for chat in _chats(lines):
            dates[chat.date] += 1
            transcript = _transcript(chat, dates[chat.date], marked)
            if transcript is not None:
                out.append(transcript)
            else:
                silent += 1
        if silent:
            tally.left_out["chat in which nothing was said"] = silent
            tally.notes.append(f"{silent:,} chat(s) hold notices only and were left out")
        if not out:
            raise tally.empty(source, self.title, damaged)
        out[0] = msgspec.structs.replace(
            out[0], damaged=tuple(damaged), warnings=tally.warnings(), extra=tally.extra() or None
        )
        return out


@dataclass
class _Chat:
    date: str
    """As the heading gives it; empty for what stands before the first heading."""
    first_line: int
    """1-based line of the file on which the chat's first line stands."""
    lines: list[str] = field(default_factory=list)


def _chats(lines: Sequence[str]) -> Iterator[_Chat]:
    chat = _Chat("", 1)
    for number, line in enumerate(lines, start=1):
        if line.startswith(_HEADING):
            if chat.date or any(map(str.strip, chat.lines)):
                yield chat
            chat = _Chat(line.removeprefix(_HEADING).strip(), number + 1)
        else:
            chat.lines.append(line)
    yield chat


def _transcript(chat: _Chat, ordinal: int, marked: bool) -> Transcript | None:
    runs = list(_runs(chat.lines, marked))
    if not any(run.kind != "notice" for run in runs):
        return None
    # Two chats may start in the same second; how they were started, and which came first, does not change as the file grows.
    first = next(filter(str.strip, chat.lines), "")
    session = made_id(_FORMAT, chat.date, ordinal, first)
    path = chained(
        Entry(
            id=entry_id(session, run.line),
            role="assistant" if run.kind == "prose" else "user",
            blocks=(Text(run.text(), _origin(run, then)),),
            source=Source(_FORMAT, line=chat.first_line + run.line),
        )
        for run, then in zip_longest(runs, runs[1:])
    )
    notices = "\n".join(run.text() for run in runs if run.kind == "notice")
    version, model = _VERSION.search(notices), _MODEL.search(notices)
    return Transcript(
        id=session,
        format=_FORMAT,
        entries=path,
        leaf=path[-1].id,
        title=next((run.text().partition("\n")[0] for run in runs if run.kind == "input"), None),
        model=model[1] if model else None,
        client=version[1] if version else None,
        time=chat.date.replace(" ", "T", 1) or None,
    )


def _origin(run: _Run, then: _Run | None) -> Origin:
    """`then` is what follows: an argument that comes again right behind its command is what the model was asked."""
    if run.kind == "prose":
        return "typed"
    text = run.text().strip()
    command = _COMMAND.match(text)
    echoed = command and (
        not command[1] or (then and then.kind == "input" and then.text().strip() == command[1].strip())
    )
    return "injected" if run.kind == "notice" or echoed or text == "<blank>" else "typed"


@dataclass
class _Run:
    """Lines of one kind that belong together, without their marks."""

    kind: str
    """`input`, `prose` or `notice`."""
    line: int
    """Index of the first line in the chat."""
    lines: list[str] = field(default_factory=list)

    def text(self) -> str:
        """The lines as one text; blank lines around prose only separate it from what is beside it."""
        return "\n".join(self.lines).strip("\n") if self.kind == "prose" else "\n".join(self.lines)


def _runs(lines: Sequence[str], marked: bool) -> Iterator[_Run]:
    """The inputs, notices and prose of a chat. Every input stands by itself; notices go together while nothing is between them.

    `marked` says whether the trailing spaces are there to go by.
    """
    run: _Run | None = None
    at = barren = 0
    while at < len(lines):
        line = lines[at]
        kind = _kind(line, marked)
        stop = at + 1
        if kind == "prose" and marked and line.startswith("> "):
            written = run is not None and run.kind != "prose" and bool(lines[at - 1].strip())
            end = None
            if at >= barren:
                end, barren = _end_of_notice(lines, at, sure=written)
            kind = "notice" if end or written else "prose"
            stop = end or at + 1
        if kind == "prose" and not line.strip() and (run is None or run.kind != "prose"):
            if run is not None and run.kind == "input":
                yield run
                run = None
        elif run is not None and run.kind == kind:
            run.lines += _bare(lines[at:stop], kind)
        else:
            if run is not None:
                yield run
            run = _Run(kind, at, _bare(lines[at:stop], kind))
        at = stop
    if run is not None:
        yield run


def _kind(line: str, marked: bool) -> str:
    if marked and not line.endswith(_END):
        return "prose"
    if line.startswith((_INPUT + " ", _INPUT + _END)) or line == _INPUT:
        return "input"
    return "notice" if line.startswith((_NOTICE + " ", _NOTICE + _END)) or line == _NOTICE else "prose"


def _end_of_notice(lines: Sequence[str], at: int, *, sure: bool) -> tuple[int | None, int]:
    """Where the notice of several lines that may start at `at` ends, if one does; and the line up to which none can start, if none does.

    Its last line is the first one to end with the two spaces, and no complete line of Aider's own can stand before that. Where the line
    before `at` was written by Aider the start is sure, else it may be a quotation: then the notice must have no blank line.
    """
    for index in range(at + 1, len(lines)):
        line = lines[index]
        if _kind(line, marked=True) != "prose" or (not sure and not line.strip()):
            return None, index
        if line.strip() and line.endswith(_END) and not line.removesuffix(_END).endswith(" "):
            return index + 1, 0
    return None, len(lines)


def _bare(lines: Sequence[str], kind: str) -> list[str]:
    """The lines without what Aider added to them."""
    if kind == "prose":
        return list(lines)
    mark = _INPUT if kind == "input" else _NOTICE
    first = lines[0].removeprefix(mark).removeprefix(" ")
    rest = [*lines[1:]]
    if rest:
        rest[-1] = rest[-1].removesuffix(_END)
        return [first.removesuffix(_END), *rest]
    return [first.removesuffix(_END)]
