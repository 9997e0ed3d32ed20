"""Seeded generators of sample sessions: long, synthetic, the same bytes on every machine.

The three chains `export`, `analysis` and `pipeline` follow the published compaction experiment (futureos.md 8.2): eight stages of 28 records,
with facts planted where strategies differ: in the assistant's first report, in the middle of long logs, in requirements that later requests
supersede. The random draws are those of the original, so its seed values come out; the wording is ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Literal, TypeAlias

from .codec import compact_json
from .errors import UnknownNameError
from .transcript import Block, Entry, Role, Text, ToolCall, ToolResult, Transcript, chained

__all__ = ["CHAINS", "RECORDS_PER_STAGE", "SCORED_STAGES", "STAGES", "ChainName", "chain"]

ChainName: TypeAlias = Literal["export", "analysis", "pipeline"]

STAGES = 8
RECORDS_PER_STAGE = 28
SCORED_STAGES = (0, 3, 7)
"""Stages after which the published exam asks, that is after 28, 112 and 224 records."""

_NOISE_LINES = 1_400
_TAIL_LINES = 180
_REVIEW_LINES = 32
_COMPONENTS = ("parser", "scheduler", "writer", "index", "cache", "transport")
_FAILING_STAGES = (2, 5)


@dataclass(frozen=True)
class _Chain:
    """What tells one chain from another."""

    seed: int
    project: str
    unit: str
    limits: tuple[int, int, int]
    """The limit at stage 0, from stage 2 and from stage 5."""
    formats: tuple[str, str]
    """The format at stage 0 and from stage 4."""
    prohibition: str
    reviews: bool
    """Whether the assistant writes long reviews; otherwise it writes few, decisive texts."""
    tail_width: int
    """Characters of a line of the status log at a stage's end."""


CHAINS: dict[str, _Chain] = {
    "export": _Chain(
        91526015, "ATLAS", "MiB", (128, 64, 96), ("CSV", "JSONL"), "Do not deploy or send anything outside.", True, 90
    ),
    "analysis": _Chain(
        91526016, "MERIDIAN", "MiB", (256, 192, 320), ("JSON", "PARQUET"), "Do not deploy or send anything outside.", True, 90
    ),
    "pipeline": _Chain(
        91526016, "PIPELINE", "s", (512, 384, 768), ("AVRO", "PARQUET"), "Run no backfill without approval.", False, 43
    ),
}  # fmt: skip


def chain(name: str, stages: int = STAGES) -> Transcript:
    """A synthetic chain as a session of `28 × stages` entries.

    Args:
        name: `export`, `analysis` or `pipeline`.
        stages: how many of the eight stages, from the first.

    Raises:
        UnknownNameError: there is no chain of that name.
    """
    if name not in CHAINS:
        raise UnknownNameError("sample", name, CHAINS)
    spec = CHAINS[name]
    entries = [
        Entry(id=f"20260101-{number // 60:04d}{number % 60:02d}-{number:06x}", role=role, blocks=(block,))
        for number, (role, block) in enumerate(_records(spec, stages))
    ]
    path = chained(entries)
    return Transcript(
        id=f"sample-{name}",
        format="firsthand",
        entries=path,
        leaf=path[-1].id if path else None,
        title=f"Synthetic chain {name}",
    )


def _records(spec: _Chain, stages: int) -> Iterator[tuple[Role, Block]]:
    rng = Random(spec.seed)
    acknowledgement = f"ACK_{rng.randbytes(8).hex()}"
    decision = "" if spec.reviews else f"DEC_{rng.randbytes(4).hex()}"
    for stage in range(stages):
        yield "user", Text(_request(spec, stage))
        if spec.reviews:
            yield "assistant", Text(_review(stage, acknowledgement, rng))
        else:
            yield "assistant", Text(_report(stage, acknowledgement, decision))
        version = f"ver_{rng.randbytes(6).hex()}"
        trace = f"trace_{rng.randbytes(8).hex()}"
        for channel in range(11):
            path = (
                ("config.snapshot", "validation.log", "trace.log")[channel] if channel < 3 else f"metrics-{channel}.log"
            )
            body = _body(spec, stage, channel, path, version, trace, rng)
            yield from _exchange(f"call-{stage}-{channel:02d}", path, body, channel == 1 and stage in _FAILING_STAGES)
        yield from _tail(spec, stage)


def _exchange(call_id: str, path: str, body: str, failed: bool) -> Iterator[tuple[Role, Block]]:
    yield "assistant", ToolCall(call_id, "read", compact_json({"path": path}))
    yield "tool", ToolResult(call_id, (Text(body),), is_error=failed)


def _request(spec: _Chain, stage: int) -> str:
    if stage == 0:
        opening = (
            f"PROJECT={spec.project}. The limit is {spec.limits[0]}{spec.unit} and the format is {spec.formats[0]}. "
            f"{spec.prohibition}"
        )
    else:
        opening = f"Continue with stage {stage}; what was required before still holds."
    if stage == 2:
        opening += f" The limit is now {spec.limits[1]}{spec.unit}, instead of the earlier one."
    if stage == 4:
        opening += f" The format is now {spec.formats[1]}."
    if stage == 5:
        opening += f" The limit changes again, to {spec.limits[2]}{spec.unit}."
    if stage and not spec.reviews:
        return opening + " Report only what the evidence shows."
    return opening + (
        " Read each file of the stage before you conclude anything, name the file behind every statement, keep what is "
        "known apart from what is assumed, and report only what the evidence shows."
    )


def _review(stage: int, acknowledgement: str, rng: Random) -> str:
    lines = [f"STAGE_REPORT_{stage}"]
    if stage == 0:
        lines.append(f"FIRST_OUTPUT_CODE={acknowledgement}")
    lines += [
        f"Item {item + 1:02d}: reviewed the {_COMPONENTS[item % len(_COMPONENTS)]} against section {rng.randrange(100, 999)} of the "
        "plan; its inputs, its outputs and its failure paths behave as described there, nothing in it contradicts the requirements so far, and "
        "no step beyond reading was taken."
        for item in range(_REVIEW_LINES)
    ]
    return "\n".join(lines)


def _report(stage: int, acknowledgement: str, decision: str) -> str:
    head = f"STAGE_REPORT_{stage}\n"
    if stage == 0:
        return head + (
            f"{decision}: resume from the watermark instead of a timeout, because a slow source would otherwise be read twice. "
            f"RATIONALE_CODE=RSN_watermark_over_timeout\nFIRST_OUTPUT_CODE={acknowledgement}\n"
            "Open question: what happens to rows that arrive behind the watermark, since both sources are allowed to "
            "send them for a day?\nRETRY_BUDGET=9"
        )
    if stage == 3:
        return head + (
            "Correction: the reason given for the watermark was incomplete; clock skew between the sources decides it, not slow "
            "reads. The retry budget goes down, since the second source repeats itself: RETRY_BUDGET=4\n"
            "The open question is decided: late rows go to a "
            "side table and are counted there."
        )
    return (
        head
        + "Read the files of this stage and compared them with the stage before. No new decisions; the earlier ones stand, "
        "and so does what is open."
    )


def _body(spec: _Chain, stage: int, channel: int, path: str, version: str, trace: str, rng: Random) -> str:
    lines = [f"project {spec.project} stage {stage} file {path}"]
    if channel == 0:
        lines.append(f"VERSION_C{stage:03d}={version}")
    if channel == 1:
        failing = stage in _FAILING_STAGES
        lines.append(f"VALIDATION={'FAIL_CHECKSUM' if failing else 'PASS_LINUX_ONLY'}")
        lines.append(f"BLOCKER={'WAIT_CHECKSUM_FIX' if failing else 'WAIT_USER_APPROVAL'}")
        lines.append("DEPLOYMENT=NOT_DEPLOYED")
    for index in range(_NOISE_LINES):
        if index == _NOISE_LINES // 2:
            lines.append(f"TRACE_C{stage:03d}={trace}" if channel == 2 else "half of the records written")
        lines.append(
            f"{index:04d} INFO channel={channel} sequence={4_000 * stage + index} observed={rng.randrange(10_000, 99_999)} nominal-values"
        )
    lines.append(f"end of {path}, all records written")
    return "\n".join(lines)


def _tail(spec: _Chain, stage: int) -> Iterator[tuple[Role, Block]]:
    yield (
        "user",
        Text(
            "Before you go on, look at the status log once more and say whether anything in it changes what was reported for this stage."
        ),
    )
    line = "status steady, queue empty, no worker restarted, no record rejected, nothing to report here yet"
    body = "\n".join(f"{number:03d} {line}"[: spec.tail_width] for number in range(_TAIL_LINES))
    yield from _exchange(f"tail-{stage}", "tail-status.log", body, failed=False)
    yield "assistant", Text("The status log shows nothing new; the report stands.")
