"""The derived row of an entry: what it says, and what becomes of damaged ones."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand.errors import FirsthandError, JournalDamagedError
from firsthand.projection.coverage.pool import Pool
from firsthand.projection.features.rows import extract, read_row
from firsthand.projection.features.terms import unit_terms, word
from firsthand.projection.features.units import Source, cuts, readable, source_of
from firsthand.testing.builders import call, result, said, session, user
from firsthand.testing.random_entries import entry_lists
from firsthand.transcript import Entry


def test_a_row_lists_blocks_units_sizes_and_terms() -> None:
    entry = said("Look at src/app.py.\n\nPort 8123 is taken.", *call("read", path="src/app.py", id="c1").blocks)
    row = read_row(extract(entry))
    assert list(row.blocks()) == [(0, Source.ASSISTANT, 2), (1, Source.CALL, 1)]
    pool = Pool.of([row])
    assert list(zip(pool.starts, pool.ends, strict=True)) == [(0, 19), (21, 40), (0, 16)]
    assert pool.sizes == [1 + sum(word(part)[0] for part in line.split()) for line in LINES]
    assert set(word("src/app.py.")[1]) <= terms_of(pool, 0)
    assert set(word("8123")[1]) <= terms_of(pool, 1)
    assert set(word("src/app.py")[1]) <= terms_of(pool, 2)
    assert all(len(set(pool.terms_of(unit))) == len(pool.terms_of(unit)) for unit in range(3))


def terms_of(pool: Pool, unit: int) -> set[int]:
    """The terms of a unit by what they are, not by their places in the pool."""
    return {pool.mentions[term] for term in pool.terms_of(unit)}


LINES = ["Look at src/app.py.", "Port 8123 is taken.", "path: src/app.py"]


def test_an_entry_without_words_has_an_empty_row() -> None:
    assert extract(Entry(id="e", role="assistant", blocks=())) == bytes(8)
    assert extract(user("  \n")) == bytes(8)
    assert len(Pool.of([read_row(bytes(8))])) == 0


def test_a_row_depends_on_the_entry_alone() -> None:
    first, second = session(user("rename parse_line to read_line"), result("c1", "x.py:12 parse_line"))
    alone = extract(second)
    extract(first)
    assert extract(second) == alone


@given(entry_lists())
def test_rows_tell_the_units_of_each_block(entries: tuple[Entry, ...]) -> None:
    pool = Pool.of(read_row(extract(entry)) for entry in entries)
    expected = [
        (position, number, source, list(cuts(readable(block), prose=source in (Source.USER, Source.ASSISTANT))))
        for position, entry in enumerate(entries)
        for number, block in enumerate(entry.blocks)
        if (source := source_of(entry, block)) is not None
    ]
    found = [
        (
            run.entry,
            run.block,
            run.source,
            list(zip(pool.starts[run.first : run.end].tolist(), pool.ends[run.first : run.end].tolist(), strict=True)),
        )
        for run in pool.runs
    ]
    assert found == [one for one in expected if one[3]]
    assert [pool.run(unit) for unit in range(len(pool))] == [
        run for run in pool.runs for _ in range(run.first, run.end)
    ]


def test_damaged_rows_are_told() -> None:
    whole = extract(said("Look at src/app.py.\nPort 8123 is taken."))
    for damaged in (b"", b"\x01", whole[:-1], whole[:8], whole[:20]):
        with pytest.raises(JournalDamagedError, match="row"):
            Pool.of([read_row(damaged)])
    with pytest.raises(JournalDamagedError, match="terms"):
        Pool.of([read_row(whole[:-4])])


def words_of(numbers: list[int]) -> bytes:
    return b"".join(number.to_bytes(4, "little") for number in numbers)


def test_a_source_that_there_is_none_of_is_damage() -> None:
    whole = bytearray(extract(said("Look at src/app.py.")))
    whole[8] |= 7
    with pytest.raises(JournalDamagedError, match="source"):
        Pool.of([read_row(bytes(whole))])


def test_in_a_pool_a_term_is_the_place_of_its_first_mention() -> None:
    pool = Pool.of(read_row(extract(entry)) for entry in session(said("one_a two_b"), said("two_b three_c one_a")))
    assert pool.terms == [0, 1, 1, 3, 0]
    assert pool.vocabulary == [0, 1, 3]
    assert [pool.mentions[term] for term in pool.terms] == list(pool.mentions)


@given(st.one_of(st.binary(max_size=64), st.lists(st.integers(0, 3), max_size=16).map(words_of)))
def test_any_bytes_are_a_row_or_a_typed_error(data: bytes) -> None:
    with suppress(FirsthandError):
        Pool.of([read_row(data)])


def names_of(text: str, error: bool = False) -> list[bool]:
    """Of each unit of a tool's output, whether it names anything that no unit before it names."""
    pool = Pool.of([read_row(extract(result("c1", text, error=error)))])
    known: set[int] = set()
    out: list[bool] = []
    for unit in range(len(pool)):
        out.append(not known.issuperset(pool.terms_of(unit)))
        known.update(pool.terms_of(unit))
    return out


@pytest.mark.parametrize("error", [False, True])
def test_a_series_of_lines_that_differ_in_digits_is_named_once(error: bool) -> None:
    series = [f"{n:04d} INFO sequence={n} observed={n * 7919}" for n in range(12)]
    text = "\n".join([*series[:6], "TRACE=trace_9f8e7d6c5b", *series[6:]])
    assert names_of(text, error) == [True, *[False] * 5, True, *[False] * 6]
    assert all(names_of("\n".join(series[:11]), error))
    assert all(names_of("\n".join(f"wrote shard-{n}.bin" for n in range(40)), error))


def test_a_unit_that_stands_apart_is_a_term_of_its_own_line_only() -> None:
    pool = Pool.of([read_row(extract(result("c1", "took 250 ms\nran 250\nms later\n12→waited 3 s")))])
    assert terms_of(pool, 0) > set(unit_terms("250 ms"))
    assert set(unit_terms("250 ms")).isdisjoint(terms_of(pool, 1) | terms_of(pool, 2))
    assert terms_of(pool, 3) == set(unit_terms("3 s"))


def test_a_line_number_before_a_line_is_no_name() -> None:
    def terms(text: str) -> set[int]:
        pool = Pool.of([read_row(extract(result("c1", text)))])
        return terms_of(pool, 0)

    assert terms("  1175→def parse_header():") == terms("1175\tdef parse_header():") == terms("def parse_header():")
    assert terms("1175") == set()
    assert terms("1175 rows in table_17") != terms("rows in table_17")
