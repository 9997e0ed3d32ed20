"""What nobody could excerpt stays in the tail: the person's newest message, and images that no model has seen yet."""

from __future__ import annotations

import pytest

from firsthand.budget import Budget
from firsthand.projection.plan import Plan
from firsthand.strategies.contract import CompactionRequest
from firsthand.strategies.coverage.strategy import Coverage
from firsthand.testing.builders import call, filler, result, said, user, view
from firsthand.tokens import MEDIA_TOKENS, EstimateCounter
from firsthand.transcript import Entry, Media, Text, ToolResult, chained

IMAGE = Media(media_type="image/png", data="AAAA")
HISTORY = [
    part for n in range(30) for part in (user(f"Look at src/file_{n}.py"), said(f"It has {n} rows. " + filler(800)))
]


def planned(*newest: Entry, window: int = 100_000, **options: int) -> Plan:
    made = Coverage(**options).plan(
        view(*chained((*HISTORY, *newest))),
        Budget.of(window, counter=EstimateCounter()),
        CompactionRequest(trigger="manual"),
    )
    assert isinstance(made, Plan), made
    return made


def images(count: int) -> Entry:
    return Entry(id="e-newest", role="user", blocks=(Text("What is on these?"), *([IMAGE] * count)))


@pytest.mark.parametrize("count", [1, 2, 4])
def test_images_that_the_person_just_attached_are_seen(count: int) -> None:
    plan = planned(images(count))
    assert plan.cutoff == "e60"
    assert plan.tokens_after <= 12_000 + count * MEDIA_TOKENS + 100


def test_a_screenshot_that_a_tool_just_took_is_seen() -> None:
    shot = Entry(id="e-newest", role="tool", blocks=(ToolResult("shot", (IMAGE, IMAGE)),))
    plan = planned(call("screenshot", "{}", id="shot"), shot)
    assert plan.cutoff == "e60"


def test_a_long_message_of_the_person_makes_the_target_rise() -> None:
    plan = planned(user("Translate this: " + filler(9_000)))
    assert plan.cutoff == "e60"
    assert 9_000 < plan.tokens_after <= int(plan.notes["target"])
    assert int(plan.notes["target"]) > 12_000


def test_a_fixed_target_is_held_all_the_same() -> None:
    assert planned(images(4), target=6_000, fixed_target=True).tokens_after <= 6_000


def test_a_long_result_is_cut_and_named() -> None:
    plan = planned(
        call("cat", "{}", id="c1"), result("c1", "\n".join(f"row_{n} of table_{n % 7}" for n in range(4_000)))
    )
    shown = {excerpt.entry for excerpt in plan.excerpts}
    assert plan.cutoff == "e62"
    assert plan.cutoff in shown
