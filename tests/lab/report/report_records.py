"""Small records: rows that are made up, or measured on a short session of our own."""

from __future__ import annotations

from typing import Any

from firsthand.lab.cache.stored import CacheLine
from firsthand.lab.model.results import ModelRow
from firsthand.lab.report.record import AuditLine, Charged, Input, Part, Record
from firsthand.lab.results import Row

BASE: dict[str, Any] = {
    "session": "s1",
    "format": "claude-code",
    "boundary": "100%",
    "position": 50,
    "strategy": "coverage",
    "target": None,
    "summariser": "-",
    "mode": "forced",
    "window": 200_000,
    "outcome": "compacted",
    "exam": "supported",
    "reader": "literal",
    "source": "tool",
    "hits": 30,
    "of": 60,
    "values": 40,
    "false_positives": 0,
    "tokens": 8_000,
    "history": 90_000,
    "milliseconds": 12.0,
    "by_age": " ".join(["3/6"] * 10),
}


def row(**given: Any) -> Row:
    """A row of rules."""
    return Row(**(BASE | given))


def model_row(**given: Any) -> ModelRow:
    """A row of a model."""
    more = {"way": "session", "shape": "session", "replicate": 1, "contained": 40, "decoys": 12, "invalid": 0}
    return ModelRow(**(BASE | {"reader": "model:m", "exam": "recognition"} | more | given))


def audit_line(**given: Any) -> AuditLine:
    """A recorded compaction."""
    base: dict[str, Any] = {
        "source": "one.jsonl",
        "number": 1,
        "of": 1,
        "note": "",
        "readable": True,
        "judged": True,
        "strategy": "futureos-deterministic",
        "context": 150_000,
        "kept": 9_000,
        "ours": 15_000,
        "asked": 61,
        "lost": 23,
        "ours_lost": 11,
        "again": 4,
        "again_tokens": 5_100,
        "seen_tokens": 4_200,
    }
    return AuditLine(**(base | given))


def at_size_of_pi() -> list[Row]:
    """A rival and a strategy at its size in two clients' sessions."""
    base = {"exam": "supported", "rival": "pi", "position": 50}
    return [
        row(**base, format=client, session=client, strategy=strategy, tail=tail, hits=hits, tokens=tokens)
        for client, ours in (("codex", 42), ("aider", 24))
        for strategy, tail, hits, tokens in (
            ("pi", "own", 30, 1_000),
            ("coverage", "free", ours, 990),
            ("coverage", "forced", ours - 6, 1_000),
        )
    ]


def replayed() -> list[Row]:
    """Replays of one session with two strategies, and of one in which the second fell back on the default."""
    base = {"mode": "replay", "exam": "recognition", "window": 32_000}
    pi = {"strategy": "pi", "boundary": "compaction 20"}
    return [
        row(**base, boundary="compaction 20", hits=30, equal=True),
        row(**base, boundary="compaction 1", hits=40, equal=True),
        row(**base, **pi, summariser="extractive", hits=8),
        row(**base, **pi, session="s2", outcome="fallback", hits=20),
    ]


CACHE = CacheLine(
    request="identical shape",
    prompt=978,
    before=947,
    cached=940,
    measured=0.993,
    modelled=1.0,
    published="93.7 %",
    bar="at least 95%",
    holds=True,
)
CHARGED = Charged(
    file="calls.db",
    currency="USD",
    charged=1_500_000_000_000,
    reserved=0,
    summaries=0,
    answered=12,
    failed=0,
    unresolved=0,
)


def record(**given: Any) -> Record:
    """A record with one row of every kind."""
    rows = [
        row(strategy=strategy, exam=exam, hits=hits, source=source)
        for strategy, hits in (("coverage", 30), ("pi", 20))
        for exam in ("published", "recognition", "supported", "continuation")
        for source in ("user", "assistant", "tool")
    ]
    base: dict[str, Any] = {
        "command": "firsthand lab report one.jsonl --out report.html",
        "made": "2026-01-01 00:00 UTC",
        "versions": {"firsthand": "0"},
        "code": "c0de",
        "settings": {"draws": "5"},
        "inputs": (
            Input(name="one.jsonl", sha256="ab" * 32, size=1_234, format="claude-code", sessions=1, entries=70),
        ),
        "files": "",
        "parts": (Part(name="run", command="firsthand lab run one.jsonl", seconds=1.0),),
        "rows": {"run": rows},
        "audits": (audit_line(),),
        "audited": 1,
        "cache": (CACHE,),
        "cache_model": "small.gguf",
        "model_rows": (model_row(), model_row(replicate=2, hits=28), model_row(session="s2", hits=10)),
        "charged": (CHARGED,),
    }
    return Record(**(base | given))
