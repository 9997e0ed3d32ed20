"""Groups of excerpts that can be read: what is added to a line or two."""

from __future__ import annotations

import pytest

from firsthand.projection.coverage.pool import Pool
from firsthand.projection.features.rows import extract, read_row
from firsthand.strategies.coverage.excerpts import rounded_off
from firsthand.testing.builders import call, result, session
from firsthand.transcript import Entry

LONG = "a line of this log that is a good deal longer than the lines around it are in this output"


def history(*lines: str) -> tuple[list[Entry], Pool]:
    entries = session(call("read", id="c", path="a.py"), result("c", "\n".join(lines)))
    return entries, Pool.of(read_row(extract(entry)) for entry in entries)


@pytest.mark.parametrize(
    ("lines", "chosen", "shown"),
    [
        (("one", "two", "three"), [1], [0, 1, 2]),  # the rest of the block is short
        ((LONG, LONG, "b", "c", "d", LONG), [2], [2, 3, 4]),  # short neighbours
        ((LONG, LONG, "c", LONG, LONG), [2], [2]),  # none that is short
        ((LONG, "b", "c", LONG, LONG), [1], [1]),  # one short neighbour makes no three
        ((LONG, *"bcdefghi", LONG), [2, 5, 7], [2, 5, 7]),  # three lines are enough
    ],
)
def test_a_line_or_two_get_what_makes_them_readable(
    lines: tuple[str, ...], chosen: list[int], shown: list[int]
) -> None:
    entries, pool = history(*lines)
    first = pool.runs[-1].first
    found = rounded_off(pool, [first + number for number in chosen], entries, 8, 6)
    assert [unit - first for unit in found] == shown


def test_an_older_to_do_list_is_not_completed() -> None:
    entries = session(call("TodoWrite", id="t", todos=[{"content": "ship it", "status": "pending"}]))
    pool = Pool.of(read_row(extract(entry)) for entry in entries)
    assert rounded_off(pool, [0], entries, 100, 100) == [0]
