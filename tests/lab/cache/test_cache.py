from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from firsthand.cli.lab_cache import register
from firsthand.errors import FirsthandError
from firsthand.lab.cache.measuring import (
    STRATEGIES,
    Measured,
    before_tools,
    broken,
    cases,
    measure_cache,
)
from firsthand.lab.cache.session import SYSTEM, TOOLS
from firsthand.testing.local_model import model_file
from firsthand.tokens import O200kCounter


class Prefixes:
    """A server that takes each character for a token and caches the last prompt; its template can hide tools, its cache can be off."""

    def __init__(self, *, tools: bool = True, cache: bool = True) -> None:
        self._shows_tools = tools
        self._caches = cache
        self._held = ""

    def text(self, body: Mapping[str, Any], answer: bool = True) -> str:
        shown = [
            f"<{m['role']}>{m.get('content') or ''}{json.dumps(m.get('tool_calls', ''))}" for m in body["messages"]
        ]
        if self._shows_tools and "tools" in body:
            shown[0] += "tools:" + json.dumps(body["tools"])
        return "|".join(shown) + "|" + ("answer:" if answer else "")

    def tokens(self, body: Mapping[str, Any], *, answer: bool = True) -> list[int]:
        return [ord(character) for character in self.text(body, answer)]

    def ask(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        text = self.text(body)
        same = zip(text, self._held, strict=False)
        cached = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], same)) if self._caches else 0
        self._held = text
        return {
            "usage": {
                "prompt_tokens": len(text),
                "completion_tokens": 1,
                "prompt_tokens_details": {"cached_tokens": cached},
            }
        }


def by_name(found: list[Measured]) -> dict[str, Measured]:
    return {one.case.name.removeprefix("summary request of "): one for one in found}


def test_what_is_measured_is_small_and_what_it_says_it_is() -> None:
    counter = O200kCounter()
    found = {case.name: case for case in cases()}
    assert list(found)[:4] == ["identical shape", "other system prompt", "tools dropped", "one line added at the front"]
    assert all(any(name in told for told in found) for name in STRATEGIES)
    assert max(counter.count(json.dumps(case.body)) for case in found.values()) < 1_500
    same = found["identical shape"].body
    assert same["messages"][0]["content"] == SYSTEM
    assert same["tools"] == TOOLS
    other = found["one line added at the front"].body
    assert other["messages"][1:] == same["messages"][1:]
    assert other["messages"][0]["content"].endswith(SYSTEM)
    assert "tools" not in found["tools dropped"].body


def test_a_perfect_prefix_cache_is_within_all_bars() -> None:
    found = list(measure_cache(Prefixes()))
    assert broken(found) == []
    named = by_name(found)
    assert named["identical shape"].share == named["futureos-summarized"].share == 1.0
    assert named["tools dropped"].share < 0.3
    assert all(named[name].share < 0.05 for name in ("pi", "opencode-v1", "opencode-v2"))
    assert {one.case.published for one in found} >= {"93.7 %", "0 %", "shares the prefix"}


def test_without_a_cache_the_bars_break() -> None:
    told = broken(list(measure_cache(Prefixes(cache=False), strategies=("futureos-summarized",))))
    assert [line.split(":")[0] for line in told] == ["identical shape", "summary request of futureos-summarized"]
    assert "it should be at least 95%" in told[0]


def test_a_template_that_shows_no_tools_measures_nothing() -> None:
    with pytest.raises(FirsthandError, match="shows no tools"):
        list(measure_cache(Prefixes(tools=False)))


def test_what_stands_before_the_tools_is_what_dropping_them_may_keep() -> None:
    server = Prefixes()
    body = cases(())[0].body
    assert before_tools(server, body) == len(f"<system>{SYSTEM}{json.dumps('')}")


@pytest.mark.model
def test_on_a_real_model(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("xllamacpp")
    try:
        path = model_file()
    except FirsthandError as error:
        pytest.skip(str(error))
    app = typer.Typer()
    app.callback()(lambda: None)
    register(app)
    done = CliRunner().invoke(
        app, ["cache", "--json", "--strategies", "futureos-summarized,codex-local", "--model-file", str(path)]
    )
    assert done.exit_code == 0, done.output
    rows = {row["request"]: row for row in json.loads(done.stdout)}
    assert rows["identical shape"]["measured"] >= 0.95
    assert rows["other system prompt"]["measured"] < 0.05
    assert rows["one line added at the front"]["measured"] < 0.05
    assert rows["tools dropped"]["cached"] < rows["tools dropped"]["before"] / 5
    assert rows["summary request of futureos-summarized"]["measured"] >= 0.95
    assert rows["summary request of codex-local"]["measured"] < 0.5, "it drops the tools"
