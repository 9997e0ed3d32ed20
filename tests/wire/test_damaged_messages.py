"""Messages with something wrong anywhere are judged, and read or refused with a typed error; what is read can be written."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_conversations import anthropic_conversations, chat_conversations, responses_conversations

from firsthand.errors import FormatError
from firsthand.formats.wire import WIRES, wire_by_name
from firsthand.projection.repair import repair
from firsthand.testing.validate import validate

CONVERSATIONS: dict[str, Any] = {
    "openai-chat": chat_conversations,
    "openai-responses": responses_conversations,
    "anthropic": anthropic_conversations.map(lambda drawn: drawn[0]),
}
WRONG = st.sampled_from(
    (None, 0, True, 1.5, "", "words", "\ud83d", [], [None], ["words"], {}, {"type": "text"}, {"type": None}, [[]])
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container and key under which something stands."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        yield value, key
        yield from places(item)


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_damage_anywhere(name: str) -> None:
    @settings(max_examples=150, deadline=None)
    @given(CONVERSATIONS[name], st.integers(0, 10_000), WRONG, st.booleans())
    def check(messages: list[Any], where: int, wrong: Any, gone: bool) -> None:
        damaged = copy.deepcopy(messages)
        found = list(places(damaged))
        container, key = found[where % len(found)]
        if gone:
            del container[key]
        else:
            container[key] = wrong
        validate(name, damaged)
        try:
            entries = wire_by_name(name).read(damaged)
        except FormatError as error:
            refused = str(error)
        else:
            refused = ""
        if refused:
            assert refused.startswith(("message ", "item "))
            return
        for wire in WIRES.values():
            wire.write(entries)
            wire.write(repair(entries).entries)

    check()
