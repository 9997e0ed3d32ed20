"""The session files that the lab measures: named ones, or the newest that clients left in a user's home. One bad file hides no other."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import FirsthandError, FormatError
from ..formats.detect import read_sessions
from ..formats.scan import scan
from ..transcript import Transcript
from .freeze import MANIFEST, frozen_files

__all__ = ["Skipped", "Source", "expanded", "newest", "sessions_in"]


@dataclass(frozen=True)
class Source:
    """One session and the file that it came from."""

    path: Path
    transcript: Transcript

    @property
    def label(self) -> str:
        """The file's name without its folder, for tables."""
        return self.path.name


@dataclass(frozen=True)
class Skipped:
    """A file that gave no session, and why, in one line."""

    path: Path
    reason: str


def sessions_in(paths: Iterable[Path], *, format: str | None = None) -> Iterator[Source | Skipped]:  # noqa: A002
    """The sessions of these files, in the files' order; a file that cannot be read comes back as `Skipped`.

    Args:
        paths: files, or folders that a reader knows.
        format: name of the format of all of them; told from the content when None.
    """
    for path in paths:
        try:
            read = read_sessions(path, format=format)
        except FirsthandError as error:
            yield Skipped(path, str(error))
            continue
        for transcript in read:
            yield Source(path, transcript)


def expanded(paths: Sequence[Path]) -> list[Path]:
    """The files behind what a user named: a folder stands for the files in it and below, but where a reader knows the folder itself.

    Of a folder of frozen copies, the copies are checked first.

    Raises:
        FormatError: a named file or folder is not there, or a frozen copy is not as it was frozen.
    """
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise FormatError(
                f"{path} does not exist; name session files, or leave them out to use your newest sessions"
            )
        if path.is_dir() and (path / MANIFEST).exists():
            found += frozen_files(path)
        elif path.is_dir() and not _known_folder(path):
            found += [file for file in _files(path) if not file.name.startswith(".")]
        else:
            found.append(path)
    return found


def _files(folder: Path) -> list[Path]:
    return sorted(Path(root) / name for root, _, names in os.walk(folder) for name in names)


def _known_folder(path: Path) -> bool:
    from ..formats.detect import detect

    try:
        detect(path)
    except FirsthandError:
        return False
    return True


def newest(home: Path, env: Mapping[str, str], most: int) -> list[Path]:
    """The `most` newest files in the places where clients keep sessions, the newest first; each file once.

    Args:
        home: the user's home folder.
        env: the environment, whose variables move the places.
        most: how many files at most.
    """
    dated: dict[Path, float] = {}
    for found in scan(home, env):
        when = found.modified.timestamp() if found.modified else 0.0
        dated[found.path] = max(when, dated.get(found.path, 0.0))
    return sorted(dated, key=lambda path: (-dated[path], str(path)))[:most]
