"""How much of each summary request a real prefix cache serves, with the session's own last request as what the cache holds.

Before each measurement the session's last request is sent again, so that every case meets the same cache. The server has one slot and no
other store, so what it serves of a prompt is the longest beginning that the prompt shares with the session's last request.

Three numbers stand beside each other and in columns of their own: what was *measured*, what a *model* of a cache says of the same requests
(the longest common beginning of their texts), and what the published experiment *claimed* for the same change.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

from ...budget import Budget
from ...errors import FirsthandError
from ...formats.wire.response import usage_of
from ...projection.plan import Plan
from ...projection.render import project
from ...projection.repair import repair
from ...strategies import strategy_by_name
from ...strategies.contract import CompactionRequest, NeedsSummary, SummaryRequest
from ...summary.model import HttpModel
from ...summary.request import request_body, summary_body
from ...testing.local_model import LocalModel
from ...testing.server.accounting import PrefixCache, request_pieces
from ...tokens import EstimateCounter
from ...transcript import View
from .session import SYSTEM, TOOLS, entries

__all__ = [
    "LEAST_SAME",
    "MOST_OTHER",
    "STRATEGIES",
    "Bar",
    "Case",
    "LocalServer",
    "Measured",
    "Server",
    "before_tools",
    "broken",
    "cases",
    "measure_cache",
]

LEAST_SAME = 0.95
"""What the cache must serve of a request of the session's own shape, before its instruction."""
MOST_OTHER = 0.05
"""What it may serve of one whose beginning is another: the mark that opens a message."""

STRATEGIES = ("futureos-summarized", "codex-local", "pi", "opencode-v1", "opencode-v2")
"""Those whose summaries a model writes."""

_OPTIONS: dict[str, dict[str, Any]] = {
    "pi": {"keep_recent_tokens": 1},
    "opencode-v1": {"tail_turns": 0},
    "opencode-v2": {"keep_tokens": 0},
}
"""A tail as large as usual would leave nothing of so small a session to summarise."""
_DEADLINE = 900.0
_WINDOW = 200_000
_WIRE = "openai-chat"
_INSTRUCTION = "Write down for a colleague what was found out so far, with exact paths and numbers. Call no tool."
_OTHER_SYSTEM = (
    "Condense conversations between people and assistants. Read what follows, take part in nothing, and write down what somebody else "
    "needs who has to go on."
)
_LINE = "Note: earlier parts of this conversation may have been condensed.\n"


@dataclass(frozen=True)
class Bar:
    """What a measured share must be."""

    least: float = 0.0
    most: float = 1.0
    told: str = ""


@dataclass(frozen=True)
class Case:
    """One request, and what was said about it before anybody measured."""

    name: str
    body: Mapping[str, Any]
    published: str = ""
    """The published experiment's claim for this change, in its own words' sense (futureos.md 8.7, 8.8)."""
    bar: str = ""
    """`same`, `other`, `tools`, or nothing where the figure is just told."""


@dataclass(frozen=True)
class Measured:
    """What came of one case. Sizes are tokens of the model."""

    case: Case
    prompt: int
    """The whole prompt, as the server counted it."""
    before: int
    """Without the last message, where that is an instruction behind the history: the most that a cache could serve."""
    cached: int
    """What the server read from its cache."""
    modelled: float
    """The share that the longest common beginning of the texts gives, in estimated tokens."""
    bar: Bar | None

    @property
    def share(self) -> float:
        """The measured share of `before`, 0 to 1."""
        return min(self.cached, self.before) / self.before

    @property
    def holds(self) -> bool:
        """Whether it is within its bar."""
        return self.bar is None or self.bar.least <= self.share <= self.bar.most


def cases(strategies: Sequence[str] = STRATEGIES) -> list[Case]:
    """The requests that are measured: the four changes of the published experiment, and each strategy's summary request.

    Raises:
        FirsthandError: a strategy asks for no summary of the session.
    """
    shown = repair(entries()).entries
    asked = SummaryRequest(id="handoff", instruction=_INSTRUCTION, max_output=64)
    own = summary_body(asked, _WIRE, shown, system=SYSTEM, tools=TOOLS)
    found = [
        Case("identical shape", own, "93.7 %", "same"),
        Case(
            "other system prompt", summary_body(asked, _WIRE, shown, system=_OTHER_SYSTEM, tools=TOOLS), "0 %", "other"
        ),
        Case("tools dropped", {name: value for name, value in own.items() if name != "tools"}, "0 %", "tools"),
        Case(
            "one line added at the front",
            summary_body(asked, _WIRE, shown, system=_LINE + SYSTEM, tools=TOOLS),
            "0 %",
            "other",
        ),
    ]
    claims = {
        "futureos-summarized": "shares the prefix",
        "codex-local": "shares the prefix",
        "opencode-v1": "shares nothing",
        "opencode-v2": "shares nothing",
    }
    for name in strategies:
        for number, request in enumerate(_requests(name)):
            told = f"summary request of {name}" + (f", {number + 1}." if number else "")
            items = Plan(
                strategy=name, version="1", covered_from=entries()[0].id, cutoff=entries()[-1].id, items=request.items
            )
            messages = repair(project(View(entries()), items)).entries if request.items else ()
            body = summary_body(request, _WIRE, messages, system=SYSTEM, tools=TOOLS)
            found.append(Case(told, body, claims.get(name, ""), "same" if name == "futureos-summarized" else ""))
    return found


def _requests(name: str) -> tuple[SummaryRequest, ...]:
    view = View(entries())
    budget = Budget.of(_WINDOW, 8_192, counter=EstimateCounter())
    strategy = strategy_by_name(name, **_OPTIONS.get(name, {}))
    decision = strategy.plan(view, budget, CompactionRequest(trigger="manual", phase="standalone"))
    if not isinstance(decision, NeedsSummary):
        raise FirsthandError(f"{name} asks for no summary of the measured session: {decision}")
    return decision.requests


class Server(Protocol):
    """A model server with one prefix cache, which tells how it renders a request."""

    def ask(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The response to a chat request."""

    def tokens(self, body: Mapping[str, Any], *, answer: bool = True) -> list[int]:
        """The tokens that it makes of a request, the opening of the answer included or not."""


class LocalServer:
    """The server of a local model.

    Args:
        model: running, and used by nobody else meanwhile: it has one cache.
    """

    def __init__(self, model: LocalModel) -> None:
        self._model = model
        self._ask = HttpModel(model.url + "/v1", timeout=_DEADLINE)

    def ask(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The response to a chat request.

        Raises:
            ProviderError: the server answered with an error.
        """
        return self._ask(body)

    def tokens(self, body: Mapping[str, Any], *, answer: bool = True) -> list[int]:
        """The tokens that the server makes of a request, without reading it."""
        asked = json.dumps(
            {"content": self._model.prompt(body, answer=answer), "add_special": False, "parse_special": True}
        )
        connection = http.client.HTTPConnection(urlsplit(self._model.url).netloc, timeout=60)
        try:
            connection.request("POST", "/tokenize", asked, {"content-type": "application/json"})
            found: list[int] = json.loads(connection.getresponse().read())["tokens"]
        finally:
            connection.close()
        return found


def measure_cache(
    server: Server, *, strategies: Sequence[str] = STRATEGIES, progress: Callable[[str], None] = lambda told: None
) -> Iterator[Measured]:
    """The measurements, one after the other. Some 12,000 prompt tokens are read in all, at most 1,250 in one request.

    Args:
        server: `LocalServer(model)`.
        strategies: whose summary requests are measured beside the four changes.
        progress: told what is measured next.

    Raises:
        FirsthandError: what was measured would mean nothing: tools cost no tokens, or template and server count a request differently.
        ProviderError: the server answered with an error.
    """
    last = request_body(_WIRE, repair(entries()).entries, system=SYSTEM, tools=TOOLS)
    stands = before_tools(server, last)
    for case in cases(strategies):
        progress(case.name)
        server.ask({**last, "max_completion_tokens": 1})
        body = {name: value for name, value in case.body.items() if name != "max_completion_tokens"}
        usage = usage_of(_WIRE, server.ask({**body, "max_completion_tokens": 1}))
        prompt = len(server.tokens(body))
        if usage is None or usage.input_tokens != prompt:
            raise FirsthandError(
                f"the server counted {usage} for {case.name}, and its template makes {prompt:,} tokens of it"
            )
        before = _before_instruction(server, body)
        yield Measured(case, prompt, before, usage.cache_read, _modelled(last, body), _bar(case, before, stands))


def before_tools(server: Server, body: Mapping[str, Any]) -> int:
    """Tokens that stand before the tools in a prompt: the longest common beginning of it with and without them.

    Raises:
        FirsthandError: both are equal, so the template shows no tools and nothing would be learned about dropping them.
    """
    bare = {name: value for name, value in body.items() if name != "tools"}
    one, other = server.tokens(body), server.tokens(bare)
    if len(one) == len(other):
        raise FirsthandError(
            f"the chat template shows no tools: {len(one):,} prompt tokens with and without them; use one that does (LocalModel has one)"
        )
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _before_instruction(server: Server, body: Mapping[str, Any]) -> int:
    """Tokens without the trailing instruction; the whole prompt where the history stands within it, since all of it is written anew then."""
    if not _instructed(body):
        return len(server.tokens(body))
    return len(server.tokens({**body, "messages": body["messages"][:-1]}, answer=False))


def _instructed(body: Mapping[str, Any]) -> bool:
    """Whether the history stands before the last message and not within it."""
    return len([message for message in body["messages"] if message["role"] != "system"]) > 1


def _modelled(last: Mapping[str, Any], body: Mapping[str, Any]) -> float:
    """The share of the common beginning in the order in which providers render requests: tools, system prompt, messages."""
    counter = EstimateCounter()
    cache = PrefixCache()
    cache.serve(request_pieces(last, counter), counter)
    pieces = request_pieces(body, counter)
    whole = sum(piece.tokens for piece in (pieces[:-1] if _instructed(body) else pieces))
    return min(cache.serve(pieces, counter), whole) / whole


def _bar(case: Case, before: int, stands: int) -> Bar | None:
    if case.bar == "same":
        return Bar(least=LEAST_SAME, told=f"at least {LEAST_SAME:.0%}")
    if case.bar == "other":
        return Bar(most=MOST_OTHER, told=f"under {MOST_OTHER:.0%}")
    if case.bar == "tools":
        return Bar(most=stands / before, told=f"at most the {stands:,} tokens before the tools")
    return None


def broken(found: Sequence[Measured]) -> list[str]:
    """What is outside of its bar, one sentence each."""
    return [
        f"{one.case.name}: {one.cached:,} of {one.before:,} tokens served, {one.share:.1%}; it should be {one.bar.told}"
        for one in found
        if one.bar is not None and not one.holds
    ]
