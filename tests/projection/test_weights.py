"""What a term is worth beside others: crowds, and who told it first."""

from __future__ import annotations

from firsthand.projection.coverage.pool import Pool
from firsthand.projection.coverage.weights import Weighing, heard, weights
from firsthand.projection.features.rows import extract, read_row
from firsthand.projection.features.terms import word
from firsthand.testing.builders import call, result, said, session, user
from firsthand.transcript import Entry


def pool(*entries: Entry) -> Pool:
    return Pool.of(read_row(extract(entry)) for entry in session(*entries))


def place(found: Pool, name: str) -> int:
    """The term of a name, as the pool numbers it."""
    (number,) = word(name)[1]
    return next(term for term in found.vocabulary if found.mentions[term] == number)


def listing(names: int, mark: str) -> list[Entry]:
    text = "\n".join(f"{mark}_{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(names))
    return [call("ls", id=mark), result(mark, text)]


def test_a_term_is_worth_less_among_many_that_came_up_beside_it() -> None:
    found = pool(user("go"), *listing(4, "quiet"), said("so"), *listing(300, "crowd"), said("done"))
    crowd, quiet = place(found, "crowd_aa"), place(found, "quiet_aa")
    flat = weights(found, heard(found), Weighing(crowding=100, oldest=100))
    spread = weights(found, heard(found), Weighing(oldest=100))
    assert flat[crowd] == flat[quiet]
    assert spread[crowd] < flat[crowd] < spread[quiet]
    assert spread[quiet] <= 4 * flat[quiet]
    assert all(spread[term] > 0 for term in found.vocabulary)


def test_who_told_a_name_first_is_who_said_it_first_not_who_printed_it() -> None:
    found = pool(user("go"), *listing(1, "printed"), said("printed_aa is it"), said("printed_aa again"))
    runs = [run.source.name for run in found.runs]
    assert runs[heard(found).told[place(found, "printed_aa")]] == "ASSISTANT"
    assert heard(found).told[place(found, "printed_aa")] == runs.index("ASSISTANT")
