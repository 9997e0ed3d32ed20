"""Every excerpt says why it was chosen, in words that a person can check against it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from real_sessions import shared

from firsthand.budget import Budget
from firsthand.formats import read_sessions
from firsthand.projection.features.terms import named_terms, text_of, word
from firsthand.projection.features.units import readable
from firsthand.projection.plan import Plan
from firsthand.strategies.contract import CompactionRequest
from firsthand.strategies.coverage.excerpts import Labels
from firsthand.strategies.coverage.strategy import Coverage
from firsthand.testing.builders import call, result, said, user, view
from firsthand.testing.random_entries import entry_lists
from firsthand.tokens import EstimateCounter
from firsthand.transcript import Entry, ToolCall, View

BUDGET = Budget.of(200_000, counter=EstimateCounter())
MANUAL = CompactionRequest(trigger="manual", phase="standalone")
FILLER = "\n".join(f"the {n % 13}th line says as good as nothing to anybody who reads it" for n in range(900))


def reasons(seen: View, target: int = 1_500, **options: int) -> dict[str, str]:
    plan = Coverage(target=target, fixed_target=True, **options).plan(seen, BUDGET, MANUAL)
    assert isinstance(plan, Plan)
    return {excerpt.entry: excerpt.reason for excerpt in plan.excerpts}


def test_the_reason_in_words() -> None:
    seen = view(
        user("Never touch the file prod.env. " + "Some words about nothing. " * 400),
        said(
            "Hm. " * 900 + "\nThe culprit is `parse_header` in src/http/parser.py.", call("todowrite", todos="fix it")
        ),
        result("c1", FILLER + "\nTypeError at src/http/parser.py:214 in parse_header\ncache_key=9f8e7d6c"),
        said("Now the rest."),
    )
    found = reasons(seen, tail=0)
    assert (found["e1"], found["e2"]) == ("rule of the user; first to show prod.env", "newest to-do list")
    named = re.fullmatch(r"first to show (.+), (.+), (.+) and \d+ more", found["e3"])
    assert named
    assert {"TypeError", "cache_key", "9f8e7d6c"} & set(named.groups())


def test_names_are_those_of_the_excerpt_and_claimed_once() -> None:
    [*_, found] = sorted(read_sessions(shared("pi/pi-before-compaction.jsonl.gz")), key=lambda one: len(one.path()))
    seen = found.view()
    plan = Coverage(target=6_000, fixed_target=True).plan(seen, BUDGET, MANUAL)
    assert isinstance(plan, Plan)
    claimed: list[str] = []
    for excerpt in plan.excerpts:
        text = readable(seen[excerpt.entry].blocks[excerpt.block])
        shown = "\n".join(text[span.start : span.end] for span in excerpt.spans)
        assert excerpt.reason
        if found_names := re.fullmatch(
            r"(?:.*; )?(?:first to show|introduces) (.+?)(?: and \d+ more)?", excerpt.reason
        ):
            for name in found_names[1].split(", "):
                assert name.rstrip("…") in shown, excerpt.reason
                claimed.append(name)
    assert len(claimed) > 50
    assert len(set(claimed)) > 0.9 * len(claimed)  # a comma within a name, or a name that was clipped


@pytest.mark.parametrize(
    "part", ["src/a.py:17", "`fooBar`", "--flag=x1", "9f8e7d6c", "#4711", "snake_case(x)", "@org/pkg"]
)
def test_the_text_behind_a_term_is_found_again(part: str) -> None:
    texts = [name for name, _ in named_terms(part)]
    assert [text_of(term, f"before {part}, behind") for term in word(part)[1]] == texts


@settings(max_examples=60)
@given(entry_lists(20))
def test_any_excerpt_has_a_reason(entries: tuple[Entry, ...]) -> None:
    plan = Coverage(target=400, fixed_target=True).plan(View(entries), BUDGET, MANUAL)
    if isinstance(plan, Plan):
        assert all(excerpt.reason and "\n" not in excerpt.reason for excerpt in plan.excerpts)


@pytest.mark.parametrize(
    ("arguments", "label"),
    [
        ('{"path":"src/a b.py"}', "read result a b.py"),
        ('{"file_path":"/x/y/main.ts","limit":5}', "read result main.ts"),
        ('{"filePath": "main.ts"}', "read result main.ts"),
        ('{"path":"src/"}', "read result"),
        ('{"path":""}', "read result"),
        ('{"command":"cat src/a.py"}', "read result"),
        ('{"path":["a"]}', "read result"),
        ('no JSON "path"', "read result"),
    ],
)
def test_a_result_is_labelled_with_its_calls_file(arguments: str, label: str) -> None:
    asked = ToolCall("c1", "read", arguments)
    assert Labels([said(asked), result("c1", "text")])[1, 0] == label


def test_of_calls_with_one_id_the_last_before_the_result_names_it() -> None:
    first, second = ToolCall("c1", "read", '{"path": "a.py"}'), ToolCall("c1", "grep", '{"path": "b.py"}')
    entries = [result("c1", "early"), said(first), result("c1", "text"), said(second), result("c1", "more")]
    labels = Labels(entries)
    assert [labels[position, 0] for position in (0, 2, 4)] == ["tool result", "read result a.py", "grep result b.py"]
    assert labels[3, 0] == "call grep"
