"""A session, and a fake model that reads it: it names exactly what its request shows, or does what a test wants."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from firsthand.codec import encode
from firsthand.formats.wire import wire_by_name
from firsthand.lab.values import literal, shows
from firsthand.testing.builders import call, filler, result, said, session, user
from firsthand.testing.server import Received, Reply
from firsthand.transcript import Usage

SYSTEM = "You are a careful assistant for the project of the stub server."
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "read",
            "description": "Read a file.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
        },
    }
]


def session_file(folder: Path, name: str = "session", turns: int = 24, tag: str = "mod") -> Path:
    """A chat request as a file, with system prompt and tools."""
    entries = []
    for number in range(1, turns + 1):
        entries += [
            user(f"Look at src/{tag}_{number}.py. Never touch port {5000 + number}."),
            said(
                f"I read src/{tag}_{number}.py for task-{tag}{number:02d}b.",
                call("read", path=f"src/{tag}_{number}.py"),
            ),
            result(f"c{number}", f"retry_limit_{tag}_{number} = {number * 111}\n{filler(600, f'{tag}{number:03d}')}"),
            said(f"The limit retry_limit_{tag}_{max(1, number - 12)} stays."),
        ]
    messages = wire_by_name("openai-chat").write(session(*entries)).messages
    path = folder / f"{name}.json"
    path.write_bytes(encode({"messages": [{"role": "system", "content": SYSTEM}, *messages], "tools": TOOLS}))
    return path


def asked_of(got: Received) -> list[str]:
    """The strings of a question's list."""
    listed = question_of(got).rsplit("\n\n", 1)[-1]
    return [json.loads(line[2:]) for line in listed.splitlines() if line.startswith('- "')]


def question_of(got: Received) -> str:
    return str(got.messages[-1]["content"])


def seen_by(got: Received) -> str:
    """What stands before the list, question's words aside."""
    before = json.dumps(got.messages[:-1], ensure_ascii=False)
    return literal(before + question_of(got).rsplit("\n\n", 1)[0])


def sees(got: Received) -> Reply:
    """Names all that its request shows, and no more."""
    text = seen_by(got)
    return answer([value for value in asked_of(got) if shows(text, value)])


def answer(values: list[str]) -> Reply:
    return Reply(json.dumps({"appeared": values}), usage=Usage(input_tokens=1_000, output_tokens=20, cache_read=800))


def says(text: str) -> Callable[[Received], Reply]:
    """A model that always says the same."""
    return lambda got: Reply(text, usage=Usage(input_tokens=1_000, output_tokens=20))


def gaps_of(got: Received) -> dict[str, str]:
    """The lines of a cloze, by number."""
    return {m[1]: json.loads(m[2]) for m in re.finditer(r"^(\d+)\. (\".*\")$", question_of(got), re.M)}
