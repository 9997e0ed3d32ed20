"""Hypothesis strategies for valid conversations as clients write them: all kinds of content, unknown fields, keys in any order."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from firsthand.testing.random_entries import json_objects

Raw = dict[str, Any]

PNG = "iVBORw0KGgo="


def sendable(text: str) -> str:
    """Random text that a request can hold and no API calls blank."""
    return text.encode("utf-8", "replace").decode().strip() or "words"


WORDS = st.one_of(
    st.sampled_from(
        ("hello", "two\nlines", "日本語 🙂", "  indented", "\x00nul", "<system-reminder>x</system-reminder>")
    ),
    st.text(max_size=10).map(sendable),
)
ARGUMENTS = st.sampled_from(
    (
        '{"path":"a.py"}',
        '{"a": 1.0, "b": [null, {}]}',
        "{}",
        '{"z":1,"a":"\\u00e9"}',
        "[1]",
        '{"big":123456789012345678901234567890}',
    )
)
INPUTS = st.one_of(
    st.sampled_from(({}, {"path": "a.py"}, {"z": 1.0, "a": [None, {}], "": True}, {"n": 10**30, "e": 1e-9})),
    json_objects().map(lambda value: _utf8(value)),
)
UNKNOWN = st.dictionaries(
    st.sampled_from(("x_note", "~order", "annotations", "metadata", "status2")),
    st.sampled_from((None, False, 0, "", [], {}, "kept", {"b": 1, "a": [1]})),
    max_size=2,
)


def _utf8(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_utf8(item) for item in value]
    if isinstance(value, dict):
        return {_utf8(name): _utf8(item) for name, item in value.items()}
    return value


def wild(value: SearchStrategy[Raw], *, more: SearchStrategy[Raw] = UNKNOWN) -> SearchStrategy[Raw]:
    """The object with unknown fields of its own and its keys in any order."""

    def shuffled(given: Raw, extra: Raw, seed: int) -> Raw:
        merged = {**extra, **given}
        names = sorted(merged, key=lambda name: hash_of(name, seed))
        return {name: merged[name] for name in (names if seed % 3 else merged)}

    return st.builds(shuffled, value, more, st.integers(0, 30))


def hash_of(name: str, seed: int) -> int:
    """A stable order that depends on the seed."""
    return sum(ord(character) * (seed + 7) ** (place + 1) for place, character in enumerate(name)) % 1009


def fixed(**fields: Any) -> SearchStrategy[Raw]:
    """An object whose values are strategies or constants; a key whose value is drawn as `ABSENT` is left out."""
    names = list(fields)
    values = [value if isinstance(value, SearchStrategy) else st.just(value) for value in fields.values()]
    return st.tuples(*values).map(lambda drawn: {n: v for n, v in zip(names, drawn, strict=True) if v is not ABSENT})


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Any = _Absent()


def maybe(value: Any) -> SearchStrategy[Any]:
    """The value, or no such key."""
    return st.one_of(st.just(ABSENT), value if isinstance(value, SearchStrategy) else st.just(value))


def lists(part: SearchStrategy[Any], least: int = 1, most: int = 2) -> SearchStrategy[list[Any]]:
    return st.lists(part, min_size=least, max_size=most)


def renumbered(steps: list[Any]) -> list[Any]:
    """Gives every call in the drawn steps an id of its own; steps are functions of a counter."""
    out: list[Any] = []
    number = 0
    for step in steps:
        made, number = step(number)
        out += made
    return out


# ----------------------------------------------------------------------------------------------------------- Chat Completions

_CHAT_TEXT = wild(fixed(type="text", text=WORDS))
_CHAT_USER_PART = st.one_of(
    _CHAT_TEXT,
    wild(
        fixed(
            type="image_url",
            image_url=wild(
                fixed(
                    url=st.sampled_from((f"data:image/png;base64,{PNG}", "https://example.org/a.png")),
                    detail=maybe("low"),
                )
            ),
        )
    ),
    wild(fixed(type="input_audio", input_audio=fixed(data="UklG", format=st.sampled_from(("wav", "mp3"))))),
    wild(
        fixed(
            type="file",
            file=st.one_of(
                fixed(filename="a.pdf", file_data="data:application/pdf;base64,JVBERi0="), fixed(file_id="file_1")
            ),
        )
    ),
)
_CHAT_STRING_OR_TEXTS = st.one_of(WORDS, lists(_CHAT_TEXT))
_CHAT_SYSTEM = wild(
    fixed(role=st.sampled_from(("system", "developer")), content=_CHAT_STRING_OR_TEXTS, name=maybe("policy"))
)
_CHAT_USER = wild(fixed(role="user", content=st.one_of(WORDS, lists(_CHAT_USER_PART)), name=maybe("bob")))
_CHAT_SAID = st.one_of(
    wild(
        fixed(
            role="assistant",
            content=st.one_of(WORDS, lists(st.one_of(_CHAT_TEXT, wild(fixed(type="refusal", refusal=WORDS))))),
            refusal=maybe(None),
            reasoning_content=maybe(WORDS),
            reasoning=maybe(st.sampled_from((None, "why"))),
            reasoning_details=maybe([{"type": "reasoning.encrypted", "data": "x"}]),
            function_call=maybe(None),
            name=maybe("helper"),
        )
    ),
    wild(fixed(role="assistant", content=maybe(None), refusal=WORDS)),
    wild(fixed(role="assistant", content=maybe(None), audio=fixed(id="audio_1"))),
)


def _chat_step(message: Raw, calls: list[Raw], results: list[Raw], backwards: bool) -> Any:
    def numbered(number: int) -> tuple[list[Raw], int]:
        ids = [f"call_{number + n}" for n in range(len(calls))]
        made = [{key: ids[n] if key == "id" else value for key, value in call.items()} for n, call in enumerate(calls)]
        answers = [
            {key: ids[n] if key == "tool_call_id" else value for key, value in results[n].items()}
            for n in range(len(calls))
        ]
        step = {key: made if key == "tool_calls" else value for key, value in message.items()}
        return [step, *(answers[::-1] if backwards else answers)], number + len(calls)

    return numbered


_CHAT_CALL = st.one_of(
    wild(fixed(id="?", type="function", function=wild(fixed(name="read", arguments=ARGUMENTS)))),
    wild(fixed(id="?", type="custom", custom=wild(fixed(name="patch", input=WORDS)))),
)
_CHAT_RESULT = wild(
    fixed(role="tool", tool_call_id="?", content=st.one_of(st.just(""), _CHAT_STRING_OR_TEXTS), name=maybe("read"))
)
_CHAT_CALLING = wild(
    fixed(
        role="assistant",
        content=maybe(st.one_of(st.none(), st.just(""), _CHAT_STRING_OR_TEXTS)),
        tool_calls="?",
        reasoning_content=maybe(WORDS),
        refusal=maybe(None),
    )
)
_CHAT_STEP = st.builds(_chat_step, _CHAT_CALLING, lists(_CHAT_CALL, 1, 3), lists(_CHAT_RESULT, 3, 3), st.booleans())
_CHAT_LEGACY = st.builds(
    lambda message, result: lambda number: ([message, result], number),
    wild(fixed(role="assistant", content=maybe(None), function_call=wild(fixed(name="read", arguments=ARGUMENTS)))),
    wild(fixed(role="function", name="read", content=WORDS)),
)


def _plain(message: SearchStrategy[Raw]) -> SearchStrategy[Any]:
    return message.map(lambda made: lambda number: ([made], number))


chat_conversations: SearchStrategy[list[Raw]] = st.lists(
    st.one_of(_plain(_CHAT_SYSTEM), _plain(_CHAT_USER), _plain(_CHAT_SAID), _CHAT_STEP, _CHAT_STEP, _CHAT_LEGACY),
    min_size=1,
    max_size=5,
).map(renumbered)

# ----------------------------------------------------------------------------------------------------------------- Responses

_IN_TEXT = wild(fixed(type="input_text", text=st.one_of(WORDS, WORDS, st.just(""))))
_IN_PART = st.one_of(
    _IN_TEXT,
    wild(
        fixed(
            type="input_image",
            image_url=st.sampled_from((f"data:image/png;base64,{PNG}", "https://example.org/a.png")),
            detail=maybe("auto"),
        )
    ),
    wild(fixed(type="input_image", file_id="file_1")),
    wild(fixed(type="input_file", filename=maybe("a.pdf"), file_data="data:application/pdf;base64,JVBERi0=")),
    wild(fixed(type="input_file", file_url="https://example.org/a.pdf")),
)
_OUT_PART = st.one_of(
    wild(fixed(type="output_text", text=WORDS, annotations=maybe([]), logprobs=maybe([]))),
    wild(fixed(type="output_text", text=WORDS, annotations=[{"type": "url_citation", "url": "https://example.org"}])),
    wild(fixed(type="refusal", refusal=WORDS)),
)
_ITEM_TYPE = maybe("message")
_R_GIVEN = wild(
    fixed(
        type=_ITEM_TYPE,
        role=st.sampled_from(("user", "user", "developer", "system")),
        content=st.one_of(WORDS, lists(_IN_PART)),
        id=maybe("msg_1"),
    )
)
_R_SAID = wild(
    fixed(
        type=_ITEM_TYPE,
        role="assistant",
        content=st.one_of(WORDS, lists(_OUT_PART)),
        id=maybe("msg_2"),
        status=maybe(st.sampled_from(("completed", "incomplete"))),
        phase=maybe("commentary"),
    )
)
_R_REASONING = st.one_of(
    wild(
        fixed(
            type="reasoning",
            id=maybe("rs_1"),
            summary=st.lists(fixed(type="summary_text", text=st.one_of(st.just(""), WORDS)), max_size=2),
            content=maybe(st.one_of(st.none(), st.lists(fixed(type="reasoning_text", text=WORDS), max_size=2))),
            encrypted_content="gAAA",
            status=maybe(None),
        )
    ),
    wild(fixed(type="reasoning", id="rs_2", summary=[], encrypted_content=maybe(None))),
)
_R_HOSTED = st.sampled_from(
    (
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
        {"id": "ci_1", "type": "code_interpreter_call", "code": "1", "outputs": None},
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "opaque"},
        {"type": "item_reference", "id": "msg_7"},
        {"type": "mcp_list_tools", "id": "m", "server_label": "s", "tools": []},
        {"type": "image_generation_call", "id": "ig_1", "result": "aGk="},
    )
)


def _response_step(before: list[Raw], calls: list[tuple[Raw, Raw]], backwards: bool) -> Any:
    def numbered(number: int) -> tuple[list[Raw], int]:
        made, answers = [], []
        for n, (call, answer) in enumerate(calls):
            call_id = f"call_{number + n}"
            made.append({key: call_id if key == "call_id" else value for key, value in call.items()})
            answers.append({key: call_id if key == "call_id" else value for key, value in answer.items()})
        return [*before, *made, *(answers[::-1] if backwards else answers)], number + len(calls)

    return numbered


_R_OUTPUT = st.one_of(WORDS, st.just(""), lists(st.one_of(_IN_TEXT, _IN_PART)))
_R_PAIR = st.one_of(
    st.tuples(
        wild(
            fixed(
                type="function_call",
                call_id="?",
                name="read",
                arguments=ARGUMENTS,
                id=maybe("fc_1"),
                status=maybe("completed"),
            )
        ),
        wild(
            fixed(
                type="function_call_output", call_id="?", output=_R_OUTPUT, id=maybe("fco_1"), status=maybe("completed")
            )
        ),
    ),
    st.tuples(
        wild(fixed(type="custom_tool_call", call_id="?", name="apply_patch", input=WORDS, id=maybe("ctc_1"))),
        wild(fixed(type="custom_tool_call_output", call_id="?", output=_R_OUTPUT)),
    ),
    st.tuples(
        wild(
            fixed(type="shell_call", call_id="?", action={"commands": ["ls"], "timeout_ms": None}, status="completed")
        ),
        wild(
            fixed(
                type="shell_call_output",
                call_id="?",
                output=[{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
            )
        ),
    ),
    st.tuples(
        wild(
            fixed(
                type="local_shell_call",
                id="lsh_1",
                call_id="?",
                action={"type": "exec", "command": ["ls"], "env": {}},
                status="completed",
            )
        ),
        wild(fixed(type="function_call_output", call_id="?", output=WORDS)),
    ),
    st.tuples(
        wild(
            fixed(
                type="computer_call",
                id="cu_1",
                call_id="?",
                action={"type": "screenshot"},
                pending_safety_checks=[],
                status="completed",
            )
        ),
        wild(
            fixed(
                type="computer_call_output",
                call_id="?",
                output={"type": "computer_screenshot", "image_url": f"data:image/png;base64,{PNG}"},
            )
        ),
    ),
    st.tuples(
        wild(
            fixed(
                type="apply_patch_call",
                id="ap_1",
                call_id="?",
                operation={"type": "delete_file", "path": "a"},
                status="completed",
            )
        ),
        wild(fixed(type="apply_patch_call_output", call_id="?", status="completed", output="ok")),
    ),
)
_R_STEP = st.builds(
    _response_step, st.lists(st.one_of(_R_REASONING, _R_SAID), max_size=2), lists(_R_PAIR, 1, 3), st.booleans()
)
_R_THOUGHT = st.builds(
    lambda thought, said: lambda number: ([thought, said], number), _R_REASONING, st.one_of(_R_SAID, _R_HOSTED)
)

responses_conversations: SearchStrategy[list[Raw]] = st.lists(
    st.one_of(_plain(_R_GIVEN), _plain(_R_SAID), _plain(_R_HOSTED), _R_STEP, _R_STEP, _R_THOUGHT),
    min_size=1,
    max_size=5,
).map(renumbered)

# ----------------------------------------------------------------------------------------------------------------- Anthropic

_A_MARK = st.one_of(st.just(ABSENT), st.just(ABSENT), st.just(ABSENT), st.just({"type": "ephemeral"}))
_A_TEXT = wild(
    fixed(
        type="text",
        text=WORDS,
        citations=maybe(st.sampled_from((None, [{"type": "page_location", "cited_text": "x"}]))),
    )
)
_A_SOURCE = st.one_of(
    wild(fixed(type="base64", media_type="image/png", data=PNG), more=st.just({})),
    fixed(type="url", url="https://example.org/a.png"),
    fixed(type="file", file_id="file_1"),
)
_A_IMAGE = wild(fixed(type="image", source=_A_SOURCE))
_A_DOCUMENT = st.one_of(
    wild(
        fixed(
            type="document",
            source=fixed(type="base64", media_type="application/pdf", data="JVBERi0="),
            title=maybe("t"),
            citations=maybe({"enabled": True}),
        )
    ),
    wild(fixed(type="document", source=fixed(type="text", media_type="text/plain", data=WORDS))),
    wild(
        fixed(
            type="search_result", source="https://example.org", title="t", content=lists(fixed(type="text", text=WORDS))
        )
    ),
)
_A_GIVEN = st.one_of(_A_TEXT, _A_TEXT, _A_IMAGE, _A_DOCUMENT, fixed(type="container_upload", file_id="file_2"))
_A_USER_CONTENT = st.one_of(WORDS, lists(_A_GIVEN, 1, 3))
_A_THINKING = st.one_of(
    fixed(type="thinking", thinking=st.one_of(st.just(""), WORDS), signature="c2ln"),
    fixed(type="redacted_thinking", data="cmVk"),
    wild(fixed(signature="c2ln", thinking=WORDS, type="thinking")),
)
_A_RESULT = wild(
    fixed(
        type="tool_result",
        tool_use_id="?",
        content=maybe(
            st.one_of(st.just(""), st.just([]), WORDS, lists(st.one_of(_A_TEXT, _A_IMAGE, _A_DOCUMENT), 1, 2))
        ),
        is_error=maybe(False),
    )
)
_A_FAILED = wild(fixed(type="tool_result", tool_use_id="?", content=WORDS, is_error=True))
_A_CALL = wild(fixed(type="tool_use", id="?", name="Read", input=INPUTS, caller=maybe({"type": "direct"})))
_A_HOSTED = st.sampled_from(
    (
        [
            {"type": "server_tool_use", "id": "srvtoolu_", "name": "web_search", "input": {"query": "q"}},
            {
                "type": "web_search_tool_result",
                "tool_use_id": "srvtoolu_",
                "content": [{"type": "web_search_result", "url": "u", "encrypted_content": "e"}],
            },
        ],
        [
            {"type": "mcp_tool_use", "id": "mcptoolu_", "name": "echo", "server_name": "s", "input": {}},
            {
                "type": "mcp_tool_result",
                "tool_use_id": "mcptoolu_",
                "is_error": False,
                "content": [{"type": "text", "text": "x"}],
            },
        ],
    )
)


def _anthropic_turns(turns: list[tuple[Any, list[Any], Any]], system: Any, marks: list[bool]) -> tuple[list[Raw], Any]:
    """Alternating messages: what the user gives, steps of calls, the answer. Results and new words of the user may share a message."""
    messages: list[Raw] = []
    pending: list[Raw] = []
    number = 0

    def add(role: str, content: Any, shell: Raw) -> None:
        messages.append({key: {"role": role, "content": content}.get(key, value) for key, value in shell.items()})

    for given, steps, (said, shell) in turns:
        add(
            "user",
            [*pending, *given]
            if pending and isinstance(given, list)
            else [*pending, {"type": "text", "text": given}]
            if pending
            else given,
            shell,
        )
        pending = []
        for thinking, words, hosted, calls in steps:
            if pending:
                add("user", pending, shell)
                pending = []
            content: list[Raw] = [*thinking, *words]
            ids = ("id", "tool_use_id")
            content += [{k: f"{v}{number}" if k in ids else v for k, v in block.items()} for block in hosted]
            for call, result in calls:
                number += 1
                content.append({k: f"toolu_{number}" if k == "id" else v for k, v in call.items()})
                pending.append({k: f"toolu_{number}" if k == "tool_use_id" else v for k, v in result.items()})
            number += 1
            add("assistant", content, shell)
        if pending:
            continue
        add("assistant", said, shell)
    if pending:
        add("user", pending, {"role": "", "content": ""})
    _mark(messages, system, marks)
    return messages, system


def _mark(messages: list[Raw], system: Any, marks: list[bool]) -> None:
    """Cache marks on some blocks, four at most."""
    blocks = [
        *(system if isinstance(system, list) else []),
        *(b for m in messages if isinstance(m["content"], list) for b in m["content"]),
    ]
    left = 4
    for block, marked in zip(blocks, marks, strict=False):
        if marked and left and "thinking" not in block["type"]:
            block["cache_control"] = {"type": "ephemeral"}
            left -= 1


_A_SHELL = st.sampled_from(
    ({"role": "", "content": ""}, {"content": "", "role": ""}, {"role": "", "content": "", "id": "msg_1"})
)
_A_STEP = st.tuples(
    st.lists(_A_THINKING, max_size=2),
    st.lists(_A_TEXT, max_size=1),
    st.one_of(st.just([]), st.just([]), _A_HOSTED),
    lists(st.tuples(_A_CALL, st.one_of(_A_RESULT, _A_FAILED)), 1, 3),
)
_A_SAID = st.one_of(WORDS, lists(_A_TEXT), st.builds(lambda a, b: [a, b], _A_THINKING, _A_TEXT))
anthropic_conversations: SearchStrategy[tuple[list[Raw], Any]] = st.builds(
    _anthropic_turns,
    st.lists(
        st.tuples(_A_USER_CONTENT, st.lists(_A_STEP, max_size=2), st.tuples(_A_SAID, _A_SHELL)), min_size=1, max_size=3
    ),
    st.one_of(st.none(), WORDS, lists(wild(fixed(type="text", text=WORDS)))),
    st.lists(st.booleans(), max_size=12),
)
