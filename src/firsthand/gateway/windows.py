"""The window of a model: configured, learned from a refusal, or from the price registry; else unknown (design.md 9)."""

from __future__ import annotations

from functools import cache
from typing import Literal, NamedTuple, TypeAlias

from .config import GatewayConfig
from .paths import Path

__all__ = ["UNKNOWN", "Window", "WindowSource", "Windows", "learned_name"]

WindowSource: TypeAlias = Literal["config", "learned", "registry", "unknown"]


class Window(NamedTuple):
    """A window in tokens and who says so; None when nobody does."""

    tokens: int | None
    source: WindowSource


UNKNOWN = Window(None, "unknown")


class Windows:
    """Knows the windows of models. What a refusal teaches holds for the upstream that refused, and is stored with the path."""

    def __init__(self, config: GatewayConfig) -> None:
        self._config = config
        self._learned: dict[tuple[str, str], int] = {}

    def of(self, upstream: str, model: str, path: Path | None = None) -> Window:
        """The window of a model at an upstream. A smaller one that was learned holds (OV-11)."""
        configured = self._config.window(model)
        learned = self._learned.get((upstream, model))
        if path is not None:
            stored = path.learned.get(learned_name(model))
            learned = min(filter(None, (learned, stored)), default=None)
        if configured is not None and (learned is None or configured <= learned):
            return Window(configured, "config")
        if learned is not None:
            return Window(learned, "learned")
        found = _registered(model) if self._config.registry and model else None
        return Window(found, "unknown" if found is None else "registry")

    def learn(self, upstream: str, model: str, limit: int) -> None:
        """Remember the limit that a provider named."""
        self._learned[upstream, model] = limit


def learned_name(model: str) -> str:
    """Under what a session's learned limit is stored."""
    return f"window//{model}"


@cache
def _registered(model: str) -> int | None:
    try:
        from genai_prices.data_snapshot import get_snapshot
    except ImportError:
        return None
    try:
        _, found = get_snapshot().find_provider_model(model, None, None, None)
    except LookupError:
        return None
    return found.context_window
