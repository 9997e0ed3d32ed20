"""The durable store of sessions: append-only, checked, searchable. `Journal` is all of it that others use."""

from .imports import Imported
from .journal import Journal
from .location import default_path
from .sessions import LOCAL_TENANT, Meta, SessionInfo
from .verify import Problem, Verified

__all__ = ["LOCAL_TENANT", "Imported", "Journal", "Meta", "Problem", "SessionInfo", "Verified", "default_path"]
