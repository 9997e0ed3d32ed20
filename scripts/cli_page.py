"""Writes `docs/cli.md` from the commands themselves: `python scripts/cli_page.py`. A test fails when the page is stale."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from firsthand.cli.app import app

PAGE = Path(__file__).resolve().parents[1] / "docs" / "cli.md"

HEAD = """# Command line

This page is written from the commands' own help by `python scripts/cli_page.py`; every command prints its part with `--help`.
`firsthand lab` has pages of its own.

| exit code | meaning |
| --- | --- |
| 0 | done |
| 1 | the input, a setting or the journal refused, or a search found nothing; one line on stderr says why |
| 2 | wrong usage |
| 3 | the compaction was refused; the message has the sizes |
| 4 | `verify` found damage |
| 130 | interrupted; what was committed before is safe |

With `--json`, stdout holds JSON only: one object, or one per line where there may be several. Warnings and errors go to stderr.
The journal is the file that `--journal` names, else `FIRSTHAND_JOURNAL`, else `journal.db` in `firsthand` in your data directory.

## JSON

Names below are stable: they keep their meaning, and only others are added. Sizes are tokens in the counter that `counter` names.

`import --json`, one object a session (or `file` and `error`, for a file that could not be read):

| field | meaning |
| --- | --- |
| `session`, `format` | id in the journal; name of the format |
| `entries` | entries in the file, branches included |
| `user_texts`, `assistant_texts`, `reasoning`, `tool_calls`, `tool_results` | how many; texts are typed ones only |
| `markers` | compactions of the client that the file records |
| `damaged`, `warnings` | how many parts could not be read; what else is worth knowing, as texts |
| `new`, `known`, `revised` | entries that were added, that the journal had, and ids of those that the file now shows in another form |

`compact --json`, one object:

| field | meaning |
| --- | --- |
| `outcome`, `reason` | `applied`, `unchanged` with the reason, or `refused` with reason, `message` and `sizes` (exit code 3) |
| `strategy`, `window`, `output_ceiling`, `input_limit` | what was asked, and what follows |
| `counter`, `counter_error` | which counter, and how far it may be off |
| `tokens_before`, `tokens_after` | the next request without and with the projection, fixed tokens included |
| `entries`, `covered` | entries of the active path, and those that the projection covers |
| `kept`, `tail` | covered entries that stay as originals; the newest entries, which are untouched |
| `fates` | by fate, then by kind: `blocks`, and `tokens` of the originals |
| `notes` | what the strategy has to say, by name |
| `blocks` | with `--explain`: for each block `entry`, `block`, `kind`, `fate`, `tokens`, `shown` (how many of them are), `why` |
"""


def page() -> str:
    """The whole page."""
    return HEAD + "".join(_command("firsthand", get_command(app)))


def _command(name: str, command: Any) -> Iterator[str]:
    members = getattr(command, "commands", None)
    if members is not None:
        if command.invoke_without_command:
            yield from _section(name, command)
        for member, inner in members.items():
            if member != "lab":
                yield from _command(f"{name} {member}", inner)
        return
    yield from _section(name, command)


def _section(name: str, command: Any) -> Iterator[str]:
    arguments = [given for given in command.params if given.param_type_name == "argument"]
    options = [given for given in command.params if given.param_type_name == "option" and given.help]
    usage = " ".join([name, *(_metavar(given) for given in arguments), *(["[OPTIONS]"] if options else [])])
    yield f"\n## {name}\n\n{command.help.strip()}\n\n```\n{usage}\n```\n\n"
    yield f"{command.epilog.replace('Example: ', 'Example: `', 1)}`\n"
    if arguments or options:
        yield "\n| | |\n| --- | --- |\n"
    for given in arguments:
        yield f"| `{_escaped(_metavar(given))}` | {_escaped(given.help or '')} |\n"
    for given in options:
        yield f"| `{', '.join(given.opts)}` | {_escaped(_about(given))} |\n"


def _metavar(argument: Any) -> str:
    name = (argument.metavar or argument.name).strip("[]").upper()
    return name if argument.required else f"[{name}]"


def _about(option: Any) -> str:
    default = option.default
    shown = not isinstance(default, bool) and isinstance(default, (int, float, str)) and default != ""
    known = f" Default {default}." if shown and "efault" not in option.help else ""
    variable = f" Also `{option.envvar}`." if option.envvar else ""
    return f"{option.help.strip()}{known}{variable}"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
