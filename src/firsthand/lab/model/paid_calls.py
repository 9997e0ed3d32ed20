"""What the ledger keeps of a paid call, and the errors that say why one is not made."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal, NamedTuple, TypeAlias

from ...errors import FirsthandError, RequestError
from ..money.prices import amount

__all__ = [
    "BudgetSpentError",
    "Call",
    "LedgerError",
    "Reserved",
    "Settled",
    "Spent",
    "State",
    "UnresolvedCallError",
    "call_key",
]

State: TypeAlias = Literal["reserved", "answered", "failed", "abandoned"]
"""`reserved`: sent or about to be, no reply known. `answered`: the reply is kept. `failed`: the provider refused, or could not be reached.
`abandoned`: it was one of these two, and a person allowed another try; it still counts as spent."""


class LedgerError(FirsthandError):
    """The ledger's file cannot be used, or was made for another currency. Nothing was sent."""


class BudgetSpentError(RequestError):
    """The worst case of the next call does not fit the budget, so it was not sent.

    Attributes:
        spent: what is charged or reserved so far, in picos.
        needed: the worst case of the call, in picos.
        budget: in picos.
    """

    def __init__(self, spent: int, needed: int, budget: int, currency: str) -> None:
        self.spent = spent
        self.needed = needed
        self.budget = budget
        super().__init__(
            f"the next call may cost up to {amount(needed, currency)}; {amount(spent, currency)} of the budget of "
            f"{amount(budget, currency)} are spent or reserved, so it was not sent; raise --budget to go on"
        )


class UnresolvedCallError(RequestError):
    """The call was sent before and its outcome is not known, or it failed; it is not sent again by itself.

    Attributes:
        identity: which call.
        state: `reserved` or `failed`.
    """

    def __init__(self, identity: str, state: str, reason: str | None) -> None:
        self.identity = identity
        self.state = state
        known = "was reserved and its reply is not known" if state == "reserved" else f"failed ({reason})"
        super().__init__(
            f"the call {identity} {known}; it counts as spent and is not sent again without --retry-unresolved"
        )


class Call(NamedTuple):
    """One call as the ledger keeps it. Money is in picos."""

    number: int
    key: str
    identity: str
    state: State
    reserved: int
    charged: int | None
    request: bytes
    status: int | None
    reply: bytes | None
    reason: str | None

    @property
    def spent(self) -> int:
        """The charge where one is known, else the reservation."""
        return self.reserved if self.charged is None else self.charged


@dataclass(frozen=True)
class Spent:
    """Where the money went. In picos."""

    charged: int
    """Of calls whose charge is known."""
    reserved: int
    """Of calls whose charge is not known: unresolved, failed without a bill, or answered without usage."""
    answered: int
    unresolved: int
    failed: int
    abandoned: int
    summaries: int = 0
    """The part of both that went into summaries; the rest went into questions."""

    @property
    def total(self) -> int:
        """What counts against the budget."""
        return self.charged + self.reserved


class Settled(NamedTuple):
    """What came back of a call, for the ledger to keep."""

    status: int | None
    reply: bytes
    charged: int | None
    """In picos; None where it cannot be told, so that the reservation stands."""
    failure: str | None = None


class Reserved(NamedTuple):
    """A call that is paid for in advance and not sent yet."""

    number: int
    key: str
    identity: str
    request: bytes
    worst: int
    """In picos."""


def call_key(identity: str, request: bytes) -> str:
    """The key of a call: what it is for, and the exact bytes that are sent. Replicates differ in their identity."""
    return blake2b(identity.encode("utf-8", "surrogatepass") + b"\0" + request, digest_size=16).hexdigest()
