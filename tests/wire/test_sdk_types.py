"""The official SDKs' own types take what the writers make; a judge that is neither our validator nor our code."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from firsthand.formats.wire import wire_by_name
from firsthand.testing.random_entries import paired_paths
from firsthand.transcript import Entry

pydantic = pytest.importorskip("pydantic", reason="the SDKs' types are checked with pydantic")


def types() -> dict[str, Any]:
    """The SDKs' types of one message, by wire."""
    anthropic = pytest.importorskip("anthropic.types", reason="needs the SDK of Anthropic")
    chat = pytest.importorskip("openai.types.chat", reason="needs the SDK of OpenAI")
    responses = pytest.importorskip("openai.types.responses", reason="needs the SDK of OpenAI")
    return {
        "anthropic": anthropic.MessageParam,
        "openai-chat": chat.ChatCompletionMessageParam,
        "openai-responses": responses.ResponseInputItemParam,
    }


def exhaust(value: Any) -> None:
    """Walks through a validated value: pydantic checks the items of an iterable when it is read."""
    if isinstance(value, dict):
        value = value.values()
    if not isinstance(value, str | bytes | int | float | None):
        for item in value:
            exhaust(item)


@pytest.mark.parametrize("name", ["anthropic", "openai-chat", "openai-responses"])
def test_the_sdks_take_what_is_written(name: str) -> None:
    adapter = pydantic.TypeAdapter(types()[name])
    with pytest.raises(pydantic.ValidationError):
        exhaust(adapter.validate_python({"role": "user", "content": [{"type": "novelty"}]}))

    @settings(max_examples=60, deadline=None)
    @given(paired_paths())
    def check(entries: tuple[Entry, ...]) -> None:
        for message in wire_by_name(name).write(entries).messages:
            exhaust(adapter.validate_python(message))

    check()
