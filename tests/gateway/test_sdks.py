"""The official SDKs through the gateway: streaming and not, with tools and images, across a compaction that they do not notice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from gatewayed import agent_session, running

from firsthand.testing.server import Call, FakeServer, Reply

PNG = "iVBORw0KGgo="
WINDOW = {"*": 8_000}
CALLS = Reply("I look. 日本語", calls=(Call("bash", {"cmd": "ls"}), Call("bash", {"cmd": "pwd"})))
STREAM = pytest.mark.parametrize("stream", [False, True])


def messages_of(wire: str) -> list[Any]:
    *_, messages = agent_session(wire, 14)
    image: dict[str, Any] = {
        "openai-chat": {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
        "openai-responses": {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"},
        "anthropic": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
    }
    return [{"role": "user", "content": [image[wire]]}, {"role": "assistant", "content": "I see."}, *messages]


@STREAM
def test_openai_chat(tmp_path: Path, stream: bool) -> None:
    with FakeServer([CALLS, "done"], cache=False) as server, running(tmp_path, server, windows=WINDOW) as both:
        client = openai.OpenAI(base_url=f"{both.gateway.url}/v1", api_key="sk-sdk", max_retries=0)
        messages = messages_of("openai-chat")
        with client.chat.completions.stream(model="m", messages=messages) if stream else _nothing() as streamed:
            if stream:
                answer = streamed.get_final_completion().choices[0].message
            else:
                answer = client.chat.completions.create(model="m", messages=messages).choices[0].message
        assert answer.content == CALLS.text
        assert [call.function.arguments for call in answer.tool_calls] == ['{"cmd":"ls"}', '{"cmd":"pwd"}']
        assert len(server.turns[-1].messages) < len(messages)
        results = [{"role": "tool", "tool_call_id": call.id, "content": "x"} for call in answer.tool_calls]
        messages += [answer.model_dump(exclude_none=True, exclude={"parsed"}), *results]
        raw = client.chat.completions.with_raw_response.create(model="m", messages=messages)
        assert raw.headers["x-firsthand-decision"] == "projected"
        assert raw.parse().choices[0].message.content == "done"
        assert server.problems == []


@STREAM
def test_openai_responses(tmp_path: Path, stream: bool) -> None:
    with FakeServer([CALLS, "done"], cache=False) as server, running(tmp_path, server, windows=WINDOW) as both:
        client = openai.OpenAI(base_url=f"{both.gateway.url}/v1", api_key="sk-sdk", max_retries=0)
        items = messages_of("openai-responses")
        if stream:
            with client.responses.stream(model="m", input=items) as streamed:
                answer = streamed.get_final_response()
        else:
            answer = client.responses.create(model="m", input=items)
        assert answer.output_text == CALLS.text
        calls = [item for item in answer.output if item.type == "function_call"]
        assert len(calls) == 2
        items += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in answer.output]
        items += [{"type": "function_call_output", "call_id": call.call_id, "output": "x"} for call in calls]
        raw = client.responses.with_raw_response.create(model="m", input=items)
        assert raw.headers["x-firsthand-decision"] == "projected"
        assert raw.parse().output_text == "done"


@STREAM
def test_anthropic(tmp_path: Path, stream: bool) -> None:
    with FakeServer([CALLS, "done"], cache=False) as server, running(tmp_path, server, windows=WINDOW) as both:
        client = anthropic.Anthropic(base_url=both.gateway.url, api_key="sk-sdk", max_retries=0)
        messages = messages_of("anthropic")
        if stream:
            with client.messages.stream(model="m", max_tokens=500, messages=messages) as streamed:
                answer = streamed.get_final_message()
        else:
            answer = client.messages.create(model="m", max_tokens=500, messages=messages)
        calls = [block for block in answer.content if block.type == "tool_use"]
        assert (answer.content[0].text, len(calls)) == (CALLS.text, 2)
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": "x"} for call in calls]
        content = [block.model_dump(exclude_none=True) for block in answer.content]
        messages += [{"role": "assistant", "content": content}, {"role": "user", "content": results}]
        raw = client.messages.with_raw_response.create(model="m", max_tokens=500, messages=messages)
        assert raw.headers["x-firsthand-decision"] == "projected"
        assert raw.parse().content[0].text == "done"
        assert client.messages.count_tokens(model="m", messages=messages).input_tokens < 6_000


def _nothing() -> Any:
    import contextlib

    return contextlib.nullcontext()
