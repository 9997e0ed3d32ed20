"""Where output goes: files that appear whole, devices and links that stay what they are, tables that can be read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rich.cells import cell_len

from firsthand.cli.output import stderr, table, write_bytes
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


IDS = ("e0378f7c-f404-40a6-bae8-b0dbaa35aefd", "한국어-세션-이름", "short")
COLUMNS = ("session", "format", "user texts", "tool results", "title")
ROWS = [(name, "claude-code", 1_234_567, None, "a title that goes on and on " * 4) for name in IDS]


def drawn(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, **options: object
) -> list[str]:
    monkeypatch.setattr("firsthand.cli.output._PIPED", width)
    table(COLUMNS, ROWS, **options)  # type: ignore[arg-type]
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 120, 200])
def test_no_id_and_no_number_is_ever_broken(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = drawn(width, capsys, monkeypatch)
    for name in IDS:
        assert sum(name in line for line in listed) == 1
    assert sum("1,234,567" in line for line in listed) == 3
    assert " ".join(" ".join(listed).split()).count("on and on") >= 3
    assert max(map(cell_len, listed)) <= max(width, 36)
    assert [line for line in listed if line != line.rstrip()] == []


def test_short_columns_stay_on_one_line_and_show_that_they_were_cut(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = drawn(120, capsys, monkeypatch, short=("title",))
    assert len(listed) == 2 + len(ROWS)
    assert all(line.endswith("…") for line in listed[2:])


def test_narrow_terminals_get_lines_instead(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = drawn(60, capsys, monkeypatch)
    assert listed[:2] == [IDS[0], "  format claude-code; user texts 1,234,567; title a title"]


def test_control_characters_out_of_a_file_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    table(("id", "title"), [("a\x1b[2Jb", "bell\x07 and \x9b31m colour")])
    stderr("no session '\x1b]0;title\x07'")
    shown = capsys.readouterr()
    assert "a␛[2Jb" in shown.out
    assert "bell␇" in shown.out
    assert [found for found in shown.out + shown.err if found in "\x1b\x07\x9b"] == []


@pytest.mark.parametrize(("tail", "heading"), [("forced", ["name", "tail", "hits"]), (None, ["name", "hits"])])
def test_a_spare_column_shows_only_when_a_row_fills_it(
    tail: str | None, heading: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    table(("name", "tail", "hits"), [("a", None, 1), ("b", tail, 2)], spare=("tail",))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == heading
    assert [line.split() for line in lines[2:]] == [["a", "1"], ["b", *([tail] if tail else []), "2"]]
