"""What a real prefix cache serves of a summary request, measured: with the session's own shape, and with another system prompt.

A session talks with a local model until its trigger fires, compacts itself with a summary of that model, and goes on. The summary request is
the session's own last request, grown by what came since and by one instruction; what of it the server did not have to read again stands in
the usage of its answer. For comparison the same request is sent once more with a system prompt made for summaries, as other products do it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import FirsthandError
from ..formats.wire.response import usage_of
from ..journal import Journal
from ..session.compaction import Outcome
from ..session.session import Session
from ..session.steps import Prepared
from ..strategies.futureos.strategies import FutureosSummarized
from ..summary.model import HttpModel
from ..transcript import Entry, ToolCall
from .coding_tools import CODING_TOOLS
from .local_model import LocalModel

__all__ = ["CacheServed", "PrefixSharing", "Summarised", "measure_prefix_sharing"]

# The smallest sizes at which a summary has a place beside the index, a compaction is worth its while, and every prompt stays under 1,500 tokens:
# the model is slow. Answers are kept short because their last token and the next question were never sent before, so no cache can serve them.
WINDOW = 4_000
THRESHOLD = 900
TARGET = 1_500
MAX_OUTPUT = 24
MOST_STEPS = 12
DEADLINE = 900.0
"""Seconds for one answer: a machine with two busy cores may read no more than ten tokens a second."""

SYSTEM = (
    "You are a coding assistant in a terminal. Look at files with the tools before you speak about them, keep answers short, and never "
    "change a port without being asked."
)
SHORT_PROMPT = "Say in one sentence what was found out so far. Do not call tools."
SUMMARISER_SYSTEM = (
    "Condense conversations between people and assistants. Read what follows, take part in nothing, and write down what somebody else "
    "needs who has to go on."
)


_TASK = "The stub server in tests/stub.py must listen on port 8123. Find out why the login test fails, and change nothing else."
_SCRIPTED = (
    (
        "read",
        '{"path":"tests/stub.py"}',
        "\n".join(
            [
                "from http.server import HTTPServer, BaseHTTPRequestHandler",
                "PORT = 8132",
                *(f"ROUTES['/v1/item/{n}'] = answer({n * 37}, wait={n % 5})" for n in range(1, 16)),
                "def serve():",
                "    HTTPServer(('127.0.0.1', PORT), Handler).serve_forever()",
            ]
        ),
    ),
    (
        "bash",
        '{"command":"pytest -q tests/test_login.py"}',
        "tests/test_login.py:41: ConnectionRefusedError: [Errno 111] nothing listens on 127.0.0.1:8123\n1 failed, 6 passed in 2.31s",
    ),
)
_FOUND = "Nothing listens on port 8123: tests/stub.py has the port 8132."
_ASKED = ("Which test fails?", "Which file is it?", "Which port is right?", "Say in one sentence what is wrong.")


@dataclass(frozen=True)
class CacheServed:
    """How much of one request's prompt the server had in its prefix cache. Sizes are tokens of the model."""

    prompt: int
    """The whole prompt, as the server counted it."""
    instruction: int
    """The trailing instruction and the opening of the answer behind it."""
    cached: int
    """What the cache served."""

    @property
    def before_instruction(self) -> int:
        """The prompt without the trailing instruction: the most that a cache could serve."""
        return self.prompt - self.instruction

    @property
    def share(self) -> float:
        """The part of it that the cache served, 0 to 1; what was served of an instruction that was sent before does not count."""
        return min(self.cached, self.before_instruction) / self.before_instruction


@dataclass(frozen=True)
class Summarised:
    """One compaction of the session, with the summary request that it sent."""

    outcome: Outcome
    """How it ended. A fallback is to be expected where headings are required: the model is tiny."""
    answer: str
    """What the model said; empty when it called a tool."""
    served: CacheServed
    """What the cache served of the request."""
    following: Mapping[str, Any]
    """The body of the session's next request."""


@dataclass(frozen=True)
class PrefixSharing:
    """What `measure_prefix_sharing` found. Sizes are tokens of the model."""

    own: Summarised
    """With the strategy's own instruction."""
    short: Summarised
    """Undone and made again with a prompt of one sentence, which even this model can follow."""
    primed: CacheServed
    """The session's last request, sent again: what the cache held when the next one came. It has no instruction."""
    substituted: CacheServed
    """The first summary request once more, with another system prompt."""
    without_tools: int
    """Prompt tokens of the session's last request without its tools; with them it takes `primed.prompt`."""
    steps: int
    """Model steps before the trigger fired."""
    went_on: int
    """Prompt tokens of the request that followed on the second compaction; the model answered it."""


class _Recorded:
    """Sends and keeps the request bodies with their responses, in order."""

    def __init__(self, model: HttpModel) -> None:
        self._model = model
        self.calls: list[tuple[Mapping[str, Any], Mapping[str, Any]]] = []

    def __call__(self, body: Mapping[str, Any]) -> dict[str, Any]:
        response = self._model(body)
        self.calls.append((body, response))
        return response


def measure_prefix_sharing(model: LocalModel) -> PrefixSharing:
    """Runs a session over its trigger against the model, and measures what its prefix cache serves of the summary request.

    Some 3,000 prompt tokens are read, at most 1,210 in one request: a minute on two idle cores.

    Args:
        model: a running model that nobody else uses meanwhile: it has one cache.

    Raises:
        FirsthandError: what was measured would mean nothing: tools cost no tokens, the counts of template and server differ, or the
            session asked for no summary.
        ProviderError: the server answered with an error.
    """
    send = _Recorded(HttpModel(model.url + "/v1", timeout=DEADLINE))
    with tempfile.TemporaryDirectory() as folder, Journal.open(Path(folder) / "journal.db") as journal:
        session = _begun(journal, send)
        _without_tools(model, _prepared(session).body)
        steps = 0
        while (prepared := _prepared(session)).outcome is None and steps < MOST_STEPS:
            answered = session.record(send(prepared.body))
            session.append(_after(answered, _ASKED[steps % len(_ASKED)]))
            steps += 1
        if not steps:
            raise FirsthandError(
                "the session was over its trigger before its first step, so the cache held nothing of it"
            )
        last, _ = send.calls[steps - 1]
        own = _summarised(model, prepared, send.calls[steps:])

        # The originals are all there, so the same compaction can be taken back and made in another way.
        session.undo()
        session.settings = replace(
            session.settings, strategy=FutureosSummarized(from_originals=True, prompt=SHORT_PROMPT)
        )
        prepared = _prepared(session)
        short = _summarised(model, prepared, send.calls[steps + 1 :])

        once = {"max_completion_tokens": 1}
        primed = _served(model, {**last, **once}, send({**last, **once}), instructed=False)
        asked, _ = send.calls[steps]
        other = {
            **asked,
            **once,
            "messages": [{"role": "system", "content": SUMMARISER_SYSTEM}, *asked["messages"][1:]],
        }
        substituted = _served(model, other, send(other))

        without_tools = model.prompt_tokens({name: value for name, value in last.items() if name != "tools"})
        if without_tools == primed.prompt:
            raise FirsthandError(
                f"the chat template shows no tools: {without_tools:,} prompt tokens with and without them"
            )
        answer = send(prepared.body)
        session.record(answer)
    return PrefixSharing(own, short, primed, substituted, without_tools, steps, answer["usage"]["prompt_tokens"])


def _prepared(session: Session) -> Prepared:
    return session.prepare(system=SYSTEM, tools=CODING_TOOLS, max_output=MAX_OUTPUT)


def _begun(journal: Journal, send: _Recorded) -> Session:
    """A session with a task and two tool results behind it."""
    session = Session.open(
        "measured",
        journal=journal,
        window=WINDOW,
        threshold=THRESHOLD,
        target=TARGET,
        strategy=FutureosSummarized(from_originals=True),
        summariser=send,
        summary_deadline=DEADLINE,
    )
    session.append([{"role": "user", "content": _TASK}])
    for number, (tool, arguments, result) in enumerate(_SCRIPTED, start=1):
        call = {"id": f"call_{number}", "type": "function", "function": {"name": tool, "arguments": arguments}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        session.record({"choices": [{"finish_reason": "tool_calls", "message": message}]})
        session.append([{"role": "tool", "tool_call_id": f"call_{number}", "content": result}])
    session.record({"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": _FOUND}}]})
    session.append([{"role": "user", "content": _ASKED[-1]}])
    return session


def _after(answered: Sequence[Entry], question: str) -> list[dict[str, Any]]:
    """What comes after the model's answer: the person's next question, or short results, should the model have called tools."""
    calls = [block.id for entry in answered for block in entry.blocks if isinstance(block, ToolCall)]
    if calls:
        return [{"role": "tool", "tool_call_id": call, "content": "done"} for call in calls]
    return [{"role": "user", "content": question}]


def _without_tools(model: LocalModel, body: Mapping[str, Any]) -> int:
    """Prompt tokens of a body without its tools, which must be fewer than with them: else nothing is learned about a prefix with tools."""
    bare = model.prompt_tokens({name: value for name, value in body.items() if name != "tools"})
    if bare >= model.prompt_tokens(body):
        raise FirsthandError(f"the chat template shows no tools: {bare:,} prompt tokens with and without them")
    return bare


def _summarised(
    model: LocalModel, prepared: Prepared, calls: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]
) -> Summarised:
    """The compaction that `prepared` brought, and its summary request, which must be the only one among `calls`."""
    outcome = prepared.outcome
    if outcome is None or outcome.checkpoint is None or len(calls) != 1:
        ended = "no compaction" if outcome is None else f"{outcome.kind}: {outcome.reason}"
        raise FirsthandError(f"the session made {len(calls)} summary requests where one belongs ({ended})")
    ((asked, response),) = calls
    said = response["choices"][0]["message"].get("content") or ""
    return Summarised(outcome, said, _served(model, asked, response), prepared.body)


def _served(
    model: LocalModel, body: Mapping[str, Any], response: Mapping[str, Any], *, instructed: bool = True
) -> CacheServed:
    usage = usage_of("openai-chat", response)
    prompt = model.prompt_tokens(body)
    if usage is None or usage.input_tokens != prompt:
        raise FirsthandError(
            f"the server counted {usage}, and its template makes {prompt:,} tokens of the same request"
        )
    if not instructed:
        return CacheServed(prompt, 0, usage.cache_read)
    before = model.prompt_tokens({**body, "messages": body["messages"][:-1]}, answer=False)
    return CacheServed(prompt, prompt - before, usage.cache_read)
