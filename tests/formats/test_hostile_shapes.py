"""Any JSON value in any place of a session: a reader may leave things out, it must not fail."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from firsthand.codec import decode_as, encode
from firsthand.errors import EmptySessionError
from firsthand.formats.files.base import Reader
from firsthand.formats.files.cursor import CursorReader
from firsthand.formats.files.gemini.reader import GeminiReader
from firsthand.formats.files.opencode.reader import OpenCodeReader
from firsthand.formats.files.openhands.reader import OpenHandsReader
from firsthand.formats.files.swe_agent.reader import SweAgentReader
from firsthand.formats.files.tau_bench import TauBenchReader
from firsthand.transcript import Transcript

from . import test_gemini as gemini
from . import test_openhands as openhands
from . import test_swe_agent as swe
from . import test_tau_bench as tau
from .opencode_layouts import START, compacted, export, finish, objects, tool
from .reading import opened

ODD = [None, True, 0, -1, 1.5, 10**30, "", "x", "\ud800", [], {}, [1], ["x"], [[]], [None], [{}], {"a": 1}, {"text": 3}]


def _lines(values: list[Any]) -> bytes:
    return b"\n".join(json.dumps(value).encode() for value in values)


def _document(value: Any) -> bytes:
    return json.dumps(value).encode()


OPENCODE = compacted(tail="msg_003", part={"overflow": True})
OPENCODE.assistant(
    START,
    {"type": "reasoning", "text": "hm", "metadata": {"p": {}}},
    tool("c1", attachments=[{"mime": "image/png", "url": "data:image/png;base64,QQ=="}]),
    tool("c2", None, status="error", error="e", metadata={"interrupted": True, "output": "o"}),
    finish(total=3, input=1, output=1, reasoning=1),
    START,
    "end",
    tokens={"input": 1, "output": 1, "cache": {"read": 1}},
    error={"name": "APIError"},
)
OPENCODE.info["revert"] = {"messageID": "msg_007"}

GEMINI_LOG = [
    gemini.HEAD,
    *gemini.RESUMED,
    gemini.said(
        "k", [{"text": "x", "thought": True}, {"inlineData": {"mimeType": "a/b", "data": "QQ=="}}], tokens={"input": 1}
    ),
    gemini.history(gemini.CONTEXT, gemini.user("sum", "S")),
    gemini.user("q9", displayContent="x"),
    {"$rewindTo": "q9"},
    gemini.said(
        "z", "end", gemini.call("c", "out", "error"), thoughts=[{"subject": "s", "description": "d"}], model="m"
    ),
]

SWE = json.loads(
    swe.encoded(
        [swe.system(), swe.user("demo", is_demo=True), swe.user("task"), swe.acts("a", "ls"), swe.user("out")],
        [swe.step(swe.acts("a", "ls"), "the whole output")],
    )
)
MINI = json.loads(
    swe.mini(
        {
            "role": "user",
            "content": [{"type": "text", "text": "task"}, {"type": "image_url", "image_url": {"url": "u"}}],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "function": {"name": "bash", "arguments": "{}"}}],
            "thinking_blocks": [{"thinking": "x", "signature": "s"}],
            "extra": {
                "response": {"id": "r", "model": "m", "usage": {"prompt_tokens": 1}},
                "actions": [{"command": "ls"}],
            },
        },
        {"role": "tool", "tool_call_id": "c", "content": "out", "extra": {"returncode": 1, "timestamp": 1.0}},
        {
            "object": "response",
            "output": [{"type": "reasoning", "summary": [{"text": "x"}]}, {"type": "function_call"}],
        },
    )
)
OPENHANDS = [
    json.loads(
        openhands.run(
            openhands.event(0, action="system", args={"content": "r", "tools": [1]}),
            openhands.task(image_urls=["u"]),
            openhands.acts(2, "c1", openhands.response("r1", "x", "c1")),
            openhands.sees(3, 2, "y", extras={"metadata": {"exit_code": 1, "prefix": "p", "suffix": "s"}}),
            openhands.event(
                4, action="condensation", args={"forgotten_event_ids": [2], "summary": "S", "summary_offset": 1}
            ),
            openhands.event(5, action="run", args={"command": "ls", "thought": "t"}),
            openhands.event(6, observation="recall", extras={"microagent_knowledge": [{"content": "k"}]}, content="x"),
            metrics={"token_usages": [{"response_id": "r1", "prompt_tokens": 1}]},
        )
    )
]
CURSOR = [
    {"role": "user", "message": {"content": [{"type": "text", "text": "q"}]}},
    {"role": "assistant", "message": {"content": "a"}},
]

CASES: list[tuple[str, Reader, Any, Callable[[Any], bytes]]] = [
    ("opencode export", OpenCodeReader(), json.loads(export(OPENCODE.session)), _document),
    ("opencode dump", OpenCodeReader(), objects([OPENCODE.session]), _lines),
    ("gemini document", GeminiReader(), json.loads(gemini.document(*GEMINI_LOG[2:4])), _document),
    ("gemini log", GeminiReader(), GEMINI_LOG, _lines),
    ("swe-agent", SweAgentReader(), SWE, _document),
    ("mini-swe-agent", SweAgentReader(), MINI, _document),
    ("openhands", OpenHandsReader(), OPENHANDS, _lines),
    ("openhands trajectory", OpenHandsReader(), OPENHANDS[0]["history"], _document),
    ("tau-bench", TauBenchReader(), [tau.RUN], _document),
    ("cursor", CursorReader(), CURSOR, _lines),
]


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield (*way, key)
        yield from places(item, (*way, key))


def changed(value: Any, way: tuple[Any, ...], put: Any) -> Any:
    out = copy.deepcopy(value)
    at = out
    for key in way[:-1]:
        at = at[key]
    at[way[-1]] = put
    return out


def readable(reader: Reader, data: bytes) -> list[Transcript]:
    reader.sniff(opened(data))
    try:
        found = reader.read(opened(data))
    except EmptySessionError:
        return []
    for transcript in found:
        ids = [entry.id for entry in transcript.entries]
        assert len(set(ids)) == len(ids)
        if transcript.leaf is not None:
            assert transcript.path()
        assert decode_as(encode(transcript), Transcript) == transcript
    return found


@pytest.mark.parametrize(("name", "reader", "value", "written"), CASES, ids=[case[0] for case in CASES])
def test_an_odd_value_in_every_place(name: str, reader: Reader, value: Any, written: Callable[[Any], bytes]) -> None:
    whole = sum(len(t.entries) for t in readable(reader, written(value)))
    assert whole >= 2
    chosen = random.Random(name)
    for way in places(value):
        for put in chosen.sample(ODD, 3):
            readable(reader, written(changed(value, way, put)))


@pytest.mark.parametrize(("name", "reader", "value", "written"), CASES, ids=[case[0] for case in CASES])
def test_bytes_changed_anywhere(name: str, reader: Reader, value: Any, written: Callable[[Any], bytes]) -> None:
    data = written(value)
    chosen = random.Random(name)
    for _ in range(60):
        at, length = chosen.randrange(len(data)), chosen.choice([0, 1, 1, 3, 40])
        put = bytes(chosen.choices(b'\x00\xff"{}[],:\\\n a', k=chosen.choice([0, 0, 1, 3])))
        readable(reader, data[:at] + put + data[at + length :])
