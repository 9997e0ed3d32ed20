from __future__ import annotations

import os
import stat
from hashlib import sha256
from pathlib import Path

import pytest

from firsthand.errors import FormatError
from firsthand.lab.freeze import MANIFEST, freeze, frozen_files, load
from firsthand.lab.inputs import expanded


@pytest.fixture
def original(tmp_path: Path) -> Path:
    path = tmp_path / "session.jsonl"
    path.write_bytes(b'{"a": 1}\n')
    return path


def test_a_copy_is_hashed_read_only_and_not_made_twice(original: Path, tmp_path: Path) -> None:
    out = tmp_path / "frozen"
    first = freeze([original, original], out)
    (copy,) = first.files
    assert copy.sha256 == sha256(b'{"a": 1}\n').hexdigest()
    assert (copy.size, copy.origin) == (9, str(original))
    path = out / copy.name
    assert path.read_bytes() == original.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o444
    assert stat.S_IMODE((out / MANIFEST).stat().st_mode) == 0o444
    written = path.stat().st_mtime_ns
    assert freeze([original], out) == first == load(out)
    assert path.stat().st_mtime_ns == written
    assert frozen_files(out) == [path] == expanded([out])
    assert not list(out.glob("*.partial"))


def test_a_session_that_has_grown_becomes_a_second_copy(original: Path, tmp_path: Path) -> None:
    out = tmp_path / "frozen"
    (first,) = freeze([original], out).files
    with original.open("ab") as file:
        file.write(b'{"b": 2}\n')
    frozen = freeze([original], out)
    assert len(frozen.files) == 2
    assert (out / first.name).read_bytes() == b'{"a": 1}\n'


@pytest.mark.parametrize("harm", ["changed", "gone"])
def test_a_copy_that_is_not_as_it_was_is_named(harm: str, original: Path, tmp_path: Path) -> None:
    out = tmp_path / "frozen"
    (copy,) = freeze([original], out).files
    path = out / copy.name
    path.unlink()
    if harm == "changed":
        path.write_bytes(b'{"a": 2}\n')
    for use in (lambda: freeze([original], out), lambda: frozen_files(out), lambda: expanded([out])):
        with pytest.raises(FormatError, match=copy.name):
            use()


def test_what_cannot_be_frozen_is_refused_and_the_rest_stays(original: Path, tmp_path: Path) -> None:
    out = tmp_path / "frozen"
    database = tmp_path / "opencode.db"
    database.write_bytes(b"SQLite format 3\x00" + bytes(100))
    for wrong, said in ((database, "database"), (tmp_path / "absent", "cannot read"), (tmp_path, "folder")):
        with pytest.raises(FormatError, match=said):
            freeze([original, wrong], out)
    assert [file.origin for file in load(out).files] == [str(original)]
    assert expanded([out])


def test_a_manifest_that_was_tampered_with_reaches_nothing_outside(original: Path, tmp_path: Path) -> None:
    out = tmp_path / "frozen"
    (copy,) = freeze([original], out).files
    manifest = out / MANIFEST
    text = manifest.read_text().replace(copy.name, "../session.jsonl")
    manifest.unlink()
    manifest.write_text(text)
    with pytest.raises(FormatError, match="no plain name"):
        frozen_files(out)
    manifest.write_text("{")
    with pytest.raises(FormatError, match="cannot be read"):
        freeze([original], out)
    with pytest.raises(FormatError, match="no frozen sessions"):
        load(tmp_path)


def test_long_and_odd_names(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 240 + ".jsonl")
    long.write_bytes(b"1")
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.jsonl"))
    odd.write_bytes(b"2")
    out = tmp_path / "frozen"
    names = [file.name for file in freeze([long, odd], out).files]
    assert len(names) == 2
    assert len(frozen_files(out)) == 2
