from __future__ import annotations

import pytest

from firsthand.budget import Budget
from firsthand.errors import ConfigError, OutputCeilingError, UnknownNameError
from firsthand.tokens import EstimateCounter


def budget(window: int, output: int | None = None, profile: str = "product", fixed: int = 0) -> Budget:
    return Budget.of(window, output, fixed=fixed, profile=profile, counter=EstimateCounter())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("window", "economic"),
    [
        (1_000_000, 800_000),
        (640_000, 512_000),
        (320_000, 256_000),
        (200_000, 160_000),
        (128_000, 102_400),
        (32_000, 25_600),
    ],
)
def test_economic_triggers(window: int, economic: int) -> None:
    assert budget(window).economic_trigger == economic


@pytest.mark.parametrize(
    ("profile", "window", "output", "input_limit", "trigger"),
    [
        ("futureos-e3", 128_000, 32_000, 93_952, 93_952),
        ("futureos-e3", 1_048_576, 1_048_576, 980_992, 838_860),
        ("futureos-e3", 262_144, 262_144, 194_560, 194_560),
        ("futureos-e3", 1_000_000, 384_000, 932_416, 800_000),
        ("futureos-e2", 1_000_000, 384_000, 613_952, 613_952),
        ("product", 200_000, 64_000, 133_952, 133_952),  # AC-15
        ("product", 4_096, 1_024, 2_816, 2_816),  # AC-03
        ("product", 16_384, None, 11_264, 11_264),  # AC-02
        ("product", 16_384, 0, 11_264, 11_264),
    ],
)
def test_limits_and_triggers(profile: str, window: int, output: int | None, input_limit: int, trigger: int) -> None:
    found = budget(window, output, profile)
    assert (found.input_limit, found.trigger) == (input_limit, trigger)


@pytest.mark.parametrize(
    ("window", "keep", "margin", "ceiling", "input_limit"),
    [
        (4_096, 819, 256, 1_024, 2_816),
        (8_000, 1_600, 500, 2_000, 5_500),
        (16_384, 3_276, 1_024, 4_096, 11_264),
        (32_000, 6_400, 2_000, 8_000, 22_000),
        (64_000, 8_000, 2_048, 16_000, 45_952),
    ],
)
def test_small_windows(window: int, keep: int, margin: int, ceiling: int, input_limit: int) -> None:
    found = budget(window, 1_000_000, "futureos-e3")
    assert (found.keep_recent, found.margin, found.output_ceiling, found.input_limit) == (
        keep,
        margin,
        ceiling,
        input_limit,
    )


@pytest.mark.parametrize(("window", "reserve", "keep"), [(1, 0, 0), (2, 1, 1), (200_000, 40_000, 8_000)])
def test_reserve_and_tail(window: int, reserve: int, keep: int) -> None:
    found = budget(window, 1, "futureos-e2")
    assert (found.reserve, found.keep_recent) == (reserve, keep)


def test_targets() -> None:
    assert budget(128_000, 16_384, "futureos-e3").max_target == 82_176
    assert budget(262_144, 131_072, "futureos-e2").max_target == 96_768
    assert budget(262_144, 262_144, "futureos-e3").max_target == 128_000
    assert budget(128_000, 16_384, "futureos-e3", fixed=9_568).history_room == 100_000


def test_every_window_leaves_room_in_whole_numbers() -> None:
    for window in [*range(256, 40_001, 97), 40_000]:  # AC-04
        for output in range(1, window // 2 + 1, max(1, window // 16)):
            found = budget(window, output)
            assert 0 < found.trigger <= window * 4 // 5
            assert found.margin == min(2_048, window // 16)
            assert found.input_limit + output <= window
            assert isinstance(found.trigger, int)


def test_an_output_ceiling_that_fills_the_window_is_refused_when_it_is_set() -> None:
    with pytest.raises(
        OutputCeilingError, match=r"8,192 tokens and a margin of 512 leave no input room in a window of 8,192"
    ) as caught:
        budget(8_192, 8_192)  # AC-01
    assert (caught.value.window, caught.value.output_ceiling) == (8_192, 8_192)


@pytest.mark.parametrize(
    "arguments", [{"window": 0}, {"window": -5}, {"window": 100, "output_ceiling": -1}, {"window": 100, "target": 0}]
)
def test_numbers_out_of_range(arguments: dict[str, int]) -> None:
    with pytest.raises(ConfigError):
        Budget.of(**arguments)  # type: ignore[arg-type]


def test_unknown_profile() -> None:
    with pytest.raises(UnknownNameError, match="futureos-e2, futureos-e3, product"):
        budget(1_000, profile="future")


@pytest.mark.parametrize(
    ("threshold", "trigger"), [(0.5, 100_000), (90_000, 90_000), (199_000, 165_952), (None, 160_000)]
)
def test_a_threshold_in_tokens_or_as_a_share(threshold: float | None, trigger: int) -> None:
    assert Budget.of(200_000, 32_000, counter=EstimateCounter(), threshold=threshold).trigger == trigger


def test_a_threshold_outside_the_window_is_refused() -> None:
    with pytest.raises(ConfigError, match="between 1 token and the window of 1,000"):
        Budget.of(1_000, threshold=2_000)
