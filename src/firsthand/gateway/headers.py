"""Which headers travel on, and which are made anew (GW-15, GW-16)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

__all__ = ["OURS", "RawHeaders", "by_name", "from_elsewhere", "shown_keys", "to_client", "to_upstream"]

RawHeaders: TypeAlias = Sequence[tuple[bytes, bytes]]

OURS = "x-firsthand-"
"""Headers of the gateway itself; those of a request go no further."""

_HOP = frozenset(
    {
        b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te", b"trailer",
        b"transfer-encoding", b"upgrade",
    }
)  # fmt: skip
"""Headers that hold for one connection (RFC 9110, 7.6.1)."""

_MADE_ANEW = frozenset({b"host", b"content-length", b"accept-encoding", b"expect"})
_CREDENTIALS = frozenset({b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key"})
_LOOPBACK = re.compile(r"127(?:\.[0-9]{1,3}){3}")
_READABLE = ("gzip", "deflate")


def by_name(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by lower-case name; of one that came twice the last."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}


def to_upstream(
    headers: RawHeaders,
    *,
    host: str,
    length: int | None,
    wire: str | None,
    key: str | None,
    unpacked: bool,
    ours: Callable[[str], bool] = lambda key: False,
) -> list[tuple[bytes, bytes]]:
    """The headers of the request that is sent on.

    Args:
        headers: those that came.
        host: the upstream's host and port.
        length: bytes of the body, which may be another than the one that came; None for none.
        wire: which API is called; decides how a key of our own is sent.
        key: a key to send in place of the client's; None leaves the client's.
        unpacked: whether the body is sent without the content encoding that it came with.
        ours: tells a key of the gateway's own, which goes no further.
    """
    dropped = _HOP | _MADE_ANEW | _named_by_connection(headers)
    if key is not None:
        dropped |= _CREDENTIALS
    if unpacked:
        dropped |= {b"content-encoding"}
    sent = [(b"host", host.encode("latin-1"))]
    sent += [
        (name, value)
        for name, value in headers
        if name.lower() not in dropped
        and not name.lower().startswith(OURS.encode())
        and not (name.lower() in _CREDENTIALS and ours(_bare_key(value)))
    ]
    if key is not None:
        sent.append(
            (b"x-api-key", key.encode()) if wire == "anthropic" else (b"authorization", b"Bearer " + key.encode())
        )
    sent.append((b"accept-encoding", _accepted(headers)))
    if length is not None:
        sent.append((b"content-length", str(length).encode()))
    return sent


def to_client(headers: RawHeaders, ours: Mapping[str, str], *, length: int | None = None) -> list[tuple[bytes, bytes]]:
    """The headers of the answer: the upstream's, whose body is relayed byte for byte, and ours.

    Args:
        headers: the upstream's.
        ours: headers of the gateway.
        length: bytes of the body where it is not relayed as it comes; else the upstream's own length holds.
    """
    dropped = _HOP | _named_by_connection(headers)
    if length is not None:
        dropped |= {b"content-length"}
    sent = [(name.lower(), value) for name, value in headers if name.lower() not in dropped]
    if length is not None:
        sent.append((b"content-length", str(length).encode()))
    sent += [(name.encode(), _one_line(value).encode("latin-1", "replace")) for name, value in ours.items()]
    return sent


def from_elsewhere(headers: Mapping[str, str]) -> bool:
    """Whether a page of another site makes this request, in a browser on this machine: by its origin, or by a name made to lead here."""
    origin = headers.get("origin")
    if origin is not None and not _names_this_machine(origin.partition("://")[2]):
        return True
    return not _names_this_machine(headers.get("host", "localhost"))


def _names_this_machine(authority: str) -> bool:
    host = authority.partition("]")[0] + "]" if authority.startswith("[") else authority.partition(":")[0]
    return host in ("localhost", "[::1]") or _LOOPBACK.fullmatch(host) is not None


def shown_keys(headers: Mapping[str, str]) -> list[str]:
    """Keys by which a client may be known to the gateway, its own header first."""
    bearer = headers.get("authorization", "").encode("latin-1", "replace")
    return [headers.get(f"{OURS}key", ""), headers.get("x-api-key", ""), _bare_key(bearer)]


def _bare_key(value: bytes) -> str:
    """The key in the value of a header, with or without a scheme before it."""
    scheme, _, token = value.decode("latin-1").strip().rpartition(" ")
    return token.strip() if scheme.strip().lower() in ("", "bearer") else ""


def _named_by_connection(headers: RawHeaders) -> frozenset[bytes]:
    return frozenset(
        part.strip().lower() for name, value in headers if name.lower() == b"connection" for part in value.split(b",")
    )


def _accepted(headers: RawHeaders) -> bytes:
    """What the client takes and we can read as well; nothing packed where it did not ask for any."""
    wanted = b",".join(value for name, value in headers if name.lower() == b"accept-encoding").decode("latin-1").lower()
    offered = {
        part.partition(";")[0].strip() for part in wanted.split(",") if not part.replace(" ", "").endswith(";q=0")
    }
    return ", ".join(name for name in _READABLE if name in offered).encode() or b"identity"


def _one_line(value: str) -> str:
    return " ".join(value.split())[:500]
