"""What entries a client's messages become, and what is mended in messages that no provider would take."""

from __future__ import annotations

from typing import Any

import pytest

from firsthand.formats.wire import wire_by_name
from firsthand.testing.builders import result, said
from firsthand.testing.validate import assert_valid, validate
from firsthand.transcript import Block, Media, Reasoning, Text, ToolCall, ToolResult, Unknown

MARK = {"cache_control": {"type": "ephemeral"}}


def read(name: str, messages: Any, system: Any = None) -> list[tuple[str, tuple[Block, ...]]]:
    return [(e.role, e.blocks) for e in wire_by_name(name).read(messages, system=system)]


def test_chat() -> None:
    assert read(
        "openai-chat",
        [
            {"role": "developer", "content": "rules"},
            {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "detail": "low"}}]},
            {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"a": 1}'}, "index": 0}, {"id": "c2", "type": "custom", "custom": {"name": "patch", "input": "***"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "x"},
            {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "y"}]},
            {"role": "assistant", "content": "done", "refusal": None},
            {"role": "assistant", "refusal": "no"},
        ],
    ) == [
        ("developer", (Text("rules"),)),
        ("user", (Text("look"), Media("image", "image/png", "aGk=", None, {"image_url": {"detail": "low"}}))),
        (
            "assistant",
            (
                Reasoning("hm", extra={"~at": "reasoning_content"}),
                ToolCall("c1", "read", '{"a": 1}', "function", {"index": 0}),
                ToolCall("c2", "patch", "***", "custom"),
            ),
        ),
        ("tool", (ToolResult("c1", (Text("x"),)),)),
        ("tool", (ToolResult("c2", (Text("y"),), extra={"~content": "list"}),)),
        ("assistant", (Text("done"),)),
        ("assistant", (Text("no", extra={"~at": "refusal"}),)),
    ]  # fmt: skip


def test_legacy_functions_get_ids_from_their_position() -> None:
    messages = [
        {"role": "assistant", "content": None, "function_call": {"name": "read", "arguments": "{}"}},
        {"role": "function", "name": "read", "content": "x"},
        {"role": "assistant", "content": None, "function_call": {"name": "read", "arguments": "{}"}},
        {"role": "function", "name": "read", "content": "y"},
    ]
    found = [b.id if isinstance(b, ToolCall) else b.call_id for _, (b,) in read("openai-chat", messages)]  # type: ignore[union-attr]
    assert found == ["function_call_0", "function_call_0", "function_call_2", "function_call_2"]
    entries = wire_by_name("openai-chat").read(messages)
    assert_valid("anthropic", wire_by_name("anthropic").write(entries).messages)


def test_arguments_that_a_server_gives_as_an_object() -> None:
    messages = [
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "read", "arguments": {"b": 1, "a": 2}}}]},
        {"role": "tool", "tool_call_id": "c", "content": "x"},
    ]  # fmt: skip
    wire = wire_by_name("openai-chat")
    entries = wire.read(messages)
    assert entries[0].blocks[1] == ToolCall("c", "read", '{"b":1,"a":2}', "function", {"~arguments": "object"})
    assert wire.write(entries).messages == messages


def test_responses() -> None:
    assert read(
        "openai-responses",
        [
            {"role": "user", "content": "hi"},
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "bc"}], "encrypted_content": "gAAA"},
            {"type": "message", "role": "assistant", "id": "m", "content": [{"type": "output_text", "text": "ok", "annotations": []}]},
            {"type": "function_call", "id": "fc", "call_id": "c1", "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "x"}]},
            {"type": "local_shell_call", "id": "l", "call_id": "c2", "action": {"command": ["ls"]}, "status": "completed"},
            {"type": "local_shell_call_output", "id": "c2", "output": "y"},
            {"type": "web_search_call", "id": "ws", "status": "completed"},
        ],
    ) == [
        ("user", (Text("hi"),)),
        ("assistant", (Reasoning("a\n\nbc", {"id": "rs_1", "encrypted_content": "gAAA"}, {"~parts": [["summary", 1], ["summary", 2]]}),)),
        ("assistant", (Text("ok", extra={"annotations": []}),)),
        ("assistant", (ToolCall("c1", "read", "{}", "function", {"id": "fc", "~order": ["type", "id", "call_id", "name", "arguments"]}),)),
        ("tool", (ToolResult("c1", (Text("x"),), extra={"~output": "list"}),)),
        ("assistant", (ToolCall("c2", "local_shell", '{"command":["ls"]}', "local_shell_call", {"~payload": "action", "~name": False, "~arguments": "object", "id": "l", "status": "completed", "~order": ["type", "id", "call_id", "action", "status"]}),)),
        ("tool", (ToolResult("c2", (Text("y"),), extra={"~type": "local_shell_call_output", "id": "c2", "~without": ["call_id"], "~order": ["type", "id", "output"]}),)),
        ("assistant", (Unknown({"type": "web_search_call", "id": "ws", "status": "completed"}),)),
    ]  # fmt: skip


def test_anthropic() -> None:
    assert read(
        "anthropic",
        [
            {"role": "user", "content": [{"type": "text", "text": "<system-reminder>x</system-reminder>"}, {"type": "text", "text": "hi", **MARK}]},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "redacted_thinking", "data": "d"}, {"type": "tool_use", "id": "t1", "name": "Read", "input": {"b": 1, "a": [2.0]}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x", "is_error": True}]},
            {"role": "assistant", "content": [{"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}, {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}, {"type": "text", "text": "so"}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1"}, {"type": "text", "text": "and"}]},
        ],
        [{"type": "text", "text": "base"}],
    ) == [
        ("system", (Text("base"),)),
        ("user", (Text("<system-reminder>x</system-reminder>", "injected"), Text("hi", "typed", MARK))),
        ("assistant", (Reasoning("hm", {"signature": "s"}), Reasoning("", {"data": "d"}), ToolCall("t1", "Read", '{"b":1,"a":[2.0]}'))),
        ("tool", (ToolResult("t1", (Text("x"),), True),)),
        ("assistant", (ToolCall("s1", "web_search", "{}", "server"), Unknown({"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}), Text("so"))),
        ("user", (ToolResult("t1"), Text("and"))),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "origin"),
    [
        ("anthropic", "<system-reminder>x</system-reminder>", "injected"),
        ("anthropic", "please <b>look</b>", "typed"),
        ("anthropic", "hi <system-reminder>x</system-reminder>", "typed"),
        ("anthropic", "This session is being continued from a previous conversation that ran out.", "summary"),
        ("openai-responses", "<environment_context>\n<cwd>/a</cwd>\n</environment_context>", "injected"),
        ("openai-responses", "# AGENTS.md instructions for /a\n\nrules", "injected"),
        ("openai-responses", "fix <b>this</b>", "typed"),
        ("openai-chat", "fix this", "typed"),
    ],
)
def test_who_wrote_a_user_text(name: str, text: str, origin: str) -> None:
    (entry,) = wire_by_name(name).read([{"role": "user", "content": text}])
    assert entry.blocks == (Text(text, origin),)  # type: ignore[arg-type]


def test_ids_depend_on_session_and_position_only() -> None:
    wire = wire_by_name("openai-chat")
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    first, longer = (
        wire.read(messages, session="s"),
        wire.read([*messages, {"role": "user", "content": "c"}], session="s"),
    )
    assert longer[:2] == first
    assert wire.read(messages, session="t")[0].id != first[0].id


def test_a_string_is_one_message_of_the_user() -> None:
    for name in ("openai-chat", "openai-responses", "anthropic"):
        assert read(name, "hi") == [("user", (Text("hi"),))]


def test_only_anthropic_has_a_system_prompt_beside_the_messages() -> None:
    from firsthand.errors import FormatError

    for name in ("openai-chat", "openai-responses"):
        with pytest.raises(FormatError, match="no system prompt beside its messages"):
            wire_by_name(name).read([], system="base")
    assert wire_by_name("anthropic").write(wire_by_name("anthropic").read([], system="base")).system == "base"


MENDED: dict[str, tuple[str, list[Any], list[Any]]] = {
    "empty parts": (
        "openai-chat",
        [{"role": "user", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "a"}]}],
        [{"role": "user", "content": [{"type": "text", "text": "a"}]}],
    ),
    "an empty list": ("openai-chat", [{"role": "user", "content": []}], [{"role": "user", "content": "[empty message]"}]),
    "no content": ("openai-chat", [{"role": "user"}], [{"role": "user", "content": "[empty message]"}]),
    "an assistant without content": (
        "openai-chat",
        [{"role": "user", "content": "a"}, {"role": "assistant", "content": None}],
        [{"role": "user", "content": "a"}],
    ),
    "an empty list of calls": (
        "openai-chat",
        [{"role": "assistant", "content": "a", "tool_calls": []}],
        [{"role": "assistant", "content": "a"}],
    ),
    "arguments that broke off": (
        "openai-chat",
        [
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a'}}]},
            {"role": "tool", "tool_call_id": "c", "content": "x"},
        ],
        [
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"unparsed_arguments":"{\\"a"}'}}]},
            {"role": "tool", "tool_call_id": "c", "content": "x"},
        ],
    ),
    "an image in a tool message": (
        "openai-chat",
        [
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}]},
        ],
        [
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c", "content": "[attachment 1 of this result follows in the next user message]"},
            {"role": "user", "content": [{"type": "text", "text": "[attachment 1 of the result of call c; output of a tool, not a message of the user]"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}]},
        ],
    ),
    "calls of one step in two messages": (
        "openai-chat",
        [
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "d", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c", "content": "x"},
            {"role": "tool", "tool_call_id": "d", "content": "y"},
        ],
        [
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}, {"id": "d", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c", "content": "x"},
            {"role": "tool", "tool_call_id": "d", "content": "y"},
        ],
    ),
    "a reasoning item alone": (
        "openai-responses",
        [{"type": "reasoning", "id": "rs", "summary": []}, {"role": "user", "content": "a"}],
        [{"role": "user", "content": "a"}],
    ),
    "an output of the wrong type": (
        "openai-responses",
        [
            {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "x"},
            {"type": "function_call_output", "call_id": "c", "output": "y"},
        ],
        [
            {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "x"},
            {"type": "custom_tool_call_output", "call_id": "c", "output": "y"},
        ],
    ),
    "blank texts": (
        "anthropic",
        [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": " "}]}, {"role": "assistant", "content": ""}],
        [{"role": "user", "content": "a"}],
    ),
    "an id with other characters": (
        "anthropic",
        [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c:1", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c:1", "content": "x"}]},
        ],
        [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c_1_988ff76207a7", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c_1_988ff76207a7", "content": "x"}]},
        ],
    ),
    "a text in front of a result": (
        "anthropic",
        [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "text", "text": "b"}, {"type": "tool_result", "tool_use_id": "c", "content": "x"}]},
        ],
        [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "x"}, {"type": "text", "text": "b"}]},
        ],
    ),
    "a failed result without content": (
        "anthropic",
        [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "is_error": True, **MARK}]},
        ],
        [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "is_error": True, "content": "[the tool failed and returned nothing]", **MARK}]},
        ],
    ),
    "a hosted call without its result": (
        "anthropic",
        [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, {"type": "text", "text": "b"}]},
            {"role": "user", "content": "c"},
        ],
        [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}],
    ),
    "two messages of one role": (
        "anthropic",
        [{"role": "user", "content": "a"}, {"role": "user", "content": [{"type": "text", "text": "b", **MARK}]}],
        [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b", **MARK}]}],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "given", "mended"), MENDED.values(), ids=MENDED)
def test_what_no_provider_takes_is_mended(name: str, given: list[Any], mended: list[Any]) -> None:
    wire = wire_by_name(name)
    assert validate(name, given)
    out = wire.write(wire.read(given)).messages
    assert out == mended
    assert_valid(name, out)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("openai-chat", {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}),
        ("openai-chat", {"role": "user", "content": ""}),
        ("openai-chat", {"role": "user", "content": "  \n"}),
    ],
)  # fmt: skip
def test_an_empty_string_that_the_client_sent_is_sent_again(name: str, message: dict[str, Any]) -> None:
    """Its provider took it; only parts of lists and other sources' texts are left out when empty."""
    wire = wire_by_name(name)
    assert wire.write(wire.read([message])).messages == [message]


def test_an_excerpt_of_an_own_message_is_written_as_such() -> None:
    """What a projection changes is what is written, whatever the reader remembered of the original's shape."""
    import msgspec

    wire = wire_by_name("anthropic")
    entries = wire.read(
        [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}, "x": 1}]},
            {"content": [{"tool_use_id": "c", "type": "tool_result", "content": "", **MARK}], "role": "user"},
        ]
    )
    block = entries[2].blocks[0]
    assert isinstance(block, ToolResult)
    cut = msgspec.structs.replace(block, content=(Text("[cut]"),))
    out = wire.write([*entries[:2], msgspec.structs.replace(entries[2], blocks=(cut,))]).messages
    assert out[2] == {
        "content": [{"tool_use_id": "c", "type": "tool_result", "content": "[cut]", **MARK}],
        "role": "user",
    }
    assert list(out[2]) == ["content", "role"]
    chat = wire_by_name("openai-chat")
    (own,) = chat.read([{"content": None, "role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}])  # fmt: skip
    changed = msgspec.structs.replace(own, blocks=said("words").blocks)
    assert chat.write([changed]).messages == [{"content": "words", "role": "assistant"}]


def test_a_result_of_another_source_answers_an_own_call() -> None:
    wire = wire_by_name("openai-responses")
    call = wire.read([{"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}, "status": "completed"}])
    assert wire.write([*call, result("c", "[unknown]")]).messages == [
        {"type": "function_call", "call_id": "c", "name": "shell", "arguments": '{"commands":["ls"]}'},
        {"type": "function_call_output", "call_id": "c", "output": "[unknown]"},
    ]


def test_an_item_whose_reasoning_was_left_out_loses_its_id() -> None:
    """The provider looks an item up by its id and refuses one without the reasoning item that it knows before it."""
    wire = wire_by_name("openai-responses")
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    said_ = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "b"}]}
    call = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"}
    done = {"type": "function_call_output", "call_id": "c", "output": "x"}
    items = [{"role": "user", "content": "a"}, thought, said_, call, done]
    entries = wire.read(items)
    bare = [{name: value for name, value in item.items() if name != "id"} for item in (said_, call)]
    assert wire.write(entries).messages == items
    assert wire.write(entries[1:]).messages == items[1:]
    assert wire.write([entries[0], *entries[2:]]).messages == [items[0], *bare, done]
    assert wire.write(entries[2:]).messages == [*bare, done]
    assert wire.write([entries[0], entries[2]]).messages == [items[0], bare[0]]
