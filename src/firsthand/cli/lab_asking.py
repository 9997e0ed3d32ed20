"""What the commands that put questions to a model have in common: the options of how it is asked, the plan that they make, and the sessions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from ..errors import ConfigError
from .lab_endpoint import listed, percents
from .output import stderr

if TYPE_CHECKING:
    from ..lab.model.reading import Plan
    from ..transcript import Transcript

__all__ = [
    "AtOption",
    "ExamTailOption",
    "MaxOutputOption",
    "ReplicatesOption",
    "ShapeOption",
    "SummariserOption",
    "TargetOption",
    "TemperatureOption",
    "ValuesOption",
    "WindowOption",
    "plan_of",
    "sessions_of",
    "tell_missing",
]

AtOption: TypeAlias = Annotated[str, typer.Option(help="Boundaries, in percent of the tokens.")]
ValuesOption: TypeAlias = Annotated[
    int, typer.Option(min=1, help="Values asked at each boundary and exam; as many decoys.")
]
ReplicatesOption: TypeAlias = Annotated[int, typer.Option(min=1, help="Times that each question is put.")]
ShapeOption: TypeAlias = Annotated[
    Path | None, typer.Option(help="System prompt and tools that `firsthand lab capture` took from a client.")
]
SummariserOption: TypeAlias = Annotated[
    str, typer.Option(help="Who writes summaries: none, extractive (rules), or model: the reader itself.")
]
TargetOption: TypeAlias = Annotated[int | None, typer.Option(min=1, help="Size of the projections, in tokens.")]
WindowOption: TypeAlias = Annotated[int, typer.Option(min=1, help="Context window of the strategies' budgets.")]
ExamTailOption: TypeAlias = Annotated[
    int, typer.Option(min=0, help="Tokens of the newest entries whose values are not asked; 0 for short sessions.")
]
MaxOutputOption: TypeAlias = Annotated[int, typer.Option(min=16, help="Output cap of each answer.")]
TemperatureOption: TypeAlias = Annotated[str, typer.Option(help="A number, or `none` for endpoints that take none.")]

_TOLD = 10


def plan_of(
    strategies: str,
    exams: str,
    at: str,
    values: int,
    replicates: int,
    way: str,
    shape: Path | None,
    summariser: str,
    target: int | None,
    window: int,
    exam_tail: int,
    max_output: int,
    temperature: str,
) -> Plan:
    """What a user asked for.

    Raises:
        ConfigError: an option that cannot work.
        UnknownNameError: no strategy of that name.
    """
    from ..lab.arms import Arm
    from ..lab.model.batches import MODEL_EXAMS
    from ..lab.model.reading import Plan
    from ..lab.model.shape import read_shape
    from ..strategies import strategy_class

    if way not in ("session", "published"):
        raise ConfigError(f"the way is session or published, not {way!r}")
    if summariser not in ("none", "extractive", "model"):
        raise ConfigError(f"the summariser is none, extractive or model, not {summariser!r}")
    if unknown := set(listed(exams)) - set(MODEL_EXAMS):
        raise ConfigError(f"a model is not asked {', '.join(sorted(unknown))}; choose of: {', '.join(MODEL_EXAMS)}")
    names = listed(strategies)
    for name in names:
        strategy_class(name)
    return Plan(
        arms=tuple(Arm(name, target, summariser) for name in names),
        exams=tuple(exam for exam in MODEL_EXAMS if exam in listed(exams)),
        shares=percents(at),
        values=values,
        replicates=replicates,
        way="published" if way == "published" else "session",
        shape=None if shape is None else read_shape(shape),
        exam_tail=exam_tail,
        window=window,
        max_output=max_output,
        temperature=_number(temperature),
    )


def _number(text: str) -> float | None:
    if text == "none":
        return None
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 2:
        raise ConfigError(f"a temperature is a number from 0 to 2, or `none`, not {text!r}")
    return number


def sessions_of(files: Sequence[Path]) -> list[Transcript]:
    """The sessions of the files that hold anything, each once: their ids tell the ledger's calls apart.

    Raises:
        FormatError: a file is not there, or none can be read.
    """
    from .lab import read_sources

    found: dict[str, Transcript] = {}
    for source in read_sources(files):
        if source.transcript.id in found:
            stderr(f"left out: {source.path} holds the session {source.transcript.id} once more")
        elif source.transcript.entries:
            found[source.transcript.id] = source.transcript
    return list(found.values())


def tell_missing(stopped: str | None, unresolved: Sequence[str]) -> None:
    """Why not all questions have a reply, on stderr.

    Args:
        stopped: why the run ended early.
        unresolved: a sentence for each call without a reply.
    """
    if stopped:
        stderr(f"stopped: {stopped}")
    for line in unresolved[:_TOLD]:
        stderr(f"no reply: {line}")
    if len(unresolved) > _TOLD:
        stderr(f"no reply: {len(unresolved) - _TOLD:,} more calls")
