"""`firsthand sample`: writes one of our synthetic sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..codec import encode
from ..samples import STAGES, chain
from .output import stderr, write_bytes

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Adds the commands of this group."""
    app.command("sample", epilog="Example: firsthand sample export --out session.json")(sample)


def sample(
    name: Annotated[str, typer.Argument(help="export, analysis or pipeline.")] = "export",
    stages: Annotated[int, typer.Option(min=1, max=STAGES, help="How many stages of 28 entries.")] = STAGES,
    out: Annotated[Path | None, typer.Option(help="File to write; stdout when left out.")] = None,
) -> None:
    """Write a synthetic session as a list of OpenAI Chat messages; the same bytes every time."""
    from ..formats.wire import wire_by_name

    session = chain(name, stages)
    messages = wire_by_name("openai-chat").write(session.entries).messages
    write_bytes(out, (b"[\n", b",\n".join(encode(message) for message in messages), b"\n]\n"))
    if out is not None:
        stderr(f"wrote {out}: {len(messages)} messages, {out.stat().st_size:,} bytes")
