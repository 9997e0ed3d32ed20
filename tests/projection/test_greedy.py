"""The greedy: what its rule chooses, and how near that comes to the best there is."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from random import Random
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from firsthand.projection.coverage.greedy import Cover
from firsthand.projection.coverage.pool import Pool, Run
from firsthand.projection.coverage.weights import heard, weights
from firsthand.projection.features.rows import extract, read_row
from firsthand.projection.features.units import Source
from firsthand.testing.builders import call, result, said, session, user


def pool_of(blocks: Sequence[Sequence[Sequence[int]]], source: Source = Source.RESULT) -> Pool:
    """A pool of blocks, each a list of units, each a list of terms."""
    pool = Pool()
    for number, units in enumerate(blocks):
        first = len(pool.sizes)
        for terms in units:
            pool.sizes.append(1)
            pool.terms += terms
            pool.offsets.append(len(pool.terms))
            pool.run_of.append(number)
            pool.starts.append(0)
            pool.ends.append(1)
        pool.runs.append(Run(number, 0, source, first, len(pool.sizes)))
    return pool


def spent(pool: Pool, worth: Sequence[int], costs: list[int], room: int, opening: int = 0) -> tuple[list[int], int]:
    return Cover(pool, list(worth), costs, opening).spend(room, range(len(pool)))


def test_the_densest_first_and_what_is_covered_counts_no_more() -> None:
    pool = pool_of([[[1, 2]], [[2, 3]], [[1]]])
    worth = [0, 10, 10, 1]
    # Unit 0 has 20 for 2, unit 1 has 11 for 2, unit 2 has 10 for 1: a tie of 0 and 2 goes to the earlier one; then 2 adds nothing.
    assert spent(pool, worth, [2, 2, 1], 4) == ([0, 1], 0)
    assert spent(pool, worth, [2, 2, 1], 3) == ([0], 1)
    assert spent(pool, worth, [2, 2, 1], 1) == ([2], 0)
    assert spent(pool, worth, [2, 2, 1], 0) == ([], 0)


def test_what_does_not_fit_is_passed_over_and_comes_back_with_more_room() -> None:
    pool = pool_of([[[1]], [[2]]])
    cover = Cover(pool, [0, 100, 1], [10, 1])
    assert cover.spend(5, range(2)) == ([1], 4)
    assert cover.go_on(10) == ([0], 0)


def test_a_block_is_opened_once() -> None:
    pool = pool_of([[[1], [2]], [[3]]])
    worth = [0, 10, 9, 10]
    # With 4 for opening, the second unit of the opened block is denser than a first one of another block.
    assert spent(pool, worth, [1, 1, 1], 6, opening=4) == ([0, 1], 0)
    assert spent(pool, worth, [1, 1, 1], 11, opening=4) == ([0, 1, 2], 0)


def test_taken_and_known_units_cover_their_terms() -> None:
    pool = pool_of([[[1], [1, 2]], [[2]]])
    cover = Cover(pool, [0, 5, 7], [1, 1, 1], opening=2)
    assert cover.take([0]) == 3
    assert cover.worth(1) == 7
    cover.know(1, 2)
    assert cover.worth(2) == 0
    assert cover.spend(10, [1, 2]) == ([], 10)


POOLS = st.lists(
    st.lists(st.lists(st.integers(0, 6), max_size=4, unique=True), min_size=1, max_size=3), min_size=1, max_size=4
)
WORTHS = st.lists(st.integers(1, 30), min_size=7, max_size=7)


@settings(max_examples=200)
@given(POOLS, WORTHS, st.lists(st.integers(1, 5), min_size=12, max_size=12), st.integers(0, 14), st.integers(0, 3))
def test_the_lazy_greedy_chooses_what_the_plain_rule_chooses(
    blocks: list[list[list[int]]], worths: list[int], costs: list[int], room: int, opening: int
) -> None:
    """Each time the unit of the most worth for its cost that fits, the earliest of equals, until none adds anything."""
    pool, worth = pool_of(blocks), worths
    costs = costs[: len(pool)]
    expected: list[int] = []
    opened: set[int] = set()
    covered: set[int] = set()
    left = room
    while True:
        best, density = None, 0
        for unit in range(len(pool)):
            cost = costs[unit] + (0 if pool.run_of[unit] in opened else opening)
            gain = sum(worth[term] for term in pool.terms_of(unit) if term not in covered)
            if unit not in expected and gain and cost <= left and (gain << 20) // cost > density:
                best, density = unit, (gain << 20) // cost
        if best is None:
            break
        left -= costs[best] + (0 if pool.run_of[best] in opened else opening)
        opened.add(pool.run_of[best])
        covered.update(pool.terms_of(best))
        expected.append(best)
    assert spent(pool, worth, costs, room, opening) == (expected, left)


@settings(max_examples=200)
@given(POOLS, WORTHS, st.lists(st.integers(1, 5), min_size=12, max_size=12), st.integers(0, 14))
def test_with_the_best_single_unit_it_reaches_the_proven_share(
    blocks: list[list[list[int]]], worths: list[int], costs: list[int], room: int
) -> None:
    """At least (1 - 1/e) / 2 of the best choice (Khuller, Moss and Naor 1999), by looking at every choice."""
    pool, worth = pool_of(blocks), worths
    costs = costs[: len(pool)]

    def value(units: Sequence[int]) -> int:
        return sum(worth[term] for term in {term for unit in units for term in pool.terms_of(unit)})

    best = max(
        value(choice)
        for length in range(len(pool) + 1)
        for choice in combinations(range(len(pool)), length)
        if sum(costs[unit] for unit in choice) <= room
    )
    single = Cover(pool, list(worth), costs).best_single(room, range(len(pool)))
    greedy, left = spent(pool, worth, costs, room)
    assert left == room - sum(costs[unit] for unit in greedy) >= 0
    assert max(value(greedy), single) >= 0.316 * best


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 1 << 32), st.integers(0, 60), st.integers(0, 200), st.integers(0, 6))
def test_how_many_units_get_a_key_at_first_changes_nothing(seed: int, room: int, more: int, opening: int) -> None:
    """Keys are made for the densest units, and for others when it comes to that; the order is that of one heap with all of them."""
    draw = Random(seed)
    terms = range(draw.randint(5, 80))
    blocks = [
        [draw.sample(terms, draw.randint(0, 4)) for _ in range(draw.randint(1, 12))] for _ in range(draw.randint(1, 25))
    ]
    worths = [draw.randint(1, 2_000) for _ in terms]
    costs = [draw.randint(1, 9) for block in blocks for _ in block]

    def choice() -> tuple[object, ...]:
        cover = Cover(pool_of(blocks), list(worths), costs, opening)
        return cover.take([0]), cover.spend(room), cover.go_on(more), cover.spend(more, range(len(costs) // 2))

    expected = choice()
    with patch.multiple("firsthand.projection.coverage.greedy", _FEW=1, _EVERY=1, _MORE=1):
        assert choice() == expected


def weight_of(term: str, *entries: object) -> int:
    from firsthand.projection.features.terms import word

    pool = Pool.of(read_row(extract(entry)) for entry in session(*entries))  # type: ignore[arg-type]
    return weights(pool, heard(pool))[pool.mentions.index(word(term)[1][0])]


def test_what_user_and_agent_wrote_is_worth_more_than_what_a_tool_printed() -> None:
    agent, person = said("see parse_line"), user("see parse_line")
    written, printed, failed = (
        call("read", path="parse_line"),
        result("c1", "see parse_line"),
        result("c1", "see parse_line", error=True),
    )
    for spoken in (agent, person, written):
        assert weight_of("parse_line", spoken) > weight_of("parse_line", failed) > weight_of("parse_line", printed)


def test_the_best_mention_counts() -> None:
    assert weight_of("parse_line", result("c1", "parse_line"), said("parse_line")) == weight_of(
        "parse_line", said("parse_line")
    )


def test_what_comes_again_is_worth_more_and_what_is_old_less() -> None:
    once = [said("parse_line"), said("nothing else")]
    assert weight_of("parse_line", *once, said("parse_line")) > weight_of("parse_line", *once, said("or so"))
    later = [result("c1", "\n".join(f"row {n}" for n in range(200)))]
    assert weight_of("parse_line", said("parse_line"), *later) < weight_of("parse_line", *later, said("parse_line"))


def test_names_are_worth_more_than_words_and_these_more_than_nothing() -> None:
    entry = said("the parse_line function takes 250ms at 12")
    name, number, plain, small = (weight_of(term, entry) for term in ("parse_line", "250ms", "function", "12"))
    assert name >= number > plain > small >= 1
