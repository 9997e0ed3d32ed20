"""Calls made several at a time: the money and the rows are those of calls made one after the other."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading_model import session_file
from side_by_side import SideBySide, asks, billed
from test_open_book import PLAN as OPEN_PLAN
from test_open_book import looks_up

from firsthand.errors import ProviderError
from firsthand.formats import read_sessions
from firsthand.lab.arms import Arm
from firsthand.lab.model.endpoint import Endpoint
from firsthand.lab.model.jobs import Ask, Job, Jobs, Unanswered
from firsthand.lab.model.ledger import Ledger
from firsthand.lab.model.open_book import ROUNDS, OpenReading, open_book
from firsthand.lab.model.paid_calls import BudgetSpentError, Call, LedgerError, UnresolvedCallError
from firsthand.lab.model.reading import Plan, Reading, places, read
from firsthand.lab.model.results import as_csv, rows_of
from firsthand.lab.money.prices import picos, price_given
from firsthand.testing.server import Answer, Failure, FakeServer, Received, Reply
from firsthand.transcript import Usage

PRICE = price_given("m", "1,4", "CNY")
ARMS = (Arm("futureos-deterministic"), Arm("opencode-v1", summariser="extractive"), Arm("pi", summariser="extractive"))
PLAN = Plan(arms=ARMS, values=24, window=20_000, shares=(60, 100), replicates=2)
BODY = {"messages": [{"role": "user", "content": "hello"}], "max_completion_tokens": 10}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return session_file(tmp_path_factory.mktemp("session"))


def asked(
    file: Path,
    ledger: Path,
    most: int,
    *,
    budget: str = "50",
    plan: Plan = PLAN,
    answer: Callable[[Received], Answer] = billed,
    patience: float = 0.15,
) -> tuple[Reading, SideBySide, FakeServer]:
    model = SideBySide(ledger, most, answer, patience)
    with FakeServer(model) as server, Ledger(ledger, currency="CNY", budget=picos(budget)) as paid:
        jobs = Jobs(Endpoint(server.url + "/v1", "m", PRICE), paid, most)
        return read(list(places(read_sessions(file), plan, jobs)), plan, jobs), model, server


def csv(reading: Reading) -> str:
    return as_csv(rows_of(reading.answers, "model:m", "session", "session"))


def kept(ledger: Path) -> list[tuple[str, str, int, bytes, bytes | None]]:
    """The calls of a file whatever the order in which they were made."""
    with Ledger(ledger, currency="CNY", budget=0) as paid:
        return sorted((call.identity, call.state, call.spent, call.request, call.reply) for call in paid.calls())


@pytest.fixture(scope="module")
def one_by_one(file: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Reading, Path]:
    ledger = tmp_path_factory.mktemp("one") / "l.db"
    reading, model, server = asked(file, ledger, 1)
    assert model.widest <= 1
    assert max(model.reserved) == 1
    assert reading.asked == reading.planned == len(server.turns) == 24
    return reading, ledger


@pytest.mark.parametrize("most", [2, 4, 7])
def test_rows_and_calls_are_the_same_however_many_go_at_a_time(
    file: Path, tmp_path: Path, one_by_one: tuple[Reading, Path], most: int
) -> None:
    reading, model, server = asked(file, tmp_path / "l.db", most, patience=3.0)
    assert model.widest == most == max(model.reserved)
    assert csv(reading) == csv(one_by_one[0])
    assert reading == one_by_one[0]
    ours, theirs = kept(tmp_path / "l.db"), kept(one_by_one[1])
    assert [call[:4] for call in ours] == [call[:4] for call in theirs]
    assert all(call[4] for call in ours)
    assert len(server.turns) == 24
    assert set(model.arrived.values()) == {2}, "two replicates of each"


@pytest.mark.parametrize("budget", ["0.03", "0.08"])
def test_a_budget_that_runs_out_ends_at_the_same_call(file: Path, tmp_path: Path, budget: str) -> None:
    found = {}
    for most in (1, 2, 4):
        ledger = tmp_path / f"{most}.db"
        reading, model, server = asked(file, ledger, most, budget=budget)
        assert reading.stopped is not None
        assert max(model.spent) <= picos(budget)
        assert 0 < len(server.turns) < reading.planned
        found[most] = (csv(reading), reading, [call[:4] for call in kept(ledger)])
        # Again, with the same money: nothing is sent, and nothing else is scored.
        again, _, other = asked(file, ledger, most, budget=budget)
        assert other.turns == []
        assert again == reading
    assert found[1] == found[2] == found[4]


@pytest.mark.parametrize(("missing", "sent"), [(0, 4), (1, 3)])
def test_what_a_call_in_flight_will_free_is_waited_for(tmp_path: Path, missing: int, sent: int) -> None:
    """Four calls fit to the last pico one after the other, since each costs little; the worst cases of two at a time do not."""
    usage = Usage(input_tokens=1, output_tokens=1)
    with FakeServer(default=Reply("yes", usage=usage)) as server:
        endpoint = Endpoint(server.url + "/v1", "m", PRICE)
        budget = endpoint.priced(BODY)[1] + 3 * PRICE.charge(usage) - missing
        with Ledger(tmp_path / "l.db", currency="CNY", budget=budget) as paid:
            names = []
            with (
                closing(Jobs(endpoint, paid, 4).in_order(named_jobs(4))) as made,
                pytest.raises(BudgetSpentError) if missing else nullcontext(),
            ):
                names.extend(call.identity for call in made)
        assert names == [f"{number}" for number in range(4)][:sent] or missing
        assert len(server.turns) == sent


@pytest.fixture(scope="module")
def cheap() -> Iterator[FakeServer]:
    """Charges what a request's text says: a part of its worst case, or nothing that is told."""

    def answer(got: Received) -> Answer:
        share = int(str(got.messages[-1]["content"]).split()[0])
        most = len(got.body) + 1_000
        return Reply(
            "yes", report_usage=share > 0, usage=Usage(input_tokens=max(1, most * share // 100), output_tokens=1)
        )

    with FakeServer(answer) as server:
        yield server


@settings(max_examples=15)
@given(
    asked=st.lists(st.tuples(st.integers(0, 100), st.integers(0, 4_000)), min_size=1, max_size=14),
    most=st.integers(2, 6),
    part=st.integers(0, 100),
)
def test_any_budget_goes_to_the_same_calls_and_is_never_exceeded(
    cheap: FakeServer, asked: list[tuple[int, int]], most: int, part: int
) -> None:
    endpoint = Endpoint(cheap.url + "/v1", "m", PRICE)
    bodies = [
        {"messages": [{"role": "user", "content": f"{share} {'x' * size}"}], "max_completion_tokens": 10}
        for share, size in asked
    ]
    budget = sum(endpoint.priced(body)[1] for body in bodies) * part // 100
    found = []
    for jobs in (1, most):
        with TemporaryDirectory() as folder, Ledger(Path(folder) / "l.db", currency="CNY", budget=budget) as paid:
            each = [partial(asks_once, f"{number}", body) for number, body in enumerate(bodies)]
            names: list[str] = []
            stopped = False
            with closing(Jobs(endpoint, paid, jobs).in_order(each)) as made:
                try:
                    names.extend(call.identity for call in made)
                except BudgetSpentError:
                    stopped = True
            assert paid.spent().total <= budget
            assert stopped is (len(names) < len(bodies))
            assert sorted(call.identity for call in paid.calls()) == sorted(names)
            found.append((names, paid.spent()))
    assert found[0] == found[1]


def asks_once(name: str, body: dict[str, object], ask: Ask) -> Call:
    return ask(name, body)


def named_jobs(many: int, times: Callable[[int], int] = lambda number: 1) -> list[Job[Call]]:
    return [partial(named, f"{number}", times=times(number)) for number in range(many)]


def named(name: str, ask: Ask, times: int = 1) -> Call:
    return [ask(name if times == 1 else f"{name}.{step}", BODY) for step in range(times)][-1]


def test_outcomes_come_in_order_and_the_first_call_goes_alone(tmp_path: Path) -> None:
    model = SideBySide(tmp_path / "l.db", 4, lambda got: Reply("yes", usage=Usage(input_tokens=9, output_tokens=1)))
    with FakeServer(model) as server, Ledger(tmp_path / "l.db", currency="CNY", budget=picos("1")) as paid:
        endpoint = Endpoint(server.url + "/v1", "m", PRICE)
        jobs = named_jobs(11, lambda number: 1 + number % 3)
        with closing(Jobs(endpoint, paid, 4).in_order(jobs)) as made:
            names = [call.identity.split(".")[0] for call in made]
        assert names == [f"{number}" for number in range(11)]
        assert model.reserved[0] == 1
        assert 1 < max(model.reserved) <= 4
        assert len(server.turns) == len(paid.calls()) == sum(1 + number % 3 for number in range(11))


@pytest.mark.parametrize("most", [1, 3])
def test_a_refused_key_costs_one_call(file: Path, tmp_path: Path, most: int) -> None:
    with pytest.raises(ProviderError, match="answered 401; nothing more was sent"):
        asked(file, tmp_path / "l.db", most, answer=lambda got: Failure("auth"))
    with Ledger(tmp_path / "l.db", currency="CNY", budget=0) as paid:
        assert [call.status for call in paid.calls()] == [401]


@pytest.mark.parametrize("most", [1, 3])
def test_a_price_that_is_too_low_ends_the_run_and_what_came_is_kept(tmp_path: Path, most: int) -> None:
    dear = Usage(input_tokens=10**6, output_tokens=1)
    model = SideBySide(
        tmp_path / "l.db", most, lambda got: Reply("yes", usage=dear if got.number == 2 else Usage(input_tokens=1))
    )
    with FakeServer(model) as server, Ledger(tmp_path / "l.db", currency="CNY", budget=picos("5")) as paid:
        endpoint = Endpoint(server.url + "/v1", "m", PRICE)
        with (
            closing(Jobs(endpoint, paid, most).in_order(named_jobs(30))) as made,
            pytest.raises(LedgerError, match="price in use is too low"),
        ):
            list(made)
        calls = paid.calls()
        assert {call.state for call in calls} == {"answered"}
        assert 2 <= len(calls) < 12
        assert len(server.turns) == len(calls)


def test_a_job_s_own_error_comes_in_its_place_and_ends_the_run(tmp_path: Path) -> None:
    def bad(ask: Ask) -> Call:
        raise KeyError("mine")

    with FakeServer(default=Reply("yes")) as server, Ledger(tmp_path / "l.db", currency="CNY", budget=10**15) as paid:
        jobs = [*named_jobs(2), bad, *named_jobs(40)[2:]]
        with closing(Jobs(Endpoint(server.url + "/v1", "m", PRICE), paid, 3).in_order(jobs)) as made:
            assert [next(made).identity, next(made).identity] == ["0", "1"]
            with pytest.raises(KeyError, match="mine"):
                next(made)
        assert len(server.turns) < 12
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("firsthand-lab-call")]


def test_leaving_early_lets_calls_in_flight_land(tmp_path: Path) -> None:
    model = SideBySide(tmp_path / "l.db", 4, lambda got: Reply("yes", usage=Usage(input_tokens=9, output_tokens=1)))
    with FakeServer(model) as server, Ledger(tmp_path / "l.db", currency="CNY", budget=picos("1")) as paid:
        with closing(Jobs(Endpoint(server.url + "/v1", "m", PRICE), paid, 4).in_order(named_jobs(200))) as made:
            next(made)
        assert {call.state for call in paid.calls()} == {"answered"}
        assert len(server.turns) < 20
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("firsthand-lab-call")]


@pytest.mark.parametrize("most", [1, 4])
def test_failures_on_end_are_counted_in_the_questions_order(file: Path, tmp_path: Path, most: int) -> None:
    model: Callable[[Received], Answer] = lambda got: billed(got) if got.number == 1 else Failure("server")  # noqa: E731
    with pytest.raises(ProviderError, match=r"answered 500, 5 times on end; nothing more was sent"):
        asked(file, tmp_path / "l.db", most, answer=model)
    with Ledger(tmp_path / "l.db", currency="CNY", budget=0) as paid:
        assert 6 <= len(paid.calls()) < 6 + 3 * most


def test_while_the_oldest_call_hangs_the_others_run_ahead_only_so_far(tmp_path: Path) -> None:
    """The second request hangs until nobody else comes any more; what fails meanwhile keeps its reservation, and must not go on for ever."""
    others = asyncio.Event()

    async def answer(got: Received) -> Answer:
        if got.number == 1:
            return Reply("yes", usage=Usage(input_tokens=9, output_tokens=1))
        if got.number == 2:
            await others.wait()
            return Reply("yes", usage=Usage(input_tokens=9, output_tokens=1))
        if len(server.turns) == 9:
            others.set()
        return Failure("server")

    server = FakeServer(answer)
    with server, Ledger(tmp_path / "l.db", currency="CNY", budget=picos("5")) as paid:
        unanswered = Unanswered(Endpoint(server.url + "/v1", "m", PRICE))
        with (
            closing(Jobs(unanswered.endpoint, paid, 4).in_order(named_jobs(90))) as made,
            pytest.raises(ProviderError, match="5 times on end"),
        ):
            counted(made, unanswered)
        assert len(server.turns) < 9 + 2 * 4 + 4


def counted(calls: Iterable[Call], unanswered: Unanswered) -> None:
    for call in calls:
        unanswered.add(call) if call.state == "failed" else unanswered.answered()


def test_summaries_are_written_side_by_side_too(file: Path, tmp_path: Path) -> None:
    names = ("futureos-summarized", "pi", "opencode-v1", "codex-local")
    plan = Plan(
        arms=tuple(Arm(name, summariser="model") for name in names),
        values=12,
        replicates=1,
        window=40_000,
        shares=(50, 100),
    )
    first, _, _ = asked(file, tmp_path / "1.db", 1, plan=plan)
    second, model, server = asked(file, tmp_path / "4.db", 4, plan=plan)
    assert sum(not asks(got) for got in server.turns) >= 6
    assert 1 < max(model.reserved) <= 4
    assert csv(first) == csv(second)
    assert [call[:4] for call in kept(tmp_path / "1.db")] == [call[:4] for call in kept(tmp_path / "4.db")]


# Open book.


def opened(file: Path, ledger: Path, most: int, budget: str = "50") -> tuple[OpenReading, SideBySide]:
    plan = Plan(arms=(*OPEN_PLAN.arms, Arm("pi", summariser="extractive")), values=24, window=20_000, replicates=2)
    model = SideBySide(ledger, most, looks_up)
    with FakeServer(model) as server, Ledger(ledger, currency="CNY", budget=picos(budget)) as paid:
        jobs = Jobs(Endpoint(server.url + "/v1", "m", PRICE), paid, most)
        found = list(places(read_sessions(file), plan))
        return open_book(found, plan, ROUNDS, jobs), model


def test_open_book_questions_go_side_by_side_and_their_rounds_in_order(file: Path, tmp_path: Path) -> None:
    first, _ = opened(file, tmp_path / "1.db", 1)
    second, model = opened(file, tmp_path / "4.db", 4)
    assert first == second
    assert len(first.answers) == first.planned == 40
    assert 1 < max(model.reserved) <= 4
    assert [call[:2] for call in kept(tmp_path / "1.db")] == [call[:2] for call in kept(tmp_path / "4.db")]
    with Ledger(tmp_path / "4.db", currency="CNY", budget=0) as paid:
        names = [call.identity for call in paid.calls()]
    for question in {name.split("/round")[0] + name.rsplit("/", 2)[1] for name in names}:
        own = [name for name in names if name.split("/round")[0] + name.rsplit("/", 2)[1] == question]
        order = [(next(n for n, one in enumerate(ROUNDS) if f"/round {one.name}/" in name), name[-1]) for name in own]
        assert order == sorted(order)


def test_open_book_within_a_budget_that_runs_out_scores_whole_questions(file: Path, tmp_path: Path) -> None:
    for most in (1, 4):
        ledger = tmp_path / f"{most}.db"
        reading, model = opened(file, ledger, most, budget="0.12")
        assert reading.stopped is not None
        assert max(model.spent) <= picos("0.12")
        assert 0 < len(reading.answers) < reading.planned
        assert len(reading.answers) % len(ROUNDS) == 0
        again, other = opened(file, ledger, most, budget="0.12")
        assert again.answers == reading.answers
        assert max([*other.spent, 0]) <= picos("0.12")


# SIGKILL with several calls in flight.

CHILD = """
import os, signal, sys
from pathlib import Path
from firsthand.formats import read_sessions
from firsthand.lab.model.endpoint import Endpoint
from firsthand.lab.model.jobs import Jobs
from firsthand.lab.model.ledger import Ledger
from firsthand.lab.model.reading import places, read
from firsthand.lab.money.prices import picos
sys.path.insert(0, sys.argv[1])
from test_jobs import PLAN, PRICE

file, ledger, url, after = Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4], int(sys.argv[5])
endpoint = Endpoint(url, "m", PRICE)
with Ledger(ledger, currency="CNY", budget=picos("50")) as paid:
    settle, landed = paid.settle, []
    def killed(reserved, settled):
        landed.append(reserved)
        if len(landed) == after:
            os.kill(os.getpid(), signal.SIGKILL)  # answered, and not kept
        return settle(reserved, settled)
    paid.settle = killed
    jobs = Jobs(endpoint, paid, 4)
    read(list(places(read_sessions(file), PLAN, jobs)), PLAN, jobs)
"""


def child(file: Path, ledger: Path, url: str, after: int = -1) -> subprocess.Popen[bytes]:
    arguments = [str(Path(__file__).parent), str(file), str(ledger), url + "/v1", str(after)]
    return subprocess.Popen([sys.executable, "-c", CHILD, *arguments])


@pytest.mark.parametrize("arrived", [1, 5, 18])
def test_killed_with_calls_in_flight_nothing_is_paid_for_twice(
    file: Path, tmp_path: Path, one_by_one: tuple[Reading, Path], arrived: int
) -> None:
    ledger = tmp_path / "l.db"
    running: list[subprocess.Popen[bytes]] = []
    killed = asyncio.Event()
    bodies: list[bytes] = []

    async def kills(got: Received) -> Answer:
        bodies.append(got.body)
        if len(bodies) == arrived:
            os.kill(running[0].pid, signal.SIGKILL)
            killed.set()
        elif len(bodies) > max(1, arrived - 3):
            await killed.wait()  # these are in flight when it dies
        return billed(got)

    with FakeServer(kills) as server:
        running.append(child(file, ledger, server.url))
        assert running[0].wait(120) == -signal.SIGKILL
    lost = [call for call in kept(ledger) if call[1] == "reserved"]
    assert min(arrived, 3) <= len(lost) <= 4
    resumed(file, ledger, one_by_one[0], len(bodies), [call[0] for call in lost])


@pytest.mark.parametrize("after", [1, 6])
def test_killed_between_a_reply_and_its_keeping(
    file: Path, tmp_path: Path, one_by_one: tuple[Reading, Path], after: int
) -> None:
    ledger = tmp_path / "l.db"
    with FakeServer(SideBySide(ledger, 4)) as server:
        assert child(file, ledger, server.url, after).wait(120) == -signal.SIGKILL
        arrived = len(server.turns)
    lost = [call[0] for call in kept(ledger) if call[1] == "reserved"]
    assert 1 <= len(lost) <= 4
    resumed(file, ledger, one_by_one[0], arrived, lost)


def resumed(file: Path, ledger: Path, whole: Reading, arrived: int, lost: list[str]) -> None:
    """The same command again pays for no call twice; told to, it tries the lost ones once more, and has the numbers of an undisturbed run."""
    before = kept(ledger)
    assert len(before) >= arrived, "each request that arrived has its reservation"
    reading, _, server = asked(file, ledger, 4)
    assert len(server.turns) == whole.planned - len(before)
    assert len(reading.unresolved) == len(lost)
    assert all(any(identity in told for told in reading.unresolved) for identity in lost)
    with FakeServer(billed) as other, Ledger(ledger, currency="CNY", budget=picos("50"), retry=True) as paid:
        jobs = Jobs(Endpoint(other.url + "/v1", "m", PRICE), paid, 4)
        again = read(list(places(read_sessions(file), PLAN, jobs)), PLAN, jobs)
        assert len(other.turns) == len(lost)
        assert sum(call.state == "abandoned" for call in paid.calls()) == len(lost)
    assert csv(again) == csv(whole)


def test_an_interrupt_lets_calls_in_flight_land(file: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "l.db"
    running: list[subprocess.Popen[bytes]] = []

    def interrupts(got: Received) -> Answer:
        if got.number == 5:
            os.kill(running[0].pid, signal.SIGINT)
        return billed(got)

    with FakeServer(SideBySide(ledger, 4, interrupts)) as server:
        running.append(child(file, ledger, server.url))
        assert running[0].wait(120) != 0
        assert len(server.turns) < 24
    assert {call[1] for call in kept(ledger)} == {"answered"}


def test_a_question_of_an_earlier_run_that_has_no_reply_stays_so(file: Path, tmp_path: Path) -> None:
    with (
        FakeServer(default=Failure("server")) as server,
        Ledger(tmp_path / "l.db", currency="CNY", budget=10**15) as paid,
    ):
        jobs = Jobs(Endpoint(server.url + "/v1", "m", PRICE), paid, 4)
        for _ in range(2):
            with closing(jobs.in_order([partial(caught, f"{number}") for number in range(6)])) as made:
                states = list(made)
    assert states == ["UnresolvedCallError"] * 6
    assert len(server.turns) == 6


def caught(name: str, ask: Ask) -> str:
    try:
        return ask(name, BODY).state
    except UnresolvedCallError as error:
        return type(error).__name__
