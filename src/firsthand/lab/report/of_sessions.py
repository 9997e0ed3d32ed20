"""Tables of the sessions themselves: what fills their windows, and what became of them at their clients' own compactions."""

from __future__ import annotations

from ..compose import STUDY_FLOOR, Composition
from .record import AuditLine, Record
from .tables import Table, figure, percent

__all__ = ["audit_tables", "composition_tables"]

_TOOLS = 12


def composition_tables(record: Record) -> list[Table]:
    """What fills the window: by kind, by tool, by file."""
    if not record.compositions:
        return []
    command = record.command_of("compose")
    *each, whole = record.compositions
    counted_ = whole.counted
    kinds = tuple(
        (
            kind,
            figure(amount.records),
            figure(amount.characters),
            "" if kind == "recorded" else percent(amount.characters / max(1, counted_.characters)),
            figure(amount.tokens),
            "" if kind == "recorded" else percent(amount.tokens / max(1, counted_.tokens)),
        )
        for kind, amount in whole.kinds.items()
    )
    tools = tuple(
        (
            tool.tool,
            figure(tool.calls),
            figure(tool.results),
            figure(tool.errors),
            figure(tool.tokens),
            percent(tool.tokens / max(1, counted_.tokens)),
        )
        for tool in whole.tools[:_TOOLS]
    )
    tables = [
        Table(
            "composition",
            "What the sessions consist of",
            ("kind", "records", "characters", "% of characters", "tokens", "% of tokens"),
            kinds,
            command,
            f"{whole.sessions:,} sessions, {whole.entries:,} entries. Tokens: {whole.counter}. Recorded: what clients' own compactions put in; "
            "in no share.",
        ),
        Table(
            "files",
            "Each file",
            ("file", "format", "sessions", "entries", "tokens", "tool output, % of characters"),
            tuple(map(_file, (*each, whole))),
            command,
            f"Counted as the published study counts, whose own chains lie between {STUDY_FLOOR} and 99.4 %: arguments of calls are left out.",
        ),
    ]
    if tools:
        more = len(whole.tools) - len(tools)
        tables.append(
            Table("tools", "The heaviest tools", ("tool", "calls", "results", "errors", "tokens", "% of tokens"), tools, command,
                  f"Calls and output together; {more:,} more tools." if more > 0 else "Calls and output together.")
        )  # fmt: skip
    return tables


def _file(part: Composition) -> tuple[str, ...]:
    tool = part.published.tool_share
    return (
        part.source,
        f"{part.format.count(',') + 1} formats" if "," in part.format else part.format,
        figure(part.sessions),
        figure(part.entries),
        figure(part.counted.tokens),
        "" if tool is None else f"{tool:.1f}",
    )


def audit_tables(record: Record) -> list[Table]:
    """The recorded compactions of clients, one line each."""
    if not record.audits:
        return []
    command = record.command_of("audit")
    return [
        Table(
            "audit",
            "What clients' own compactions kept, and what was used again",
            (
                "session file",
                "no.",
                "before",
                "client kept",
                "ours takes",
                "values used again",
                "lost by client",
                "lost by ours",
                "read again, calls",
                "tokens seen again",
            ),
            tuple(map(_audited, record.audits)),
            command,
            f"By rules: letter by letter in what was kept. Ours: {record.audits[0].strategy} on the same originals, at its natural size where "
            "it has no size to set. Sizes in o200k tokens. * The summary can be read by its provider only: a value counted as lost may stand "
            "in it. The values themselves: --html of the command.",
        )
    ]


def _audited(row: AuditLine) -> tuple[str, ...]:
    name = row.source + ("" if row.readable else " *")
    if not row.judged:
        return (name, f"{row.number} of {row.of}", "", figure(row.kept), *[""] * 6)
    return (
        name,
        f"{row.number} of {row.of}",
        figure(row.context),
        figure(row.kept),
        figure(row.ours),
        figure(row.asked),
        figure(row.lost),
        figure(row.ours_lost),
        figure(row.again),
        figure(row.seen_tokens),
    )
