"""Every exception that firsthand raises on purpose.

::

    FirsthandError
    ├── ConfigError                 a setting that cannot work; change the setting
    │   ├── OutputCeilingError      the output ceiling leaves no room for input
    │   ├── UnknownNameError        no strategy, counter, profile, format or wire of that name
    │   └── MissingExtraError       an optional dependency is not installed; names the extra
    ├── FormatError                 input that could not be read as a session
    │   ├── UnknownFormatError      no reader recognises the content
    │   └── EmptySessionError       recognised, but no entry in it could be read
    ├── JournalError                the store refused
    │   ├── SessionNotFoundError
    │   ├── EntryNotFoundError
    │   │   └── AmbiguousEntryError several ids start with what was given; lists them
    │   ├── SessionExistsError
    │   ├── JournalBusyError        another process held the write lock for too long
    │   ├── JournalVersionError     written by a newer firsthand
    │   └── JournalDamagedError     stored bytes do not match their hash
    ├── CompactionRefusedError      a strategy would not make a projection; carries the sizes
    └── RequestError                a request to a model that was not sent, or not answered as needed
        ├── RequestTooLargeError    the next request exceeds the input limit and nothing could be done; nothing was sent
        ├── ContextOverflowError    the provider refused the request as too large, also after one compaction
        ├── OutputLimitError        the answer ended at the output limit before it said anything
        └── ProviderError           the provider answered with another error; carries status and body

Each message says what happened, with the sizes or ids, and what to do next. All of them survive pickling, so they can cross process borders.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = [
    "AmbiguousEntryError",
    "CompactionRefusedError",
    "ConfigError",
    "ContextOverflowError",
    "EmptySessionError",
    "EntryNotFoundError",
    "FirsthandError",
    "FormatError",
    "JournalBusyError",
    "JournalDamagedError",
    "JournalError",
    "JournalVersionError",
    "MissingExtraError",
    "OutputCeilingError",
    "OutputLimitError",
    "ProviderError",
    "RequestError",
    "RequestTooLargeError",
    "SessionExistsError",
    "SessionNotFoundError",
    "UnknownFormatError",
    "UnknownNameError",
]

_LISTED = 8


class FirsthandError(Exception):
    """Base of all errors that firsthand raises on purpose; catch it to catch them all."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Subclasses have constructors of their own, so the default recipe (class, args) would call them wrongly.
        return (_rebuild, (type(self), self.args, self.__dict__.copy()))


def _rebuild(kind: type[FirsthandError], args: tuple[Any, ...], state: dict[str, Any]) -> FirsthandError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class ConfigError(FirsthandError):
    """A setting that cannot work. Raised when it is set, before anything is sent or stored."""


class OutputCeilingError(ConfigError):
    """The output ceiling (plus the safety margin) fills the window, so no input would fit.

    Attributes:
        window: the context window, in tokens.
        output_ceiling: the output ceiling that was asked for, in tokens.
    """

    def __init__(self, window: int, output_ceiling: int, margin: int) -> None:
        self.window = window
        self.output_ceiling = output_ceiling
        super().__init__(
            f"an output ceiling of {output_ceiling:,} tokens and a margin of {margin:,} leave no input room in a window of "
            f"{window:,}; ask for less output (a quarter of the window is usual: {max(1, window // 4):,})"
        )


class UnknownNameError(ConfigError):
    """No strategy, counter, profile, format or wire format has that name. The message lists the names that exist."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind = kind
        self.name = name
        self.known = tuple(sorted(known))
        super().__init__(f"there is no {kind} named {name!r}; choose one of: {', '.join(self.known)}")


class MissingExtraError(ConfigError):
    """A feature needs a package that only some users want. The message names the extra that brings it."""

    def __init__(self, feature: str, extra: str) -> None:
        self.extra = extra
        super().__init__(f"{feature} needs an optional package: pip install 'firsthand[{extra}]'")


class FormatError(FirsthandError):
    """Input that could not be read as a session. The input itself is never changed."""


class UnknownFormatError(FormatError):
    """No reader recognises the content. The message names the file and what was looked at."""


class EmptySessionError(FormatError):
    """The format was recognised but no entry could be read: an import of nothing is never reported as a success."""


class JournalError(FirsthandError):
    """The journal refused. What it already holds is unchanged."""


class SessionNotFoundError(JournalError):
    """The journal has no session of that id (or more than one that starts with it)."""


class EntryNotFoundError(JournalError):
    """The session has no entry of that id."""


class AmbiguousEntryError(EntryNotFoundError):
    """The first characters of an id are those of several entries.

    Attributes:
        candidates: their ids.
    """

    def __init__(self, beginning: str, candidates: Iterable[str], *, in_session: bool) -> None:
        self.candidates = tuple(sorted(candidates))
        listed = ", ".join(self.candidates[:_LISTED])
        more = f" and {len(self.candidates) - _LISTED} more" if len(self.candidates) > _LISTED else ""
        advice = "give more of the id" if in_session else "give more of the id, or name the session"
        super().__init__(f"{len(self.candidates)} entries start with {beginning!r}: {listed}{more}; {advice}")


class SessionExistsError(JournalError):
    """A session of that id is already there; open it, or choose another id."""


class JournalBusyError(JournalError):
    """Another process held the write lock for longer than the time-out. Nothing was written; try again."""


class JournalVersionError(JournalError):
    """The journal was written by a newer version. Nothing was changed; upgrade firsthand."""


class JournalDamagedError(JournalError):
    """Stored bytes do not match the hash that was stored at append. The message names the entry."""


class CompactionRefusedError(FirsthandError):
    """A strategy would not make a projection, so nothing was changed and nothing must be sent.

    Attributes:
        reason: one of the reasons of `firsthand.strategies.contract.Refused`.
        sizes: the numbers that decided, in tokens, by name.
    """

    def __init__(self, reason: str, message: str, sizes: Mapping[str, int] | None = None) -> None:
        self.reason = reason
        self.sizes = dict(sizes or {})
        super().__init__(message)


class RequestError(FirsthandError):
    """A request to a model that was not sent, or not answered as needed. The journal holds everything up to it."""


class RequestTooLargeError(RequestError):
    """The next request exceeds the input limit and no compaction helps, so it was not sent.

    Attributes:
        sizes: the numbers that decided, in tokens, by name.
    """

    def __init__(self, message: str, sizes: Mapping[str, int]) -> None:
        self.sizes = dict(sizes)
        super().__init__(message)


class ContextOverflowError(RequestError):
    """The provider refused the request as too large, and either compaction is off or it refused the compacted one as well.

    Attributes:
        sizes: what is known, in tokens: `estimated`, `input_limit`, and `limit` where the provider named one.
    """

    def __init__(self, message: str, sizes: Mapping[str, int]) -> None:
        self.sizes = dict(sizes)
        super().__init__(message)


class OutputLimitError(RequestError):
    """The answer ended at the output limit without any text or call (failure kind OV-13). Ask for more output, or for less reasoning."""


class ProviderError(RequestError):
    """The provider answered with an error. Raise it from your own `send` so that a session can tell overflow from the rest.

    Attributes:
        status: the HTTP status, or None for a network failure.
        body: the response's text.
    """

    def __init__(self, status: int | None, body: str, message: str | None = None) -> None:
        self.status = status
        self.body = body
        answered = "the provider could not be reached" if status is None else f"the provider answered {status}"
        super().__init__(message or answered)
