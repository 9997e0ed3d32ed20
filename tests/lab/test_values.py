from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand.lab.decoys import decoy
from firsthand.lab.exams.cloze import DECOYS, decoy_lines
from firsthand.lab.second_extractor import RareTokens, rare_tokens
from firsthand.lab.strangers import Strangers, offered, strangers
from firsthand.lab.values import Homes, around, find_values, homes, literal, shows
from firsthand.testing.builders import call, injected, result, said, session, summary, user


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see src/a.py:12 and/or x", {"src/a.py": "path"}),
        ("/etc/hosts is 64MiB, took 12 ms, 85% done", {"/etc/hosts": "path", "64MiB": "number", "12 ms": "number", "85%": "number"}),
        ("foo_bar std::fs::File readFile os.path", {"foo_bar": "identifier", "std::fs::File": "identifier", "readFile": "identifier", "os.path": "identifier"}),
        ("9f1c2ab deadbeef1 ver_ab12cd34 worker-7f3a91", {"9f1c2ab": "id", "deadbeef1": "id", "ver_ab12cd34": "id", "worker-7f3a91": "id"}),
        ("v1.2 and 0.16.0, port 8123, not 12", {"v1.2": "version", "0.16.0": "version", "8123": "number"}),
        ("ENOENT ValueError E0277 ERROR", {"ENOENT": "error", "ValueError": "error", "E0277": "error"}),
        ("PR #12 at https://a.b/c?d=1.", {"#12": "issue", "https://a.b/c?d=1": "url"}),
        ('`lease` "Foo Bar" "Key": 1 「設定値」', {"lease": "quoted", "Foo Bar": "quoted", "設定値": "quoted"}),
        ("端口8123是, ветка_один, worker-7f3a91를", {"8123": "number", "ветка_один": "identifier", "worker-7f3a91": "id"}),
        ("2026-01-01T10:00:24Z 10:22:59", {}),
        ("  412\tdef run():\n413: x\n", {}),
        ("just ordinary words, e.g. these", {}),
        (".github/workflows/x.yml src/.hidden/y ~/.ssh/config /etc/.d/z", {
            ".github/workflows/x.yml": "path", "src/.hidden/y": "path", "~/.ssh/config": "path", "/etc/.d/z": "path",
        }),
        ("./src/a.py ../lib/b.py x.\n.map_err(e).5", {"src/a.py": "path", "../lib/b.py": "path", "map_err": "identifier"}),
        ("sed -n '60,80p' f; sed -n '1200,1300p'; the 2nd, 60p; 200,260q", {}),
        ("[200, 300] 1,234 100, 200", {"200": "number", "300": "number", "1,234": "number", "100": "number"}),
        ("cat <<'EOF' > x 2>/dev/null\nEOF\npython - <<'PY'\nPY\n\"END\" 'Name'", {"Name": "quoted"}),
        ("\x1b[32mAll done\x1b[0m", {}),
        ("/dev/null /dev/stderr /dev/sda1", {"/dev/sda1": "path"}),
    ],
)  # fmt: skip
def test_values_of_a_text(text: str, found: dict[str, str]) -> None:
    assert {value.text: value.shape for value in find_values(text)} == found


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("src/a.py:12", "src/a.py", True), ("./src/a.py.", "src/a.py", True), ("/src/a.py", "src/a.py", False), ("lib/src/a.py", "src/a.py", False),
        ("xsrc/a.py", "src/a.py", False), ("src/a.pyc", "src/a.py", False), ("8123.5", "8123", False), ("18123", "8123", False),
        ("44,628", "628", False), ("628, 44", "628", True), ("端口8123是", "8123", True), ("worker-7f3a91를", "worker-7f3a91", True),
        ("my-worker-7f3a91", "worker-7f3a91", False), ("a::run_all", "run_all", False), ("run_all()", "run_all", True), ("112 ms", "12 ms", False),
        (".github/w.yml", ".github/w.yml", True), ("a/.github/w.yml", ".github/w.yml", False), ("./.github/w.yml", ".github/w.yml", True),
        (".github/w.yml", "github/w.yml", False), ("a/.git/x", "git", False), ("x\n .map_err(", "map_err", True), ("...src/a.py", "src/a.py", True),
        ("later 8123", "8123", True), ("x8123 8123", "8123", True), ("", "8123", False), ("8123", "", False),
    ],
)  # fmt: skip
def test_token_boundaries(text: str, value: str, expected: bool) -> None:
    assert shows(text, value) is expected


@given(st.text(), st.integers(0, 4))
def test_literal_reading_undoes_any_number_of_json_levels(text: str, levels: int) -> None:
    escaped = text
    for _ in range(levels):
        escaped = json.dumps(escaped)[1:-1]
    plain = literal(text)
    assert literal(escaped) == plain
    assert literal(plain) == plain


@given(st.text(max_size=200))
def test_every_found_value_is_shown_where_it_was_found(text: str) -> None:
    for found in find_values(text):
        assert text[found.start : found.end] == found.text


def test_homes_are_first_occurrences_in_what_someone_said() -> None:
    entries = session(
        injected("rule_file_name is 4711"),
        user("Use port 8123."),
        said("Port 8123 and `lease_time`.", call("read", path="src/a.py")),
        result("c1", "lease_time=30 s"),
        summary("old_summary_name"),
    )
    found = homes(entries)
    assert {text: (value.kind, value.entry) for text, value in found.items()} == {
        "8123": ("user", "e2"), "lease_time": ("assistant", "e3"), "src/a.py": ("call", "e3"), "30 s": ("tool", "e4"),
    }  # fmt: skip
    assert found["8123"].line == "Use port 8123."


def test_a_home_line_is_cut_at_forty_words() -> None:
    words = [f"w{chr(97 + n % 26)}" for n in range(200)]
    text = " ".join([*words, "src/a.py", *words])
    start = text.index("src/a.py")
    assert len(around(text, start, start + 8).split()) == 41
    assert around("one\ntwo src/a.py three\nfour", 8, 16) == "two src/a.py three"


def test_the_second_extractor_knows_no_patterns() -> None:
    entries = session(user("Take (a,b) and x=1; rare-word."), *[said("often-seen word") for _ in range(4)])
    assert set(rare_tokens(entries)) == {"a,b", "x=1", "rare-word"}


def test_decoys_have_the_shape_and_occur_nowhere() -> None:
    entries = session(
        user("src/core/a_one.py 9f1c2ab 8123 v1.2.3 #441 https://a.example/some/page ValueError run_all_tests")
    )
    text = "\n".join(value.line for value in homes(entries).values())
    for value in homes(entries).values():
        made = decoy(value, 0, lambda string: string in text)
        assert made is not None
        assert made not in text
        assert made == decoy(value, 0, lambda string: string in text)
    assert decoy(next(iter(homes(entries).values())), 0, lambda string: True) is None


def test_at_any_position_they_are_those_of_the_entries_before_it() -> None:
    entries = session(
        user("src/a.py x-1 y-2"), said("src/a.pyc src/b.py x-1"), user("x-1 src/b.py"), said("x-1 z-3 src/c.py"), user("z-3 8123")
    )  # fmt: skip
    found, rare = Homes(entries), RareTokens(entries)
    for position in (3, 5, 1, 0, 4, 2):
        assert found.before(position) == homes(entries[:position])
        assert rare.before(position) == rare_tokens(entries[:position])
    assert "x-1" in rare.before(3)
    assert "x-1" not in rare.before(4)


def test_decoys_take_their_parts_from_other_sessions() -> None:
    own = session(user("Open src/core_values/reader_one.py and see."))
    others = [
        offered(str(number), session(user(f"Write lib/{name}_storage/{name}_writer.py for them.")))
        for number, name in enumerate(("walrus", "marten", "otter"))
    ]
    lent = strangers("own", [offered("own", own), *others])
    assert lent == strangers("own", [*others[::-1], offered("own", own)])
    assert {"walrus", "marten", "otter", "storage", "writer"} <= set(lent.parts)
    assert not {"reader", "core"} & set(lent.parts)
    assert ("Write ____ for them.", "lib/otter_storage/otter_writer.py") in lent.lines
    text = "\n".join(value.line for value in homes(own).values())
    drawn = {
        decoy(value, seed, text.__contains__, lent.parts * 6) for value in homes(own).values() for seed in range(9)
    }
    assert any(part in made for made in drawn if made for part in ("walrus", "marten", "otter", "storage", "writer"))
    assert strangers("own", [offered("own", own)]) == Strangers()


def test_decoy_lines_are_lines_that_the_session_lacks() -> None:
    lines = [("the lease of ____ ends", "worker-7f3a91"), ("port ____ is free", "8123"), ("see ____ now", "src/a.py")]
    known = ("port  is free", "is free", "src/a.py")
    assert decoy_lines(lines, lambda text: any(text in line for line in known)) == ["the lease of ____ ends"]
    assert len(decoy_lines(lines * 20, lambda text: False)) == DECOYS
