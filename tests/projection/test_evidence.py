from __future__ import annotations

import msgspec
import pytest

from firsthand.projection.evidence import FULL, SMALL, candidates, evidence_rows, prioritised, row, target_of
from firsthand.testing.builders import call, result, said, session, thought, user
from firsthand.tokens import EstimateCounter

estimate = EstimateCounter()


def ids(found: list) -> list[str]:
    return [candidate.call_id for candidate in found]


@pytest.mark.parametrize(
    ("arguments", "target"),
    [
        ('{"command":"ls","path":"a"}', "a"),
        ('{"path":""}', ""),
        ('{"path":3,"url":"u"}', "u"),
        ('{"filePath":"f"}', "f"),
        ("[1]", None),
        ("*** Begin Patch", None),
        ("{broken", None),
    ],
)
def test_what_a_call_works_on(arguments: str, target: str | None) -> None:
    assert target_of(arguments) == target


def test_attribution_by_id_and_ambiguity() -> None:
    entries = session(
        said(call("read", path="a", id="1"), call("read", path="b", id="1")), result("1", "x"), result("1", "y"),
        call("read", path="c", id="2"), result("2", "z"), call("run", command="d", id="2"), result("2", "w"), result("none", "v"),
    )  # fmt: skip
    assert [(c.tool, c.target) for c in candidates(entries)] == [
        (None, None),
        (None, None),
        ("read", "c"),
        ("run", "d"),
        (None, None),
    ]


@pytest.mark.parametrize(
    ("target", "important"),
    [
        ("src/app.config", True),
        ("latest.log", True),  # "test" inside "latest"
        ("cd x && pytest a/b", False),  # only what follows the last slash is looked at
        ("C:\\x\\CONFIG.json", True),
        ("config/readme.md", False),
    ],
)
def test_importance(target: str, important: bool) -> None:
    (found,) = candidates(session(call("read", path=target, id="1"), result("1", "x")))
    assert found.is_important is important


def test_errors_first_then_ends_of_groups_then_the_rest() -> None:
    reads = [part for n in range(5) for part in (call("read", path="same.py", id=f"s{n}"), result(f"s{n}", f"{n}"))]
    entries = session(
        call("z", path="last", id="z"), result("z", "x"), *reads, call("a", path="test.cfg", id="t"), result("t", "x"), call("run", command="make", id="e"), result("e", "bad", error=True)
    )  # fmt: skip
    assert ids(list(prioritised(candidates(entries)))) == ["e", "t", "s4", "s0", "z", "s3", "s2", "s1"]


def test_rows_in_full_and_small() -> None:
    (found,) = candidates(
        session(user("go"), call("read", path="p" * 200, id="c"), result("c", "汉" * 1_000, error=True))
    )
    value = msgspec.json.decode(row(found, FULL))
    assert list(value) == [
        "entryId",
        "blockIndex",
        "sourceOrder",
        "toolCallId",
        "tool",
        "target",
        "isError",
        "head",
        "tail",
        "middleOmitted",
    ]
    assert (value["entryId"], value["sourceOrder"], value["isError"], value["middleOmitted"]) == ("e3", 2, True, True)
    assert (len(value["head"]), len(value["tail"])) == (380, 100)
    assert value["target"].startswith("p" * 160 + "…")
    small = msgspec.json.decode(row(found, SMALL))
    assert (len(small["head"]), len(small["tail"])) == (64, 32)


def test_content_that_fits_is_whole() -> None:
    (found,) = candidates(session(result("c", "x" * 480)))
    value = msgspec.json.decode(row(found, FULL))
    assert (value["head"], value["tail"], value["middleOmitted"]) == ("x" * 480, "", False)


def test_the_index_is_bounded_repeatable_and_shows_no_reasoning() -> None:
    parts = []
    for n in range(40):
        parts += [
            said(thought("secret"), call("read", path=f"f{n % 7}.py", id=f"k{n}")),
            result(f"k{n}", f"{n} " * 400, error=n == 17),
        ]
    entries = session(user("go"), *parts)
    body, refs = evidence_rows(candidates(entries), "start", 2_048, estimate)
    assert body == evidence_rows(candidates(entries), "start", 2_048, estimate)[0]
    assert estimate.count(body) <= 2_048
    assert "secret" not in body
    shown = {ref.entry for ref in refs}
    assert {"e3", "e37", "e81"} <= shown  # the first, the single error, the last
    assert all(msgspec.json.decode(line) for line in body.split("\n")[1:])


def test_a_start_that_fills_the_budget_leaves_no_rows() -> None:
    assert evidence_rows(candidates(session(result("c", "x"))), "s" * 400, 100, estimate) == ("s" * 400, [])
