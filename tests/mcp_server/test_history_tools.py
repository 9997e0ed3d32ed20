"""The MCP server, asked by the SDK's own client: in memory, over stdio, over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from firsthand.errors import ConfigError
from firsthand.journal import Journal
from firsthand.mcp.scope import HistoryScope
from firsthand.mcp.server import history_server
from firsthand.transcript import Entry, Text, ToolCall, ToolResult

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from running import run

LONG = "x" * 9_000 + " the end é"


def entries(name: str) -> list[Entry]:
    return [
        Entry(id=f"{name}-entry-0001", role="user", blocks=(Text(f"Find MARK in {name}"),)),
        Entry(id=f"{name}-entry-0002", role="assistant", blocks=(ToolCall(id=f"{name}c1", name="bash", arguments='{"cmd":"ls"}'),)),
        Entry(id=f"{name}-entry-0003", role="tool", blocks=(ToolResult(call_id=f"{name}c1", content=(Text(f"{LONG} MARK"),)),)),
    ]  # fmt: skip


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "j.db"
    with Journal.open(path) as store:
        for session, tenant in (("one", "local"), ("two", "local"), ("bob", "bob")):
            store.create(session, tenant=tenant)
            store.append(session, entries(session))
    return path


def ask(server: Any, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    async def all_of_them() -> list[Any]:
        async with Client(server) as client:
            return [await client.call_tool(name, given) for name, given in calls]

    return asyncio.run(asyncio.wait_for(all_of_them(), 60))


def search(query: str = "MARK", **more: Any) -> tuple[str, dict[str, Any]]:
    return "history_search", {"query": query, **more}


def get(entry: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "history_get", {"entry": entry, **more}


def found(answer: Any) -> list[str]:
    assert not answer.is_error, answer
    return [match["entry"] for match in answer.structured_content["matches"]]


def test_a_tenant_sees_its_sessions_and_no_other(journal: Path) -> None:
    with Journal.open(journal) as store:
        server = history_server(HistoryScope(store))
        everything, of_bob, by_start, quoted = ask(
            server, search(), get("bob-entry-0001"), get("bob-entry"), search("in bob")
        )
        assert found(everything) == ["two-entry-0003", "two-entry-0001", "one-entry-0003", "one-entry-0001"]
        assert of_bob.is_error
        assert by_start.is_error
        assert "there is no entry 'bob-entry'" in by_start.content[0].text
        assert "bob-entry-0001" not in by_start.content[0].text
        assert found(quoted) == []
        bob = history_server(HistoryScope(store, tenant="bob"))
        assert found(ask(bob, search())[0]) == ["bob-entry-0003", "bob-entry-0001"]


def test_one_session_and_nothing_else_of_its_tenant(journal: Path) -> None:
    with Journal.open(journal) as store:
        server = history_server(HistoryScope(store, session="one"))
        here, there = ask(server, search(), get("two-entry-0001"))
        assert found(here) == ["one-entry-0003", "one-entry-0001"]
        assert there.is_error
        with pytest.raises(ConfigError, match="has no session"):
            HistoryScope(store, session="bob", tenant="local")


def test_pages_join_to_the_text_and_answers_stay_small(journal: Path) -> None:
    with Journal.open(journal) as store:
        server = history_server(HistoryScope(store))
        text, offset = "", 0
        while True:
            [answer] = ask(server, get("one-entry-0003", offset=offset, limit=1_000))
            page = answer.structured_content
            assert len(page["text"].encode()) <= 1_000
            text += page["text"]
            if page["next_offset"] is None:
                break
            offset = page["next_offset"]
        assert text == f"{LONG} MARK"
        first, second, too_many, too_long, no_offset, no_kind = ask(
            server,
            search(limit=1),
            search(limit=3, role="tool"),
            search(limit=21),
            get("one-entry-0003", limit=8_193),
            get("one-entry-0003", offset=10_000),
            search(kind="poem"),
        )
        assert found(first) == ["two-entry-0003"]
        assert first.structured_content["cursor"]
        [again] = ask(server, search(limit=1, cursor=first.structured_content["cursor"]))
        assert found(again) == ["two-entry-0001"]
        assert found(second) == ["two-entry-0003", "one-entry-0003"]
        match = second.structured_content["matches"][0]
        [there] = ask(server, get(match["entry"], offset=match["offset"]))
        assert there.structured_content["text"] == "MARK"
        assert all(answer.is_error for answer in (too_many, too_long, no_offset, no_kind))
        assert "Traceback" not in str((too_many, too_long, no_offset, no_kind))


def test_a_text_that_json_cannot_hold_comes_readable(journal: Path) -> None:
    with Journal.open(journal) as store:
        store.append("one", [Entry(id="one-entry-0004", role="user", blocks=(Text("a\ud800b \x00 NEEDLE"),))])
        server = history_server(HistoryScope(store))
        hit, page = ask(server, search("NEEDLE"), get("one-entry-0004"))
        assert found(hit) == ["one-entry-0004"]
        assert page.structured_content["text"].endswith("b \x00 NEEDLE")


def test_over_stdio(journal: Path) -> None:
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "firsthand", "mcp", "--journal", str(journal), "--session", "one"],
        env=dict(os.environ),
    )
    here, page = ask(parameters, search(), get("one-entry-0001"))
    assert found(here) == ["one-entry-0003", "one-entry-0001"]
    assert page.structured_content["text"] == "Find MARK in one"


@contextlib.contextmanager
def served(*words: str) -> Iterator[str]:
    command = [sys.executable, "-m", "firsthand", "mcp", "--http", "--port", "0", *words]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        yield process.stderr.readline().split()[2].rstrip(",")
    finally:
        process.terminate()
        process.communicate(timeout=20)


def test_over_http(journal: Path) -> None:
    with served("--journal", str(journal)) as url:
        assert len(found(ask(url, search())[0])) == 4


def test_over_http_each_key_sees_its_own_tenant(journal: Path, tmp_path: Path) -> None:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    keys = "".join(
        f'[[keys]]\nid = "{name}"\nsha256 = "{hashlib.sha256(name.encode()).hexdigest()}"\n' for name in ("bob", "eve")
    )
    config = tmp_path / "gateway.toml"
    config.write_text(f'[upstreams.a]\nurl = "http://127.0.0.1:9"\n{keys}')

    async def seen(url: str, key: str) -> Any:
        async with (
            httpx2.AsyncClient(headers={"authorization": f"Bearer {key}"}, trust_env=False) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            return await client.call_tool("history_search", {"query": "MARK"})

    with served("--journal", str(journal), "--config", str(config)) as url:
        assert found(asyncio.run(seen(url, "bob"))) == ["bob-entry-0003", "bob-entry-0001"]
        assert found(asyncio.run(seen(url, "eve"))) == []
        assert httpx2.post(url, json={}, trust_env=False).status_code == 401
        assert httpx2.post(url, json={}, headers={"x-firsthand-key": "no"}, trust_env=False).status_code == 401


def test_another_address_needs_keys(journal: Path) -> None:
    ran = run("mcp", "--http", "--host", "0.0.0.0", "--port", 0, "--journal", journal, check=False)
    assert ran.returncode == 1
    assert ran.stderr.startswith("error: 0.0.0.0 can be reached from other machines")
