"""What a tool call looks at and what it writes to: files, commands, pages; told from its arguments, for tools of any client.

Measuring only: no strategy uses this. What it does not understand is neither read nor written, so a re-read is rather missed than invented.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from posixpath import basename, isabs, join, normpath
from typing import Any

from ..codec import compact_json, decode
from ..transcript import ToolCall

__all__ = ["Touched", "touched"]

_PATHS = ("path", "file_path", "filePath", "notebook_path", "absolute_path", "target_file", "filename", "dir_path")
_COMMANDS = ("command", "cmd", "script")
_READS = re.compile(r"read|view|cat\b|open|fetch|glob|grep|search|find|list|\bls\b", re.I)
_WRITES = re.compile(r"write|edit|patch|replace|create|insert|delete|remove", re.I)
_CONTENT = frozenset({"content", "new_string", "newText", "new_str", "patch", "diff", "edits", "file_text"})
_PATCHED = re.compile(r"^\*\*\* (?:(?:Update|Add|Delete) File|Move to): (.+)$", re.M)
# Scripts that call a shell: the command stands as a string in them.
_SCRIPTED = re.compile(r"\b(?:cmd|command)\"?\s*:\s*(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`)")
_WORKDIR = re.compile(r"\bworkdir\"?\s*:\s*\"((?:[^\"\\]|\\.)*)\"")
_LONGEST = 4_000
"""Characters of a command that is looked into; what is longer carries a program or a file in it and is no plain look at something."""

_SHOW_FILES = frozenset({"cat", "head", "tail", "sed", "nl", "bat", "less", "more"})
_LOOK = frozenset({"rg", "grep", "ls", "find", "fd", "tree", "jq", "wc", "stat", "curl", "file"})
_LOOK_GIT = frozenset({"show", "log", "diff", "status", "blame", "grep", "branch", "ls-files"})
_CHANGE = frozenset({"mv", "cp", "rm", "tee", "touch", "patch", "truncate", "install", "ln"})
_CHANGE_GIT = frozenset(
    {
        "apply",
        "checkout",
        "cherry-pick",
        "merge",
        "mv",
        "pull",
        "rebase",
        "reset",
        "restore",
        "revert",
        "rm",
        "stash",
        "switch",
    }
)
_ENDS = frozenset({"&&", "||", ";", "\n", "&", ";;"})
_VARIABLE = re.compile(r"\w+=")


@dataclass(frozen=True, slots=True)
class Touched:
    """What one call looks at and writes to."""

    read: tuple[str, ...] = ()
    """Paths, or commands and searches in one spelling; a command starts with `$ `."""
    written: tuple[str, ...] = ()
    """Paths; `*` where it is not known which, `$` where only what commands show has changed (a commit)."""


def touched(call: ToolCall, cwd: str | None = None) -> Touched:
    """What the call looks at and writes to.

    Args:
        call: the call, with its arguments as the model wrote them.
        cwd: the session's folder, to which relative paths belong.
    """
    arguments = _object(call.arguments)
    if arguments is None:
        return _free_text(call, cwd)
    command = next((text for name in _COMMANDS if (text := _command(arguments.get(name))) is not None), None)
    if command is not None:
        where = arguments.get("workdir") or arguments.get("cwd")
        return _shell(command, _at(where, cwd) if isinstance(where, str) else cwd)
    path = next((value for name in _PATHS if isinstance(value := arguments.get(name), str) and value), None)
    if _WRITES.search(call.name):
        text = next(
            (value for value in arguments.values() if isinstance(value, str) and "*** Begin Patch" in value), ""
        )
        patched = tuple(_at(found.strip(), cwd) for found in _PATCHED.findall(text))
        # A list of tasks is written too, but no file is.
        unknown = ("*",) if _CONTENT & arguments.keys() else ()
        return Touched(written=patched or ((_at(path, cwd),) if path else unknown))
    if not _READS.search(call.name):
        return Touched()
    url = arguments.get("url")
    searched = any(name in arguments for name in ("pattern", "query", "regex", "glob"))
    if path and not searched:
        return Touched(read=(_at(path, cwd),))
    if isinstance(url, str) and url:
        return Touched(read=(url,))
    return Touched(read=(f"$ {call.name} {compact_json(arguments)}",))


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _command(value: Any) -> str | None:
    if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        # `["bash", "-lc", "..."]`: the shell's own command is the last part.
        return str(value[-1]) if len(value) == 3 and value[1].startswith("-") else shlex.join(value)
    return value if isinstance(value, str) else None


def _free_text(call: ToolCall, cwd: str | None) -> Touched:
    text = call.arguments
    patched = tuple(_at(found.strip(), cwd) for found in _PATCHED.findall(text.replace("\\n", "\n")))
    if patched:
        return Touched(written=patched)
    places = _WORKDIR.findall(text)
    where = _at(places[0], cwd) if len(set(places)) == 1 else cwd
    parts = [_shell(_string(quoted), where) for quoted in _SCRIPTED.findall(text)]
    return Touched(
        tuple(dict.fromkeys(path for part in parts for path in part.read)),
        tuple(dict.fromkeys(path for part in parts for path in part.written)),
    )


def _string(quoted: str) -> str:
    if quoted[0] == '"':
        try:
            return str(decode(quoted))
        except ValueError:
            pass
    return re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], quoted[1:-1])


@lru_cache(maxsize=4_096)
def _shell(command: str, cwd: str | None) -> Touched:
    """What a shell command looks at and writes to, one simple command after the other."""
    if len(command) > _LONGEST:
        return Touched(written=("*",) if re.search(r">|\btee\b|apply_patch", command) else ())
    read: list[str] = []
    written: list[str] = [_at(found.strip(), cwd) for found in _PATCHED.findall(command)]
    for words in _pipelines(command):
        first, *rest = _without_variables(words) or [""]
        if first == "cd":
            cwd = _at(rest[0], cwd) if rest else cwd
            continue
        written += _outputs(words, cwd)
        for number, stage in enumerate(_stages([first, *rest])):
            program = basename(stage[0])
            # What stands behind a pipe sees what came through it, and no file of its own.
            read += _seen(program, stage[1:], words, cwd) if number == 0 else []
            written += _changed(program, stage[1:], cwd)
    return Touched(tuple(dict.fromkeys(read)), tuple(dict.fromkeys(written)))


def _pipelines(command: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:
        # An open quote: a here-document, or a command that was cut off.
        words = command.split()
    pipeline: list[str] = []
    for word in words:
        if word in _ENDS or (word and not word.strip("\n;&")):
            if pipeline:
                yield pipeline
            pipeline = []
        else:
            pipeline.append(word)
    if pipeline:
        yield pipeline


def _stages(words: list[str]) -> Iterator[list[str]]:
    stage: list[str] = []
    for word in [*words, "|"]:
        if word != "|":
            stage.append(word)
        elif stage:
            yield stage
            stage = []


def _without_variables(words: list[str]) -> list[str]:
    while words and (_VARIABLE.match(words[0]) or words[0] in ("sudo", "time", "(", "env")):
        words = words[1:]
    return words


def _outputs(words: list[str], cwd: str | None) -> Iterator[str]:
    for mark, name in pairwise(words):
        if mark in (">", ">>", ">|") and not name.startswith(("/dev/", "&")):
            yield _at(name, cwd)


def _seen(program: str, arguments: list[str], words: list[str], cwd: str | None) -> list[str]:
    if ">" in words or ">>" in words:
        # What goes into a file was not looked at; errors that go nowhere (`2>/dev/null`) do no harm.
        kept = [name for mark, name in pairwise(words) if mark in (">", ">>")]
        if any(not name.startswith(("/dev/", "&")) and name != "1" for name in kept):
            return []
    if program in _SHOW_FILES:
        if program == "sed" and "-n" not in arguments:
            return []
        plain = [word for word in _operands(arguments) if not re.fullmatch(r"[+-]?\d+[ck]?", word)]
        if program == "sed":
            plain = plain[1:]
        return [_at(word, cwd) for word in plain]
    looks = (
        program in _LOOK or (program == "git" and _verb(arguments) in _LOOK_GIT) or (program == "gh" and _gh(arguments))
    )
    return [f"$ {' '.join(words)}" + (f" (in {cwd})" if cwd else "")] if looks else []


def _operands(arguments: list[str]) -> list[str]:
    """What is no option; what is redirected is left out, with the number of its stream."""
    out: list[str] = []
    skip = False
    for position, word in enumerate(arguments):
        following = arguments[position + 1] if position + 1 < len(arguments) else ""
        if skip or word.startswith("-") or word in "()":
            skip = False
            continue
        if word.strip("<>&|") == "" and word:
            skip = True
            continue
        if word in "012" and following.startswith(">"):
            continue
        out.append(word)
    return out


def _verb(arguments: list[str]) -> str:
    plain = iter(arguments)
    for word in plain:
        if word in ("-C", "-c"):
            next(plain, None)
        elif not word.startswith("-"):
            return word
    return ""


def _gh(arguments: list[str]) -> bool:
    return any(word in ("view", "list", "diff", "checks", "api", "search") for word in arguments[:2]) and not any(
        word in ("-X", "--method", "-f", "-F", "--field") for word in arguments
    )


def _changed(program: str, arguments: list[str], cwd: str | None) -> list[str]:
    if program == "sed" and any(word.startswith("-i") or word == "--in-place" for word in arguments):
        return [_at(word, cwd) for word in _operands(arguments)[1:]]
    if program in _CHANGE:
        return [_at(word, cwd) for word in _operands(arguments)]
    if (program == "git" and _verb(arguments) in _CHANGE_GIT) or program == "apply_patch":
        return ["*"]
    return ["$"] if program == "git" and _verb(arguments) in ("commit", "push", "tag", "fetch", "add") else []


def _at(path: str, cwd: str | None) -> str:
    """One spelling for a path: absolute where the folder is known."""
    if cwd and not isabs(path) and not path.startswith("~"):
        path = join(cwd, path)
    return normpath(path) if path else path
