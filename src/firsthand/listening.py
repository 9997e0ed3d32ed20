"""The socket that a server of ours is given: an address that is free, or a typed error before anything starts."""

from __future__ import annotations

import socket

from .errors import ConfigError

__all__ = ["listening"]


def listening(host: str, port: int, *, backlog: int) -> socket.socket:
    """A socket that listens already, so that nobody else can take its port before the server runs.

    Args:
        host: the address.
        port: the port; 0 for a free one.
        backlog: connections that may wait.

    Raises:
        ConfigError: the address cannot be had.
    """
    try:
        made = socket.create_server((host, port), backlog=backlog)
        # asyncio sets it only for sockets that name their protocol; without it each answer waits 40 ms for an acknowledgement.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made
    except OSError as error:
        raise ConfigError(
            f"cannot listen at {host}:{port}: {error.strerror or error}; choose another port, or 0 for a free one"
        ) from error
