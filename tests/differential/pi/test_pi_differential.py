"""Pi's own published functions and ours, side by side: estimates, cuts, slices, file lists, contexts, summaries, branches.

Needs Node 20 or later and Pi's package; `install.sh` beside this file puts it into the cache folder.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pi_cases import Ask, Case, Raw, generated, path_of, rows, transcript_of, view_of
from real_clients import CLIENTS

from firsthand.budget import Budget
from firsthand.formats import read_sessions
from firsthand.projection.plan import Plan
from firsthand.projection.render import project, shown
from firsthand.strategies.contract import CompactionRequest, NeedsSummary, Summary, Unchanged
from firsthand.strategies.pi.branch import prepare_branch
from firsthand.strategies.pi.cut import prepare
from firsthand.strategies.pi.path import Piece, context, path
from firsthand.strategies.pi.rules import RELEASES, Follows, Rules
from firsthand.strategies.pi.state import recorded_checkpoints
from firsthand.strategies.pi.strategy import Pi
from firsthand.strategies.pi.text import serialised
from firsthand.tokens import EstimateCounter
from firsthand.transcript import View

pytestmark = pytest.mark.differential

HERE = Path(__file__).parent
SHARED = HERE.parents[3] / "shared" / "sessions" / "pi"
TREES = 500
"""Generated trees for each release."""
MANUAL = CompactionRequest(trigger="manual")
# So large that nothing of it limits a plan.
AMPLE = Budget.of(50_000_000, 10_000, counter=EstimateCounter())


def package(follows: Follows) -> Path:
    scope = "@mariozechner" if follows == "Mar" else "@earendil-works"
    found = CLIENTS / f"pi-{RELEASES[follows]}" / "node_modules" / scope / "pi-coding-agent"
    if not shutil.which("node"):
        pytest.skip("needs Node 20 or later")
    if not found.is_dir():
        pytest.skip(f"needs Pi {RELEASES[follows]} in {CLIENTS}; run tests/differential/pi/install.sh")
    return found


def asked(follows: Follows, cases: Sequence[Case]) -> list[Any]:
    """Pi's answers."""
    questions = json.dumps({"sessions": [case.question() for case in cases]})
    run = subprocess.run(
        ["node", str(HERE / "driver.mjs"), str(package(follows))],
        input=questions,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2_000:]
    answers = json.loads(run.stdout)["answers"]
    assert isinstance(answers, list)
    return answers


def number(piece: Piece) -> int:
    assert piece.entry is not None
    return int(piece.entry.id[1:])


NOTE = re.compile(r"\n\n\[[^\[\]\n]*?([\d,]+)[^\[\]\n]*\](?=\n\n|\Z)")


def alike(text: str) -> str:
    """A serialised conversation with the note about a cut in one form."""
    return NOTE.sub(lambda found: f"\n\n<cut {found[1].replace(',', '')}>", text)


class Ours:
    """Our answers to the same questions, in the same form."""

    def __init__(self, follows: Follows, case: Case) -> None:
        self.follows: Follows = follows
        self.rules = Rules.of(follows, False, {})
        self.case = case
        self.rows = rows(case.entries)

    def pieces(self, leaf: int) -> list[Piece]:
        view = view_of(self.rows, leaf, zero_usage=self.follows == "Mar")
        return path(view, recorded_checkpoints(view.markers), self.rules)

    def answer(self, ask: Ask) -> dict[str, Any]:
        view = view_of(self.rows, ask.leaf, zero_usage=self.follows == "Mar")
        pieces = self.pieces(ask.leaf)
        told: dict[str, Any] = {"context": [self.named(piece) for piece in context(pieces, self.rules)]}
        prepared = prepare(pieces, ask.keep, self.rules)
        strategy = Pi(follows=self.follows, fixes=False, recorded=True, keep_recent_tokens=ask.keep)
        decision = strategy.plan(view, AMPLE, MANUAL)
        if isinstance(prepared, str):
            assert isinstance(decision, Unchanged), decision
            return told | {"refused": True}
        assert isinstance(decision, NeedsSummary), decision
        answers = dict(zip([r.id for r in decision.requests], ask.answers or ["one", "two"], strict=False))
        plan = strategy.plan(view, AMPLE, MANUAL, summaries={name: Summary(text) for name, text in answers.items()})
        assert isinstance(plan, Plan), plan
        told |= {
            "kept": prepared.first_kept.id,
            "split": prepared.is_split,
            "history": [number(piece) for piece in prepared.history],
            "prefix": [number(piece) for piece in prepared.prefix],
            "before": plan.state.get("tokens_before", 0),
            "previous": prepared.previous.summary if prepared.previous else None,
            "read": list(plan.state.get("read_files", ())),
            "modified": list(plan.state.get("modified_files", ())),
            "after": self.after(view, plan),
            "asked": [request.max_output for request in decision.requests],
            "summary": plan.summary,
        }
        if ask.text:
            told["texts"] = [alike(serialised(part, self.rules)) for part in (prepared.history, prepared.prefix)]
        assert project(view, plan)[0].blocks
        return told

    def named(self, piece: Piece) -> list[Any]:
        if piece.checkpoint is not None:
            return ["checkpoint", piece.checkpoint.summary]
        return [piece.kind, number(piece)]

    def after(self, view: Any, plan: Plan) -> list[Any]:
        """The projection: what is shown of each entry, and the summaries that stand in it."""
        kinds = {piece.entry.id: piece.kind for piece in self.pieces(int(view.entries[-1].id[1:])) if piece.entry}
        found: list[Any] = []
        for part in shown(view, plan):
            if part.is_synthetic:
                text = part.entry.blocks[0].text  # type: ignore[union-attr]
                assert text.endswith("\n</summary>")
                found.append(["checkpoint", text.partition("<summary>\n")[2].removesuffix("\n</summary>")])
            elif kinds[part.entry.id] != "none":
                found.append([kinds[part.entry.id], int(part.entry.id[1:])])
        return found


KINDS = {"toolResult": "tool", "bashExecution": "bash", "branchSummary": "branch", "compactionSummary": "checkpoint"}


class Theirs:
    """Pi's answers, brought into the same form."""

    def __init__(self, case: Case, found: dict[str, Any], ours: dict[str, Any]) -> None:
        self.rows = rows(case.entries)
        self.found = found
        # Each side says in its own words that nothing came before a split turn, and Pi is given the stored summary by name only.
        self.stored = ours.get("summary")

    def named(self, listed: list[list[Any]]) -> list[Any]:
        named: list[Any] = []
        for role, row in listed:
            if role == "compactionSummary":
                named.append(["checkpoint", self.stored if row == len(self.rows) else self.rows[row]["summary"]])
            else:
                named.append([KINDS.get(role, role), row])
        return named

    def answer(self) -> dict[str, Any]:
        found = dict(self.found)
        told: dict[str, Any] = {"context": self.named(found.pop("context"))}
        if found.get("refused"):
            return told | found
        told["after"] = self.named(found.pop("after"))
        if compact := found.pop("compact", None):
            told["asked"] = [call["limit"] or AMPLE.output_ceiling for call in compact["asked"]]
            told["summary"] = re.sub(
                r"\A[A-Z][^\n]{0,40}\.(?=\n\n---\n)", "(Nothing came before this turn.)", compact["summary"]
            )
        if "texts" in found:
            found["texts"] = [alike(text) for text in found["texts"]]
        return told | found


def plain(raw: list[Raw]) -> bool:
    """Whether a path's serialised text holds no sentence that each side words for itself."""
    worded = ("branch_summary", "compaction")
    return all(
        entry.get("type") not in worded and (entry.get("message") or {}).get("role") != "bashExecution" for entry in raw
    )


def differences(follows: Follows, case: Case, answers: Any) -> list[str]:
    """What the two say differently, question by question."""
    ours = Ours(follows, case)
    found: list[str] = []
    for ask, theirs in zip(case.asks, answers["found"], strict=True):
        if ask.target is not None:
            found += branch_differences(ours, ask, theirs)
            continue
        mine = ours.answer(ask)
        wanted = Theirs(case, theirs, mine).answer()
        if not plain(path_of(ours.rows, ask.leaf)):
            mine.pop("texts", None)
            wanted.pop("texts", None)
        for name in sorted(wanted):
            if mine.get(name) != wanted[name]:
                found.append(
                    f"leaf {ask.leaf} keep {ask.keep} {name}: ours {mine.get(name)!r:.300} theirs {wanted[name]!r:.300}"
                )
    return found


def is_comparable(ours: Ours, ask: Ask, theirs: dict[str, Any]) -> bool:
    """Whether both sides can be asked about this branch: it begins, ends and forks at entries, and no compaction was made at a fork."""
    known = {raw["id"] for raw in ours.rows if raw["type"] != "compaction"}
    ends = [f"n{ask.leaf}", f"n{ask.target}"]
    if not set(ends) <= known or theirs["ancestor"] not in {None, *known}:
        return False
    return not has_checkpoint_at_a_fork(ours.rows, ends, theirs)


def branch_differences(ours: Ours, ask: Ask, theirs: dict[str, Any]) -> list[str]:
    if not is_comparable(ours, ask, theirs):
        return []
    tree = transcript_of(ours.rows)
    known = {entry.id for entry in tree.entries}
    ends = [f"n{ask.leaf}", f"n{ask.target}"]
    window = ask.budget or 1
    branch = prepare_branch(tree, *ends, ours.rules, window=window, reserve_tokens=0 if ask.budget else 1)
    left = [name for name in theirs["left"] if name in known]
    messages = [piece.checkpoint.summary if piece.checkpoint else number(piece) for piece in branch.messages]
    wanted = [
        ours.rows[row]["summary"] if ours.rows[row]["type"] == "compaction" else row for row in theirs["messages"]
    ]
    pairs = {
        "left": ([entry.id for entry in branch.entries], left),
        "messages": (messages, wanted),
        "read": (list(branch.read_files), theirs["read"]),
        "modified": (list(branch.modified_files), theirs["modified"]),
    }
    return [
        f"branch {ends} {name}: ours {mine!r:.300} theirs {his!r:.300}"
        for name, (mine, his) in pairs.items()
        if mine != his
    ]


def has_checkpoint_at_a_fork(found: list[Raw], ends: list[str], theirs: dict[str, Any]) -> bool:
    """Whether the tree forks, or the branch ends, where a compaction was made: our markers do not say on which side it lies."""
    by_id = {raw["id"]: raw for raw in found}
    children = Counter(raw["parentId"] for raw in found)
    for raw in found:
        if raw["type"] != "compaction":
            continue
        above = raw["parentId"]
        while above is not None and by_id[above]["type"] == "compaction":
            above = by_id[above]["parentId"]
        around = {above, *(r["id"] for r in found if r["type"] == "compaction" and r["parentId"] == above)}
        if above in (theirs["ancestor"], ends[0]) or any(children[name] > 1 for name in around):
            return True
    return False


def estimates(follows: Follows, case: Case, answers: Any) -> list[str]:
    """Messages that the two sides measure differently."""
    ours = Ours(follows, case)
    found: list[str] = []
    sizes: dict[int, int] = {}
    for row, raw in enumerate(ours.rows):
        if raw.get("type") == "message":
            (piece,) = path(view_of([raw | {"parentId": None, "id": "n0"}], 0), {}, ours.rules)
            sizes[row] = piece.tokens
    for row, size in enumerate(answers["estimates"]):
        if size is not None and sizes[row] != size:
            found.append(f"row {row}: ours {sizes[row]} theirs {size}")
    return found


def told(answers: Sequence[Any]) -> str:
    """How much of an agreement means something."""
    cuts = [found for answer in answers for found in answer["found"] if "context" in found]
    made = [found for found in cuts if not found.get("refused")]
    splits = sum(found["split"] for found in made)
    return f"{len(cuts)} questions about cuts, {len(made)} cut, {splits} of them split a turn, {sum(f['previous'] is not None for f in made)} after another"


@pytest.mark.parametrize("follows", ["Jul", "Mar", "Sep", "Nov"])
def test_generated_trees(follows: Follows) -> None:
    cases = [generated(seed) for seed in range(TREES)]
    if follows == "Mar":
        for case in cases:
            for ask in case.asks:
                ask.answers = None  # its `compact` cannot be watched
    found: dict[int, list[str]] = {}
    given = asked(follows, cases)
    for seed, (case, answers) in enumerate(zip(cases, given, strict=True)):
        if wrong := estimates(follows, case, answers) + differences(follows, case, answers):
            found[seed] = wrong
    branches = sum(
        is_comparable(Ours(follows, case), case.asks[-1], answers["found"][-1])
        for case, answers in zip(cases, given, strict=True)
    )
    print(f"\nPi {RELEASES[follows]}: {branches} of {len(cases)} branches can be compared")
    print(f"Pi {RELEASES[follows]}: {TREES - len(found)} of {TREES} generated trees agree; {told(given)}")
    for seed, wrong in list(found.items())[:10]:
        print(seed, *wrong[:3], sep="\n  ")
    assert not found


def raw_entries(file: Path) -> list[Raw]:
    lines = gzip.decompress(file.read_bytes()).decode().split("\n")
    return [json.loads(line) for line in lines if line.strip()]


def shared_sessions() -> list[Path]:
    return sorted(SHARED.glob("*.jsonl.gz")) if SHARED.is_dir() else []


@pytest.mark.parametrize("follows", ["Jul", "Mar", "Sep", "Nov"])
@pytest.mark.parametrize("file", shared_sessions() or [None], ids=lambda file: file.name if file else "none")
def test_shared_sessions(file: Path | None, follows: Follows) -> None:
    if file is None:
        pytest.skip("needs the shared Pi sessions, which are not here")
    case = Case(raw_entries(file))
    last = len(rows(case.entries)) - 1
    answers_given = None if follows == "Mar" else ["first answer", "second answer"]
    for tenth in range(1, 11):
        for keep in (20_000, 5_000, 1_000):
            case.asks.append(Ask(last * tenth // 10, keep, answers=answers_given, text=True))
    given = asked(follows, [case])
    (answers,) = given
    wrong = estimates(follows, case, answers) + differences(follows, case, answers)
    print(f"\nPi {RELEASES[follows]}, {file.name}: {len(wrong)} differences in {told(given)}", *wrong[:10], sep="\n  ")
    assert not wrong


@pytest.mark.parametrize("file", shared_sessions() or [None], ids=lambda file: file.name if file else "none")
def test_shared_sessions_through_our_reader(file: Path | None) -> None:
    """The whole way, from the file: a reader leaves out lines that are no message, which Pi's cut can land on.

    Where it does, our tail begins at the next message, and Pi calls a clean cut the split of the turn before (pi.md 6.5, "quirk"); then the
    same messages are summarised, in one request and not in two.
    """
    if file is None:
        pytest.skip("needs the shared Pi sessions, which are not here")
    case = Case(raw_entries(file))
    (transcript,) = read_sessions(file)
    listed = [row for row, raw in enumerate(case.entries) if raw.get("type") != "session"]
    row_of = {
        entry.id: listed.index(entry.source.line - 1)
        for entry in transcript.entries
        if entry.source and entry.source.line
    }
    entries = transcript.path()
    for tenth in range(1, 11):
        for keep in (20_000, 5_000, 1_000):
            case.asks.append(Ask(row_of[entries[(len(entries) - 1) * tenth // 10].id], keep))
    given = asked("Jul", [case])
    rules = Rules.of("Jul", False, {})
    messages = sorted(row_of.values())
    quirks = 0
    for ask, theirs in zip(case.asks, given[0]["found"], strict=True):
        leaf = next(entry for entry in entries if row_of[entry.id] == ask.leaf)
        shorter = msgspec.structs.replace(transcript, leaf=leaf.id).view()
        before = tuple(marker for marker in shorter.markers if marker.after != leaf.id)
        view = View(shorter.entries, markers=before)
        ours = prepare(path(view, recorded_checkpoints(view.markers), rules), ask.keep, rules)
        if isinstance(ours, str) or theirs.get("refused"):
            assert isinstance(ours, str)
            assert theirs.get("refused")
            continue
        kept = int(theirs["kept"][1:])
        parts = [[row_of[piece.entry.id] for piece in part if piece.entry] for part in (ours.history, ours.prefix)]
        assert row_of[ours.first_kept.id] == messages[bisect_left(messages, kept)]
        assert ours.tokens_before == theirs["before"]
        assert [*parts[0], *parts[1]] == [*theirs["history"], *theirs["prefix"]]
        if [*parts, ours.is_split] != [theirs["history"], theirs["prefix"], theirs["split"]]:
            assert kept not in messages
            quirks += 1
    print(f"\n{file.name} through our reader: {told(given)}, {quirks} of them split by the quirk only")
