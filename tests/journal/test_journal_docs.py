"""The first example of docs/journal.md runs as it stands, and the page names every method."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from firsthand.journal import Journal
from firsthand.testing.builders import call, result, session, user

PAGE = (Path(__file__).parents[2] / "docs" / "journal.md").read_text(encoding="utf-8")


def test_the_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    with Journal.open("other.db") as other:
        other.create("s")
        other.append("s", session(user("try it"), call("run", "make"), result("c1", "error: Connection refused\n")))
        (tmp_path / "session.jsonl").write_bytes(b"".join(other.export("s")))
    [example] = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    exec(compile(example, "docs/journal.md", "exec"), {})
    assert capsys.readouterr().out == "s 3 0\nerror: Connection refused\n\n"


def test_every_method_is_named() -> None:
    unnamed = {"close", "create", "update", "meta", "chain", "entries", "entry", "features", "forget_features", "path"}
    methods = {name for name in dir(Journal) if not name.startswith("_")}
    assert {name for name in methods - unnamed if not re.search(rf"\b{name}\b", PAGE)} == set()
    assert unnamed <= methods
