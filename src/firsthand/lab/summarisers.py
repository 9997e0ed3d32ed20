"""Who writes the summaries that some strategies need: nobody, a stand-in by rules, or a model behind a URL.

The stand-in exists so that strategies with a summary can be measured offline, all with the same method and the same cap. It is no model, and every
table says so: its column is called `extractive`.
"""

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeAlias

from ..codec import encode
from ..errors import ConfigError, ProviderError
from ..projection.plan import Plan
from ..projection.render import project
from ..projection.repair import repair
from ..strategies.contract import Summary, SummaryRequest
from ..summary.request import summary_body
from ..summary.validation import accepted
from ..tokens import Counter
from ..transcript import View, typed_text
from .values import literal, reading

if TYPE_CHECKING:
    from ..summary.model import HttpModel

__all__ = ["CAP", "NO_SUMMARY", "Summariser", "extract", "http_model", "is_model", "label", "summariser"]

CAP = 2_000
"""Tokens of the longest summary of the stand-in, whatever a strategy would allow."""

NO_SUMMARY = "(no summary)"
"""What stands where a summary would, so that a strategy's rules can be measured alone. It says nothing about the session."""

Summariser: TypeAlias = Callable[[SummaryRequest, View], Summary]

_GIVE_UP = (None, 401, 403, 404)
"""Refusals of an endpoint that have nothing to do with the request: not reached, no such key, no such model."""

# Anything with a digit, punctuation or a capital inside. Kept apart from the exam's patterns: a summary must not be written by the examiner.
_TERM = re.compile(r"[^\s\"'`,;()\[\]{}<>|=]{3,80}")
_LINE_CHARACTERS = 240
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+")


def is_model(name: str) -> bool:
    """Whether a summariser's name is the address of a model."""
    return name.startswith(("http://", "https://"))


def label(name: str) -> str:
    """The name for tables and rows: an address without what a person may have put before its host."""
    scheme, _, rest = name.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}" if is_model(name) else name


def summariser(name: str, counter: Counter, *, model: str = "", system: str | None = None) -> Summariser:
    """The summariser that a user named.

    Args:
        name: `none`, `extractive`, or the base URL of an OpenAI-compatible endpoint.
        counter: counts the stand-in's cap, and a model's answer.
        model: the model's name at that endpoint; its key is taken from FIRSTHAND_MODEL_KEY.
        system: the session's own system prompt, for requests in the session's own shape.

    Raises:
        ConfigError: the name is none of these, or a model's name is wanted.
        MissingExtraError: a URL was given and the extra `http` is not installed.
    """
    if name == "none":
        return lambda request, view: Summary(NO_SUMMARY)
    if name == "extractive":
        return _by_rules(counter)
    if not is_model(name):
        raise ConfigError(f"a summariser is none, extractive or the URL of a model, not {name!r}")
    if not model:
        raise ConfigError(f"the endpoint {label(name)} needs the name of a model; give it with --model")
    return _by_model(name, counter, model, system)


def http_model(url: str, model: str) -> HttpModel:
    """The endpoint at a URL; its key comes from the environment.

    Raises:
        MissingExtraError: the extra `http` is not installed.
    """
    from ..summary.model import HttpModel

    return HttpModel(url, model=model, key=os.environ.get("FIRSTHAND_MODEL_KEY"))


def _by_rules(counter: Counter) -> Summariser:
    known: dict[bytes, Summary] = {}

    def answer(request: SummaryRequest, view: View) -> Summary:
        shown, typed, cap = _messages(request, view), _typed(view), min(CAP, request.max_output)
        key = blake2b(encode([shown, typed, cap]), digest_size=16).digest()
        if key not in known:
            # Several sizes of one strategy, and several strategies, ask for the same.
            known[key] = Summary(extract(shown, cap, counter, typed) or NO_SUMMARY)
        return known[key]

    return answer


def _by_model(url: str, counter: Counter, model: str, system: str | None) -> Summariser:
    ask = http_model(url, model)
    known: dict[bytes, Summary] = {}

    def answer(request: SummaryRequest, view: View) -> Summary:
        shown = repair(project(view, _as_plan(request, view))).entries
        body = summary_body(request, "openai-chat", shown, model=model, system=system)
        key = blake2b(encode(body), digest_size=16).digest()
        if key not in known:
            # A size is looked for in several plans, most of which ask for the same summary.
            known[key] = _answered(ask, body, request, counter)
        return known[key]

    return answer


def _answered(ask: HttpModel, body: dict[str, Any], request: SummaryRequest, counter: Counter) -> Summary:
    try:
        return accepted("openai-chat", ask(body), request, counter)
    except ProviderError as error:
        if error.status in _GIVE_UP:
            # Every other request would fail in the same way, and a table of failures says nothing about a strategy.
            raise
        return Summary(failure=str(error))


def _messages(request: SummaryRequest, view: View) -> list[str]:
    """What the request shows its model. Clients that put the history into the instruction have no items."""
    shown = reading(project(view, _as_plan(request, view))) if request.items else []
    return shown or request.instruction.split("\n\n")


def _as_plan(request: SummaryRequest, view: View) -> Plan:
    last = view.entries[-1].id
    return Plan(
        strategy="summary", version="1", covered_from=view.entries[0].id, cutoff=last, items=tuple(request.items)
    )


def _typed(view: View) -> list[str]:
    return [literal(text) for entry in view.entries if entry.role == "user" for text in typed_text(entry)]


def extract(messages: Sequence[str], cap: int, counter: Counter, typed: Sequence[str] = ()) -> str:
    """Lines of the messages, verbatim and in their order, that together name as much as `cap` tokens can.

    First a quarter of the cap goes to the newest lines that the person typed, as far as the messages hold them: a summary tells what is
    wanted. For the rest, a line is worth the terms that no chosen line has named: a term weighs more the more messages it recurs in and the
    later it was last seen. Lines are chosen by worth for each token, greedily. The same messages and cap give the same text.
    """
    lines = list(_lines(messages, every=bool(typed)))
    weights = _weights(messages)
    costs = [counter.count(line) + 1 for line, _ in lines]
    covered: set[str] = set()

    def worth(number: int) -> int:
        return sum(weights[term] for term in lines[number][1] if term not in covered) * 1_000 // costs[number]

    wanted = {line for line, _ in _lines(typed, every=True)}
    chosen: list[int] = []
    room = cap
    for number in reversed(range(len(lines))):
        if lines[number][0] in wanted and costs[number] <= room - cap * 3 // 4:
            chosen.append(number)
            covered.update(lines[number][1])
            room -= costs[number]
    queue = [(-worth(number), number) for number in range(len(lines)) if lines[number][1]]
    heapq.heapify(queue)
    while queue:
        stale, number = heapq.heappop(queue)
        if costs[number] > room:
            continue
        now = worth(number)
        if now <= 0:
            continue
        if -now > stale and queue and -now > queue[0][0]:
            heapq.heappush(queue, (-now, number))
            continue
        chosen.append(number)
        covered.update(lines[number][1])
        room -= costs[number]
    text = "\n".join(lines[number][0] for number in sorted(chosen))
    while counter.count(text) > cap:
        # Lines joined can take a token more than lines alone; the last chosen was worth the least.
        chosen.pop()
        text = "\n".join(lines[number][0] for number in sorted(chosen))
    return text


def _lines(messages: Iterable[str], *, every: bool) -> Iterable[tuple[str, frozenset[str]]]:
    seen: set[str] = set()
    for message in messages:
        for whole in message.splitlines():
            for line in _SENTENCE_END.split(whole) if len(whole) > _LINE_CHARACTERS else (whole,):
                line = line.strip()
                if not line or len(line) > _LINE_CHARACTERS or line in seen:
                    continue
                seen.add(line)
                terms = _terms(line)
                if terms or every:
                    yield line, terms


def _weights(messages: Sequence[str]) -> dict[str, int]:
    times: dict[str, int] = {}
    last: dict[str, int] = {}
    for number, message in enumerate(messages):
        for term in frozenset().union(*map(_terms, message.splitlines())):
            times[term] = times.get(term, 0) + 1
            last[term] = number
    count = max(1, len(messages))
    return {term: min(times[term], 8) * (100 + 300 * last[term] // count) for term in times}


@lru_cache(maxsize=1 << 17)
def _terms(text: str) -> frozenset[str]:
    """The terms of a line; none goes over a line's end, and the same lines are looked at for every strategy."""
    return frozenset(
        term for raw in _TERM.findall(text) if (term := raw.strip(".:!?*#-")) and not term.isalpha() and len(term) > 2
    )
