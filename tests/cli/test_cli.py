from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from running import command, lines, run, shell

from firsthand.formats import read_sessions


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sample") / "session.json"
    run("sample", "pipeline", "--stages", "1", "--out", path)
    return path


def test_help_has_an_example_for_every_command() -> None:
    top = run("--help").stdout
    commands = ["compact", "import", "sessions", "show", "export", "fork", "verify", "strategies", "sample"]
    for name in commands:
        assert name in top
        assert "Example: firsthand" in run(name, "--help").stdout


@pytest.mark.parametrize(
    "words",
    [
        ("compact", "--window", 100_000),
        ("lab", "run", "--strategies", "coverage", "--no-cache", "--exams", "published"),
    ],
)
def test_a_file_that_breaks_off_is_used_as_far_as_it_goes_and_said(words: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl"
    said = "\n".join(
        json.dumps({"role": role, "content": f"{role} {n}"}) for n in range(3) for role in ("user", "assistant")
    )
    path.write_text(said + '\n{"role": "user", "content": "brok')
    done = run(*words, path)
    assert f"warning: {path}: 1 damaged place (line 7); the rest was read" in done.stderr


def test_compact_of_a_file_needs_no_journal(sample: Path, tmp_path: Path) -> None:
    out = tmp_path / "next.json"
    report = json.loads(run("compact", sample, "--window", 100_000, "--to", "anthropic", "--out", out, "--json").stdout)
    assert list(report)[:7] == ["outcome", "reason", "strategy", "window", "output_ceiling", "input_limit", "counter"]
    assert report["outcome"] == "applied"
    assert report["tokens_after"] < report["input_limit"] < report["tokens_before"]
    assert {name: report[name] for name in ("entries", "covered", "kept", "tail")} == {
        "entries": 27,
        "covered": 26,
        "kept": 3,
        "tail": 1,
    }
    assert {"kept", "excerpted"} <= set(report["fates"]) <= {"kept", "excerpted", "omitted"}
    body = json.loads(out.read_text())
    assert body["messages"][0]["role"] == "user"
    assert not (Path(os.environ["HOME"]) / ".local/share/firsthand").exists()


def test_the_sample_is_the_same_every_time(sample: Path) -> None:
    assert run("sample", "pipeline", "--stages", "1").stdout == sample.read_text()


def test_explain_names_the_fate_of_each_block(sample: Path) -> None:
    report = json.loads(run("compact", sample, "--window", 100_000, "--explain", "--json").stdout)
    blocks = report["blocks"]
    assert sum(counts["blocks"] for kinds in report["fates"].values() for counts in kinds.values()) == len(blocks)
    assert {block["fate"] for block in blocks} >= {"kept", "excerpted"}
    assert blocks[0] == {
        "entry": blocks[0]["entry"],
        "block": 0,
        "kind": "user",
        "fate": "kept",
        "tokens": blocks[0]["tokens"],
        "shown": blocks[0]["tokens"],
        "why": "original",
    }


def test_messages_go_to_stdout_and_the_report_to_stderr(sample: Path) -> None:
    done = run("compact", sample, "--window", 100_000, "--to", "openai-responses")
    assert json.loads(done.stdout)["input"][0]["role"] == "user"
    assert "tokens before" in done.stderr


def test_a_refusal_has_its_own_exit_code_and_sizes(sample: Path) -> None:
    done = run("compact", sample, "--window", 8_000, "--target", 20, "--json", check=False)
    assert done.returncode == 3
    refusal = json.loads(done.stdout)
    assert (refusal["outcome"], refusal["reason"]) == ("refused", "budget-exceeded")
    assert refusal["sizes"]["limit"] > 0
    assert done.stderr.startswith("refused (budget-exceeded): the 20 tokens")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["compact", "/no/such/file.jsonl"], 1, "error: cannot read /no/such/file.jsonl"),
        (
            ["compact", "no-such.jsonl"],
            1,
            "error: there is no file 'no-such.jsonl', and the journal has no session 'no-such.jsonl'",
        ),
        (["compact", "nosuchsession", "--format", "pi"], 1, "error: --session and --format are for files"),
        (
            ["compact", "nosuchsession", "--commit", "--to", "text", "--explain"],
            1,
            "error: --commit and --summary take no --to, --explain",
        ),
        (["compact", "SAMPLE", "--out", "/tmp"], 1, "error: /tmp is a folder; name a file in it"),
        (["history", "get", "e0", "--session", "nosuch"], 1, "error: the journal has no session 'nosuch'"),
        (["fork", "s", "--at", "e", "--id", "a\nb"], 1, "error: 'a\\nb' cannot be typed again"),
        (["delete"], 1, "error: name a session, or give --older-than DATE"),
        (["search", ""], 1, "error: a query of 0 characters"),
        (["compact", "SAMPLE", "--strategy", "best"], 1, "error: there is no strategy named 'best'"),
        (["compact", "SAMPLE", "--option", "speed=9"], 1, "error: strategy 'coverage' cannot take"),
        (["compact", "SAMPLE", "--counter", "words"], 1, "error: there is no counter named 'words'"),
        (["compact", "SAMPLE", "--output-ceiling", "200000"], 1, "error: an output ceiling of 200,000"),
        (["compact", "SAMPLE", "--to", "soap"], 1, "error: there is no wire"),
        (["compact", "SAMPLE", "--json", "--to", "text"], 1, "error: --json and --to both want stdout"),
        (["compact", "SAMPLE", "--window", "0"], 2, "Usage"),
        (["show", "nosuchsession"], 1, "error: the journal has no session"),
        (["import", "/no/such/file"], 1, "error: /no/such/file"),
        (["sample", "novel"], 1, "error: there is no sample named 'novel'"),
        (["nonsense"], 2, "Usage"),
    ],
)
def test_wrong_input_gets_one_clear_line(sample: Path, arguments: list[str], code: int, message: str) -> None:
    done = run(*(str(sample) if argument == "SAMPLE" else argument for argument in arguments), check=False)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    if code == 1:
        assert len(lines(done.stderr)) == 1


def test_the_journal_from_import_to_verify(sample: Path, tmp_path: Path) -> None:
    journal = ("--journal", tmp_path / "j.db")
    (row,) = [json.loads(line) for line in run("import", sample, "--json", *journal).stdout.splitlines()]
    assert {key: row[key] for key in ("format", "entries", "user_texts", "assistant_texts", "tool_calls", "tool_results", "damaged", "new")} == {
        "format": "openai-chat", "entries": 27, "user_texts": 2, "assistant_texts": 2, "tool_calls": 12, "tool_results": 12, "damaged": 0, "new": 27,
    }  # fmt: skip
    (again,) = [json.loads(line) for line in run("import", sample, "--json", *journal).stdout.splitlines()]
    assert (again["new"], again["known"]) == (0, 27)
    session = row["session"]
    assert session in run("sessions", *journal).stdout
    listed = [json.loads(line) for line in run("show", session[:14], "--json", *journal).stdout.splitlines()]
    entry = listed[3]["entry"]["id"]
    assert json.loads(run("show", session, "--entry", entry, "--json", *journal).stdout) == listed[3]["entry"]
    child = run("fork", session, "--at", entry, "--id", "child", *journal).stdout.strip()
    assert child == "child"
    exported = tmp_path / "out.jsonl"
    run("export", "child", "--out", exported, *journal)
    (copy,) = read_sessions(exported)
    assert [member.id for member in copy.path()] == [line["entry"]["id"] for line in listed[:4]]
    assert "0 problems" in run("verify", *journal).stdout
    report = json.loads(run("compact", session, "--window", 100_000, "--json", *journal).stdout)
    assert report["outcome"] == "applied"
    assert (tmp_path / "j.db").stat().st_mode & 0o777 == 0o600


def test_verify_finds_a_changed_byte(sample: Path, tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "j.db"
    run("import", sample, "--journal", path)
    with sqlite3.connect(path) as raw:
        raw.execute("DROP TRIGGER entries_never_change")
        raw.execute("UPDATE entries SET payload = replace(payload, '{', '{ ') WHERE n = 2")
    raw.close()
    done = run("verify", "--journal", path, check=False)
    assert done.returncode == 4
    assert "damaged" in done.stderr


def test_nothing_left_to_show_is_said(sample: Path, tmp_path: Path) -> None:
    journal = ("--journal", tmp_path / "j.db")
    (session,) = [json.loads(line)["session"] for line in run("import", sample, "--json", *journal).stdout.splitlines()]
    assert "none from 99 on" in run("show", session, "--from", 99, *journal).stdout
    assert json.loads(run("delete", session, "--json", *journal).stdout) == {"would_delete": [session]}
    run(
        "fork",
        session,
        "--at",
        json.loads(run("show", session, "--json", *journal).stdout.splitlines()[0])["entry"]["id"],
        *journal,
    )
    listed = run("sessions", "--limit", 1, *journal).stdout
    assert "1 more; see them with --limit 2, or --json" in listed
    assert len(run("sessions", "--json", *journal).stdout.splitlines()) == 2


def test_several_sessions_have_a_line_of_sums(sample: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    run("sample", "analysis", "--stages", 1, "--out", other)
    done = run("import", sample, other, "--journal", tmp_path / "j.db")
    assert lines(done.stdout)[-1].startswith("2 sessions: 54 entries, 54 new, 4 user texts")


def test_help_is_quick_because_it_loads_neither_store_nor_readers() -> None:
    code = "import sys, firsthand.cli.app; print([name for name in sys.modules if name.startswith(('sqlalchemy', 'alembic', 'firsthand.formats', 'firsthand.journal', 'rich'))])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_process_of_its_own_ends_as_documented(sample: Path, tmp_path: Path) -> None:
    environment = {"FIRSTHAND_JOURNAL": str(tmp_path / "j.db")}
    assert shell("import", sample, environment=environment).returncode == 0
    refused = shell("compact", sample, "--window", 8_000, "--target", 20)
    assert (refused.returncode, refused.stderr.startswith("refused (budget-exceeded)")) == (3, True)
    assert shell("show", "nosuch", environment=environment).stderr.startswith("error: the journal has no session")
    assert shell("nonsense").returncode == 2


def test_a_locale_without_a_character_gets_its_code(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_text('{"role":"user","content":"Grüße, 日本"}\n{"role":"assistant","content":"Hallo"}\n')
    environment = {"FIRSTHAND_JOURNAL": str(tmp_path / "j.db"), "PYTHONIOENCODING": "ascii"}
    imported = shell("import", path, "--json", environment=environment)
    shown = shell("show", json.loads(imported.stdout)["session"], environment=environment)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "Gr\\xfc\\xdfe, \\u65e5\\u672c" in shown.stdout


def test_a_reader_that_has_enough_is_no_failure(tmp_path: Path) -> None:
    writing = subprocess.Popen(command("sample", "export"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert writing.stdout is not None
    assert writing.stderr is not None
    assert writing.stdout.read(2) == b"[\n"
    writing.stdout.close()
    assert writing.wait(timeout=60) == 0
    assert writing.stderr.read() == b""
    writing.stderr.close()


def test_an_interruption_is_said_and_leaves_nothing_half_done(sample: Path, tmp_path: Path) -> None:
    journal = tmp_path / "j.db"
    (session,) = [
        json.loads(line)["session"]
        for line in run("import", sample, "--json", "--journal", journal).stdout.splitlines()
    ]
    watching = subprocess.Popen(
        command("session", "watch", session, "--journal", journal),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert watching.stdout is not None
    assert "27 entries" in watching.stdout.readline()
    watching.send_signal(signal.SIGINT)
    _, said = watching.communicate(timeout=60)
    assert (watching.returncode, said) == (130, "interrupted; what was committed before is safe\n")
    assert "0 problems" in run("verify", "--journal", journal).stdout


def test_one_unreadable_file_does_not_keep_the_others_out(sample: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text("not a session")
    done = run("import", broken, sample, "--json", "--journal", tmp_path / "j.db", check=False)
    assert done.returncode == 1
    first, second = [json.loads(line) for line in done.stdout.splitlines()]
    assert first["file"] == str(broken)
    assert second["entries"] == 27


def test_strategies_as_json() -> None:
    listed = json.loads(run("strategies", "--json").stdout)
    assert {"futureos-deterministic", "recorded", "codex-local", "pi", "opencode-v1", "opencode-v2"} <= {
        row["name"] for row in listed
    }
    assert [row["name"] for row in listed if row["default"]] == ["coverage"]


def test_the_archive_is_searched_fetched_and_deleted(sample: Path, tmp_path: Path) -> None:
    journal = ("--journal", tmp_path / "j.db")
    run("import", sample, *journal)
    (session,) = [json.loads(line)["id"] for line in run("sessions", "--json", *journal).stdout.splitlines()]
    found = json.loads(run("search", "first_output_code", "--limit", 1, "--json", *journal).stdout)
    (match,) = found["matches"]
    text = run("history", "get", match["entry"], *journal).stdout
    assert "FIRST_OUTPUT_CODE=ACK_0c4912105a16b8d9" in text
    page = run("history", "get", match["entry"], "--offset", match["offset"], "--limit", 17, *journal)
    assert page.stdout == "FIRST_OUTPUT_CODE"
    assert "bytes more: --offset" in page.stderr
    assert "PROJECT=PIPELINE" in run("history", "get", match["entry"], "--context", 1, *journal).stdout
    assert run("search", "nowhere-to-be-found", *journal, check=False).returncode == 1
    assert "--yes" in run("delete", session, *journal).stdout
    copy = tmp_path / "copy.db"
    run("backup", copy, *journal)
    assert "27 entries" in run("delete", session[:14], "--yes", *journal).stdout
    assert run("search", "first_output_code", *journal, check=False).returncode == 1
    assert json.loads(run("search", "first_output_code", "--json", "--journal", copy).stdout)["matches"]


def test_scan_finds_what_agents_keep_and_imports_it_once(sample: Path, tmp_path: Path) -> None:
    place = Path(os.environ["HOME"]) / ".pi" / "agent" / "sessions" / "--work--"
    place.mkdir(parents=True)
    (place / "one.jsonl").write_text(
        '{"type":"session","version":3,"id":"11111111-2222","timestamp":"2026-01-01T00:00:00Z","cwd":"/w"}\n'
        '{"type":"message","id":"aa","parentId":null,"timestamp":"2026-01-01T00:00:01Z","message":{"role":"user","content":"Fix it."}}\n'
    )
    journal = ("--journal", tmp_path / "j.db")
    (listed,) = [json.loads(line) for line in run("scan", "--json", *journal).stdout.splitlines()]
    assert (listed["format"], listed["known"]) == ("pi", False)
    assert [json.loads(line)["new"] for line in run("import", "--scan", "--json", *journal).stdout.splitlines()] == [1]
    assert [json.loads(line)["new"] for line in run("import", "--scan", "--json", *journal).stdout.splitlines()] == [0]
    assert json.loads(run("scan", "--json", *journal).stdout)["known"]


def test_a_session_is_compacted_for_good_and_taken_back(sample: Path, tmp_path: Path) -> None:
    journal = ("--journal", tmp_path / "j.db")
    run("import", sample, *journal)
    (session,) = [json.loads(line)["id"] for line in run("sessions", "--json", *journal).stdout.splitlines()]
    done = json.loads(
        run(
            "compact", session, "--commit", "--window", 100_000, "--instructions", "keep the codes", "--json", *journal
        ).stdout
    )
    assert done["outcome"] == "applied"
    status = json.loads(run("session", "status", session, "--json", *journal).stdout)
    assert status["checkpoint"]["id"] == done["checkpoint"]
    assert [operation["state"] for operation in status["operations"]] == ["completed"]
    assert done["operation"] in run("session", "watch", session, "--seconds", "0.1", *journal).stdout
    refused = run("session", "resolve", done["operation"], "--failed", *journal, check=False)
    assert (refused.returncode, refused.stderr.startswith("error: operation")) == (1, True)
    assert json.loads(run("session", "undo", session, "--json", *journal).stdout) == {"undone": done["checkpoint"]}
    assert "nothing to undo" in run("session", "undo", session, *journal).stdout
    missing = run("compact", session, "--summary", *journal, check=False)
    assert "--model-url" in missing.stderr
