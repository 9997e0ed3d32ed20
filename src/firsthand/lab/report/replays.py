"""Replays that are kept: a survival run takes minutes, so its rows are stored like those of every other measurement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from ...codec import compact_json
from ..loaded import Origin, loaded
from ..results import Cache, Row
from ..run_setup import Setup
from ..runner import replay

__all__ = ["code_hash", "kept_replays"]


@lru_cache(maxsize=1)
def code_hash() -> str:
    """Hash of all of our own source but commands, pages and figures: a replay runs the journal and a session too."""
    package = Path(__file__).resolve().parents[2]
    digest = blake2b(digest_size=8)
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).parts
        if parts[0] not in ("cli", "gateway") and parts[:2] not in (("lab", "figures"), ("lab", "report")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def kept_replays(
    origins: Sequence[Origin],
    setup: Setup,
    windows: Sequence[int],
    cache: Cache,
    *,
    measure: bool,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Row]:
    """The survival rows of sessions, one strategy and window after the other.

    Args:
        origins: the sessions.
        setup: strategies, summarisers and draws.
        windows: of the replayed sessions, in tokens.
        cache: what was replayed before is taken from it.
        measure: also replay what it lacks; else that is left out.
        progress: called with the finished and the whole number of sessions.
    """
    rows: list[Row] = []
    for number, origin in enumerate(origins, start=1):
        for name in setup.strategies:
            for window in windows:
                key = _key(origin, setup, name, window)
                if key not in cache:
                    if not measure:
                        continue
                    cache.add(key, replay(origin, replace(setup, strategies=(name,)), [window]))
                rows += cache[key]
        progress(number, len(origins))
    return rows


def _key(origin: Origin, setup: Setup, strategy: str, window: int) -> str:
    digest = loaded(origin).digest
    parts = ["survival", code_hash(), digest, strategy, window, setup.summarisers[-1], setup.model, setup.seeds]
    return blake2b(compact_json(parts).encode(), digest_size=12).hexdigest()
