"""Branch summaries: what is left, what of it is told, and where the summary goes (pi.md 14)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from firsthand.strategies.contract import Refused, Summary
from firsthand.strategies.pi.branch import Branch, branch_entry, branch_request, prepare_branch
from firsthand.strategies.pi.rules import Rules
from firsthand.testing.builders import call, filler, result, said, summary, user
from firsthand.transcript import Entry, Marker, Source, Text, Transcript

JUL = Rules.of("Jul", True, {})


def tree(
    *entries: Entry, parents: Mapping[str, str | None] | None = None, markers: Sequence[Marker] = ()
) -> Transcript:
    """Entries `e1`, `e2`, ..., each the child of the one before it where `parents` says nothing else."""
    placed: list[Entry] = []
    for number, entry in enumerate(entries, start=1):
        name = f"e{number}"
        parent = (parents or {}).get(name, f"e{number - 1}" if number > 1 else None)
        placed.append(msgspec.structs.replace(entry, id=name, parent=parent, sequence=number - 1))
    return Transcript(id="t", format="pi", entries=tuple(placed), markers=tuple(markers))


# go - done - | - one - two(read a) - result - three
#             | - other
FORKED = (
    user("go"),
    said("done"),
    user("one"),
    said("two", call("read", path="a", id="c1")),
    result("c1", filler(1_000)),
    said("three", call("edit", path="b", id="c2")),
    result("c2"),
    user("other"),
)


def forked(*, markers: Sequence[Marker] = ()) -> Transcript:
    return tree(*FORKED, parents={"e8": "e2"}, markers=markers)


def ids(branch: Branch) -> list[str]:
    return [piece.entry.id if piece.entry else "checkpoint" for piece in branch.messages]


def test_what_is_left_are_the_messages_since_the_fork_without_results() -> None:
    branch = prepare_branch(forked(), "e7", "e8", JUL)
    assert [entry.id for entry in branch.entries] == ["e3", "e4", "e5", "e6", "e7"]
    assert ids(branch) == ["e3", "e4", "e6"]
    assert (branch.read_files, branch.modified_files) == (("a",), ("b",))


@pytest.mark.parametrize(("target", "destination"), [("e8", "e2"), ("e2", "e2"), ("e1", None), ("e4", "e4")])
def test_the_summary_goes_above_a_user_message_and_else_below_the_target(target: str, destination: str | None) -> None:
    assert prepare_branch(forked(), "e7", target, JUL).destination == destination


def test_going_on_from_the_leaf_leaves_nothing() -> None:
    branch = prepare_branch(forked(), "e2", "e7", JUL)
    assert branch.entries == ()
    assert branch_request(branch, JUL, output_ceiling=4_000) is None
    entry = branch_entry(branch, None, id="new")
    assert isinstance(entry, Entry)
    assert entry.blocks == (Text("(There was nothing to summarise.)", "summary"),)


def test_only_the_newest_messages_within_the_budget_are_told() -> None:
    # "three" and its call take 6 tokens by Pi's count, "two" and its call 5, "one" 1.
    for window, expected in ((1_000, ["e3", "e4", "e6"]), (21, ["e6"]), (26, ["e4", "e6"]), (27, ["e3", "e4", "e6"])):
        branch = prepare_branch(forked(), "e7", "e8", JUL, window=window, reserve_tokens=15)
        assert ids(branch) == expected
    # What was looked at counts for the file lists, also the message that did not fit any more.
    tight = prepare_branch(forked(), "e7", "e8", JUL, window=22, reserve_tokens=15)
    assert (ids(tight), tight.read_files) == (["e6"], ("a",))


def test_a_checkpoint_counts_with_its_summary_and_may_exceed_the_budget_a_little() -> None:
    shown = Entry(id="s", role="user", blocks=(Text(filler(50), "summary"),))
    marked = forked(markers=[Marker(id="m", after="e4", shown=(shown, "e3"))])
    assert ids(prepare_branch(marked, "e7", "e8", JUL)) == ["e3", "e4", "checkpoint", "e6"]
    assert ids(prepare_branch(marked, "e7", "e8", JUL, window=45, reserve_tokens=15)) == ["checkpoint", "e6"]
    assert ids(prepare_branch(marked, "e7", "e8", JUL, window=21, reserve_tokens=15)) == ["e6"]


def test_a_checkpoint_at_a_fork_is_left_out() -> None:
    """A marker says what it came after and not on which side of a fork it lies; Pi's own file says so (a difference to Pi)."""
    shown = Entry(id="s", role="user", blocks=(Text("told", "summary"),))
    at_the_fork = forked(markers=[Marker(id="m", after="e2", shown=(shown, "e1"))])
    assert "checkpoint" not in ids(prepare_branch(at_the_fork, "e7", "e8", JUL))
    inside = tree(
        *FORKED,
        user("third"),
        parents={"e8": "e2", "e9": "e4"},
        markers=[Marker(id="m", after="e4", shown=(shown, "e1"))],
    )
    assert "checkpoint" not in ids(prepare_branch(inside, "e7", "e8", JUL))


def test_earlier_branch_summaries_hand_on_their_lists() -> None:
    def earlier(**extra: Any) -> Entry:
        return summary("went there", extra=extra, source=Source("pi"))

    details = {"readFiles": ["x", "b"], "modifiedFiles": ["y"]}
    made = tree(
        user("go"),
        earlier(details=details),
        said("on", call("edit", path="b", id="c")),
        user("other"),
        parents={"e4": "e1"},
    )
    branch = prepare_branch(made, "e3", "e4", JUL)
    assert (branch.read_files, branch.modified_files) == (("x",), ("b", "y"))
    foreign = tree(user("go"), earlier(details=details, fromHook=True), user("other"), parents={"e3": "e1"})
    assert prepare_branch(foreign, "e2", "e3", JUL).read_files == ()


def test_the_request_and_the_entry_that_it_leads_to() -> None:
    branch = prepare_branch(forked(), "e7", "e8", JUL)
    request = branch_request(branch, JUL, output_ceiling=10_000)
    assert request is not None
    assert request.instruction.startswith(
        '<conversation>\n[User]: one\n\n[Assistant]: two\n\n[Assistant tool calls]: read(path="a")'
    )
    headings = [line for line in request.instruction.splitlines() if line.startswith("## ")]
    assert headings == ["## Goal", "## Constraints & Preferences", "## Progress", "## Key Decisions", "## Next Steps"]
    assert (request.max_output, request.tools) == (2_048, "none")
    entry = branch_entry(branch, Summary("It went well."), id="new")
    assert entry == Entry(
        id="new",
        role="user",
        parent="e2",
        wire="pi",
        blocks=(
            Text(
                "Before coming back to this point the user went another way. What happened there:\n\nIt went well."
                "\n\n<read-files>\na\n</read-files>\n\n<modified-files>\nb\n</modified-files>",
                "summary",
            ),
        ),
        extra={"fromId": "e7", "details": {"readFiles": ["a"], "modifiedFiles": ["b"]}},
    )


@pytest.mark.parametrize(("follows", "limit"), [("Mar", 2_048), ("Jul", 2_048), ("Sep", 4_096), ("Nov", 10_000)])
def test_output_limit_of_the_request(follows: Any, limit: int) -> None:
    rules = Rules.of(follows, True, {})
    request = branch_request(prepare_branch(forked(), "e7", "e8", rules), rules, output_ceiling=10_000)
    assert request is not None
    assert request.max_output == limit


def test_text_of_the_user_is_added_or_replaces_ours() -> None:
    branch = prepare_branch(forked(), "e7", "e8", JUL)
    added = branch_request(branch, JUL, output_ceiling=10_000, instructions="Mind the tests.")
    replaced = branch_request(branch, JUL, output_ceiling=10_000, instructions="Mind the tests.", replace=True)
    assert added is not None
    assert replaced is not None
    assert "## Goal" in added.instruction
    assert added.instruction.endswith("Mind the tests.")
    assert replaced.instruction.endswith("</conversation>\n\nMind the tests.")


@pytest.mark.parametrize("answer", [Summary(failure="stopped"), Summary(" ")])
def test_a_summary_that_failed_moves_nothing(answer: Summary) -> None:
    refused = branch_entry(prepare_branch(forked(), "e7", "e8", JUL), answer, id="new")
    assert isinstance(refused, Refused)
    assert refused.reason == "invalid-summary"


def test_an_entry_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match="no entry"):
        prepare_branch(forked(), "e7", "gone", JUL)
