"""How a client is pointed at the gateway: its providers are found in its own settings, and nothing else of these changes."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from firsthand.errors import ConfigError
from firsthand.gateway.clients import Invocation, client_of

CHATGPT = "https://chatgpt.com/backend-api/codex"
OPENAI = "https://api.openai.com/v1"


def call(home: Path, *command: str, **environment: str) -> Invocation:
    work = home / "project"
    work.mkdir(exist_ok=True)
    return Invocation(command, {"HOME": str(home), **environment}, work)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


CUSTOM = """
model_provider = "mine"
[model_providers.mine]
base_url = "https://models.example/v1"
env_key = "MINE"
[model_providers.other]
base_url = "https://other.example/api"
[model_providers.unsaid]
name = "x"
[profiles.work]
model_provider = "other"
"""


@pytest.mark.parametrize(
    ("settings", "login", "command", "found"),
    [
        ("", "", ("codex",), {"openai": OPENAI}),
        ("", '{"tokens": {"access_token": "t"}, "OPENAI_API_KEY": null}', ("codex",), {"openai": CHATGPT}),
        ("", '{"OPENAI_API_KEY": "sk-1", "tokens": null}', ("codex",), {"openai": OPENAI}),
        ('openai_base_url = "https://eu.example/v1"', "", ("codex",), {"openai": "https://eu.example/v1"}),
        (CUSTOM, "", ("codex", "exec", "hi"), {"mine": "https://models.example/v1"}),
        (CUSTOM, "", ("codex", "-p", "work"), {"other": "https://other.example/api"}),
        (CUSTOM, "", ("codex", "--profile=work"), {"other": "https://other.example/api"}),
        (CUSTOM, "", ("codex", "exec", "-c", 'model_provider="other"'), {"other": "https://other.example/api"}),
        (CUSTOM, "", ("codex", "-cmodel_provider=unsaid"), {"unsaid": ""}),
        (CUSTOM, "", ("codex", "--", "-p", "work"), {"mine": "https://models.example/v1"}),
    ],
)
def test_codex_uses_one_provider(
    tmp_path: Path, settings: str, login: str, command: tuple[str, ...], found: dict[str, str]
) -> None:
    write(tmp_path / ".codex" / "config.toml", settings)
    if login:
        write(tmp_path / ".codex" / "auth.json", login)
    codex = client_of("/usr/bin/codex")
    made = call(tmp_path, *command)
    assert codex.upstreams(made) == found
    [provider] = found
    launch = codex.launch(made, {provider: "http://127.0.0.1:1/u/x/v1"}, tmp_path)
    assert launch.command[0] == "codex"
    assert launch.command[3:] == command[1:]
    [(first, value)] = tomllib.loads(launch.command[2]).items()
    wanted = "http://127.0.0.1:1/u/x/v1"
    assert (first, value) == (
        ("openai_base_url", wanted) if provider == "openai" else ("model_providers", {provider: {"base_url": wanted}})
    )


def test_claude_code_gets_a_variable_and_a_setting_only_where_its_own_settings_go_before_that(tmp_path: Path) -> None:
    claude = client_of("claude")
    plain = call(tmp_path, "claude", "-p", "hi")
    assert claude.upstreams(plain) == {"anthropic": "https://api.anthropic.com"}
    launch = claude.launch(plain, {"anthropic": "http://g"}, tmp_path)
    assert (launch.command, launch.environment) == (plain.command, {"ANTHROPIC_BASE_URL": "http://g"})
    proxied = call(tmp_path, "claude", ANTHROPIC_BASE_URL="https://proxy.example")
    assert claude.upstreams(proxied) == {"anthropic": "https://proxy.example"}
    write(tmp_path / ".claude" / "settings.json", '{"env": {"ANTHROPIC_BASE_URL": "https://set.example", "A": "1"}}')
    assert claude.upstreams(proxied) == {"anthropic": "https://set.example"}
    launch = claude.launch(plain, {"anthropic": "http://g"}, tmp_path)
    assert launch.command[:2] == ("claude", "--settings")
    assert json.loads(launch.command[2]) == {"env": {"ANTHROPIC_BASE_URL": "http://g"}}
    assert launch.command[3:] == ("-p", "hi")
    with pytest.raises(ConfigError, match="--settings of its own"):
        claude.launch(call(tmp_path, "claude", "--settings", "x.json"), {"anthropic": "http://g"}, tmp_path)
    with pytest.raises(ConfigError, match="CLAUDE_CODE_USE_BEDROCK"):
        claude.upstreams(call(tmp_path, "claude", CLAUDE_CODE_USE_BEDROCK="1"))


def test_opencode_lays_base_urls_over_what_is_said_already(tmp_path: Path) -> None:
    opencode = client_of("opencode")
    write(
        tmp_path / ".config" / "opencode" / "opencode.jsonc",
        """{ // the person's
          "model": "mine/m", /* "provider": 1 */
          "provider": {"mine": {"options": {"baseURL": "https://a.example//v1", "apiKey": "k",}},},
        }""",
    )
    write(
        tmp_path / "project" / "opencode.json",
        '{"provider": {"mine": {"options": {"baseURL": "https://b.example/v1"}}}}',
    )
    inline = {"theme": "t", "provider": {"own": {"options": {"baseURL": "https://c.example/v1", "x": 1}}}}
    made = call(tmp_path, "opencode", "run", OPENCODE_CONFIG_CONTENT=json.dumps(inline))
    assert opencode.upstreams(made) == {
        "anthropic": "https://api.anthropic.com/v1",
        "openai": OPENAI,
        "mine": "https://b.example/v1",
        "own": "https://c.example/v1",
    }
    launch = opencode.launch(made, {"mine": "http://g/u/mine/v1", "own": "http://g/u/own/v1"}, tmp_path)
    assert launch.command == made.command
    assert json.loads(launch.environment["OPENCODE_CONFIG_CONTENT"]) == {
        "theme": "t",
        "provider": {
            "own": {"options": {"baseURL": "http://g/u/own/v1", "x": 1}},
            "mine": {"options": {"baseURL": "http://g/u/mine/v1"}},
        },
    }


def test_pi_gets_an_extension_for_the_run(tmp_path: Path) -> None:
    pi = client_of("pi")
    write(
        tmp_path / ".pi" / "agent" / "models.json",
        '{"providers": {"mine": {"baseUrl": "https://a.example/v1"}, "b": {}}}',
    )
    made = call(tmp_path, "pi", "-p", "hi")
    assert pi.upstreams(made) == {
        "anthropic": "https://api.anthropic.com",
        "openai": OPENAI,
        "mine": "https://a.example/v1",
    }
    launch = pi.launch(made, {"mine": "http://g/v1"}, tmp_path)
    assert launch.command == ("pi", "-e", str(tmp_path / "firsthand-gateway.js"), "-p", "hi")
    assert 'pi.registerProvider("mine", { baseUrl: "http://g/v1" });' in Path(launch.command[2]).read_text()
    assert pi.launch(call(tmp_path, "pi", "update"), {}, tmp_path).command == ("pi", "update")


def test_any_other_program_gets_the_variables_of_the_sdks(tmp_path: Path) -> None:
    program = client_of("python3")
    made = call(tmp_path, "python3", "agent.py", OPENAI_BASE_URL="https://o.example/v1")
    assert program.upstreams(made) == {"openai": "https://o.example/v1", "anthropic": "https://api.anthropic.com"}
    launch = program.launch(made, {"openai": "http://o", "anthropic": "http://a"}, tmp_path)
    assert launch.environment == {"OPENAI_BASE_URL": "http://o", "ANTHROPIC_BASE_URL": "http://a"}


@pytest.mark.parametrize(
    ("client", "file", "text"),
    [
        ("codex", ".codex/config.toml", "model = "),
        ("claude", ".claude/settings.json", "{"),
        ("opencode", ".config/opencode/opencode.json", "[]"),
        ("pi", ".pi/agent/models.json", "\x00"),
    ],
)
def test_settings_that_cannot_be_read_are_named(tmp_path: Path, client: str, file: str, text: str) -> None:
    write(tmp_path / file, text)
    with pytest.raises(ConfigError, match=Path(file).name.replace(".", r"\.")):
        client_of(client).upstreams(call(tmp_path, client))
