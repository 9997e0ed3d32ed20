"""Strategies by name: ours, those of the field, and those that other packages add.

A third party adds one through the entry-point group `firsthand.strategies`; its name must not be one of ours.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from ..errors import ConfigError, UnknownNameError
from .contract import Strategy

__all__ = ["DEFAULT_STRATEGY", "is_current", "strategy_by_name", "strategy_class", "strategy_names"]

DEFAULT_STRATEGY = "coverage"

_GROUP = "firsthand.strategies"

# Modules are imported when their strategy is asked for, so that a start of the command line pays for one.
_BUILT_IN: dict[str, tuple[str, str]] = {
    "codex-local": ("codex.local", "CodexLocal"),
    "codex-remote-v1": ("codex.remote_v1", "CodexRemoteV1"),
    "codex-remote-v2": ("codex.remote", "CodexRemoteV2"),
    "codex-token-budget": ("codex.token_budget", "CodexTokenBudget"),
    "coverage": ("coverage.strategy", "Coverage"),
    "coverage+summary": ("coverage.summarised", "CoverageSummarised"),
    "futureos-deterministic": ("futureos.strategies", "FutureosDeterministic"),
    "futureos-summarized": ("futureos.strategies", "FutureosSummarized"),
    "opencode-prune": ("opencode.prune", "OpencodePrune"),
    "opencode-v1": ("opencode.v1", "OpencodeV1"),
    "opencode-v2": ("opencode.v2", "OpencodeV2"),
    "pi": ("pi.strategy", "Pi"),
    "recorded": ("recorded", "Recorded"),
}


def strategy_names() -> tuple[str, ...]:
    """All names that `strategy_by_name` accepts, ours first, each group sorted."""
    others = sorted(point.name for point in entry_points(group=_GROUP) if point.name not in _BUILT_IN)
    return (*sorted(_BUILT_IN), *others)


def strategy_class(name: str) -> type[Strategy]:
    """The class behind a name.

    Raises:
        UnknownNameError: there is no strategy of that name.
        ConfigError: an entry point names something that is no strategy.
    """
    if name in _BUILT_IN:
        module, attribute = _BUILT_IN[name]
        found = getattr(import_module(f".{module}", __name__), attribute)
    else:
        points = entry_points(group=_GROUP, name=name)
        if not points:
            raise UnknownNameError("strategy", name, strategy_names())
        found = next(iter(points)).load()
    if not (isinstance(found, type) and issubclass(found, Strategy)):
        raise ConfigError(f"the entry point {name!r} of the group {_GROUP!r} is no subclass of firsthand's Strategy")
    return found


def strategy_by_name(name: str, **options: Any) -> Strategy:
    """A strategy with options.

    Raises:
        UnknownNameError: there is no strategy of that name.
        ConfigError: it has no such option.
    """
    kind = strategy_class(name)
    try:
        return kind(**options)
    except TypeError as error:
        known = ", ".join(kind().options()) or "none"
        raise ConfigError(f"strategy {name!r} cannot take {options}: {error}; its options: {known}") from error


def is_current(name: str, version: str) -> bool:
    """Whether a stored plan of this strategy and version may still be shown."""
    try:
        return strategy_class(name).version == version
    except ConfigError:
        return False
