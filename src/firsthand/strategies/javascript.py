"""Lengths and JSON as JavaScript has them, since Pi counts with them (pi.md 1 and 4)."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any

from ..codec import decode

__all__ = ["arguments_json", "arguments_of", "head", "js_json", "js_order", "length"]

_LONE = re.compile("[\ud800-\udfff]")
_EXACT = 2**53


def length(text: str) -> int:
    """The length of `text` in UTF-16 code units, which is what a JavaScript string's length counts."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def head(text: str, units: int) -> str:
    """The longest beginning of `text` that takes at most `units` UTF-16 code units; no character is halved (SE-22)."""
    if text.isascii():
        return text[:units]
    out = text.encode("utf-16-le", "surrogatepass")[: 2 * units].decode("utf-16-le", "surrogatepass")
    halved = out and "\ud800" <= out[-1] <= "\udbff" and text[len(out) - 1] > "\uffff"
    return out[:-1] if halved else out


def js_order(text: str) -> bytes:
    """Sort key that orders texts as JavaScript does: by code units, not by characters."""
    return text.encode("utf-16-be", "surrogatepass")


def js_json(value: Any) -> str:
    """`value` as `JSON.stringify` writes it: no spaces, non-ASCII as it is, numbers as doubles, lone surrogates escaped."""
    match value:
        case str():
            quoted = encode_basestring(value)
            return quoted if value.isascii() else _LONE.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)
        case True:
            return "true"
        case False:
            return "false"
        case None:
            return "null"
        case int() | float():
            return _number(value)
        case list() | tuple():
            return "[" + ",".join(map(js_json, value)) + "]"
        case dict():
            return "{" + ",".join(f"{js_json(str(name))}:{js_json(part)}" for name, part in value.items()) + "}"
        case _:
            return "null"


def arguments_of(text: str) -> Any:
    """The arguments of a call as a JSON value; the text itself where it is no JSON (free-text tools, calls that broke off)."""
    if not text.strip():
        return {}
    try:
        return decode(text)
    except (ValueError, RecursionError):
        return text


def arguments_json(text: str) -> str:
    """The arguments of a call as Pi counts and shows them; the text as it is where it nests too deeply to be written anew."""
    try:
        return js_json(arguments_of(text))
    except RecursionError:
        return text


def _number(value: float) -> str:
    if isinstance(value, int) and -_EXACT <= value <= _EXACT:
        return str(value)
    try:
        value = float(value)
    except OverflowError:
        return "null"
    if not math.isfinite(value):
        return "null"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    figures = "".join(map(str, digits)).rstrip("0")
    if not figures:
        return "0"
    point = len(digits) + int(exponent)
    return ("-" if sign else "") + _placed(figures, point)


def _placed(figures: str, point: int) -> str:
    """Decimal figures with the point after `point` of them, in the notation that JavaScript chooses."""
    if len(figures) <= point <= 21:
        return figures + "0" * (point - len(figures))
    if 0 < point <= 21:
        return f"{figures[:point]}.{figures[point:]}"
    if -6 < point <= 0:
        return "0." + "0" * -point + figures
    mantissa = figures[0] + (f".{figures[1:]}" if len(figures) > 1 else "")
    return f"{mantissa}e{'+' if point > 0 else ''}{point - 1}"
