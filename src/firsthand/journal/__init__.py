"""The durable store of sessions: append-only, checked, searchable. `Journal` is all of it that others use."""

from .delete import Deleted
from .find import SEARCHED, Found, Match
from .history import Chunk, Page
from .imports import Imported
from .journal import Journal
from .location import default_path
from .readable import Kind
from .sessions import LOCAL_TENANT, Meta, SessionInfo
from .verify import Problem, Verified

__all__ = [
    "LOCAL_TENANT",
    "SEARCHED",
    "Chunk",
    "Deleted",
    "Found",
    "Imported",
    "Journal",
    "Kind",
    "Match",
    "Meta",
    "Page",
    "Problem",
    "SessionInfo",
    "Verified",
    "default_path",
]
