"""Tables of what rules measured: scores of the literal reader at the strategies' own sizes, on the published chains, and with recall."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..comparisons import Comparison
from ..results import Row, Score, counted, scores
from .record import Record
from .tables import Table, figure, interval, names, percent, share

__all__ = [
    "CLIENTS_EXAM",
    "LITERAL",
    "SOURCES",
    "arm",
    "asked_of",
    "chain_sources",
    "chain_table",
    "least_of",
    "recall_table",
    "run_tables",
]

SOURCES = ("user", "assistant", "call", "tool")
_PUBLISHED_CHAINS = {"export": (9, 16), "analysis": (9, 16), "pipeline": (10, 17)}
"""Published containment of the deterministic arm on the synthetic chains (futureos.md 9.1)."""
CLIENTS_EXAM = "supported"
"""The exam of tables that show one: a value whose passage says what it was."""
LITERAL = "literal reader: a value counts as shown when it stands in the projection's text"


def least_of(record: Record) -> int:
    """Questions under which a session is listed and not judged; 1 where no session has the usual number, as in small trials."""
    from ..results import LEAST_QUESTIONS

    rows = record.rows.get("run", [])
    return LEAST_QUESTIONS if any(score.mean is not None for score in scores(rows)) else 1


def arm(row: Row | Score | Comparison) -> str:
    """A strategy with who wrote its summaries."""
    return row.strategy if row.summariser == "-" else f"{row.strategy}, {row.summariser}"


def run_tables(record: Record) -> list[Table]:
    """The scores at own size: an overview, then each exam, by source and by age."""
    rows = [row for row in record.rows.get("run", []) if row.recall is None]
    if not rows:
        return []
    command, least = record.command_of("run"), least_of(record)
    found = scores(rows, least)
    exams = names(score.exam for score in found)
    arms = names(arm(score) for score in found)
    by = {(arm(score), score.exam): score for score in found}
    overview = []
    for name in arms:
        some = [by[name, exam] for exam in exams if (name, exam) in by]
        cells = (percent(by[name, exam].mean) if (name, exam) in by else "" for exam in exams)
        overview.append((name, *cells, figure(max(score.tokens for score in some))))
    asked = tuple(
        figure(max((by[name, exam].values for name in arms if (name, exam) in by), default=0)) for exam in exams
    )
    judged = tuple(
        figure(max((by[name, exam].sessions for name in arms if (name, exam) in by), default=0)) for exam in exams
    )
    tables = [
        Table(
            "overview",
            "All exams, % of values shown",
            ("strategy, summary", *exams, "tokens"),
            (*overview, ("values asked", *asked, ""), ("sessions judged", *judged, "")),
            command,
            f"{LITERAL}. Mean over judged sessions. Sizes differ, so this table ranks nothing: see equal size and the curves. Tokens: median "
            "size of the projection. Values asked: over all draws, of the strategy that was asked most.",
        )
    ]
    tables += _there(_clients(rows, least, command))
    tables += [_exam(exam, [score for score in found if score.exam == exam], command) for exam in exams]
    tables += _by_source(rows, command)
    return [*tables, *(table for table in (_by_age(rows, command), _oracle(rows, command)) if table is not None)]


def _there(table: Table | None) -> list[Table]:
    return [] if table is None else [table]


def _clients(rows: Sequence[Row], least: int, command: str) -> Table | None:
    some = [row for row in rows if row.exam == CLIENTS_EXAM]
    clients = names(row.format for row in some)
    if len(clients) < 2:
        return None
    by = {
        (arm(score), client): score
        for client in clients
        for score in scores([row for row in some if row.format == client], least)
        if score.mean is not None
    }
    arms = [name for name in names(arm(row) for row in some) if any((name, client) in by for client in clients)]
    counts = (
        (f"{label}", *(figure(max((number(by[name, client]) for name in arms if (name, client) in by), default=0)) for client in clients))
        for label, number in (("values asked", _values), ("sessions judged", _judged))
    )  # fmt: skip
    return Table(
        "clients",
        f"{CLIENTS_EXAM} by client, % of values shown",
        ("strategy, summary", *clients),
        (
            *((name, *(percent(by[name, client].mean) if (name, client) in by else "" for client in clients)) for name in arms),
            *counts,
        ),
        command,
        f"{LITERAL}. Mean over the judged sessions of each client; a client with hundreds of short sessions is most of a mean over all.",
    )  # fmt: skip


def _values(score: Score) -> int:
    return score.values


def _judged(score: Score) -> int:
    return score.sessions


def _exam(exam: str, found: Sequence[Score], command: str) -> Table:
    return Table(
        f"exam-{exam}",
        exam,
        ("strategy", "summary", "score %", "95 %", *(f"{source} %" for source in SOURCES), "values", "sessions", "tokens", "ms", "decoys shown"),
        tuple(
            (
                score.strategy, score.summariser, percent(score.mean), interval(score.low, score.high),
                *(percent(score.sources.get(source), 0) for source in SOURCES), figure(score.values),
                f"{score.sessions} of {score.sessions + score.listed}", figure(score.tokens), f"{score.milliseconds:,.0f}",
                figure(score.false_positives),
            )
            for score in found
        ),
        command,
        f"{LITERAL}. Interval: bootstrap over sessions. Sessions: judged of measured.",
    )  # fmt: skip


def _by_source(rows: Sequence[Row], command: str, key: str = "source") -> list[Table]:
    tables = []
    for exam in names(row.exam for row in rows):
        if exam not in ("recognition", "continuation", "published"):
            continue
        cells: dict[str, dict[str, list[int]]] = {}
        for row in rows:
            if row.exam == exam and counted(row):
                cell = cells.setdefault(arm(row), {}).setdefault(row.source, [0, 0])
                cell[0] += row.hits
                cell[1] += row.of
        sources = [source for source in SOURCES if any(source in found for found in cells.values())]
        tables.append(
            Table(
                f"{key}-{exam}",
                f"{exam}, by where the value first stood",
                ("strategy, summary", *sources, "all"),
                tuple(
                    (
                        name,
                        *(share(*found[source]) if source in found else "" for source in sources),
                        share(*(sum(cell[at] for cell in found.values()) for at in (0, 1))),
                    )
                    for name, found in cells.items()
                ),
                command,
                f"{LITERAL}. Hits/values over all draws and boundaries, all sessions pooled.",
            )
        )
    return tables


def _by_age(rows: Sequence[Row], command: str) -> Table | None:
    cells: dict[str, list[list[int]]] = {}
    for row in rows:
        if row.exam == "recognition" and row.by_age and counted(row):
            cell = cells.setdefault(arm(row), [[0, 0] for _ in range(10)])
            for at, part in enumerate(row.by_age.split()):
                hits, _, of = part.partition("/")
                cell[at][0] += int(hits)
                cell[at][1] += int(of)
    if not cells:
        return None
    most = max(cells.values(), key=lambda found: sum(of for _, of in found))
    return Table(
        "ages",
        "recognition, by age of the value: tenths of the history, oldest first, % shown",
        ("strategy, summary", *(str(tenth) for tenth in range(1, 11))),
        (
            *((name, *(percent(hits / of, 0) if of else "" for hits, of in found)) for name, found in cells.items()),
            ("values asked", *(figure(of) for _, of in most)),
        ),
        command,
        f"{LITERAL}. All sessions pooled.",
    )


def _oracle(rows: Sequence[Row], command: str) -> Table | None:
    lines = []
    for name in names(arm(row) for row in rows):
        some = [row for row in rows if arm(row) == name and row.oracle is not None and counted(row)]
        if some:
            of = sum(row.of for row in some)
            lines.append(
                (name, share(sum(row.hits for row in some), of), share(sum(row.oracle or 0 for row in some), of))
            )
    if not lines:
        return None
    return Table(
        "oracle",
        "continuation: what the same size could have shown",
        ("strategy, summary", "shown", "shown by who knows what will be used"),
        tuple(lines),
        command,
        f"{LITERAL}. The second: whole lines at the strategy's own size, chosen greedily by what the next steps really used, which no strategy "
        "can know.",
    )


def chain_sources(record: Record) -> list[Table]:
    """The chains' values by where they first stood."""
    return _by_source(record.rows.get("chains", []), record.command_of("chains"), "chain-source")


def chain_table(record: Record) -> Table | None:
    """The published experiment's chains with the published exam: the one table that can be set beside a published number."""
    rows = [row for row in record.rows.get("chains", []) if counted(row)]
    if not rows:
        return None
    # The chains keep the order in which they were measured.
    chains = names(row.session for row in rows)
    lines = []
    for name in names(arm(row) for row in rows):
        cells = []
        for chain in chains:
            part = [row for row in rows if arm(row) == name and row.session == chain]
            cells.append((sum(row.hits for row in part), sum(row.of for row in part)))
        false = sum(row.false_positives for row in rows if arm(row) == name)
        lines.append((name, *(_of(*cell) for cell in cells), share(*map(sum, zip(*cells, strict=True))), figure(false)))
    published = [_of(*_PUBLISHED_CHAINS[name]) for name in _PUBLISHED_CHAINS] if len(chains) == 3 else []
    if published:
        total_ = share(*map(sum, zip(*_PUBLISHED_CHAINS.values(), strict=True)))
        lines.insert(0, ("published for deterministic: contained", *published, total_, "0"))
    return Table(
        "chains",
        "The published experiment's synthetic chains, its exam: values contained",
        ("strategy, summary", *(name.removeprefix("sample-") for name in chains), "all", "decoys shown"),
        tuple(lines),
        record.command_of("chains"),
        "The same chains, boundaries and questionnaires as published; each strategy carries its state on. Contained in the projection's text, "
        "so the published row is comparable. What models reported of other arms is not.",
    )


def _of(hits: int, of: int) -> str:
    return f"{hits}/{of}" if of else "-"


def recall_table(record: Record) -> Table | None:
    """What a recall block brings: by rules, no model."""
    rows = [row for row in record.rows.get("recall", []) if counted(row)]
    pairs = {"published": "published+recall", "cloze": "cloze"}
    lines = []
    for exam, with_block in pairs.items():
        for name in names(arm(row) for row in rows):
            own = [row for row in rows if arm(row) == name]
            shown = [row for row in own if row.exam == exam and row.recall is None]
            brought = [row for row in own if row.exam == with_block and row.recall is not None]
            if shown and brought:
                of = sum(row.of for row in brought)
                put, false = sum(row.decoys for row in brought), sum(row.false_positives for row in brought)
                lines.append(
                    (exam, name, share(sum(row.hits for row in shown), sum(row.of for row in shown)),
                     share(sum(row.hits for row in brought), of), _of(false, put))
                )  # fmt: skip
    if not lines:
        return None
    return Table(
        "recall",
        "With the question as a message that brings a recall block",
        ("exam", "strategy, summary", "shown", "shown or brought back", "decoys"),
        tuple(lines),
        record.command_of("recall"),
        f"{LITERAL}, or in the block. Pooled over boundaries. Decoys: for cloze, lines of other sessions to which anything was attached; "
        "for published, decoys that stand in the text.",
    )


def asked_of(rows: Iterable[Row], exam: str) -> dict[str, int]:
    """Distinct values of an exam by source, each boundary once, whichever strategies were asked."""
    places: dict[tuple[str, int, str], int] = {}
    for row in rows:
        if row.exam == exam and row.recall is None:
            places[row.session, row.position, row.source] = row.values
    found: dict[str, int] = {}
    for (_, _, source), values in places.items():
        found[source] = found.get(source, 0) + values
    return {source: found[source] for source in SOURCES if source in found}
