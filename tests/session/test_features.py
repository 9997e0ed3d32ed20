"""Features once: computed at append, stored with the entry, read by the plan; a plan is the same without them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from typer.testing import CliRunner

from firsthand.budget import Budget, Occupancy
from firsthand.cli.app import app
from firsthand.journal import Journal
from firsthand.session.session import AsyncSession, Session
from firsthand.strategies import strategy_by_name
from firsthand.strategies.contract import CompactionRequest, Decision, Plan, Summary
from firsthand.strategies.futureos.strategies import FutureosDeterministic
from firsthand.testing.builders import call, result, said, user
from firsthand.tokens import EstimateCounter
from firsthand.transcript import Entry, Transcript, View, chained


class Measuring(FutureosDeterministic):
    """The default strategy with derived rows that it looks at and does not need."""

    extractor: ClassVar[str | None] = "measuring/1"

    def __init__(self, computed: list[str], planned: list[dict[str, bytes]] | None = None) -> None:
        super().__init__(from_originals=True)
        self.computed = computed
        self.planned = planned if planned is not None else []

    def features(self, entry: Entry) -> bytes:
        self.computed.append(entry.id)
        return f"{len(entry.blocks)} blocks".encode()

    def plan(
        self,
        view: View,
        budget: Budget,
        request: CompactionRequest,
        previous: Plan | None = None,
        summaries: Mapping[str, Summary] | None = None,
        occupancy: Occupancy | None = None,
    ) -> Decision:
        self.planned.append(dict(view.features))
        return super().plan(view, budget, request, previous, summaries, occupancy)


class Other(Measuring):
    extractor: ClassVar[str | None] = "other/1"


class Failing(Measuring):
    def features(self, entry: Entry) -> bytes:
        raise ValueError("no")


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal.open(tmp_path / "journal.db") as opened:
        yield opened


def opened(journal: Journal, strategy: Any, **settings: Any) -> Session:
    return Session.open(
        "s", journal=journal, **{"window": 32_000, "counter": EstimateCounter(), "strategy": strategy, **settings}
    )


def steps(first: int, last: int) -> list[Entry]:
    made = [
        entry
        for n in range(first, last)
        for entry in (call("read", id=f"c{n}", path=f"f{n}.py"), result(f"c{n}", f"{n} " + "x" * 900))
    ]
    return [Entry(id=f"e{first}-{n}", role=entry.role, blocks=entry.blocks) for n, entry in enumerate(made)]


def test_each_entry_is_computed_once_when_it_is_stored(journal: Journal) -> None:
    computed: list[str] = []
    planned: list[dict[str, bytes]] = []
    session = opened(journal, Measuring(computed, planned))
    session.append([user("Only port 8123 is free.", id="rule")])
    session.append(steps(0, 20))
    session.record(
        {"id": "r", "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "Done."}}]}
    )
    ids = [entry.id for entry in journal.entries("s")]
    assert computed == ids
    assert list(journal.features("s", "measuring/1")) == ids
    assert session.compact().kind == "applied"
    assert computed == ids
    assert list(planned[0]) == ids
    assert planned[0]["rule"] == b"1 blocks"


def test_what_was_imported_or_appended_by_others_is_computed_when_a_plan_first_needs_it(journal: Journal) -> None:
    entries = chained([user("Only port 8123 is free.", id="rule"), *steps(0, 20)])
    journal.import_transcript(Transcript(id="s", format="firsthand", entries=entries, leaf=entries[-1].id))
    computed: list[str] = []
    session = opened(journal, Measuring(computed))
    assert computed == []
    session.preview()
    assert len(computed) == 41
    session.compact()
    opened(journal, Measuring(computed)).compact("anew")
    assert len(computed) == 41


def test_another_strategy_computes_its_own_rows(journal: Journal) -> None:
    first: list[str] = []
    second: list[str] = []
    planned: list[dict[str, bytes]] = []
    session = opened(journal, Measuring(first))
    session.append([user("Only port 8123 is free.", id="rule"), *steps(0, 10)])
    session.settings = type(session.settings)(window=32_000, counter=EstimateCounter(), strategy=Other(second, planned))
    session.append(steps(10, 20))
    assert len(first) == 21
    assert len(second) == 20
    session.compact()
    assert sorted(second) == sorted(entry.id for entry in journal.entries("s"))
    assert len(planned[0]) == 41
    assert len(journal.features("s", "measuring/1")) == 21


def test_a_fallback_gets_its_own_rows_and_not_those_of_the_strategy_that_failed(journal: Journal) -> None:
    planned: list[dict[str, bytes]] = []
    session = opened(journal, strategy_by_name("pi"), fallback=Measuring([], planned), window=16_000)
    session.append([user("Only port 8123 is free.", id="rule"), *steps(0, 60)])
    outcome = session.compact()
    assert outcome.kind == "fallback", outcome.reason
    assert [len(rows) for rows in planned] == [121]


def test_a_strategy_that_cannot_make_features_loses_nothing(journal: Journal, caplog: pytest.LogCaptureFixture) -> None:
    session = opened(journal, Failing([]))
    session.append([user("Only port 8123 is free.", id="rule"), *steps(0, 20)])
    assert session.compact().kind == "applied"
    assert "made no features of entry rule" in caplog.text
    assert len(list(journal.entries("s"))) == 41


def test_the_async_session_stores_them_too(journal: Journal) -> None:
    async def work() -> None:
        session = await AsyncSession.open(
            "s", journal=journal, window=32_000, counter=EstimateCounter(), strategy=Measuring([])
        )
        await session.append([user("Only port 8123 is free.", id="rule"), *steps(0, 20)])
        assert (await session.compact()).kind == "applied"

    asyncio.run(work())
    assert len(journal.features("s", "measuring/1")) == 41


def test_a_plan_of_coverage_is_the_same_with_and_without_stored_rows(journal: Journal) -> None:
    strategy = strategy_by_name("coverage")
    session = opened(journal, strategy)
    session.append([user("Only port 8123 is free.", id="rule"), said("I look at `f1.py`.", id="said"), *steps(0, 40)])
    assert strategy.extractor is not None
    view = journal.view("s", extractor=strategy.extractor)
    assert len(view.features) == 82
    budget = Budget.of(32_000, counter=EstimateCounter())
    request = CompactionRequest(trigger="manual", phase="standalone")
    assert strategy.plan(view, budget, request) == strategy.plan(View(view.entries), budget, request)


def test_an_import_stores_the_rows_of_the_default_strategy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("firsthand.strategies.DEFAULT_STRATEGY", "coverage")
    file = tmp_path / "messages.json"
    file.write_text(
        '[{"role": "user", "content": "Only port 8123 is free."}, {"role": "assistant", "content": "I see."}]'
    )
    command = ["import", str(file), "--journal", str(tmp_path / "j.db")]
    assert CliRunner().invoke(app, command).exit_code == 0
    with Journal.open(tmp_path / "j.db") as journal:
        (only,) = journal.sessions()
        extractor = strategy_by_name("coverage").extractor
        assert extractor is not None
        assert len(journal.features(only.id, extractor)) == 2
