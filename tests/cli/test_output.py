"""Where output goes: files that appear whole, devices and links that stay what they are, tables that can be read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from firsthand.cli.output import write_bytes
from firsthand.errors import ConfigError


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    def breaks_off() -> object:
        yield b"half"
        raise RuntimeError

    out = tmp_path / "new" / "file"
    write_bytes(out, (b"a", b"b"))
    with pytest.raises(RuntimeError):
        write_bytes(out, breaks_off())  # type: ignore[arg-type]
    assert out.read_bytes() == b"ab"
    assert os.listdir(out.parent) == ["file"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "target")
    write_bytes(link, (b"x",))
    assert link.is_symlink()
    assert (tmp_path / "target").read_bytes() == b"x"


def test_a_pipe_is_written_to_and_never_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_bytes(pipe, (b"through",))
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder; name a file in it"):
        write_bytes(tmp_path, (b"x",))
    assert os.listdir(tmp_path) == []
