"""Replays that are kept: a survival run takes minutes, so its rows are stored like those of every other measurement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from ...codec import compact_json
from ..lanes import Lanes, in_lanes
from ..loaded import Origin, digest_of, transcript_of
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
    lanes: Lanes,
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
        lanes: where it is replayed.
        measure: also replay what it lacks; else that is left out.
        progress: called with the finished and the whole number of replays.
    """
    files: dict[str | None, list[Origin]] = {}
    for origin in dict.fromkeys(origins):
        files.setdefault(origin.path, []).append(origin)
    digests = {origin: (digest, weight) for origin, digest, weight in in_lanes(_digest, list(files.values()), lanes)}
    replays = [
        _Replay(
            origin,
            replace(setup, strategies=(name,), targets=(None,)),
            window,
            _key(digests[origin][0], setup, name, window),
        )
        for origin in origins
        for name in setup.strategies
        for window in windows
    ]
    missing = [one for one in replays if one.key not in cache] if measure else []
    progress(done := len(replays) - len(missing), len(replays))
    groups: dict[Origin, list[_Replay]] = {}
    for one in missing:
        groups.setdefault(one.origin, []).append(one)
    longest_first = sorted(groups.items(), key=lambda group: -digests[group[0]][1])
    for key, rows in in_lanes(_replayed, [group for _, group in longest_first], lanes):
        cache.add(key, rows)
        progress(done := done + 1, len(replays))
    return [row for one in replays if one.key in cache for row in cache[one.key]]


@dataclass(frozen=True)
class _Replay:
    origin: Origin
    setup: Setup
    """With one strategy."""
    window: int
    key: str


def _digest(origin: Origin) -> tuple[Origin, str, int]:
    view = transcript_of(origin).view()
    return origin, digest_of(view), len(view.entries)


def _replayed(one: _Replay) -> tuple[str, list[Row]]:
    return one.key, replay(one.origin, one.setup, [one.window])


def _key(digest: str, setup: Setup, strategy: str, window: int) -> str:
    parts = ["survival", code_hash(), digest, strategy, window, setup.summarisers[-1], setup.model, setup.seeds]
    return blake2b(compact_json(parts).encode(), digest_size=12).hexdigest()
