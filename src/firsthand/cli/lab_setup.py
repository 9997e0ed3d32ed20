"""What a run of the lab is made of, as a user names it: how it measures, at which sizes, on which sessions, and where it keeps results."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigError, FirsthandError, FormatError
from .lab_endpoint import listed, percents
from .output import stderr
from .source import tell_damage

if TYPE_CHECKING:
    from ..lab.loaded import Origin
    from ..lab.run_setup import Rival, Setup

__all__ = ["default_cache", "origins_of", "setup_of", "targets_of"]

COUNTERS = ("model", "estimate", "exact")


def setup_of(
    synthetic: bool,
    strategies: str | None,
    at: str,
    mode: str,
    window: int | None,
    target: str | None,
    counter: str | None,
    summariser: str | None,
    model: str | None,
    exams: str | None,
    recall: int | None,
    carry: bool | None,
    seeds: int,
) -> Setup:
    """How a user wants sessions measured.

    Raises:
        ConfigError: an option that cannot work.
        UnknownNameError: no strategy of that name.
    """
    from ..lab.questions import EXAMS
    from ..lab.run_setup import Setup
    from ..lab.runner import default_strategies
    from ..lab.summarisers import summariser as summariser_of
    from ..strategies import strategy_class
    from ..tokens import EstimateCounter

    if mode not in ("forced", "deployed"):
        raise ConfigError(f"the mode is forced or deployed, not {mode!r}")
    names = tuple(listed(strategies)) or default_strategies()
    for name in names:
        strategy_class(name)
    asked = tuple(listed(exams)) or EXAMS
    if unknown := set(asked) - set(EXAMS):
        raise ConfigError(f"there is no exam {', '.join(sorted(unknown))}; choose of: {', '.join(EXAMS)}")
    sizes, rivals = targets_of(target)
    if counter not in (None, *COUNTERS):
        raise ConfigError(f"the counter of the budgets is {', '.join(COUNTERS)}, not {counter!r}")
    by = tuple(listed(summariser)) or ("none", "extractive")
    for name in by:
        summariser_of(name, EstimateCounter(), model=model or "")
    setup = Setup(
        strategies=names,
        shares=percents(at),
        mode="deployed" if mode == "deployed" else "forced",
        window=window or (1_000_000 if synthetic else 200_000),
        targets=sizes or (None,),
        rivals=rivals,
        summarisers=by,
        model=model or "",
        exams=asked,
        seeds=seeds,
        recall=recall,
        carry=synthetic if carry is None else carry,
    )
    if synthetic:
        # The published experiment: ceiling declared, characters by the quarter-token rule, no system prompt.
        setup = replace(setup, output_ceiling=384_000, profile="futureos-e2", counter="estimate")
    return setup if counter is None else replace(setup, counter=counter, sized_counter=counter)


def targets_of(text: str | None) -> tuple[tuple[int, ...], tuple[Rival, ...]]:
    """Sizes, or rivals: strategies at their own size or at a given one."""
    from ..lab.run_setup import Rival
    from ..strategies import strategy_by_name

    parts = listed(text)
    if all(part.isdecimal() and int(part) > 0 for part in parts):
        return tuple(map(int, parts)), ()
    rivals: list[Rival] = []
    for part in parts:
        name, colon, size = part.partition(":")
        if part.isdecimal() or (colon and not (size.isdecimal() and int(size) > 0)):
            raise ConfigError(
                f"a target is sizes in tokens, or strategies as STRATEGY or STRATEGY:TOKENS, not {text!r}"
            )
        if strategy_by_name(name).at_size(8_000) is None and size:
            raise ConfigError(f"strategy {name!r} cannot be set to a size; name it without one")
        rivals.append(Rival(name, int(size) if size else None))
    return (), tuple(rivals)


def origins_of(files: Sequence[Path]) -> list[Origin]:
    """The sessions of the files; what cannot be read is said and left out.

    Raises:
        FormatError: no file holds a session.
    """
    from ..formats import read_sessions
    from ..lab.loaded import Origin
    from ..samples import CHAINS

    if not files:
        return [Origin(None, 0, name) for name in CHAINS]
    found: list[Origin] = []
    for path in _expanded(files):
        try:
            sessions = read_sessions(path)
        except FirsthandError as error:
            stderr(f"left out: {error}")
            continue
        for session in sessions:
            tell_damage(session, path)
        found += [Origin(str(path), number) for number, session in enumerate(sessions) if session.entries]
    if not found:
        raise FormatError(f"none of the {len(files)} files holds a session")
    return found


def _expanded(files: Sequence[Path]) -> Sequence[Path]:
    from ..lab.inputs import expanded

    return expanded(files)


def default_cache() -> Path:
    """Where finished measurements are kept unless a user says otherwise."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "firsthand" / "lab-run.jsonl"
