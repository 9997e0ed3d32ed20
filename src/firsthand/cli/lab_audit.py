"""`firsthand lab audit`: what became of a session at each compaction that its client made."""

from typer import Typer


def register(lab_app: Typer) -> None:
    pass
