from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from real_sessions import shared

from firsthand.formats import read_sessions
from firsthand.lab.audit import audit, markers_of
from firsthand.lab.audit_report import by_interest, cautions, html_page, kept_in_words, lesson, used_in_words
from firsthand.lab.audit_rows import Audit
from firsthand.lab.rereads import lines_of, re_reads
from firsthand.lab.settings import is_setting
from firsthand.lab.visible import visible
from firsthand.testing.builders import call, filler, result, said, session, summary, user
from firsthand.testing.random_entries import entry_lists
from firsthand.tokens import EstimateCounter
from firsthand.transcript import Entry, Marker, Text, Transcript, Unknown, chained

COUNTER = EstimateCounter()


def compacted(
    before: Sequence[Entry], after: Sequence[Entry], *shown: str | Entry, name: str = "s", window: int | None = None
) -> Transcript:
    """A session with one recorded compaction between two stretches. The older one ends behind the exam tail."""
    entries = session([*before, user(filler(9_000))], after)
    marker = Marker(id="m", after=f"e{len(before) + 1}", shown=shown)
    return Transcript(
        id=name,
        format="test",
        entries=entries,
        leaf=entries[-1].id,
        markers=(marker,),
        cwd="/home/me/app",
        window=window,
    )


def only(transcript: Transcript) -> Audit:
    (row,) = audit(transcript, COUNTER, source="file")
    return row


HISTORY = (
    user("Keep the public API. Only port 8123 is free for the stub."),
    said("I put the stub in `tests/stub_server.py`; it answers in 12 ms."),
    call("bash", command="tail log"),
    result("c1", f"{filler(400)}\nERROR worker-7f3a91 lost lease after 30 s\n{filler(400)}"),
)
NEXT = (
    call("read", path="tests/stub_server.py", id="r1"),
    result("r1", "import worker\n# worker-7f3a91 again"),
    said("worker-7f3a91 holds the lease, and port 8123 is mine."),
)


def test_the_worked_example_of_the_definitions() -> None:
    """measures.md: `worker-7f3a91` is brought back before its use, `tests/stub_server.py` was never read before."""
    row = only(
        compacted(HISTORY, NEXT, "e1", Entry(id="k", role="user", blocks=(Text("The stub is done.", "summary"),)))
    )
    assert [(use.value, use.kind, use.kept) for use in row.asked] == [
        ("tests/stub_server.py", "assistant", False),
        ("8123", "user", True),
    ]
    assert [use.value for use in row.lost] == ["tests/stub_server.py"]
    assert (row.brought_back, row.re_reads) == (1, ())
    assert (row.entries, row.values >= 4, row.readable, row.judged) == (5, True, True, True)
    assert row.kinds["user"].kept_blocks == 1
    assert row.kinds["assistant"].kept_blocks == 0
    assert row.kept.originals == 1
    assert row.kept.summary_tokens == 6 + 5
    assert row.kept.tokens == row.kept.summary_tokens + row.kept.original_tokens
    # The default strategy is asked for the size of what the client kept, which the texts of this history do not fit into.
    assert (row.ours.strategy, row.ours.at_size) == ("coverage", True)
    assert (row.ours.refused or "").startswith("budget-exceeded")


def test_a_lost_value_is_told_where_it_stood_and_where_it_was_used() -> None:
    row = only(compacted(HISTORY, NEXT))
    (lost, *_) = row.lost
    assert (lost.home, lost.used, lost.entries_later) == ("e2", "e6", 1)
    assert lost.line.startswith("I put the stub")
    assert "tests/stub_server.py" in lost.use
    assert not lost.part
    named = only(compacted(HISTORY, NEXT, summary("See the new app/tests/stub_server.py", id="k")))
    assert (named.lost[0].value, named.lost[0].part) == ("tests/stub_server.py", True)


def test_what_only_the_provider_can_read_is_neither_kept_nor_an_error() -> None:
    opaque = Entry(
        id="k", role="user", blocks=(Unknown({"type": "compaction", "encrypted_content": "tests/stub_server.py"}),)
    )
    transcript = compacted(HISTORY, NEXT, "e1", opaque)
    row = only(
        msgspec.structs.replace(transcript, markers=(msgspec.structs.replace(transcript.markers[0], readable=False),))
    )
    assert (row.kept.unreadable, row.readable) == (1, False)
    assert [use.value for use in row.lost] == ["tests/stub_server.py"]
    assert "provider only" in kept_in_words(row)
    assert any("no measure" in line for line in cautions([row]))


BODY = "\n".join(f"line {number} of the file" for number in range(20))
READ = (call("read", path="src/a.py", id="a"), result("a", BODY))


@pytest.mark.parametrize(
    ("after", "found"),
    [
        ((call("read", path="src/a.py", id="b"), result("b", BODY)), [("/home/me/app/src/a.py", "b")]),
        ((call("Read", file_path="/home/me/app/src/a.py", id="b"), result("b", BODY)), [("/home/me/app/src/a.py", "b")]),
        ((call("bash", command="sed -n '1,20p' ./src/a.py | head", id="b"), result("b", BODY)), [("/home/me/app/src/a.py", "b")]),
        ((call("exec", 'x = await tools.exec_command({cmd:"cat src/a.py"})', id="b"), result("b", BODY)), [("/home/me/app/src/a.py", "b")]),
        # Never read before; failed; only written; read after it was written.
        ((call("read", path="src/b.py", id="b"), result("b", BODY)), []),
        ((call("read", path="src/a.py", id="b"), result("b", "no such file", error=True)), []),
        ((call("write", path="src/a.py", content="x", id="b"), result("b", "ok")), []),
        (
            (
                call("edit", path="src/a.py", oldText="x", newText="y", id="b"), result("b", "ok"),
                call("read", path="src/a.py", id="c"), result("c", BODY),
            ),
            [],
        ),
        (
            (
                call("apply_patch", "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n*** End Patch", kind="custom", id="b"), result("b", "ok"),
                call("read", path="src/a.py", id="c"), result("c", BODY),
            ),
            [],
        ),
        # A write that failed changes nothing.
        (
            (
                call("edit", path="src/a.py", oldText="x", newText="y", id="b"), result("b", "not found", error=True),
                call("read", path="src/a.py", id="c"), result("c", BODY),
            ),
            [("/home/me/app/src/a.py", "c")],
        ),
        # Another file was written: what is in this one stays as it was.
        (
            (
                call("edit", path="src/z.py", oldText="x", newText="y", id="b"), result("b", "ok"),
                call("read", path="src/a.py", id="c"), result("c", BODY),
            ),
            [("/home/me/app/src/a.py", "c")],
        ),
    ],
)  # fmt: skip
def test_what_counts_as_read_again(after: tuple[Entry, ...], found: list[tuple[str, str]]) -> None:
    entries = session(READ, after)
    rows = re_reads(entries, 2, len(entries), frozenset(), COUNTER, "/home/me/app")
    calls = {entry.id: block.id for entry in entries for block in entry.blocks if hasattr(block, "arguments")}
    assert [(row.target, calls[row.entry]) for row in rows] == found


def test_what_was_kept_is_not_read_again_and_commands_change_with_every_write() -> None:
    entries = session(
        READ,
        call("bash", command="git  status", id="g"), result("g", "clean"),
        call("bash", command="git status", id="h"), result("h", "clean"),
        call("read", path="src/a.py", id="b"), result("b", BODY),
        call("write", path="src/z.py", content="", id="w"), result("w", "ok"),
        call("bash", command="git status", id="i"), result("i", "dirty"),
    )  # fmt: skip
    found = re_reads(entries, 4, len(entries), frozenset(), COUNTER)
    assert [row.target for row in found] == ["git status", "src/a.py"]
    kept = lines_of("\n".join(f"  {n}→line {n} of the file" for n in range(10)))
    assert [row.target for row in re_reads(entries, 4, len(entries), kept, COUNTER)] == ["git status"]
    # Up to the next compaction only.
    assert [row.target for row in re_reads(entries, 4, 6, frozenset(), COUNTER)] == ["git status"]


def test_lines_seen_before_are_counted_once() -> None:
    half = "\n".join(BODY.splitlines()[:10])
    entries = session(
        call("read", path="a", limit=10, id="a"), result("a", half),
        call("read", path="a", id="b"), result("b", BODY),
        call("read", path="a", id="c"), result("c", BODY),
    )  # fmt: skip
    first, second = re_reads(entries, 2, len(entries), frozenset(), COUNTER)
    assert (first.tokens, first.seen_tokens) == (COUNTER.count(BODY), COUNTER.count(half))
    assert (second.tokens, second.seen_tokens) == (COUNTER.count(BODY), 0)


@pytest.mark.parametrize(
    ("entry", "value", "shape", "setting"),
    [
        (call("run", yield_time_ms=1000), "yield_time_ms", "identifier", True),
        (call("run", yield_time_ms=1000), "1000", "number", True),
        (call("run", cmd="sleep 1000"), "1000", "number", False),
        (call("todo", todos=[{"activeForm": "x"}]), "activeForm", "identifier", True),
        (call("write", content="activeForm: 1"), "activeForm", "identifier", False),
        (call("exec", 'run({cmd:"ls", yield_time_ms:1000})'), "yield_time_ms", "identifier", True),
        (call("exec", 'run({cmd:"ls", yield_time_ms:1000})'), "1000", "number", True),
        (call("exec", 'run({cmd:"sleep 1000"})'), "1000", "number", False),
        (said("It is 1000.", call("run", yield_time_ms=1000)), "1000", "number", False),
        (call("read", path="a/b.py"), "a/b.py", "path", False),
    ],
)
def test_names_and_numbers_of_arguments(entry: Entry, value: str, shape: str, setting: bool) -> None:
    assert is_setting(entry, value, shape) is setting


def test_settings_come_last_but_count() -> None:
    row = only(
        compacted(
            (call("run", cmd="job-77 start", wait_time_ms=4321), result("c1", "ok")),
            (call("run", cmd="job-77 stop", wait_time_ms=4321, id="z"), result("z", "ok")),
        )
    )
    assert [use.value for use in by_interest(row.lost)] == ["job-77", "wait_time_ms", "4321"]
    assert [use.value for use in row.missed] == ["job-77"]
    assert "2 of them names or numbers of arguments" in used_in_words(row)


def test_compactions_off_the_path_are_listed_and_the_context_before_is_what_the_client_had() -> None:
    entries = session(user("one"), said("two"), user("three"), said("four"))
    off = Entry(id="off", role="assistant", blocks=(Text("left"),), parent="e1", sequence=4)
    made = summary("short", id="k")
    markers = (
        Marker(id="m3", after="off"),
        Marker(id="m2", after="e4", shown=("gone", made)),
        Marker(id="m1", after="e2", shown=(made,)),
        Marker(id="m0", after=None),
    )
    rows = list(audit(Transcript(id="s", format="t", entries=(*entries, off), leaf="e4", markers=markers), COUNTER))
    assert [(row.marker, row.number, row.judged, row.context_tokens) for row in rows] == [
        ("m0", 1, False, 0),
        ("m1", 2, True, 14),
        ("m2", 3, True, 6 + 2 + 6 + 2 + 6 + 1),
        ("m3", 4, False, 0),
    ]
    assert kept_in_words(rows[0]) == "Not measured: it came before any entry that is on record."


@pytest.mark.parametrize("window", [-5, 0, 1, 3, 50, 10**12])
def test_any_window_that_a_file_names(window: int) -> None:
    row = only(compacted(HISTORY, NEXT, window=window))
    assert (row.ours.tokens is None) == (row.ours.refused is not None)
    assert lesson(row)


@settings(max_examples=25, deadline=None)
@given(entry_lists(), st.data())
def test_no_session_breaks_it_and_it_says_the_same_twice(drawn: list[Entry], data: st.DataObject) -> None:
    entries = chained(msgspec.structs.replace(entry, id=f"u{number}") for number, entry in enumerate(drawn))
    ids = [entry.id for entry in entries]
    markers = tuple(
        Marker(
            id=f"m{number}",
            after=data.draw(st.sampled_from([None, "nowhere", *ids])),
            shown=tuple(data.draw(st.lists(st.sampled_from([*ids, "nowhere", summary("a.b-c1", id="k")]), max_size=3))),
        )
        for number in range(2)
    )
    transcript = Transcript(id="s", format="t", entries=entries, leaf=ids[-1] if ids else None, markers=markers)
    rows = list(audit(transcript, COUNTER))
    assert rows == list(audit(transcript, COUNTER))
    assert [row.marker for row in rows] == [marker.id for marker in markers_of(transcript)]
    for row in rows:
        assert len(row.lost) <= len(row.asked)
        assert 0 <= row.values_kept <= row.values
        assert all(read.seen_tokens <= read.tokens for read in row.re_reads)
        assert all(sums.kept_blocks <= sums.blocks for sums in row.kinds.values())
    page = html_page(rows, command="c", version="0", sessions=1)
    assert page.encode("utf-8")


HOSTILE = "</script><script>alert(1)</script>\x1b[2J\u202egnp.exe\"'&"


def test_the_page_holds_hostile_text_as_text() -> None:
    history = (user(f"Port-8123x {HOSTILE}"), call("read", path=f"/a/{HOSTILE}"), result("c1", BODY))
    after = (said(f"Port-8123x {HOSTILE}"), call("read", path=f"/a/{HOSTILE}", id="b"), result("b", BODY))
    transcript = msgspec.structs.replace(
        compacted(history, after, name=HOSTILE), title=HOSTILE, model=HOSTILE, format=HOSTILE
    )
    (row,) = audit(transcript, COUNTER, source=HOSTILE)
    assert row.lost
    assert row.re_reads
    page = html_page([row], command=f"firsthand {HOSTILE}", version="0", sessions=1)
    assert "<script" not in page
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", page)
    assert not re.search(r"(?:src|href)=[\"'](?!#)", page)
    assert page.count("</section>") == 1
    assert "alert(1)" in page


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain", "plain"),
        (" a\n\tb ", "a b"),
        ("\x1b[31mred", "�[31mred"),
        ("a\u202eb\u200bc\ud83d", "a�b�c�"),
        ("日本語 ok", "日本語 ok"),
    ],
)
def test_visible(text: str, seen: str) -> None:
    assert visible(text) == seen


def test_visible_cuts_in_the_middle_and_shows_it() -> None:
    assert visible("/home/someone/project/file.py", 15) == "/home/som…le.py"
    assert len(visible("x" * 100, 15)) == 15


# Recorded compactions of each real session: how many, entries before them, and whether they can be read.
RECORDED = {
    "claude-code/entire-cli-compact3.jsonl.gz": ([116, 276, 472], True),
    "claude-code/entirecontext-korean.jsonl.gz": ([155, 349], True),
    "claude-code/flutter-image-compact4.jsonl.gz": ([225, 353, 549, 771], True),
    "codex/mise-compact3.jsonl.gz": ([564, 1177, 1572], False),
    "codex/hk-compact2.jsonl.gz": ([378, 959], False),
    "pi/pi-before-compaction.jsonl.gz": ([354, 622], True),
}


@pytest.mark.parametrize("name", RECORDED)
def test_each_recorded_compaction_is_found(name: str) -> None:
    places, readable = RECORDED[name]
    (transcript,) = read_sessions(shared(name))
    positions = transcript.view().positions
    found = [positions[marker.after] + 1 for marker in markers_of(transcript) if marker.after]
    assert found == places
    assert all(marker.readable is readable for marker in transcript.markers)


def test_one_real_compaction_as_it_was_checked_by_hand() -> None:
    """docs/audit.md: the second compaction of this session, counted in the raw file."""
    pytest.importorskip("bpe_openai")
    from firsthand.tokens import O200kCounter

    (transcript,) = read_sessions(shared("claude-code/entire-cli-compact3.jsonl.gz"))
    second = transcript.markers[1]
    (row,) = islice(audit(transcript, O200kCounter()), 1, 2)
    assert {kind: (sums.blocks, sums.kept_blocks) for kind, sums in row.kinds.items()} == {
        "user": (25, 0), "assistant": (53, 0), "reasoning": (127, 0), "tool call": (117, 0), "tool result": (117, 0), "injected": (7, 0),
    }  # fmt: skip
    assert (row.kept.tokens, row.kept.summary_tokens, row.recorded_tokens_before) == (2_356, 2_356, 155_241)
    (text,) = (
        block.text
        for entry in second.shown
        if isinstance(entry, Entry)
        for block in entry.blocks
        if isinstance(block, Text)
    )
    assert len(text) == 10_256
    assert all((use.value in text) == use.kept for use in row.asked)
    assert len(row.asked) > 25
    assert [read.target.rsplit("/", 1)[-1] for read in row.re_reads] == [
        "committed.go", "manual_commit_attribution.go", "manual_commit_condensation.go", *["manual_commit_test.go"] * 6, "checkpoint.go",
    ]  # fmt: skip
    assert (row.re_reads[0].tokens, row.re_reads[0].seen_tokens) == (716, 675)


@dataclass
class Done:
    code: int
    out: str
    err: str


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """The command line in this process, since starting another takes longer than what it does."""
    from firsthand.cli.app import run as command

    def running(*arguments: str | Path) -> Done:
        monkeypatch.setattr("sys.argv", ["firsthand", "lab", "audit", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            command()
        said = capsys.readouterr()
        return Done(int(ended.value.code or 0), said.out, said.err)

    return running


def pi_session(folder: Path) -> Path:
    """A small Pi session with one compaction, in the place where Pi keeps it."""
    folder.mkdir(parents=True)
    path = folder / "one.jsonl"
    message = lambda role, text: {"role": role, "content": [{"type": "text", "text": text}], "timestamp": 1}  # noqa: E731
    rows = [
        {"type": "session", "version": 3, "id": "p1", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/x"},
        {"type": "message", "id": "a1", "parentId": None, "message": message("user", "Use worker-7f3a91.")},
        {"type": "message", "id": "a2", "parentId": "a1", "message": message("assistant", filler(9_000))},
        {"type": "compaction", "id": "a3", "parentId": "a2", "summary": "They talked.", "firstKeptEntryId": "a2", "tokensBefore": 9_500},
        {"type": "message", "id": "a4", "parentId": "a3", "message": message("assistant", "I ask worker-7f3a91.")},
    ]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_without_files_the_newest_sessions_are_audited(run: Callable[..., Done], tmp_path: Path) -> None:
    assert run("--counter", "estimate").code == 1
    pi_session(Path(os.environ["HOME"]) / ".pi/agent/sessions/--x--")
    page = tmp_path / "page.html"
    done = run("--json", "--html", page, "--counter", "estimate")
    (row,) = json.loads(done.out)
    assert (row["source"], row["format"], row["recorded_tokens_before"]) == ("one.jsonl", "pi", 9_500)
    assert (row["asked"], row["lost"], row["re_read_calls"]) == (1, 1, 0)
    assert row["used"][0]["value"] == "worker-7f3a91"
    assert "worker-7f3a91" in page.read_text()
    terminal = run("--counter", "estimate", "--strategy", "futureos-deterministic").out
    assert "worker-7f3a91" in terminal
    assert "compaction 1 of 1" in terminal
    assert "Kept whole: user 0 of 1 (ours 1) · assistant 1 of 1 (ours 1)" in terminal


def test_a_session_without_compactions_and_one_that_is_none(run: Callable[..., Done], tmp_path: Path) -> None:
    plain = tmp_path / "plain.json"
    plain.write_text('[{"role": "user", "content": "hi"}]')
    done = run(plain, "--counter", "estimate", "--html", tmp_path / "page.html")
    assert done.code == 0
    assert "No compaction by a client" in done.out
    assert "No compaction by a client" in (tmp_path / "page.html").read_text()
    assert json.loads(run(plain, "--json", "--counter", "estimate").out) == []
    bad = tmp_path / "bad.json"
    bad.write_bytes(os.urandom(100))
    assert run(bad, "--counter", "estimate").code == 1
    assert run(plain, "--strategy", "nobody", "--counter", "estimate").code == 1
