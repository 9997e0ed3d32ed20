from __future__ import annotations

import pytest

from firsthand.budget import Budget
from firsthand.lab.exams.published import questionnaire, rendered
from firsthand.projection.render import project
from firsthand.samples import SCORED_STAGES, chain
from firsthand.strategies.contract import CompactionRequest, Plan
from firsthand.strategies.futureos.strategies import FutureosDeterministic
from firsthand.testing.builders import call, result, said, session, user
from firsthand.tokens import EstimateCounter
from firsthand.transcript import View

RECORDS = (28, 96, 112, 180, 224)  # 96 and 180 are carried through and not scored (futureos.md 8.3)


@pytest.mark.parametrize(
    ("name", "asked", "contained"), [("export", (4, 6, 6), 9), ("analysis", (4, 6, 6), 9), ("pipeline", (5, 6, 6), 10)]
)
def test_published_containment_of_the_deterministic_projection(
    name: str, asked: tuple[int, ...], contained: int
) -> None:
    entries = chain(name).entries
    limits = Budget.of(1_000_000, 384_000, counter=EstimateCounter(), profile="futureos-e2")
    previous = None
    hits = []
    for records in RECORDS:
        view = View(entries[:records])
        plan = FutureosDeterministic().plan(view, limits, CompactionRequest(trigger="manual"), previous)
        assert isinstance(plan, Plan)
        previous = plan
        if records // 28 - 1 in SCORED_STAGES and records % 28 == 0:
            exam = questionnaire(view.entries, records // 28 - 1)
            hits.append(exam.contained(rendered(project(view, plan))))
    assert tuple(len(found) for found in hits) == asked
    assert sum(map(sum, hits)) == contained


def test_values_by_source() -> None:
    entries = session(
        user("Keep it under 64MiB, see src/a.py and 8123."),
        said("Commit deadbee in PR #12 touches `long_name` and (lib/b.rs); 3 条."),
        call("read", path="not/asked.py"),
        result("c1", "ver_abcdef and 1.5 GB; path/c.py is not asked"),
    )
    exam = questionnaire(entries, 0)
    asked = {
        source: {value for value, home in exam.values if home == source} for source in ("assistant", "user", "tool")
    }
    assert asked["assistant"] == {"PR #12", "deadbee", "lib/b.rs", "long_name"}
    assert asked["tool"] == {"1.5 GB", "ver_abcdef"}
    assert len(asked["user"]) == 2  # the quota
    assert asked["user"] < {"64MiB", "8123", "src/a.py"}
    assert len(exam.decoys) == 8
    assert sorted(exam.order) == sorted([value for value, _ in exam.values] + list(exam.decoys))
    assert exam == questionnaire(entries, 0)
