"""Whether a request's messages obey the documented rules of their provider, and where not.

For tests of anything that makes requests. It shares no code with the writers and looks at plain JSON only, so that a mistake in one is not
repeated in the other. What is checked are the rules that a provider refuses a request for: roles and their order, calls and their results,
contents that may not be empty, reasoning in its place, and characters that no body can hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ..errors import UnknownNameError
from .validate_anthropic import check_anthropic
from .validate_chat import check_chat
from .validate_common import Found, Violation
from .validate_responses import check_responses

__all__ = ["Violation", "assert_valid", "validate"]

_Check: TypeAlias = Callable[[Sequence[Any], Mapping[str, Any]], Iterator[Found]]

_WIRES: dict[str, tuple[str, _Check]] = {
    "openai-chat": ("messages", check_chat),
    "openai-responses": ("input", check_responses),
    "anthropic": ("messages", check_anthropic),
}


def validate(
    wire: str, body_or_messages: Mapping[str, Any] | Sequence[Any] | str, system: Any = None
) -> list[Violation]:
    """All violations, in order of messages; an empty list for a valid request.

    Args:
        wire: `openai-chat`, `openai-responses` or `anthropic`.
        body_or_messages: a request body (its tools and system prompt are looked at as well), or its messages alone.
        system: the system prompt, where it is not in the body (Anthropic).

    Raises:
        UnknownNameError: no wire of that name.
    """
    if wire not in _WIRES:
        raise UnknownNameError("wire", wire, _WIRES)
    field, check = _WIRES[wire]
    body = dict(body_or_messages) if isinstance(body_or_messages, Mapping) else {field: body_or_messages}
    if system is not None:
        body["system"] = system
    messages = body.get(field)
    if isinstance(messages, str) and field == "input":
        messages = [{"role": "user", "content": messages}]
    if not isinstance(messages, Sequence) or isinstance(messages, str) or not messages:
        return [Violation(-1, "messages", f"{field} must be a list with at least one item")]
    found = [Violation(index, rule, explanation) for index, rule, explanation in check(messages, body)]
    found += [
        Violation(index, "lone-surrogate", f"half of a surrogate pair at {place}; no valid body can hold it")
        for index, value in ((-1, body.get("system")), *enumerate(messages))
        for place in _surrogates(value, "")
    ]
    return sorted(found, key=lambda violation: violation.index)


def assert_valid(wire: str, body_or_messages: Mapping[str, Any] | Sequence[Any] | str, system: Any = None) -> None:
    """Fails with all violations and the messages that they are in.

    Raises:
        AssertionError: there are any.
    """
    found = validate(wire, body_or_messages, system)
    assert not found, "\n".join(f"{wire} message {v.index}: {v.rule}: {v.explanation}" for v in found)


def _surrogates(value: Any, place: str) -> Iterator[str]:
    if isinstance(value, str):
        if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            yield place or "the top"
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _surrogates(name, f"{place}.<key>")
            yield from _surrogates(item, f"{place}.{name!a}")
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _surrogates(item, f"{place}[{number}]")
