from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from real_sessions import shared

from firsthand.errors import ConfigError
from firsthand.formats import read_sessions
from firsthand.lab.compose import Amount, ToolAmount, compose, total
from firsthand.lab.figures.composition import draw
from firsthand.testing.builders import call, image, injected, result, said, session, system, thought, user
from firsthand.testing.random_entries import entry_lists
from firsthand.tokens import EstimateCounter
from firsthand.transcript import Entry, Marker, Text, Transcript

COUNTER = EstimateCounter()


def transcript(*parts: Entry, **fields: object) -> Transcript:
    entries = session(*parts)
    return Transcript(id="s", format="test", entries=entries, leaf=entries[-1].id if entries else None, **fields)  # type: ignore[arg-type]


def test_every_kind_is_counted_as_the_model_sees_it() -> None:
    made = compose(
        transcript(
            system("You help."),
            user("Look at a.py, please.", image()),
            injected("<reminder>"),
            said(thought("hmm"), thought(signature="opaque"), "I look."),
            call("read", path="a.py"),
            result("c1", "x = 1\n" * 10),
            call("bash", "ls"),
            result("c2", "", error=True),
            said("   "),
            markers=(
                Marker(
                    id="m", after="e5", shown=("e2", Entry(id="k", role="user", blocks=(Text("Summary!", "summary"),)))
                ),
            ),
        ),
        COUNTER,
        source="file",
    )
    assert made.kinds == {
        "user": Amount(1, 21, 6),
        "assistant": Amount(1, 7, 2),
        "reasoning": Amount(1, 3, 1),
        "tool call": Amount(2, 15 + 2, 1 + 4 + 1 + 1),
        "tool output": Amount(2, 60, 15),
        "injected": Amount(2, 9 + 10, 3 + 3),
        "media": Amount(1, 0, 2048),
        "recorded": Amount(1, 8, 2),
    }
    assert made.counted == Amount(10, 127, 2085)
    assert made.tools == (
        ToolAmount("read", 1, 1, 0, 15, 60, 5, 15),
        ToolAmount("bash", 1, 1, 1, 2, 0, 2, 0),
    )


def test_the_studys_way_leaves_arguments_out_but_counts_calls_as_records() -> None:
    made = compose(transcript(user("ab"), call("t", "abcdefgh"), result("c1", "123456"), said("xy")), COUNTER).published
    assert made.records == {"tool output": 1, "assistant": 1, "user": 1, "tool call": 1}
    assert made.characters == {"tool output": 6, "assistant": 2, "user": 2}
    assert made.tool_share == 60.0
    assert compose(transcript(call("t", "abc")), COUNTER).published.tool_share is None


def test_results_without_their_call_are_counted_under_the_name_they_carry() -> None:
    made = compose(transcript(result("lost", "abcd", name="grep"), result("other", "abcd")), COUNTER)
    assert [tool.tool for tool in made.tools] == ["(no name recorded)", "grep"]


def test_an_abandoned_branch_is_part_of_the_session() -> None:
    path = session(user("one"), said("two"))
    left = Entry(id="off", role="assistant", blocks=(Text("abandoned"),), parent=path[0].id, sequence=2)
    made = compose(Transcript(id="s", format="test", entries=(*path, left), leaf=path[-1].id), COUNTER)
    assert (made.entries, made.off_path, made.kinds["assistant"].characters) == (3, 1, 12)


@settings(max_examples=40)
@given(st.lists(entry_lists(), min_size=1, max_size=3))
def test_a_sum_is_the_sum_of_its_parts(lists: list[list[Entry]]) -> None:
    parts = [compose(transcript(*(e for e in entries)), COUNTER) for entries in map(_unique, lists)]
    whole = total(parts)
    assert whole.counted == sum((part.counted for part in parts), Amount())
    assert sum(tool.tokens for tool in whole.tools) == sum(tool.tokens for part in parts for tool in part.tools)
    kinds = whole.kinds
    assert sum(tool.output_characters for tool in whole.tools) == kinds.get("tool output", Amount()).characters
    assert sum(tool.calls for tool in whole.tools) == kinds.get("tool call", Amount()).records


def _unique(entries: list[Entry]) -> list[Entry]:
    import msgspec

    return [msgspec.structs.replace(entry, id=f"u{number}") for number, entry in enumerate(entries)]


def test_compositions_by_two_counters_are_not_added() -> None:
    from firsthand.tokens import counter_for_model

    one = compose(transcript(user("a")), COUNTER)
    with pytest.raises(ValueError, match="2 counters"):
        total([one, compose(transcript(user("a")), counter_for_model(None))])


# Text share and tokens at four characters each, as the sessions' own table states them. Where ours differs: Claude Code's slash-command echoes
# and queued reminders are injected to us and user text to that table; both count the same tool output and arguments.
PUBLISHED = {
    "claude-code/entire-cli-compact3.jsonl.gz": (90.6, 90.6),
    "claude-code/flutter-image-compact4.jsonl.gz": (80.1, 80.1),
    "claude-code/technocore-images.jsonl.gz": (78.3, 77.3),
    "claude-code/entirecontext-korean.jsonl.gz": (93.5, 94.7),
    "codex/mise-compact3.jsonl.gz": (96.5, 96.5),
    "codex/hk-compact2.jsonl.gz": (98.3, 98.3),
    "pi/pi-before-compaction.jsonl.gz": (91.6, 91.2),
    "pi/preloop-omp-thinking.jsonl.gz": (96.9, 96.9),
    "opencode/dump4-gpt-5-2.jsonl.gz": (90.1, 90.1),
    "gemini-cli/c-blosc2-gemini-3-pro.json": (97.3, 97.3),
    "tau-bench/gpt-4o-airline-tasks-a.json.gz": (58.7, 58.7),
    "swe-agent/pydicom-1458.traj": (73.2, 73.2),
    "openhands/multi-swe-bench-3runs.jsonl": (80.8, 81.2),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_real_sessions_have_the_shares_that_their_table_states(name: str) -> None:
    stated, ours = PUBLISHED[name]
    share = total([compose(found, COUNTER) for found in read_sessions(shared(name))]).published.tool_share
    assert share is not None
    assert round(share, 1) == ours
    assert abs(share - stated) < 1.3


def test_a_figure_is_drawn_and_an_unknown_ending_refused(tmp_path: Path) -> None:
    parts = [compose(transcript(user("hello"), said("there")), COUNTER, source=name) for name in ("$a$", "日本\x1b")]
    draw(parts, tmp_path / "f.png")
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ConfigError, match=r"f\.doc"):
        draw(parts, tmp_path / "f.doc")


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
        monkeypatch.setattr("sys.argv", ["firsthand", "lab", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            command()
        said = capsys.readouterr()
        return Done(int(ended.value.code or 0), said.out, said.err)

    return running


def test_on_the_command_line(run: Callable[..., Done], tmp_path: Path) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps([{"role": "user", "content": "hello"}, {"role": "assistant", "content": "there"}]))
    bad.write_text("nothing of the kind")
    done = run("compose", tmp_path, "--json", "--counter", "estimate", "--figure", tmp_path / "f.svg")
    assert done.code == 0
    assert "skipped" in done.err
    report = json.loads(done.out)
    assert [row["source"] for row in report["sessions"]] == ["good.json"]
    assert report["total"]["counted"] == {"records": 2, "characters": 10, "tokens": 4}
    assert (tmp_path / "f.svg").exists()
    assert "100" not in run("compose", good, "--counter", "estimate").err
    assert "hello" not in run("compose", good, "--published", "--counter", "estimate").out
    for wrong, said_ in ((bad, "none of the 1 files"), (tmp_path / "absent", "does not exist")):
        done = run("compose", wrong, "--counter", "estimate")
        assert done.code == 1
        assert said_ in done.err
