"""The page of a report: in a real browser, on paper, with hostile names, and from stored rows."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from report_browser import darkness, dom, printed, screenshot
from report_records import at_size_of_pi, audit_line, record, replayed, row

from firsthand.codec import encode
from firsthand.formats.wire import wire_by_name
from firsthand.lab.figures.style import picture
from firsthand.lab.report.page import MOST_BYTES, page
from firsthand.lab.report.pictures import pictures
from firsthand.lab.report.record import Input, Record, read_record
from firsthand.lab.results import as_csv
from firsthand.samples import chain

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "cli"))
from running import Done, run

HOSTILE = "<script>alert(1)</script><img src=http://x/ onerror=alert(2)>\"'&\x1b[31m‮$\\frac{a}$"


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def hostile() -> Record:
    """A record in which every name from outside is an attack."""
    rows = [msgspec.structs.replace(one, strategy=HOSTILE, session=HOSTILE) for one in record().rows["run"]]
    return record(
        command=f"firsthand lab report '{HOSTILE}'",
        rows={"run": rows, "chains": [row(session=HOSTILE, exam="published")]},
        audits=(audit_line(source=HOSTILE, note=HOSTILE),),
        inputs=(Input(name=HOSTILE, sha256="0" * 64, size=1, format=HOSTILE, sessions=1, entries=1),),
        files=f"FILES=({HOSTILE})",
        cache_model=HOSTILE,
    )


def test_the_page_loads_nothing_and_runs_nothing() -> None:
    for made in (page(record()), page(hostile())):
        tags = _Tags()
        tags.feed(made)
        assert {tag for tag, _ in tags.tags} <= {
            "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "h3", "p", "b", "br", "code", "div", "nav", "a", "section",
            "figure", "figcaption", "img", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "details", "summary",
        }  # fmt: skip
        for tag, attributes in tags.tags:
            assert not any(name.startswith("on") for name in attributes), (tag, attributes)
            assert (attributes.get("src") or "data:").startswith(
                "data:image/svg+xml;base64,"
            ) or "src" not in attributes
            assert (attributes.get("href") or "#").startswith("#")
        assert "\x1b" not in made
        assert "\u202e" not in made
        assert len(made.encode()) < MOST_BYTES


def test_hostile_names_stay_text() -> None:
    made = page(hostile())
    assert "<script" not in made
    assert "&lt;script&gt;alert(1)" in made


def test_figures_are_the_same_bytes_and_need_no_colour() -> None:
    for one, again in zip(pictures(record()), pictures(record()), strict=True):
        svg = picture(one.figure, "svg")
        assert svg == picture(again.figure, "svg")
        assert b"<script" not in svg
        colours = set(re.findall(rb"(?:fill|stroke): ?#([0-9a-f]{6})", svg))
        assert all(colour[0:2] == colour[2:4] == colour[4:6] for colour in colours), (one.key, colours)
        assert picture(one.figure, "png").startswith(b"\x89PNG")


def test_every_number_of_the_record_has_a_command_under_it() -> None:
    made = page(record())
    shown = made.count("<table>") - made.split('id="made"')[1].count("<table>") + made.count("<figure ")
    assert made.split('id="made"')[0].count('<p class="cmd">') == shown


@pytest.mark.slow
def test_a_browser_shows_it(tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    rows = record().rows | {"equal": at_size_of_pi(), "survival": replayed()}
    path.write_text(page(record(rows=rows)), "utf-8")
    assert screenshot(path, tmp_path / "wide.png", 1_200, 6_000) == (1_200, 6_000)
    # Every tenth of the page's first six thousand lines shows something, and none is all ink.
    assert all(0.002 < share < 0.6 for share in darkness(tmp_path / "wide.png")), darkness(tmp_path / "wide.png")
    text = re.sub(r"<[^>]+>", " ", dom(path, tmp_path / "profile"))
    for told in (
        "What survives a compaction",
        "20/60 (33.3 %)",
        "+5.0 / -5.0",
        "28/120 (23)",
        "reported by model:m",
        "ab" * 32,
        "firsthand lab run one.jsonl",
    ):
        assert told in text


@pytest.mark.slow
def test_a_narrow_screen_scrolls_tables_and_not_the_page(tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    # The only script of the page is this test's own, so the rule against scripts is taken out here.
    probe = "<script>document.title=document.documentElement.scrollWidth+' of '+innerWidth</script></body>"
    made = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page(record())).replace("</body>", probe)
    path.write_text(made, "utf-8")
    from report_browser import _run

    shown = _run(tmp_path / "profile", "--window-size=600,2000", "--dump-dom", path.as_uri()).decode()
    found = re.search(r"<title>(\d+) of (\d+)</title>", shown)
    assert found is not None
    assert int(found[1]) <= int(found[2])


@pytest.mark.slow
def test_it_prints(tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    path.write_text(page(record()), "utf-8")
    pdf = printed(path, tmp_path / "r.pdf")
    assert pdf.startswith(b"%PDF")
    pages = re.findall(rb"/Type\s*/Page\b(?!s)", pdf)
    assert 4 <= len(pages) <= 30


@pytest.mark.slow
def test_the_command_measures_stores_and_makes_the_page_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    session = tmp_path / "export.jsonl"
    messages = wire_by_name("openai-chat").write(chain("export", 1).entries).messages
    # Whole, it would take minutes.
    short = [message | {"content": (message.get("content") or "")[:8_000]} for message in messages]
    session.write_bytes(b"\n".join(map(encode, short)))
    out = tmp_path / "r.html"
    command: Callable[..., Done] = run
    # The published chains take a minute and have a test of their own.
    parts = ["compose", "run", "recall", "curves", "audit", "money", "example"]
    options = (
        "--strategies",
        "futureos-deterministic,pi",
        "--sizes",
        "4000",
        "--seeds",
        "1",
        "--workers",
        "1",
        "--parts",
        ",".join(parts),
    )
    done = command("lab", "report", session, "--out", out, *options, "--figures", tmp_path / "figures", "--json")
    told = json.loads(done.stdout)
    assert told["bytes"] == len(out.read_bytes()) < MOST_BYTES
    keys = {Path(name).stem for name in told["figures"]}
    assert {f"fig{number}" for number in range(1, 10)} == {key[:4] for key in keys if key.startswith("fig")}
    assert {Path(name).suffix for name in told["figures"]} == {".svg", ".png"}
    kept = read_record(tmp_path / "r.rows.json.gz")
    assert [part.name for part in kept.parts] == parts
    (given,) = kept.inputs
    assert (given.name, given.size) == ("export.jsonl", session.stat().st_size)
    first = out.read_bytes()
    out.unlink()
    command("lab", "report", "--report-only", "--out", out)
    assert out.read_bytes() == first
    assert str(session) in first.decode()


def test_what_cannot_be_reported_is_said(tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    for arguments, told in (
        (("--report-only",), "there are no stored rows"),
        ((), "name session files, or --synthetic, or files of --rows"),
        ((tmp_path / "none.jsonl",), "does not exist"),
        (("--synthetic", "--parts", "x"), "there is no part x"),
        (("--report-only", "--synthetic"), "takes the stored rows"),
    ):
        done = run("lab", "report", *arguments, "--out", out, check=False)
        assert (done.returncode, told in done.stderr, out.exists()) == (1, True, False), (arguments, done)


def test_rows_alone_make_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "run.csv").write_text(as_csv(record().rows["run"]))
    out = tmp_path / "r.html"
    run("lab", "report", "--rows", tmp_path / "run.csv", "--parts", "run", "--out", out)
    made = read_record(tmp_path / "r.rows.json.gz")
    assert made.rows == {"run": record().rows["run"]}
    assert [(part.name, part.command) for part in made.parts] == [("run", "firsthand lab run ... --csv run.csv")]
    assert "rows taken from run.csv (sha256 " in out.read_text()
