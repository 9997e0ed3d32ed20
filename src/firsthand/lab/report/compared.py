"""The published figures as they were printed, and what of ours may be set beside them."""

from __future__ import annotations

from .tables import Table

__all__ = ["COMPARABLE", "NOT_COMPARABLE", "published_tables"]

_SOURCE = "published figures (futureos.md 9.1), not measured here"

COMPARABLE: tuple[str, ...] = (
    "Containment on the published synthetic chains: the same chains, boundaries, questionnaires and reader. There `futureos-deterministic` must give "
    "28 of 49 values and no decoy.",
    "Costs in the published convention, computed from the published token counts: they must give the printed figures.",
    "On real sessions the order of kinds of strategy (originals first, tail, user text only), not the percentages.",
    "The share of tool output in the characters of a session, counted the published way.",
)
NOT_COMPARABLE: tuple[str, ...] = (
    "Percentages on real sessions: the published sessions are private, ours are others.",
    "What a model reported with what a text contains: the published recall is a model's, ours is a literal reader's unless a table names a model.",
    "Rows without a summary, or with the stand-in by rules, with arms whose summaries a model wrote.",
    "Sizes: the published window was 1,000,000 tokens and each arm carried its state on; here each boundary is compacted from the originals, in a "
    "smaller window.",
    "Rows with different numbers of values: a strategy that left a short history whole, or has nothing recorded, was asked less.",
)


def published_tables() -> list[Table]:
    """The published results of the forced closed-book run."""
    return [
        Table(
            "published-recall",
            "Published: reported by a model, closed book, forced",
            ("arm", "reported", "median projection", "compression"),
            (
                ("summarized", "147/178 (83 %)", "12,113", "5.7 %"),
                ("deterministic", "127/178 (71 %)", "9,945", "4.7 %"),
                ("opencode", "83/178 (47 %)", "5,152", "2.1 %"),
                ("main", "68/178 (38 %)", "3,418", "1.3 %"),
                ("codex", "68/178 (38 %)", "1,706", "0.6 %"),
            ),
            _SOURCE,
            "24 boundaries, 178 values, no decoy reported by any arm. Contained in the text: deterministic 130/178, summarized 151/178.",
        ),
        Table(
            "published-chains",
            "Published: the same by chain",
            ("chain", "summarized", "deterministic", "opencode", "main", "codex"),
            (
                ("export", "16/16", "9/16", "12/16", "10/16", "12/16"),
                ("analysis", "16/16", "9/16", "10/16", "8/16", "13/16"),
                ("pipeline", "17/17", "10/17", "11/17", "11/17", "3/17"),
                ("synthetic", "49/49", "28/49", "33/49", "29/49", "28/49"),
                ("real", "98/129", "99/129", "50/129", "39/129", "40/129"),
            ),
            _SOURCE,
            "The summary's advantage lies on the synthetic chains; on real sessions the first two are level.",
        ),
    ]
