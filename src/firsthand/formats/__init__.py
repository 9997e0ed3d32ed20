"""Session files and wire formats: the outside world on one side, entries on the other.

`read_sessions` reads any file that a reader knows; `wire_of` tells which provider API a list of messages is for.
"""

from .detect import detect, read_sessions, wire_of
from .files import format_names, reader_by_name

__all__ = ["detect", "format_names", "read_sessions", "reader_by_name", "wire_of"]
