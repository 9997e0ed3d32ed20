"""Read-only, hashed copies of session files, so that a measurement can be repeated on the very same bytes.

A folder of frozen copies has a manifest, `firsthand-frozen.json`. Copies are named by the file's name and the start of its hash, so a session that
has grown since becomes another copy beside the first, and nothing that is frozen is ever written again. Whenever the folder is used, each
copy's hash is checked.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import msgspec

from ..codec import decode_as, encode
from ..errors import FormatError

__all__ = ["MANIFEST", "Frozen", "FrozenFile", "freeze", "frozen_files", "load"]

MANIFEST = "firsthand-frozen.json"
_READ_ONLY = stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH
_PIECE = 1 << 20


class FrozenFile(msgspec.Struct, frozen=True):
    """One copy."""

    name: str
    """Its name in the folder."""
    sha256: str
    """Of its bytes, as they are on disk (a packed file is not unpacked)."""
    size: int
    """Bytes."""
    origin: str
    """Where it was copied from, the first time."""


class Frozen(msgspec.Struct, frozen=True):
    """The manifest of a folder of copies."""

    files: tuple[FrozenFile, ...] = ()
    version: int = 1


def freeze(paths: Iterable[Path], out: Path) -> Frozen:
    """Copies the files into `out` and checks every copy that was there already.

    Args:
        paths: the files. One that is frozen already, by its bytes, is not copied again.
        out: the folder; made when it is not there.

    Returns:
        The manifest, old copies and new ones in order of their names.

    Raises:
        FormatError: a file cannot be read or is a folder or a database that is written to, or a copy in `out` is not as it was frozen.
            Copies made before the failure stay, and are in the manifest.
        OSError: the folder cannot be written.
    """
    known = {file.name: file for file in load(out).files} if (out / MANIFEST).exists() else {}
    _check(out, known.values())
    by_hash = {file.sha256: file for file in known.values()}
    out.mkdir(parents=True, exist_ok=True)
    try:
        for path in paths:
            if path.name == MANIFEST and path.parent.resolve() == out.resolve():
                continue
            file = _copied(path, out, by_hash)
            known[file.name] = by_hash[file.sha256] = file
    finally:
        frozen = Frozen(tuple(known[name] for name in sorted(known)))
        _write(out / MANIFEST, encode(frozen) + b"\n")
    return frozen


def load(folder: Path) -> Frozen:
    """The manifest of a folder of copies.

    Raises:
        FormatError: there is none, or it cannot be read.
    """
    path = folder / MANIFEST
    try:
        return decode_as(path.read_bytes(), Frozen)
    except OSError as error:
        raise FormatError(f"{folder} holds no frozen sessions: {path.name}: {error.strerror or error}") from error
    except ValueError as error:
        raise FormatError(f"the manifest {path} cannot be read: {error}; freeze into another folder") from error


def frozen_files(folder: Path) -> list[Path]:
    """The copies of a folder, each checked against its hash.

    Raises:
        FormatError: no manifest, or a copy is missing or not as it was frozen; names the copies.
    """
    files = load(folder).files
    _check(folder, files)
    return [folder / file.name for file in files]


def _check(folder: Path, files: Iterable[FrozenFile]) -> None:
    wrong: list[str] = []
    for file in files:
        if Path(file.name).name != file.name:
            wrong.append(f"{file.name!r} is no plain name")
            continue
        try:
            digest, size = _digest(folder / file.name)
        except OSError as error:
            wrong.append(f"{file.name}: {error.strerror or error}")
            continue
        if digest != file.sha256:
            wrong.append(
                f"{file.name}: {size:,} bytes with hash {digest[:12]}, frozen were {file.size:,} with {file.sha256[:12]}"
            )
    if wrong:
        more = f" and {len(wrong) - 4} more" if len(wrong) > 4 else ""
        raise FormatError(
            f"{len(wrong)} of the copies in {folder} are not as they were frozen: {'; '.join(wrong[:4])}{more}; "
            "numbers measured on them cannot be repeated. Freeze the originals into another folder"
        )


def _digest(path: Path) -> tuple[str, int]:
    hashed = sha256()
    size = 0
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            hashed.update(piece)
            size += len(piece)
    return hashed.hexdigest(), size


def _copied(path: Path, out: Path, by_hash: dict[str, FrozenFile]) -> FrozenFile:
    """The copy of one file. What is hashed is what is written: a client may append to the file in the same moment."""
    if path.is_dir():
        raise FormatError(
            f"{path} is a folder; freeze files, or export its sessions first with `firsthand import` and `export`"
        )
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FormatError(f"cannot read {path}: {error.strerror or error}") from error
    if data.startswith(b"SQLite format 3\x00"):
        raise FormatError(
            f"{path} is a database, whose newest data may stand in another file; import its sessions and freeze `firsthand export`s of them"
        )
    digest = sha256(data).hexdigest()
    if digest in by_hash:
        return by_hash[digest]
    # Names may fill what a file system allows; the end says more, and keeps the ending.
    name = f"{digest[:12]}-{path.name[-60:]}"
    _write(out / name, data)
    return FrozenFile(name, digest, len(data), str(path))


def _write(path: Path, data: bytes) -> None:
    """A file that appears whole or not at all, and that nobody overwrites by mistake."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.chmod(_READ_ONLY)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
