"""A fake model server: the three wire APIs, answered by a script, with a log of all that arrived.

    from firsthand.testing.server import Call, Failure, FakeServer, Reply

    with FakeServer([Reply(calls=(Call("bash", {"cmd": "ls"}),)), Failure("overflow"), "Done."]) as server:
        ...  # point any OpenAI or Anthropic client at server.url
        print(server.requests[-1].json)

In a shell: `python -m firsthand.testing.server --script replies.json` prints the address and serves until it is told to stop.
The server itself needs the extra `testing` (starlette, uvicorn); importing this needs nothing.
"""

from .fake_server import FakeServer
from .received import Received, WireName
from .script import Answer, Call, Cut, Failure, FailureKind, Lane, Raw, Reply, Script, read_script
from .settings import AnswerFunction

__all__ = [
    "Answer",
    "AnswerFunction",
    "Call",
    "Cut",
    "Failure",
    "FailureKind",
    "FakeServer",
    "Lane",
    "Raw",
    "Received",
    "Reply",
    "Script",
    "WireName",
    "read_script",
]
