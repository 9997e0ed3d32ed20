"""What the first and last lines of a session file tell about the session: its id, model, title and folder."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..codec import decode
from .files.records import record_of, string_of

__all__ = ["Metadata", "metadata_of"]

# In the samples the first model name stands up to 105 kB into the file, behind instructions and hook output.
_EDGE = 131_072


@dataclass
class Metadata:
    """What could be told."""

    session: str | None = None
    model: str | None = None
    title: str | None = None
    cwd: str | None = None


def metadata_of(kind: str, path: Path) -> Metadata:
    """Metadata of a file of the format `kind`, from its first and last 128 KiB. What cannot be told stays None.

    Raises:
        OSError: the file cannot be read.
    """
    head, tail = _edges(path)
    if kind == "gemini-cli":
        return _of_gemini(head, tail, path)
    if kind == "aider":
        return _of_aider(tail or head, path)
    out = Metadata()
    records = list(_records(head, complete=not tail)) + list(_records(tail, complete=True))
    if kind == "claude-code":
        _of_claude_code(out, records, path)
    elif kind == "codex":
        _of_codex(out, records, path)
    else:
        _of_pi(out, records, path)
    return out


def _edges(path: Path) -> tuple[bytes, bytes]:
    with path.open("rb") as file:
        head = file.read(_EDGE)
        size = file.seek(0, 2)
        if size <= _EDGE:
            return head, b""
        # The tail starts at a line's start: what stands before its first line end belongs to a line that is cut.
        start = max(_EDGE, size - _EDGE)
        file.seek(start)
        tail = file.read()
    return head, tail if start == _EDGE and head.endswith(b"\n") else tail.partition(b"\n")[2]


def _records(data: bytes, *, complete: bool) -> Iterable[dict[str, Any]]:
    lines = data.split(b"\n")
    for line in lines if complete else lines[:-1]:
        try:
            value = decode(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


def _of_claude_code(out: Metadata, records: list[dict[str, Any]], path: Path) -> None:
    out.session = path.stem
    titles: dict[str, str] = {}
    for record in records:
        kind = str(record.get("type"))
        out.cwd = out.cwd or string_of(record.get("cwd"))
        model = string_of(record_of(record.get("message")).get("model"))
        if kind == "assistant" and model and model != "<synthetic>":
            out.model = model
        for name in ("customTitle", "aiTitle", "summary"):
            if kind in ("custom-title", "ai-title", "summary") and (title := string_of(record.get(name))):
                titles[name] = title
    # The person's own title counts more than the client's, and either more than the summary of a branch.
    out.title = titles.get("customTitle") or titles.get("aiTitle") or titles.get("summary")


def _of_codex(out: Metadata, records: list[dict[str, Any]], path: Path) -> None:
    for record in records:
        payload = record_of(record.get("payload"))
        if record.get("type") == "session_meta":
            out.session = out.session or string_of(payload.get("id"))
            out.cwd = out.cwd or string_of(payload.get("cwd"))
        elif record.get("type") == "turn_context":
            out.model = string_of(payload.get("model")) or out.model
        elif payload.get("type") == "thread_name_updated":
            out.title = string_of(payload.get("thread_name")) or string_of(payload.get("name")) or out.title
    named = re.search(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$", path.stem)
    out.session = out.session or (named[0] if named else None)


def _of_pi(out: Metadata, records: list[dict[str, Any]], path: Path) -> None:
    for record in records:
        kind = record.get("type")
        if kind == "session":
            out.session = string_of(record.get("id")) or out.session
            out.cwd = string_of(record.get("cwd")) or out.cwd
            out.model = string_of(record.get("modelId")) or out.model
        elif kind == "model_change":
            # The fork writes "provider/model" under another name.
            named = string_of(record.get("model"))
            out.model = string_of(record.get("modelId")) or (named.partition("/")[2] or named if named else out.model)
        elif kind == "message":
            out.model = string_of(record_of(record.get("message")).get("model")) or out.model
        elif kind in ("session_info", "title", "title_change"):
            out.title = string_of(record.get("name")) or string_of(record.get("title")) or out.title


def _of_gemini(head: bytes, tail: bytes, path: Path) -> Metadata:
    """From the lines of a log; of the one document that early versions wrote, which cannot be decoded in part, by patterns."""
    text = (head + b"\n" + tail).decode("utf-8", "replace")
    out = Metadata(_first(text, "sessionId"), _last(text, "model"))
    changes = [
        record_of(record.get("$set")) for record in (*_records(head, complete=not tail), *_records(tail, complete=True))
    ]
    titles = [string_of(change.get("summary")) for change in changes]
    # Two spaces: the document is indented by them, and results of tools have fields of that name further in.
    out.title = next((title for title in reversed(titles) if title), None) or _last(text, "summary", r"^ {2}")
    project = next((folder.parent for folder in path.parents if folder.name == "chats"), path.parent) / ".project_root"
    if project.is_file() and not project.is_symlink():
        out.cwd = project.read_text("utf-8", "replace").strip() or None
    return out


def _first(text: str, name: str) -> str | None:
    found = re.search(rf'(?<!\\)"{name}"\s*:\s*"((?:[^"\\]|\\.)*)"', text)
    return _unescaped(found[1]) if found else None


def _last(text: str, name: str, before: str = r"(?<!\\)") -> str | None:
    found = re.findall(rf'{before}"{name}"\s*:\s*"((?:[^"\\]|\\.)*)"', text, re.M)
    return _unescaped(found[-1]) if found else None


def _of_aider(end: bytes, path: Path) -> Metadata:
    text = end.decode("utf-8", "replace")
    models = re.findall(r"^> (?:Main model|Model|Models): (\S+)", text, re.M)
    return Metadata(model=models[-1] if models else None, cwd=str(path.parent))


def _unescaped(text: str) -> str:
    try:
        return str(decode(f'"{text}"'))
    except ValueError:
        return text
