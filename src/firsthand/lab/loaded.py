"""A session with what every boundary of it needs, read and counted once per process."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from ..budget import Budget
from ..codec import compact_json, encode
from ..formats import read_sessions
from ..projection.plan import Plan
from ..samples import chain
from ..strategies.contract import Strategy
from ..tokens import Counter, EstimateCounter, O200kCounter, counter_for_model, entry_cost
from ..transcript import Transcript, View
from .searched import Occurring
from .second_extractor import RareTokens
from .values import Homes, reading

__all__ = ["Loaded", "Origin", "RememberingCounter", "digest_of", "loaded", "transcript_of"]


@dataclass(frozen=True)
class Origin:
    """Where a session comes from: a file and its place in it, or the name of a synthetic chain."""

    path: str | None
    index: int = 0
    chain: str | None = None


class RememberingCounter:
    """A counter that counts each long text once: a size is looked for in several plans of the same history."""

    _LEAST = 24

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._known: dict[str, int] = {}

    @property
    def name(self) -> str:
        """The name of the counter behind it."""
        return self._counter.name

    @property
    def error(self) -> str:
        """What is known about how far that one is off."""
        return self._counter.error

    def count(self, text: str) -> int:
        """Tokens of `text`."""
        if len(text) < self._LEAST:
            return self._counter.count(text)
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = self._counter.count(text)
        return found


def digest_of(view: View) -> str:
    """Names a session by its content, for keys of what was measured on it."""
    return blake2b(b"".join(map(encode, view.entries)), digest_size=12).hexdigest()


class Loaded:
    """A session with what every boundary needs of it."""

    def __init__(self, transcript: Transcript) -> None:
        self.exact: Counter = O200kCounter()
        """Counts anew each time, as a plan whose time is taken must."""
        self.counter: Counter = RememberingCounter(self.exact)
        self.transcript = transcript
        self.view = transcript.view()
        self.costs = [entry_cost(entry, self.counter) for entry in self.view.entries]
        self.text = "\n".join(reading(self.view.entries))
        self.digest = digest_of(self.view)
        self.plans: dict[tuple[object, ...], Plan | None] = {}
        """Plans by what they depend on, for arms that carry their state on."""
        self.homes = Homes(self.view.entries)
        self.rare = RareTokens(self.view.entries)
        self.occurs = Occurring(self.text)
        self._features: dict[str, dict[str, bytes]] = {}

    def size(self, position: int) -> int:
        """Tokens of the history before a position, system prompt excluded."""
        before = zip(self.view.entries[:position], self.costs[:position], strict=True)
        return sum(cost for entry, cost in before if entry.role not in ("system", "developer"))

    def at(self, position: int, strategy: Strategy | None = None) -> View:
        """What a strategy may see before a position, with its stored features where it has an extractor."""
        entries = self.view.entries[:position]
        ids = {entry.id for entry in entries}
        features: dict[str, bytes] = {}
        if strategy is not None and strategy.extractor is not None:
            stored = self._features.setdefault(strategy.extractor, {})
            for entry in entries:
                if entry.id not in stored:
                    stored[entry.id] = strategy.features(entry)
            features = {entry.id: stored[entry.id] for entry in entries}
        return View(entries, markers=tuple(m for m in self.view.markers if m.after in ids), features=features)

    def budget(
        self, window: int, output_ceiling: int | None, profile: str, counter: str, *, remembering: bool, fixed: bool
    ) -> Budget:
        """The budget of the next request.

        Args:
            window: tokens of the context window.
            output_ceiling: output that the request may ask for.
            profile: of the budget's arithmetic.
            counter: `model`, `estimate` or `exact`.
            remembering: whether texts are counted once only; not for a plan whose time is taken.
            fixed: whether system prompt and tools stand before the history.
        """
        used = self.counter if counter == "exact" and remembering else counter_named(counter, self.transcript.model)
        tokens = 0
        if fixed:
            tools = self.transcript.tools
            tokens = used.count(self.transcript.system or "") + (used.count(compact_json(list(tools))) if tools else 0)
        return Budget.of(window, output_ceiling, fixed=tokens, counter=used, profile=profile)


def counter_named(name: str, model: str | None) -> Counter:
    """The counter that an option names: `estimate`, `exact`, or `model` for the calibrated one of the model's family."""
    match name:
        case "estimate":
            return EstimateCounter()
        case "exact":
            return O200kCounter()
        case _:
            return counter_for_model(model)


@lru_cache(maxsize=4)
def _file(path: str) -> list[Transcript]:
    return read_sessions(Path(path))


def transcript_of(origin: Origin) -> Transcript:
    """The session of an origin as it was read; the newest four files stay in memory."""
    return chain(origin.chain) if origin.chain is not None else _file(origin.path or "")[origin.index]


@lru_cache(maxsize=2)
def loaded(origin: Origin) -> Loaded:
    """The session of an origin; the newest two stay in memory."""
    return Loaded(transcript_of(origin))
