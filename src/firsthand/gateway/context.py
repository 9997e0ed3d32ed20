"""One request on its way: how it arrived, where it stands, what is sent. Values only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ..budget import Budget
from ..errors import ConfigError
from ..tokens import Counter
from .calibration import Scaled, scaled
from .config import GatewayConfig, Mode, Upstream
from .paths import Front, Path
from .request import Facts, GatewayRequest
from .windows import UNKNOWN, Window
from .wires.base import GatewayWire

__all__ = ["Arrived", "Context", "Decision", "Prepared", "budget_of", "phase_of", "shared_with_summary"]

Decision: TypeAlias = Literal["passed", "forwarded", "projected", "compacted"]
"""`passed`: not looked into. `forwarded`: looked into and sent as it came. `projected`: with a checkpoint that was there. `compacted`: with one
that was made for this request."""


@dataclass(frozen=True)
class Arrived:
    """A request for a model, as it came in."""

    wire: GatewayWire
    body: bytes
    headers: Mapping[str, str]
    """By lower-case name."""
    tenant: str
    upstream: Upstream
    mode: Mode
    counting: bool = False
    """It only asks for a count of tokens: nothing is recorded and nothing compacted."""
    summarise: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    """Asks the upstream for a summary with this request's credentials, where that is allowed."""


@dataclass(frozen=True)
class Prepared:
    """What to send, and why."""

    body: bytes
    decision: Decision
    reason: str = ""
    tokens_before: int | None = None
    """What the request would have taken as it came."""
    tokens_after: int | None = None
    """What it takes now."""
    window: Window = UNKNOWN
    context: Context | None = field(default=None, repr=False)
    """What is needed to learn from the answer; None for a request that was not looked into."""
    retried: bool = False
    recalled: int = 0
    """Tokens of the recall block that the newest message brought."""
    error: str = ""
    """What of our own failed without stopping the request."""


@dataclass(frozen=True)
class Context:
    """A request beside its path."""

    arrived: Arrived
    request: GatewayRequest
    facts: list[Facts]
    """Of the conversation, without the head."""
    head: int
    path: Path
    length: int
    """How many messages of the path the request shows; the others are not recorded (a client's own compaction)."""
    fixed: int
    """Tokens of what stands in front of the conversation and beside it, by the model's counter."""
    counter: Counter
    percent: int
    """What the counter's numbers are multiplied by, as the provider's reports taught."""
    front: Front | None = None
    recalled: Mapping[int, int] = field(default_factory=dict)
    """Tokens of the recall blocks behind the checkpoint, by position of their messages."""
    bare: bool = False
    """No recall blocks: the upstream refuses them."""

    @property
    def counted(self) -> int:
        """Tokens of the request as it is shown, by the counter alone."""
        costs = [one.cost for one in self.facts]
        if self.front is None:
            return self.fixed + sum(costs)
        return self.fixed + self.front.cost + sum(costs[self.front.covered :]) + sum(self.recalled.values())

    def tokens(self, counted: int) -> int:
        """The same in the provider's tokens, as far as we know them."""
        return scaled(counted, self.percent)


def budget_of(context: Context, window: Window, config: GatewayConfig) -> Budget | None:
    """The request's budget; None when its window is unknown or its output leaves no room."""
    if window.tokens is None:
        return None
    output = context.request.max_output
    if output is not None and window.source == "learned":
        # A limit that was only just learned must not make a session unusable.
        output = min(output, window.tokens // 4)
    threshold = config.threshold
    try:
        return Budget.of(
            window.tokens,
            output,
            fixed=context.tokens(context.fixed),
            counter=context.counter if context.percent == 100 else Scaled(context.counter, context.percent),
            target=config.target,
            threshold=threshold if threshold is None or threshold < 1 else min(threshold, window.tokens),
        )
    except ConfigError:
        return None


def phase_of(facts: list[Facts]) -> Literal["pre_turn", "mid_turn"]:
    """Whether the model is in the middle of its turn."""
    return "mid_turn" if facts[-1].results or facts[-1].role == "assistant" else "pre_turn"


def shared_with_summary(context: Context) -> tuple[Any, list[Any] | None]:
    """System prompt and tools of the session, for a summary request that shares its prefix."""
    if context.arrived.summarise is None:
        return None, None
    request = context.request
    tools = request.value("tools")
    return request.value("system") or request.value("instructions"), tools if isinstance(tools, list) else None
