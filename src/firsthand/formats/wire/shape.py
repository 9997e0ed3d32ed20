"""How a client's JSON object differs from the one that we would write ourselves, kept in `extra`.

A writer first makes the object that any entry of that content would get. When the entry was read from the same wire, `restored` then brings
back what the client wrote beside or instead of it: unknown fields under their own names, known fields that were there though they say nothing
(`"content": null`, `"is_error": false`), and the order of keys. So reading and writing gives the same object, and an entry that nobody read
from this wire is written in our own way.

Names in `extra` that begin with `~` are ours: `~order` (the keys as they stood, where the order differs), `~without` (keys that we would write
and the client did not), and the hints of a single wire's reader. A client's own field of such a name gets a second `~`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import FormatError
from ...transcript import Extra

__all__ = ["difference", "hint", "restored"]

_ORDER, _WITHOUT = "~order", "~without"


def difference(raw: Mapping[str, Any], ours: Mapping[str, Any], where: str, hints: Extra | None = None) -> Extra | None:
    """What `restored` needs to make `raw` out of `ours`; None when they are equal, key order included.

    Args:
        raw: the object as the client wrote it.
        ours: the object as we would write it.
        where: names the object in an error.
        hints: what the wire's reader wants to remember beside it, under names with a `~`.

    Raises:
        FormatError: a field that both have says something else in each; the reader did not understand the object.
    """
    extra: Extra = dict(hints or {})
    for name, value in raw.items():
        if name not in ours:
            extra[_escaped(name)] = value
        elif isinstance(value, dict) and isinstance(ours[name], dict):
            inner = difference(value, ours[name], f"{where}, {name}")
            if inner:
                extra[_escaped(name)] = inner
        elif type(value) is not type(ours[name]) or value != ours[name]:
            if value or ours[name]:
                raise FormatError(
                    f"{where}: the field {name!r} holds a {type(value).__name__} that does not fit; "
                    "nothing was changed, check what wrote the message"
                )
            extra[_escaped(name)] = value
    if missing := [name for name in ours if name not in raw]:
        extra[_WITHOUT] = missing
    if list(_merged(ours, extra)) != list(raw):
        extra[_ORDER] = list(raw)
    return extra or None


def restored(ours: Mapping[str, Any], extra: Extra | None) -> dict[str, Any]:
    """`ours` with what `difference` found. A field that has come to say something since (an excerpt, a placeholder) keeps it."""
    if not extra:
        return dict(ours)
    merged = _merged(ours, extra)
    order = extra.get(_ORDER)
    if order is None:
        return merged
    return {name: merged[name] for name in order if name in merged} | merged


def hint(extra: Extra | None, name: str) -> Any:
    """The reader's hint `~name`, or None."""
    return extra.get(f"~{name}") if extra else None


def _merged(ours: Mapping[str, Any], extra: Extra) -> dict[str, Any]:
    without = extra.get(_WITHOUT, ())
    out = {name: value for name, value in ours.items() if name not in without}
    for key, value in extra.items():
        if key.startswith("~") and not key.startswith("~~"):
            continue
        name = key[1:] if key.startswith("~~") else key
        if name not in out:
            out[name] = value
        elif isinstance(out[name], dict) and isinstance(value, dict):
            out[name] = restored(out[name], value)
        elif not out[name] and not value:
            out[name] = value
    return out


def _escaped(name: str) -> str:
    return "~" + name if name.startswith("~") else name
