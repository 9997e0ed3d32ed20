"""Scoring on sessions whose answers are known, the worked example of the definitions first."""

from __future__ import annotations

from random import Random

import pytest

from firsthand.lab.boundaries import Boundary, boundaries, deciles, exam_tail, safe_positions, steps_after
from firsthand.lab.exams.cloze import answered, question
from firsthand.lab.exams.constraints import inserted, rules
from firsthand.lab.exams.recognition import draw
from firsthand.lab.passages import Passages, home_words
from firsthand.lab.questions import ask, questions
from firsthand.lab.values import homes
from firsthand.testing.builders import call, entry, injected, result, said, session, user, view
from firsthand.tokens import EstimateCounter, entry_cost
from firsthand.transcript import Entry, Marker, Text, ToolResult

COUNTER = EstimateCounter()


def log() -> Entry:
    lines = ["the log goes on"] * 900
    lines[411] = "ERROR worker-7f3a91 lost lease after 30 s"
    return entry("tool", ToolResult("c0", (Text("\n".join(lines)),)))


WORKED = session(
    user("Keep the public API. Only port 8123 is free for the stub."),
    said("I put the stub in `tests/stub_server.py`; it answers in 12 ms."),
    log(),
    said(call("read", path="tests/stub_server.py")),
    result("c1", "class Stub: name = 'worker-7f3a91'"),
    said("worker-7f3a91 holds the lease"),
)
P1 = session(user("8123 tests/stub_server.py worker-7f3a91 12 ms"))
P2 = session(WORKED[0], said("I put the stub in `tests/stub_server.py`; it answers in 12 ms."))


def asked(
    entries: tuple[Entry, ...], position: int, shown: tuple[Entry, ...], tail: int | None = None
) -> dict[str, tuple[int, int]]:
    costs = [entry_cost(one, COUNTER) for one in entries]
    made = questions(
        entries,
        Boundary(position, "here"),
        costs,
        COUNTER,
        seeds=1,
        occurs=lambda text: False,
        tail=position if tail is None else tail,
    )
    found: dict[str, tuple[int, int]] = {}
    for one in ask(made, shown, 1_000):
        hits, of = found.get(one.exam, (0, 0))
        found[one.exam] = (hits + one.hits, of + one.of)
    return found


@pytest.mark.parametrize(
    ("shown", "recognition", "supported", "continuation", "constraints"),
    [(P1, (4, 5), (0, 5), (1, 1), (0, 2)), (P2, (3, 5), (3, 5), (1, 1), (2, 2))],
    ids=["bare values", "originals"],
)
def test_worked_example(
    shown: tuple[Entry, ...],
    recognition: tuple[int, int],
    supported: tuple[int, int],
    continuation: tuple[int, int],
    constraints: tuple[int, int],
) -> None:
    found = asked(WORKED, 3, shown)
    assert found["recognition"] == recognition
    assert found["supported"] == supported
    assert found["continuation"] == continuation
    assert found["constraints"] == constraints
    assert found == asked(WORKED, 3, shown)


def test_worked_example_asks_these_values() -> None:
    assert list(homes(WORKED[:3])) == ["8123", "tests/stub_server.py", "12 ms", "worker-7f3a91", "30 s"]


def prose(number: int) -> str:
    rng = Random(number)
    words = [
        "handler",
        "queue",
        "retries",
        "before",
        "closing",
        "socket",
        "writer",
        "flushes",
        "pending",
        "blocks",
        "reader",
        "waits",
        "until",
    ]
    rng.shuffle(words)
    return f"The {' '.join(words[:6])} in src/mod_{number}.py uses flag_{number:03d}x and {' '.join(words[6:])} {1000 + number}."


@pytest.mark.parametrize("separator", [" ", "\n"], ids=["one line", "one a line"])
def test_a_bare_list_of_all_values_is_recognised_and_not_supported(separator: str) -> None:
    entries = session(user("Start."), *[said(prose(number)) for number in range(60)])
    values = list(homes(entries))
    found = asked(entries, len(entries), session(user(separator.join(values))))
    assert found["recognition"][0] == found["recognition"][1] > 100
    assert found["supported"][0] <= found["supported"][1] // 50
    whole = asked(entries, len(entries), entries)
    assert whole["supported"][0] == whole["supported"][1]


def test_values_of_the_exam_tail_are_asked_apart() -> None:
    entries = session(user("Use src/a.py."), said("And src/b.py, with src/a.py."), user("Now src/c.py."))
    found = asked(entries, 3, session(user("src/a.py")), tail=2)
    assert found["recognition"] == (1, 2)
    assert found["recent"] == (0, 1)


def test_continuation_asks_what_is_used_once_and_was_not_brought_back() -> None:
    entries = session(
        user("Files: src/a.py, src/b.py, src/c.py."),
        said("Right."),
        user("Go on with src/a.py."),
        said("I open it.", call("read", path="src/b.py")),
        result("c1", "imports src/c.py"),
        said("src/a.py again, and src/c.py."),
    )
    assert asked(entries, 2, ())["continuation"] == (0, 2)
    assert asked(entries, 2, session(user("src/b.py")))["continuation"] == (1, 2)


def test_passages_hold_five_lines_of_one_message() -> None:
    value = homes(session(said("alpha beta gamma delta src/a.py")))["src/a.py"]
    words = home_words(value)
    assert words.needed == 2
    assert Passages(["src/a.py\n\n\n\nalpha beta"]).supports(value, words)
    assert not Passages(["src/a.py\n\n\n\n\nalpha beta"]).supports(value, words)
    assert not Passages(["src/a.py", "alpha beta"]).supports(value, words)
    far = "src/a.py" + "\n." * 9 + "\nalpha beta"
    assert not Passages([far]).supports(value, words)
    assert Passages([far], {far}).supports(value, words)  # equal to an original, so one passage


def test_cloze_takes_what_recall_brings_and_not_the_question() -> None:
    value = homes(session(said("alpha beta gamma src/a.py")))["src/a.py"]
    words = {value.text: home_words(value)}
    assert question(value) == "alpha beta gamma ____"
    assert answered([value], words, ()).known == frozenset()
    assert answered([value], words, (), lambda text: [text]).known == frozenset()
    brought = answered([value], words, (), lambda text: ["alpha beta gamma src/a.py"], ["a line of another session"])
    assert (brought.known, brought.false_positives) == ({"src/a.py"}, 1)


def test_rules_are_sentences_of_typed_text() -> None:
    entries = session(
        injected("Never read this."),
        user("Never push. It is late! Use 절대 하지 마세요\nplain line"),
        said("You must not count me."),
    )
    assert [rule.text for rule in rules(entries)] == ["Never push.", "Use 절대 하지 마세요"]
    changed, added = inserted(entries, 7, 4)
    assert len(added) == 1
    assert added[0].text in [rule.text for rule in rules(changed)]
    assert inserted(entries, 7, 4) == (changed, added)


def test_boundaries_part_no_call_from_its_result() -> None:
    history = view(
        user("a" * 400), call("x"), result("c1", "b" * 400), said("c" * 400), call("y"),
        markers=[Marker(id="m", after="e4")],
    )  # fmt: skip
    assert safe_positions(history.entries) == [1, 3, 4, 5]
    costs = [100, 100, 100, 100, 100]
    found = boundaries(history, (40, 70, 100), costs)
    assert [(one.position, one.label) for one in found] == [(1, "40%"), (3, "70%"), (4, "recorded:m"), (5, "100%")]
    assert deciles(costs) == [1, 3, 5, 7, 9]
    assert exam_tail(history.entries, 4, COUNTER, 215) == 2
    assert steps_after(history.entries, 1, 1) == 3


def test_draws_are_the_same_for_the_same_seed_and_differ_between_seeds() -> None:
    entries = session(*[said(prose(number)) for number in range(200)])
    ages = deciles([1] * len(entries))
    drawn = draw(homes(entries), ages, "", 3, 2)
    assert drawn == draw(homes(entries), ages, "", 3, 2)
    assert [len(values) for values in drawn.older] == [20, 20, 20]
    assert drawn.older[0] != drawn.older[1]
