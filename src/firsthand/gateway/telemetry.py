"""Logs and metrics. Neither ever holds a header, a body or a text of a conversation (GW-17)."""

from __future__ import annotations

import logging
import re
import sys
import time
import traceback
from collections.abc import Callable, MutableMapping
from typing import Any, TextIO

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

__all__ = ["Telemetry"]

_SECRET = re.compile(r"(?i)\b(?:bearer\s+\S+|(?:sk|pk|key|xai|gsk|AIza|ghp|api)[-_][A-Za-z0-9_\-]{6,})")
_SECONDS = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.04, 0.1, 0.3, 1, 3, 10, 30)


class Telemetry:
    """The log and the numbers of one gateway."""

    def __init__(self, stream: TextIO | None = None, *, debug: bool = False) -> None:
        # Their debug lines hold headers of requests and answers.
        for name in ("httpx2", "httpcore2", "httpx", "httpcore"):
            logging.getLogger(name).setLevel(logging.WARNING)
        level = logging.DEBUG if debug else logging.INFO
        self._logger = structlog.wrap_logger(
            structlog.PrintLogger(stream or sys.stderr),
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                _without_secrets,
                structlog.processors.JSONRenderer(),
            ],
            wrapper_class=structlog.make_filtering_bound_logger(level),
            cache_logger_on_first_use=False,
        )
        self.started = time.time()
        self.registry = CollectorRegistry()
        made = self.registry
        self.requests = Counter(
            "firsthand_gateway_requests",
            "Requests by wire, decision and status.",
            ["wire", "decision", "status"],
            registry=made,
        )
        self.errors = Counter(
            "firsthand_gateway_errors",
            "Failures of the gateway's own part; the request went through.",
            ["where"],
            registry=made,
        )
        self.upstream_errors = Counter(
            "firsthand_gateway_upstream_errors",
            "Upstreams that could not be reached or broke off.",
            ["kind"],
            registry=made,
        )
        self.compactions = Counter(
            "firsthand_gateway_compactions", "Compactions by outcome.", ["outcome"], registry=made
        )
        self.tokens_before = Counter(
            "firsthand_gateway_tokens_before", "Tokens of requests as they came.", registry=made
        )
        self.tokens_after = Counter(
            "firsthand_gateway_tokens_after", "Tokens of requests as they were sent.", registry=made
        )
        self.reported = Counter(
            "firsthand_gateway_reported_tokens", "Tokens that providers reported.", ["kind"], registry=made
        )
        self.deciding = Histogram(
            "firsthand_gateway_deciding_seconds",
            "From the whole request to its being sent on.",
            buckets=_SECONDS,
            registry=made,
        )
        self.first_byte = Histogram(
            "firsthand_gateway_first_byte_seconds",
            "From the request being sent on to the answer's headers.",
            buckets=_SECONDS,
            registry=made,
        )
        self.in_flight = Gauge("firsthand_gateway_in_flight", "Requests that are being answered.", registry=made)
        self.waiting = Gauge("firsthand_gateway_journal_waiting", "Writes to the journal that wait.", registry=made)

    def info(self, event: str, **fields: Any) -> None:
        """Something that happened."""
        self._logger.info(event, **fields)

    def decided(self, event: str, **fields: Any) -> None:
        """Something that the engine tells; its compactions are counted as well."""
        if event == "compaction":
            self.compactions.labels(fields["outcome"]).inc()
        self.info(event, **fields)

    def error(self, event: str, **fields: Any) -> None:
        """Something of ours that failed."""
        self._logger.error(event, **fields)

    def failed(self, event: str, where: str, error: BaseException) -> None:
        """The same with the error's type and the places that it came through; its text may quote what somebody said."""
        frames = traceback.extract_tb(error.__traceback__)[-8:]
        places = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames]
        self._logger.error(event, where=where, error=type(error).__name__, at=places)

    def debug(self, event: str, **fields: Any) -> None:
        """Something for whoever looks closely."""
        self._logger.debug(event, **fields)

    def page(self) -> bytes:
        """The numbers, as Prometheus reads them."""
        return generate_latest(self.registry)

    def sums(self) -> dict[str, float]:
        """The counters' sums by name, for the status."""
        found: dict[str, float] = {}
        for metric in self.registry.collect():
            for sample in metric.samples:
                if sample.name.endswith(("_total", "_in_flight", "_waiting")):
                    name = sample.name.removeprefix("firsthand_gateway_").removesuffix("_total")
                    key = ".".join([name, *sample.labels.values()])
                    found[key] = sample.value
        return found


def _without_secrets(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The last line of defence: what looks like a key is blotted out of every value."""
    for name, value in event.items():
        if isinstance(value, str):
            event[name] = _SECRET.sub("[secret]", value)
    return event


Log = Callable[..., None]
