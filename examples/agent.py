"""A complete agent loop on a session that compacts itself: one tool, any OpenAI-compatible endpoint.

    python examples/agent.py http://127.0.0.1:8080/v1 MODEL "How many Python files are here?"
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from firsthand import Session
from firsthand.summary.model import HttpModel

SYSTEM = "You answer questions about the current directory. Use the shell tool; answer in one sentence when you know."
SHELL = {
    "type": "function",
    "function": {
        "name": "shell",
        "description": "Run a command and return its output.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    },
}


def run(arguments: dict[str, Any]) -> str:
    """The output of one command, both streams."""
    done = subprocess.run(arguments["command"], shell=True, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr


def main(url: str, model: str, question: str) -> str:
    """Asks until the model answers without a call."""
    import json

    send = HttpModel(url, model=model)
    with Session.open("agent-example", window=32_000, model=model, on_event=lambda event: print(event, file=sys.stderr)) as session:
        session.append([{"role": "user", "content": question}])
        while True:
            entries = session.step(send, system=SYSTEM, tools=[SHELL], max_output=2_000)
            calls = [block for entry in entries for block in entry.blocks if hasattr(block, "arguments")]
            if not calls:
                return "".join(block.text for entry in entries for block in entry.blocks if hasattr(block, "text"))
            session.append(
                [{"role": "tool", "tool_call_id": call.id, "content": run(json.loads(call.arguments))} for call in calls]
            )


if __name__ == "__main__":
    print(main(*sys.argv[1:4]))
