from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from reading_model import SYSTEM, TOOLS, answer, session_file
from typer.testing import CliRunner

from firsthand.cli.lab_open import register
from firsthand.formats import read_sessions
from firsthand.lab.arms import Arm
from firsthand.lab.model.batches import Asked
from firsthand.lab.model.endpoint import Endpoint
from firsthand.lab.model.history_tools import GET, MOST_BYTES, MOST_CALLS, SEARCH, History, Lookups, Traced
from firsthand.lab.model.jobs import Jobs
from firsthand.lab.model.ledger import Ledger
from firsthand.lab.model.open_book import ROUNDS, OpenReading, fate, open_book
from firsthand.lab.model.reading import Plan, places
from firsthand.lab.money.prices import picos, price_given
from firsthand.lab.values import literal, shows
from firsthand.testing.builders import filler, result, said, session, user
from firsthand.testing.server import Answer, Call, Failure, FakeServer, Received, Reply

PRICE = price_given("m", "1,4,0.02", "CNY")
PLAN = Plan(arms=(Arm("futureos-deterministic"),), values=12, window=20_000, replicates=1)


def question_in(got: Received) -> dict[str, Any]:
    """The message that asks; what stands behind it are calls, results and notices."""
    return next(
        message for message in reversed(got.messages) if message["role"] == "user" and "\n- " in text_of(message)
    )


def text_of(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content)


def strings(got: Received) -> list[str]:
    return [json.loads(line[2:]) for line in text_of(question_in(got)).splitlines() if line.startswith('- "')]


def shown_to(got: Received) -> str:
    """All that a request shows but the question's own list."""
    lines = [line for message in got.messages for line in (text_of(message) if message["content"] else "").splitlines()]
    return literal("\n".join(line for line in lines if not line.startswith('- "')))


def looks_up(got: Received) -> Answer:
    """Names what it sees; where it can, it first searches for each string that it does not."""
    text = shown_to(got)
    if SEARCH in got.tool_names and got.messages[-1]["role"] != "tool":
        missing = [value for value in strings(got) if not shows(text, value)]
        if missing:
            return Reply(calls=tuple(Call(SEARCH, {"query": value}) for value in missing[:20]))
    return answer([value for value in strings(got) if shows(text, value)])


def asked(
    file: Path, model: Callable[[Received], Answer], names: str = "", *, most: int = 1
) -> tuple[OpenReading, FakeServer]:
    rounds = [one for one in ROUNDS if not names or one.name in names.split(",")]
    with FakeServer(model) as server, Ledger(file.parent / "open.db", currency="CNY", budget=picos("20")) as paid:
        jobs = Jobs(Endpoint(server.url + "/v1", "m", PRICE), paid, most)
        found = list(places(read_sessions(file), PLAN))
        return open_book(found, PLAN, rounds, jobs), server


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return session_file(tmp_path)


def test_all_rounds_with_a_model_that_reads_well(file: Path) -> None:
    reading, server = asked(file, looks_up)
    assert (reading.unresolved, reading.stopped) == ([], None)
    assert [one.round for one in reading.answers] == [one.name for one in ROUNDS]
    closed, control, tools, recall, forced = (reading.fates(one.name) for one in ROUNDS)
    assert closed == control
    assert closed["shown"] + closed["never"] == 12
    assert 0 < closed["shown"] < 12
    for opened in (tools, forced):
        assert (opened["shown"], opened["retrieved"]) == (closed["shown"], 12 - closed["shown"])
    assert recall["retrieved"] > 0
    assert all(one.false_positives == 0 for one in reading.answers)
    for got in server.turns:
        assert got.messages[0]["content"] == SYSTEM
        assert got.json["tools"][: len(TOOLS)] == TOOLS


def test_each_round_changes_one_thing(file: Path) -> None:
    _, server = asked(file, sees_or_first)
    closed, control, tools, recall, forced = server.turns[:5]
    words = [text_of(question_in(got)) for got in (closed, control, tools, recall, forced)]
    assert "call no tool" in words[0]
    assert words[1] == words[2] != words[0]
    assert words[3].startswith(words[0])
    assert "[recall:" in words[3]
    assert "has to be checked" in words[4]
    assert [got.tool_names for got in (closed, control, recall)] == [["read"]] * 3
    assert [got.tool_names for got in (tools, forced)] == [["read", SEARCH, GET]] * 2
    assert [got.json.get("tool_choice") for got in server.turns[:5]] == [None, None, None, None, "required"]
    assert len({json.dumps(got.messages[:-1]) for got in server.turns[:5]}) == 1


def sees_or_first(got: Received) -> Answer:
    return answer([])


def answers_at_once(got: Received) -> Answer:
    """An endpoint that takes no notice of `tool_choice`: its model says what it sees and calls nothing."""
    return answer([value for value in strings(got) if shows(shown_to(got), value)])


def test_a_forced_call_that_an_endpoint_ignores_is_no_forced_round(file: Path) -> None:
    reading, _ = asked(file, answers_at_once, "tools,forced")
    tools, forced = reading.answers
    assert (tools.ignored, forced.ignored) == (False, True)
    assert [reading.ignored(name) for name in ("tools", "forced")] == [0, 1]
    assert reading.of_round("forced") == []
    assert not reading.fates("forced")
    assert sum(reading.fates("tools").values()) == 12


def test_a_forced_call_that_is_made_counts(file: Path) -> None:
    reading, _ = asked(file, looks_up, "forced")
    assert [(one.ignored, len(one.calls) > 0) for one in reading.answers] == [(False, True)]


def test_a_run_again_replays_calls_and_pays_for_none(file: Path) -> None:
    first, server = asked(file, looks_up, "tools")
    again, other = asked(file, lambda got: pytest.fail("paid twice"), "tools")
    assert len(server.turns) == 2
    assert other.turns == []
    assert again == first


def test_calls_are_bounded_and_then_the_tools_are_withdrawn(file: Path) -> None:
    def searches_for_ever(got: Received) -> Answer:
        if got.tool_names:
            return Reply(calls=tuple(Call(SEARCH, {"query": f"retry_limit_{n}"}) for n in range(10)))
        return answer([])

    reading, server = asked(file, searches_for_ever, "tools")
    (one,) = reading.answers
    assert [call.status for call in one.calls].count("native") == MOST_CALLS
    assert [call.status for call in one.calls].count("spent") == 6
    last = server.turns[-1]
    assert last.tool_names == []
    assert "used up" in last.messages[-1]["content"]
    assert not one.why


def test_a_session_s_own_tool_is_refused_and_named(file: Path) -> None:
    def reads(got: Received) -> Answer:
        if got.messages[-1]["role"] == "tool":
            return answer([])
        return Reply(
            calls=(Call("read", {"path": "/etc/passwd"}), Call(SEARCH, "no JSON"), Call(GET, {"entry": "none"}))
        )

    reading, server = asked(file, reads, "tools")
    (one,) = reading.answers
    assert [call.status for call in one.calls] == ["denied", "error", "error"]
    told = [message["content"] for message in server.turns[-1].messages if message["role"] == "tool"][-3:]
    assert told[0].startswith("read cannot be used")
    assert "JSON object" in told[1]
    assert "none" in told[2]


def test_a_question_without_a_reply_in_one_round_counts_in_none(file: Path) -> None:
    def fails_once(got: Received) -> Answer:
        return Failure("server") if SEARCH in got.tool_names else answer([])

    reading, _ = asked(file, fails_once, "closed,tools")
    assert reading.answers == []
    assert len(reading.unresolved) == 1
    assert "round tools" in reading.unresolved[0]


@pytest.mark.parametrize(
    ("claimed", "contained", "seen", "query", "expected"),
    [
        (True, True, "", "", "shown"),
        (True, False, "port 8123", "", "retrieved"),
        (True, False, "port 81234", "", "guessed"),
        (False, True, "8123", "", "unreported"),
        (False, False, "8123", "", "searched"),
        (False, False, "", '{"query":"8123"}', "searched"),
        (False, False, "", "", "never"),
    ],
)
def test_what_became_of_a_value(claimed: bool, contained: bool, seen: str, query: str, expected: str) -> None:

    one = Asked("8123", "user", "8123")
    calls = [Traced(SEARCH, query, "native", "")] if query else []
    keys = frozenset(["8123"])
    assert fate(one, keys if claimed else frozenset(), keys if contained else frozenset(), seen, calls) == expected


def test_the_history_is_searched_and_fetched_byte_for_byte() -> None:
    entries = session(user("Port 8123, bitte: größer als 汉字."), said("Noted."), result("c1", filler(9_000, "long")))
    with History(entries) as history:
        lookups = Lookups(history)
        hits = json.loads(lookups.execute(SEARCH, '{"query": "汉字"}').returned)["hits"]
        assert [hit["role"] for hit in hits] == ["user"]
        page = json.loads(lookups.execute(GET, json.dumps({"entry": hits[0]["entry"]})).returned)
        assert page["text"] == "Port 8123, bitte: größer als 汉字."
        assert lookups.execute(SEARCH, '{"query": ""}').status == "error"
        assert lookups.execute(GET, json.dumps({"entry": hits[0]["entry"], "offset": 10**6})).status == "error"
        text, offset = "", 0
        while offset is not None:
            page = json.loads(lookups.execute(GET, json.dumps({"entry": entries[-1].id, "offset": offset})).returned)
            text += page["text"]
            offset = page["next_offset"]
        assert text == filler(9_000, "long")
        assert sum(call.size for call in lookups.traced) < MOST_BYTES
        assert history.text(entries[-1].id, 256) == filler(9_000, "long")


def test_the_command(file: Path, tmp_path: Path) -> None:
    app = typer.Typer()
    app.callback()(lambda: None)
    register(app)
    with FakeServer(looks_up) as server:
        common = [
            "openbook",
            str(file),
            "--reader",
            server.url + "/v1",
            "--model",
            "m",
            "--budget",
            "5 CNY",
            "--price",
            "1,4",
        ]
        common += ["--ledger", str(tmp_path / "c.db"), "--values", "12", "--window", "20000", "--replicates", "1"]
        done = CliRunner().invoke(app, common)
        assert done.exit_code == 0, done.output
        assert "retrieved" in done.stdout
        rows = json.loads(CliRunner().invoke(app, [*common, "--json", "--rounds", "closed,forced"]).stdout)
    assert [row["round"] for row in rows] == ["closed", "forced"]
    assert rows[1]["fates"].get("retrieved", 0) > 0
    assert {call["tool"] for call in rows[1]["calls"]} == {SEARCH}
    assert [row["ignored_forced_call"] for row in rows] == [False, False]
    with FakeServer(answers_at_once) as server:
        common[common.index("--reader") + 1] = server.url + "/v1"
        common[common.index("--ledger") + 1] = str(tmp_path / "d.db")
        done = CliRunner().invoke(app, [*common, "--rounds", "tools,forced"])
    assert done.exit_code == 0, done.output
    assert [line.split()[:2] for line in done.stdout.splitlines() if "1/1" in line] == [["forced", "0/0"]]
