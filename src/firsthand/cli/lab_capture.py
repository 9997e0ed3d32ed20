"""`firsthand lab capture`: the shape of a real client's requests."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .output import stderr, write_bytes

__all__ = ["register"]


def register(lab_app: typer.Typer) -> None:
    """Adds the command to the lab's group."""
    lab_app.command("capture", epilog="Example: firsthand lab capture --out shape.json --seconds 60")(capture)


def capture(
    out: Annotated[Path, typer.Option(help="File for system prompt, tools and settings.")],
    seconds: Annotated[float, typer.Option(min=1, max=3600, help="How long to wait for the client.")] = 120.0,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port on 127.0.0.1; 0 for a free one.")] = 0,
) -> None:
    """Wait for one request of a client and keep its system prompt, tools and settings. Nothing is sent anywhere.

    The address is printed first. The client gets a short answer; its key, its headers and its messages are not kept.
    """
    from ..lab.model.capture import capture as captured
    from ..lab.model.shape import write_shape

    found = captured(seconds, port=port, ready=_say)
    write_bytes(out, [write_shape(found.shape, found.wire, found.client)])
    names = ", ".join(tool["function"]["name"] for tool in found.shape.tools)
    left = f"; left out: {', '.join(found.shape.left_out)}" if found.shape.left_out else ""
    typer.echo(f"{out}: {found.shape.told}, {found.wire}; tools: {names}{left}")
    typer.echo(f"{found.others:,} requests before it had no system prompt or no tools. Use it with --shape {out}.")


def _say(url: str) -> None:
    stderr(f"waiting at {url} (OpenAI: {url}/v1; Anthropic: {url}); start the client and send one turn")
