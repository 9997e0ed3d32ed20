"""All questions at one boundary, drawn once and put to every arm; and how an arm's projection answers them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from ..tokens import Counter
from ..transcript import Entry
from .boundaries import Boundary, deciles, exam_tail
from .decoys import decoy
from .exams import published
from .exams.cloze import Recall, answered, decoy_lines
from .exams.constraints import Rule, rules
from .exams.continuation import Continuation, continuation
from .exams.recognition import SEEDS, Draws, draw
from .exams.supported import askable, supported
from .passages import HomeWords, Passages
from .searched import Searched
from .second_extractor import RareTokens
from .values import Homes, Value, pieces, reading

__all__ = ["EXAMS", "READER", "Measured", "Questions", "ask", "ask_with_recall", "questions"]

EXAMS = (
    "published",
    "recognition",
    "recognition-tokens",
    "recent",
    "supported",
    "cloze",
    "continuation",
    "constraints",
)
"""`recognition-tokens` is `recognition` on the values of the second extractor; `recent` is it on values that the exam tail shows."""

READER = "literal"
"""A value counts as known when it is in the projection's text; no model reads."""


class Measured(msgspec.Struct, frozen=True):
    """One exam on one source of values."""

    exam: str
    source: str
    hits: int
    of: int
    values: int
    false_positives: int = 0
    decoys: int = 0
    """Decoys asked, where they belong to no value."""
    oracle: int | None = None
    by_age: str = ""


@dataclass(frozen=True)
class Questions:
    """What is asked at one boundary."""

    boundary: Boundary
    ages: Sequence[int]
    exams: frozenset[str]
    draws: Draws
    token_draws: Draws
    words: Mapping[str, HomeWords]
    decoys: Mapping[str, str]
    used: Continuation
    rules: Sequence[Rule]
    published: published.Questionnaire | None
    originals: frozenset[str] = field(repr=False)
    strange_lines: Sequence[str] = field(repr=False)
    """Masked lines of other sessions, for `cloze` with recall."""
    line_costs: Mapping[str, int] = field(repr=False)
    """Tokens of the home lines of the values that the next steps used, for the oracle."""


def questions(
    entries: Sequence[Entry],
    boundary: Boundary,
    costs: Sequence[int],
    counter: Counter,
    *,
    exams: Iterable[str] = EXAMS,
    seeds: int = SEEDS,
    occurs: Callable[[str], bool],
    tail: int | None = None,
    found: Homes | None = None,
    rare: RareTokens | None = None,
    parts: Sequence[str] = (),
    lines: Sequence[tuple[str, str]] = (),
) -> Questions:
    """The questions at a boundary.

    Args:
        entries: the whole active path; only `continuation` looks behind the boundary.
        boundary: where the history is cut.
        costs: tokens of each entry.
        counter: counts the exam tail and the oracle's lines.
        exams: which ones; the others are not prepared.
        seeds: draws of `recognition` and what asks the same values.
        occurs: whether a string occurs anywhere in the session; decoys may not.
        tail: where the exam tail begins, when it is not the usual one.
        found: the values of `entries`, where several boundaries of them are asked.
        rare: the same of the second extractor.
        parts: name parts of other sessions, for decoys.
        lines: masked lines of other sessions with the values that fill them, for decoys of `cloze`.
    """
    wanted = frozenset(exams)
    history = entries[: boundary.position]
    start = exam_tail(entries, boundary.position, counter) if tail is None else tail
    tail_text = "\n".join(text for entry in history[start:] for _, text in pieces(entry))
    ages = deciles(costs[: boundary.position])
    drawing = bool(wanted & {"recognition", "recent", "supported", "cloze"})
    values = (found or Homes(entries)).before(boundary.position) if drawing or "continuation" in wanted else {}
    nothing = Draws((), ())
    draws = draw(values, ages, tail_text, seeds) if drawing else nothing
    tokens = (
        draw((rare or RareTokens(entries)).before(boundary.position), ages, tail_text, seeds)
        if "recognition-tokens" in wanted
        else nothing
    )
    used = (
        continuation(entries, boundary.position, start, values)
        if "continuation" in wanted and boundary.position < len(entries)
        else Continuation((), (), ())
    )
    drawn = (*draws.distinct.values(), *tokens.distinct.values())
    decoys = {value.text: decoy(value, 0, occurs, parts) for value in drawn}
    return Questions(
        boundary=boundary,
        ages=ages,
        exams=wanted,
        draws=draws,
        token_draws=tokens,
        words=askable(value for value in draws.distinct.values()) if wanted & {"supported", "cloze"} else {},
        decoys={text: made for text, made in decoys.items() if made is not None},
        used=used,
        rules=[rule for rule in rules(history) if rule.position < start] if "constraints" in wanted else (),
        published=published.questionnaire(history, boundary.stage)
        if "published" in wanted and boundary.kind != "recorded"
        else None,
        originals=frozenset(reading(history)),
        strange_lines=decoy_lines(lines, occurs) if "cloze" in wanted else (),
        line_costs={value.line: counter.count(value.line) for value, _ in used.asked},
    )


def ask(asked: Questions, shown: Sequence[Entry], size: int) -> list[Measured]:
    """Puts the questions to a projection.

    Args:
        asked: the questions.
        shown: the entries of the projection; none when the strategy refused.
        size: tokens of the projection, at which the oracle is asked too.
    """
    messages = reading(shown)
    text = "\n".join(messages)
    searched = Searched(text)
    out: list[Measured] = []
    if asked.published is not None:
        out += _published(asked.published, published.rendered(shown))
    known = {value for value in asked.draws.distinct if searched.shows(value)}
    wrong = {value for value in asked.draws.distinct if value in asked.decoys and searched.shows(asked.decoys[value])}
    if "recognition" in asked.exams:
        out += _drawn("recognition", asked.draws.older, known, wrong, asked.ages)
    if "recent" in asked.exams:
        out += _drawn("recent", asked.draws.recent, known, wrong, ())
    if "recognition-tokens" in asked.exams:
        tokens = {value for value in asked.token_draws.distinct if searched.shows(value)}
        false = {
            value
            for value in asked.token_draws.distinct
            if value in asked.decoys and searched.shows(asked.decoys[value])
        }
        out += _drawn("recognition-tokens", asked.token_draws.older, tokens, false, asked.ages)
    if asked.exams & {"supported", "cloze"}:
        told = _told(asked, messages, known)
        if "supported" in asked.exams:
            out += _drawn("supported", _askable(asked), told, wrong & told, asked.ages)
        if "cloze" in asked.exams:
            out += _drawn("cloze", _askable(asked)[:1], told, (), asked.ages)
    if "continuation" in asked.exams:
        out += _continuation(asked, searched, size)
    if asked.rules:
        hits = sum(rule.text in text for rule in asked.rules)
        out.append(Measured("constraints", "user", hits, len(asked.rules), len(asked.rules)))
    return out


def ask_with_recall(asked: Questions, shown: Sequence[Entry], recall: Recall) -> list[Measured]:
    """`cloze` and `published` put as user messages that bring a recall block with them; what the projection shows counts as well.

    A decoy of `cloze` is a line of another session; it counts as a false positive when anything is attached to it.

    Args:
        asked: the questions.
        shown: the entries of the projection.
        recall: gives the recall block of a message.
    """
    messages = reading(shown)
    out: list[Measured] = []
    if asked.published is not None:
        message = "Which of these were named before? " + ", ".join(asked.published.order)
        text = "\n\n".join((published.rendered(shown), *recall(message)))
        out += [msgspec.structs.replace(one, exam="published+recall") for one in _published(asked.published, text)]
    if "cloze" in asked.exams:
        searched = Searched("\n".join(messages))
        draws = _askable(asked)[:1]
        known = {value.text for drawn in draws for value in drawn if searched.shows(value.text)}
        told = _told(asked, messages, known)
        values = [value for drawn in draws for value in drawn]
        answers = answered(values, dict(asked.words), told, recall, asked.strange_lines)
        drawn = _drawn("cloze", draws, answers.known, (), asked.ages)
        # Decoys belong to no source; they are counted once, with the first.
        put = len(asked.strange_lines)
        first = [msgspec.structs.replace(one, false_positives=answers.false_positives, decoys=put) for one in drawn[:1]]
        out += first + drawn[1:]
    return out


def _askable(asked: Questions) -> list[list[Value]]:
    return [[value for value in drawn if value.text in asked.words] for drawn in asked.draws.older]


def _told(asked: Questions, messages: Sequence[str], known: Collection[str]) -> set[str]:
    """The values of which a passage says what they were."""
    older = {value.text: value for drawn in _askable(asked) for value in drawn}
    passages = Passages(messages, asked.originals)
    return supported((value for name, value in older.items() if name in known), dict(asked.words), passages)


def _published(questionnaire: published.Questionnaire, text: str) -> list[Measured]:
    contained = questionnaire.contained(text)
    out: list[Measured] = []
    for source in ("user", "assistant", "tool"):
        hits = [hit for (_, home), hit in zip(questionnaire.values, contained, strict=True) if home == source]
        if hits:
            # Decoys belong to no source; they are counted once, with the first.
            false = 0 if out else sum(decoy in text for decoy in questionnaire.decoys)
            put = 0 if out else len(questionnaire.decoys)
            out.append(Measured("published", source, sum(hits), len(hits), len(hits), false, put))
    return out


def _drawn(
    exam: str, draws: Sequence[Sequence[Value]], known: Iterable[str], wrong: Iterable[str], ages: Sequence[int]
) -> list[Measured]:
    hit, false = set(known), set(wrong)
    by_source: dict[str, list[Value]] = {}
    for drawn in draws:
        for value in drawn:
            by_source.setdefault(value.kind, []).append(value)
    out: list[Measured] = []
    for source, values in by_source.items():
        cells = [[0, 0] for _ in range(10)]
        for value in values if ages else ():
            cell = cells[ages[value.position]]
            cell[0] += value.text in hit
            cell[1] += 1
        distinct = {value.text for value in values}
        out.append(
            Measured(
                exam,
                source,
                sum(value.text in hit for value in values),
                len(values),
                len(distinct),
                len(distinct & false),
                by_age=" ".join(f"{hits}/{of}" for hits, of in cells) if ages else "",
            )
        )
    return out


def _continuation(asked: Questions, searched: Searched, size: int) -> list[Measured]:
    values = [value for value, _ in asked.used.asked]
    known = [value.text for value in values if searched.shows(value.text)]
    best = _oracle(values, asked.line_costs, size)
    return [
        msgspec.structs.replace(one, oracle=sum(value.text in best for value in values if value.kind == one.source))
        for one in _drawn("continuation", [values], known, (), asked.ages)
    ]


def _oracle(values: Sequence[Value], costs: Mapping[str, int], size: int) -> set[str]:
    """What the greedy shows at a size that knows which values will be used: whole home lines, the most used values for each token first."""
    lines: dict[str, set[str]] = {}
    for value in values:
        lines.setdefault(value.line, set()).add(value.text)
    best: set[str] = set()
    for line in sorted(lines, key=lambda line: (costs[line] / len(lines[line]), line)):
        if costs[line] <= size:
            size -= costs[line]
            best |= lines[line]
    return best
