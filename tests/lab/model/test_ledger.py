from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from firsthand.lab.model.endpoint import Endpoint
from firsthand.lab.model.ledger import Ledger
from firsthand.lab.model.paid_calls import (
    BudgetSpentError,
    LedgerError,
    Settled,
    UnresolvedCallError,
    call_key,
)
from firsthand.lab.money.prices import Price, picos, price_given
from firsthand.testing.server import Failure, FakeServer, Raw, Reply
from firsthand.transcript import Usage

BUDGET = picos("1")
WORST = picos("0.1")
FREE = price_given("m", "1,4,0.02", "CNY")


def ledger(path: Path, budget: int = BUDGET, **more: bool) -> Ledger:
    return Ledger(path / "ledger.db", currency="CNY", budget=budget, **more)


def answer(charged: int | None = None) -> Callable[[bytes], Settled]:
    return lambda request: Settled(200, b'{"said":1}', charged)


def body(text: str = "hello", cap: int = 10) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": text}], "max_completion_tokens": cap}


def test_a_finished_call_is_answered_from_the_file_and_sent_once(tmp_path: Path) -> None:
    with ledger(tmp_path) as paid:
        first = paid.call("a", b"body", WORST, answer(picos("0.01")))
    with ledger(tmp_path) as paid:
        again = paid.call("a", b"body", WORST, lambda request: pytest.fail("sent twice"))
        assert again == first
        assert paid.spent().total == picos("0.01")
        assert (again.reply, again.status) == (b'{"said":1}', 200)


def test_the_file_is_the_user_s_alone(tmp_path: Path) -> None:
    with ledger(tmp_path):
        assert (tmp_path / "ledger.db").stat().st_mode & 0o077 == 0


def test_another_identity_or_another_body_is_another_call(tmp_path: Path) -> None:
    keys = {call_key("a", b"x"), call_key("a", b"y"), call_key("b", b"x"), call_key("a\0", b"x")}
    assert len(keys) == 4


def test_the_reservation_is_on_the_disk_before_the_call_is_sent(tmp_path: Path) -> None:
    seen: list[object] = []

    def send(request: bytes) -> Settled:
        import sqlite3

        with sqlite3.connect(tmp_path / "ledger.db") as other:
            seen.append(other.execute("SELECT state, reserved, request FROM call").fetchall())
        return Settled(200, b"{}", 0)

    with ledger(tmp_path) as paid:
        paid.call("a", b"body", WORST, send)
    assert seen == [[("reserved", WORST, b"body")]]


def test_nothing_is_sent_above_the_budget(tmp_path: Path) -> None:
    with ledger(tmp_path, budget=3 * WORST) as paid:
        for number in range(3):
            paid.call(f"{number}", b"x", WORST, answer(None))
        with pytest.raises(BudgetSpentError, match=r"0\.1000 CNY.*raise --budget") as refused:
            paid.call("3", b"x", WORST, lambda request: pytest.fail("sent"))
        assert (refused.value.spent, refused.value.needed) == (3 * WORST, WORST)
        assert len(paid.calls()) == 3
    # A charge that is known frees what was reserved above it; the exact rest may be spent.
    with ledger(tmp_path, budget=4 * WORST) as paid:
        paid.call("3", b"x", WORST, answer(WORST))
        with pytest.raises(BudgetSpentError):
            paid.call("4", b"x", 1, answer(0))


def test_a_charge_above_the_reservation_is_kept_and_stops(tmp_path: Path) -> None:
    with ledger(tmp_path) as paid:
        with pytest.raises(LedgerError, match="price in use is too low"):
            paid.call("a", b"x", 10, answer(11))
        assert paid.spent().total == 11


def test_a_failed_call_is_reported_and_retried_only_on_request(tmp_path: Path) -> None:
    with ledger(tmp_path) as paid:
        failed = paid.call("a", b"x", WORST, lambda request: Settled(500, b"oops", None, "answered 500"))
        assert (failed.state, failed.reply, paid.spent().total) == ("failed", b"oops", WORST)
        with pytest.raises(UnresolvedCallError, match=r"failed \(answered 500\)"):
            paid.call("a", b"x", WORST, lambda request: pytest.fail("retried by itself"))
    with ledger(tmp_path, retry=True) as paid:
        assert paid.call("a", b"x", WORST, answer(0)).state == "answered"
        assert paid.spent().total == WORST, "the first try still counts"
        assert [call.state for call in paid.calls()] == ["abandoned", "answered"]


def test_a_retry_is_for_what_is_asked_again_and_once(tmp_path: Path) -> None:
    fails = Settled(500, b"", None, "answered 500")
    with ledger(tmp_path) as paid:
        for identity in "ab":
            paid.call(identity, b"x", WORST, lambda request: fails)
    with ledger(tmp_path, retry=True) as paid:
        paid.call("a", b"x", WORST, lambda request: fails)
        with pytest.raises(UnresolvedCallError):
            paid.call("a", b"x", WORST, lambda request: pytest.fail("a retry of a retry"))
    with ledger(tmp_path) as paid, pytest.raises(UnresolvedCallError):
        # Nobody asked for it while retries were allowed.
        paid.call("b", b"x", WORST, lambda request: pytest.fail("retried by itself"))


def test_a_retry_waits_for_no_other_run_that_has_the_file(tmp_path: Path) -> None:
    with (
        ledger(tmp_path),
        pytest.raises(LedgerError, match="another run uses"),
        ledger(tmp_path, retry=True),
    ):
        pass


def test_two_threads_never_spend_more_than_the_budget_together(tmp_path: Path) -> None:
    sent: list[str] = []
    refused: list[str] = []
    with ledger(tmp_path, budget=5 * WORST) as paid:

        def work(name: str) -> None:
            for number in range(8):
                try:
                    paid.call(
                        f"{name}{number}",
                        b"x",
                        WORST,
                        lambda request: (sent.append(name), Settled(200, b"{}", None))[1],
                    )
                except BudgetSpentError:
                    refused.append(name)

        threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(sent), len(refused), paid.spent().total) == (5, 11, 5 * WORST)


def test_two_processes_share_one_budget_and_pay_for_no_call_twice(tmp_path: Path) -> None:
    with FakeServer(default=Reply("yes", usage=Usage(input_tokens=100, output_tokens=1))) as server:
        children = [child(tmp_path, server.url, "loop", calls=12) for _ in range(2)]
        for running in children:
            running.wait(60)
        with ledger(tmp_path) as paid:
            identities = [call.identity for call in paid.calls()]
        assert sorted(set(identities)) == sorted(identities)
        assert len(server.turns) == len(identities) == 12


@pytest.mark.parametrize(
    ("text", "problem"),
    [(b"not a database, but long enough to be one", "cannot be used"), (None, "counts in CNY")],
    ids=["damaged", "other currency"],
)
def test_a_file_that_is_no_ledger_of_this_currency_is_refused(tmp_path: Path, text: bytes | None, problem: str) -> None:
    path = tmp_path / "ledger.db"
    if text is None:
        with Ledger(path, currency="CNY", budget=1):
            pass
    else:
        path.write_bytes(text * 40)
    before = path.read_bytes()
    with pytest.raises(LedgerError, match=problem), Ledger(path, currency="USD", budget=1):
        pass
    assert text is None or path.read_bytes() == before


# The endpoint: what is charged, what is not, and that a key goes nowhere.


def asked(
    tmp_path: Path, reply: object, price: Price = FREE, key: str | None = None, **more: object
) -> tuple[object, Ledger]:
    with FakeServer([reply], validate=False) as server, ledger(tmp_path) as paid:  # type: ignore[list-item]
        endpoint = Endpoint(server.url + "/v1", "m", price, key, **more)  # type: ignore[arg-type]
        made = endpoint.ask(paid, "a", body())
        assert len(server.turns) == 1
        if key:
            assert server.turns[0].key == key
        return made, paid


@pytest.mark.parametrize(
    ("reply", "state", "charged"),
    [
        (
            Reply("yes", usage=Usage(input_tokens=1_000, output_tokens=10, cache_read=900)),
            "answered",
            picos("0.000158"),
        ),
        (Reply("yes", report_usage=False), "answered", None),
        (Failure("rate_limit"), "failed", 0),
        (Failure("server"), "failed", None),
        (Failure("malformed"), "failed", None),
        (Raw(b"[1]", content_type="application/json"), "failed", None),
        (Raw(b"", status=302, headers={"location": "http://127.0.0.1:9/"}), "failed", 0),
    ],
    ids=["usage", "no usage", "429", "500", "half a JSON", "a list", "redirect"],
)
def test_what_an_answer_costs(tmp_path: Path, reply: object, state: str, charged: int | None) -> None:
    made, _ = asked(tmp_path, reply)
    assert (made.state, made.charged) == (state, charged)  # type: ignore[attr-defined]


def test_an_endpoint_that_is_not_there_costs_nothing_and_is_not_tried_again(tmp_path: Path) -> None:
    with FakeServer() as server:
        gone = server.url
    with ledger(tmp_path) as paid:
        endpoint = Endpoint(gone, "m", FREE)
        assert endpoint.ask(paid, "a", body()).charged == 0
        with pytest.raises(UnresolvedCallError, match="could not be reached: ConnectError"):
            endpoint.ask(paid, "a", body())


def test_the_key_is_sent_and_written_nowhere(tmp_path: Path) -> None:
    asked(tmp_path, Reply("yes"), key="sk-secret-123")
    assert b"sk-secret-123" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_a_key_that_an_endpoint_repeats_is_not_kept_either(tmp_path: Path) -> None:
    made, _ = asked(tmp_path, Failure("auth", message="wrong key {key}"), key="sk-secret-123")
    assert b"wrong key [key]" in made.reply  # type: ignore[attr-defined]
    assert b"sk-secret-123" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_the_worst_case_covers_the_bill_of_any_prompt(tmp_path: Path) -> None:
    made, _ = asked(
        tmp_path, Reply("yes", usage=Usage(input_tokens=65, output_tokens=10)), price_given("m", "3,15", "CNY")
    )
    assert made.charged <= made.reserved  # type: ignore[attr-defined]


# SIGKILL at each moment.

CHILD = """
import os, signal, sys
from pathlib import Path
from firsthand.lab.model.endpoint import Endpoint
from firsthand.lab.model.ledger import Ledger
from firsthand.lab.model.paid_calls import BudgetSpentError, UnresolvedCallError
from firsthand.lab.money.prices import picos, price_given

folder, url, moment, calls = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
endpoint = Endpoint(url + "/v1", "m", price_given("m", "1,4", "CNY"))
with Ledger(folder / "ledger.db", currency="CNY", budget=picos("1")) as paid:
    send = endpoint.send
    def killed(request):
        if moment == "reserved":
            os.kill(os.getpid(), signal.SIGKILL)
        answer = send(request)
        if moment == "answered":
            os.kill(os.getpid(), signal.SIGKILL)
        return answer
    object.__setattr__(endpoint, "send", killed)
    for number in range(calls):
        try:
            endpoint.ask(paid, f"call {number}", {"messages": [{"role": "user", "content": "hello"}], "max_completion_tokens": 10})
        except (UnresolvedCallError, BudgetSpentError):
            pass
    if moment == "kept":
        os.kill(os.getpid(), signal.SIGKILL)
"""


def child(tmp_path: Path, url: str, moment: str, calls: int = 1) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path), url, moment, str(calls)])


@pytest.mark.parametrize(
    ("moment", "received", "state"),
    [("reserved", 0, "reserved"), ("in flight", 1, "reserved"), ("answered", 1, "reserved"), ("kept", 1, "answered")],
)
def test_killed_at_any_moment_nothing_is_paid_for_twice(tmp_path: Path, moment: str, received: int, state: str) -> None:
    running: list[subprocess.Popen[bytes]] = []

    def reply(got: object) -> Reply:
        if moment == "in flight" and len(running) == 1 and running[0].poll() is None:
            os.kill(running[0].pid, signal.SIGKILL)
        return Reply("yes", usage=Usage(input_tokens=100, output_tokens=1))

    with FakeServer(reply) as server:
        running.append(child(tmp_path, server.url, moment))
        assert running[0].wait(60) == -signal.SIGKILL
        with ledger(tmp_path) as paid:
            (call,) = paid.calls()
            assert call.state == state
            assert call.spent == (call.reserved if state == "reserved" else picos("0.000104"))
        # The same command again: it sends nothing, since it cannot know.
        assert child(tmp_path, server.url, "none").wait(60) == 0
        assert len(server.turns) == received
        if state == "reserved":
            with ledger(tmp_path, retry=True) as paid:
                Endpoint(server.url + "/v1", "m", FREE).ask(paid, "call 0", body())
                assert [one.state for one in paid.calls()] == ["abandoned", "answered"]


@pytest.mark.slow
def test_killed_again_and_again_while_it_works(tmp_path: Path) -> None:
    with FakeServer(default=Reply("yes", usage=Usage(input_tokens=100, output_tokens=1))) as server:
        for round_ in range(8):
            running = child(tmp_path, server.url, "loop", calls=400)
            deadline = time.monotonic() + 30
            while len(server.turns) < 20 * (round_ + 1) and time.monotonic() < deadline and running.poll() is None:
                time.sleep(0.001 * (round_ + 1))
            running.kill()
            running.wait()
        with ledger(tmp_path) as paid:
            calls = paid.calls()
        assert len({call.identity for call in calls}) == len(calls)
        assert len(server.turns) <= len(calls), "each request that arrived has its reservation"
        assert sum(call.state == "answered" for call in calls) <= len(server.turns)
