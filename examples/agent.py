"""A complete agent loop on a session that compacts itself: one tool, any OpenAI-compatible endpoint.

    OPENAI_API_KEY=... python examples/agent.py https://api.openai.com/v1 MODEL "How many Python files are here?"

It runs what the model asks for in your shell: use it where that is no harm. Run it again to go on with the same session.
"""

# ruff: noqa: T201, E731
import json
import os
import subprocess
import sys
from typing import Any

from firsthand import Session
from firsthand.summary.model import HttpModel
from firsthand.transcript import Text, ToolCall

SYSTEM = "You answer questions about the current directory. Use the shell tool; answer in one sentence when you know."
COMMAND = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
SHELL = {"type": "function", "function": {"name": "shell", "description": "Run a command.", "parameters": COMMAND}}


def run(arguments: str) -> str:
    """What the command prints, or what is wrong with the call: the model reads both."""
    try:
        command = json.loads(arguments)["command"]
        done = subprocess.run(command, shell=True, capture_output=True, text=True, errors="replace", timeout=60)
    except (ValueError, KeyError, TypeError, subprocess.TimeoutExpired) as error:
        return f"not run to its end: {error!r}"
    return f"exit code {done.returncode}\n{done.stdout}{done.stderr}"


def ask(session: Session, send: Any, question: str) -> str:
    """The model's answer, after as many tool calls as it wants."""
    session.append([{"role": "user", "content": question}])
    while True:
        entries = session.step(send, system=SYSTEM, tools=[SHELL], max_output=2_000)
        blocks = [block for entry in entries for block in entry.blocks]
        calls = [block for block in blocks if isinstance(block, ToolCall)]
        if not calls:
            return "".join(block.text for block in blocks if isinstance(block, Text))
        session.append({"role": "tool", "tool_call_id": call.id, "content": run(call.arguments)} for call in calls)


if __name__ == "__main__":
    url, model, question = sys.argv[1:4]
    send = HttpModel(url, model=model, key=os.environ.get("OPENAI_API_KEY"))
    tell = lambda event: print(event, file=sys.stderr)
    with Session.open("agent-example", window=32_000, model=model, on_event=tell) as session:
        print(ask(session, send, question))
