"""Entries of any source on every wire: what comes out, exactly, for each thing that one provider takes and another does not."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import pytest

from firsthand.formats.wire import wire_by_name
from firsthand.projection.repair import UNKNOWN_OUTCOME, repair
from firsthand.testing.builders import call, developer, image, result, said, session, system, thought, user
from firsthand.testing.validate import assert_valid
from firsthand.transcript import Entry, Media, Text, ToolCall, ToolResult, Unknown

PNG = "data:image/png;base64,iVBORw0KGgo="
A_PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
BROKEN = '{"path": "a'
LONG = "call_" + "x" * 80


def mark(call_id: str) -> str:
    """The hash that stands in an id of our making."""
    return blake2b(call_id.encode(), digest_size=6).hexdigest()


def chat(*entries: Entry) -> list[Any]:
    messages = wire_by_name("openai-chat").write(repair(session(entries)).entries).messages
    assert_valid("openai-chat", messages)
    return messages


def responses(*entries: Entry) -> list[Any]:
    items = wire_by_name("openai-responses").write(repair(session(entries)).entries).messages
    assert_valid("openai-responses", items)
    return items


def anthropic(*entries: Entry) -> list[Any]:
    out = wire_by_name("anthropic").write(repair(session(entries)).entries)
    assert_valid("anthropic", out.messages, out.system)
    return out.messages if out.system is None else [out.system, *out.messages]


def item(role: str, *texts: str) -> dict[str, Any]:
    parts = [{"type": "input_text", "text": text} for text in texts]
    return {"type": "message", "role": role, "content": texts[0] if role == "assistant" else parts}


def blocks(*texts: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text} for text in texts]


def function(call_id: str, arguments: str, name: str = "read") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def answer(call_id: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


# ------------------------------------------------------------------------------------------------- roles and their order


def test_parallel_results_share_one_message_with_anthropic() -> None:
    """GW-01."""
    history = (user("go"), said(call("read"), call("read")), result("c1", "x"), result("c2", "y"), said("ok"))
    assert anthropic(*history) == [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": i, "name": "read", "input": {}} for i in ("c1", "c2")],
        },
        {"role": "user", "content": [answer("c1", "x"), answer("c2", "y")]},
        {"role": "assistant", "content": "ok"},
    ]
    assert [m["role"] for m in chat(*history)] == ["user", "assistant", "tool", "tool", "assistant"]


def test_neighbours_of_one_role_become_one_message_with_anthropic() -> None:
    """GW-06: all texts once and in order, results in front."""
    assert anthropic(
        user("a"), user("b"), said("c"), said("d", call("read")), user("wait"), result("c1", "x"), user("e")
    ) == [
        {"role": "user", "content": blocks("a", "b")},
        {
            "role": "assistant",
            "content": [*blocks("c", "d"), {"type": "tool_use", "id": "c1", "name": "read", "input": {}}],
        },
        {"role": "user", "content": [answer("c1", "x"), *blocks("wait", "e")]},
    ]


def test_anthropic_begins_with_the_user() -> None:
    """GW-05."""
    assert anthropic(said("hello"), user("hi")) == [
        {"role": "user", "content": "[the conversation goes on from an earlier point]"},
        {"role": "assistant", "content": "hello"},
        {"role": "user", "content": "hi"},
    ]


def test_system_and_developer_messages() -> None:
    """SE-10: the same authority where there is such a role; Anthropic has one for the start only."""
    history = (system("base"), developer("rules"), user("hi"), said("ok"), developer("new rule"), user("go"))
    roles = ["system", "developer", "user", "assistant", "developer", "user"]
    assert [m["role"] for m in chat(*history)] == roles
    assert [m["role"] for m in responses(*history)] == roles
    assert anthropic(*history) == [
        blocks("base", "rules"),
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "ok"},
        {
            "role": "user",
            "content": blocks("[developer message, in force from here on; not written by the user]\nnew rule", "go"),
        },
    ]
    assert anthropic(system("base"), user("hi"))[0] == "base"


def test_parallel_calls_spread_over_entries_are_one_message() -> None:
    """Clients of the Responses API make one entry of each item."""
    history = (user("go"), said("I look."), call("read"), call("read"), result("c1", "x"), result("c2", "y"))
    assert chat(*history)[1] == {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [function("c1", "{}"), function("c2", "{}")],
    }
    assert [b["type"] for b in anthropic(*history)[1]["content"]] == ["text", "tool_use", "tool_use"]
    assert [i["type"] for i in responses(*history)] == [
        "message", "message", "function_call", "function_call", "function_call_output", "function_call_output",
    ]  # fmt: skip


def test_two_answers_stay_two_messages_where_they_may() -> None:
    assert [m["content"] for m in chat(user("a"), said("b"), said("c"))] == ["a", "b", "c"]


def test_a_text_behind_a_call_goes_before_it_where_results_must_follow() -> None:
    made = chat(user("go"), said(call("read"), "thanks"), result("c1", "x"))[1]
    assert (made["content"], made["tool_calls"]) == ("thanks", [function("c1", "{}")])
    assert [i["type"] for i in responses(user("go"), said(call("read"), "thanks"), result("c1", "x"))] == [
        "message", "function_call", "message", "function_call_output",
    ]  # fmt: skip


def test_a_text_beside_a_result_stays_the_users() -> None:
    history = (user("go"), call("read"), user(result("c1", "x"), "and this"))
    assert chat(*history)[2:] == [
        {"role": "tool", "tool_call_id": "c1", "content": "x"},
        {"role": "user", "content": "and this"},
    ]
    assert anthropic(*history)[2] == {"role": "user", "content": [answer("c1", "x"), *blocks("and this")]}


def test_a_loose_text_of_a_tool_is_never_the_users() -> None:
    """Design 5.6: with the result it joins it, alone it gets a label."""
    loose = Entry(id="", role="tool", blocks=(ToolResult("c1", (Text("x"),)), Text("more")))
    assert chat(user("go"), call("read"), loose)[2]["content"] == blocks("x", "more")
    orphan = Entry(id="", role="tool", blocks=(Text("more"),))
    label = "[output of a tool, without the call that it belongs to; not a message of the user]"
    assert chat(user("go"), orphan)[1] == {"role": "user", "content": blocks(label, "more")}
    assert responses(user("go"), orphan)[1] == item("user", label, "more")


# ---------------------------------------------------------------------------------------------------------------- contents


def test_empty_contents() -> None:
    """GW-03."""
    history = (user("go", ""), said("", call("read")), result("c1"), said(""), user(""), said("ok"))
    assert chat(*history) == [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [function("c1", "{}")]},
        {"role": "tool", "tool_call_id": "c1", "content": "[the tool returned nothing]"},
        {"role": "user", "content": "[empty message]"},
        {"role": "assistant", "content": "ok"},
    ]
    assert anthropic(*history)[2] == {
        "role": "user",
        "content": [answer("c1", "[the tool returned nothing]"), *blocks("[empty message]")],
    }
    assert responses(*history)[2] == {
        "type": "function_call_output", "call_id": "c1", "output": "[the tool returned nothing]",
    }  # fmt: skip


def test_blank_texts_are_empty_for_anthropic_only() -> None:
    assert anthropic(user("a", " \n"), said("b"), user("\t"))[2] == {"role": "user", "content": "[empty message]"}
    assert chat(user("\t")) == [{"role": "user", "content": "\t"}]


def test_a_failed_result_without_words() -> None:
    history = (user("go"), call("read"), result("c1", error=True))
    words = "[the tool failed and returned nothing]"
    assert anthropic(*history)[2]["content"] == [answer("c1", words, is_error=True)]
    assert chat(*history)[2]["content"] == words


@pytest.mark.parametrize(
    ("arguments", "sent", "as_text"),
    [
        ('{"b": 1, "a": 2.50}', {"b": 1, "a": 2.5}, '{"b": 1, "a": 2.50}'),
        (BROKEN, {"unparsed_arguments": BROKEN}, '{"unparsed_arguments":"{\\"path\\": \\"a"}'),
        ("[1]", {"unparsed_arguments": "[1]"}, '{"unparsed_arguments":"[1]"}'),
        ('{"a": NaN}', {"unparsed_arguments": '{"a": NaN}'}, '{"unparsed_arguments":"{\\"a\\": NaN}"}'),
        ('{"a": 1e999}', {"unparsed_arguments": '{"a": 1e999}'}, '{"unparsed_arguments":"{\\"a\\": 1e999}"}'),
        ("", {}, "{}"),
        (" ", {}, "{}"),
        ('{"a":"\\ud83d"}', {"a": "\ufffd"}, '{"a":"\\ud83d"}'),
    ],
)
def test_arguments_become_an_object(arguments: str, sent: dict[str, Any], as_text: str) -> None:
    """GW-04: a valid object on the wire, and the stored text is where it was."""
    history = (user("go"), call("read", arguments), result("c1", "x"))
    assert anthropic(*history)[1]["content"][0]["input"] == sent
    assert chat(*history)[1]["tool_calls"][0]["function"]["arguments"] == as_text
    assert responses(*history)[1]["arguments"] == as_text
    assert history[1].blocks[0].arguments == arguments  # type: ignore[union-attr]


def test_a_broken_call_without_a_result_was_not_executed() -> None:
    made = anthropic(user("go"), call("read", BROKEN))[2]["content"][0]
    assert made["content"] == "[this call was not executed: its arguments broke off before they were complete]"
    assert made["is_error"] is True


def test_a_lone_surrogate_becomes_a_replacement_character() -> None:
    """IM-02."""
    history = (system("s\ud83d"), user("a\udc00b"), call("read", path="\ud83d"), result("c1", "\ud83dx"))
    assert anthropic(*history) == [
        "s\ufffd",
        {"role": "user", "content": "a\ufffdb"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "\ufffd"}}],
        },
        {"role": "user", "content": [answer("c1", "\ufffdx")]},
    ]
    assert responses(*history)[3]["output"] == "\ufffdx"


# ------------------------------------------------------------------------------------------------------------ calls and ids


def test_free_text_calls() -> None:
    history = (user("go"), call("apply_patch", "*** Begin", kind="custom"), result("c1", "ok"))
    assert responses(*history)[1:] == [
        {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "*** Begin"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "ok"},
    ]
    assert chat(*history)[1]["tool_calls"] == [function("c1", '{"input":"*** Begin"}', "apply_patch")]
    assert anthropic(*history)[1]["content"][0]["input"] == {"input": "*** Begin"}


@pytest.mark.parametrize(
    ("call_id", "chat_id", "anthropic_id"),
    [
        ("toolu_01", "toolu_01", "toolu_01"),
        ("call.1|fc_2", "call.1|fc_2", "call_1_fc_2_" + mark("call.1|fc_2")),
        (LONG, f"call_{'x' * 22}_{mark(LONG)}", f"call_{'x' * 46}_{mark(LONG)}"),
        ("é", "é", "__" + mark("é")),
    ],
)
def test_ids_that_a_wire_does_not_take(call_id: str, chat_id: str, anthropic_id: str) -> None:
    """The first id is unchanged where it can be (SE-09); another is the same in each request, for the call and for its result."""
    history = (user("go"), call("read", id=call_id), result(call_id, "x"))
    made = chat(*history)
    assert made[1]["tool_calls"][0]["id"] == made[2]["tool_call_id"] == chat_id
    turns = anthropic(*history)
    assert turns[1]["content"][0]["id"] == turns[2]["content"][0]["tool_use_id"] == anthropic_id
    assert len(chat_id) <= 40
    assert len(anthropic_id) <= 64
    items = responses(*history)
    assert items[1]["call_id"] == items[2]["call_id"]
    assert len(items[1]["call_id"]) <= 64


@pytest.mark.parametrize(
    ("name", "sent"),
    [("read", "read"), ("mcp.files/read", "mcp_files_read"), ("", "unnamed_tool"), ("x" * 90, "x" * 64)],
)
def test_names_that_no_provider_takes(name: str, sent: str) -> None:
    history = (user("go"), call(name), result("c1", "x"))
    assert chat(*history)[1]["tool_calls"][0]["function"]["name"] == sent
    assert responses(*history)[1]["name"] == sent
    assert anthropic(*history)[1]["content"][0]["name"] == sent


def test_one_id_in_two_turns() -> None:
    """SE-09."""
    history = (
        user("a"),
        call("read", id="call_0"),
        result("call_0", "x"),
        user("b"),
        call("read", id="call_0"),
        result("call_0", "y"),
    )
    assert [(m.get("tool_call_id"), m["content"]) for m in chat(*history) if m["role"] == "tool"] == [
        ("call_0", "x"),
        ("call_0_2", "y"),
    ]


def test_a_call_without_output_and_an_output_without_call() -> None:
    """GW-02."""
    assert responses(user("go"), call("read"), result("c9", "lost"), user("so"))[1:] == [
        {"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": UNKNOWN_OUTCOME},
        item("user", "so"),
    ]


def test_hosted_calls_stay_with_their_provider() -> None:
    hosted = said(ToolCall("s1", "web_search", "{}", "server"), "found it")
    assert chat(user("go"), hosted)[1] == {"role": "assistant", "content": "found it"}
    assert responses(user("go"), hosted)[1] == item("assistant", "found it")
    assert anthropic(user("go"), hosted)[1] == {"role": "assistant", "content": "found it"}
    assert chat(user("go"), said(ToolCall("s1", "web_search", "{}", "server")), result("s1", "x")) == [
        {"role": "user", "content": "go"}
    ]


# ------------------------------------------------------------------------------------------------------------------- media


def test_images_in_results() -> None:
    """Chat takes text only there: a line says so and the image follows in the user's name, with a label, after the last result."""
    history = (
        user("look"),
        said(call("shot"), call("shot")),
        result("c1", "one", image()),
        result("c2", image()),
        user("well?"),
    )
    assert chat(*history)[2:] == [
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": blocks("one", "[attachment 1 of this result follows in the next user message]"),
        },
        {
            "role": "tool",
            "tool_call_id": "c2",
            "content": "[attachment 1 of this result follows in the next user message]",
        },
        {
            "role": "user",
            "content": [
                *blocks("[attachment 1 of the result of call c1; output of a tool, not a message of the user]"),
                {"type": "image_url", "image_url": {"url": PNG}},
                *blocks("[attachment 1 of the result of call c2; output of a tool, not a message of the user]"),
                {"type": "image_url", "image_url": {"url": PNG}},
            ],
        },
        {"role": "user", "content": "well?"},
    ]
    assert responses(*history)[3]["output"] == [
        {"type": "input_text", "text": "one"},
        {"type": "input_image", "image_url": PNG, "detail": "auto"},
    ]
    assert anthropic(*history)[2]["content"][:2] == [answer("c1", [*blocks("one"), A_PNG]), answer("c2", [A_PNG])]


PDF = Media("document", "application/pdf", "JVBERi0=")
PDF_URL = "data:application/pdf;base64,JVBERi0="

MEDIA = {
    "png": (
        image(),
        {"type": "image_url", "image_url": {"url": PNG}},
        {"type": "input_image", "image_url": PNG, "detail": "auto"},
        A_PNG,
    ),
    "image on the web": (
        Media("image", url="https://example.org/a.png"),
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "auto"},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
    ),
    "pdf": (
        PDF,
        {"type": "file", "file": {"filename": "document.pdf", "file_data": PDF_URL}},
        {"type": "input_file", "filename": "document.pdf", "file_data": PDF_URL},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}},
    ),
    "sound": (
        Media("audio", "audio/mpeg", "SUQz"),
        {"type": "input_audio", "input_audio": {"data": "SUQz", "format": "mp3"}},
        "[audio of type audio/mpeg, 4 characters of base64: cannot be shown here]",
        "[audio of type audio/mpeg, 4 characters of base64: cannot be shown here]",
    ),
    "svg": (Media("image", "image/svg+xml", "PHN2Zz4="), *["[image of type image/svg+xml, 8 characters of base64: cannot be shown here]"] * 3),
    "local file": (Media("image", url="file:///tmp/a.png"), *["[image at file:///tmp/a.png: cannot be shown here]"] * 3),
    "nothing known": (Media("image"), *["[image: cannot be shown here]"] * 3),
}  # fmt: skip


@pytest.mark.parametrize(("media", "in_chat", "in_responses", "in_anthropic"), MEDIA.values(), ids=MEDIA)
def test_media_of_the_user(media: Media, in_chat: Any, in_responses: Any, in_anthropic: Any) -> None:
    def part(kind: str, value: Any) -> Any:
        return {"type": kind, "text": value} if isinstance(value, str) else value

    history = (user("see", media),)
    assert chat(*history)[0]["content"][1] == part("text", in_chat)
    assert responses(*history)[0]["content"][1] == part("input_text", in_responses)
    assert anthropic(*history)[0]["content"][1] == part("text", in_anthropic)


def test_media_of_the_assistant_are_named() -> None:
    words = "[image of type image/png, 12 characters of base64: cannot be shown here]"
    assert chat(user("draw"), said(image()))[1]["content"] == words
    assert responses(user("draw"), said(image()))[1] == item("assistant", words)
    assert anthropic(user("draw"), said(image()))[1]["content"] == words


# ---------------------------------------------------------------------------------------------- reasoning and unknown blocks


def from_wire(entry: Entry, wire: str) -> Entry:
    return Entry(id="", role=entry.role, blocks=entry.blocks, wire=wire)


SIGNED = thought("hm", signature="c2ln")
REDACTED = thought(data="cmVk")
SEALED = thought("hm", id="rs_1", encrypted_content="gAAA")
A_SIGNED = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
R_SEALED = {
    "type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "gAAA",
}  # fmt: skip


@pytest.mark.parametrize("wire", ["openai-chat", "openai-responses", "anthropic", "elsewhere", None])
def test_reasoning_goes_to_its_own_provider_only(wire: str | None) -> None:
    """GW-08: byte for byte or not at all."""
    parts = (SIGNED, REDACTED, SEALED, thought("plain"))
    history = (user("go"), *(from_wire(said(part, "answer"), wire or "") for part in parts))
    assert '"hm"' not in str(chat(*history)).replace("'", '"')
    signed = [b for m in anthropic(*history)[1:] for b in m["content"] if isinstance(b, dict) and b["type"] != "text"]
    assert signed == ([A_SIGNED] if wire == "anthropic" else [])
    sealed = [i for i in responses(*history) if i["type"] == "reasoning"]
    assert sealed == ([R_SEALED] if wire == "openai-responses" else [])


def test_thinking_in_front_is_sent_as_it_was() -> None:
    """GW-07."""
    entry = from_wire(said(SIGNED, REDACTED, "I look.", call("read", id="c1")), "anthropic")
    assert anthropic(user("go"), entry, result("c1", "x"))[1]["content"] == [
        A_SIGNED,
        {"type": "redacted_thinking", "data": "cmVk"},
        *blocks("I look."),
        {"type": "tool_use", "id": "c1", "name": "read", "input": {}},
    ]


@pytest.mark.parametrize(
    ("entries", "kinds"),
    [
        ([said("text"), said(SIGNED, call("read", id="c1")), result("c1", "x")], ["text", "tool_use"]),
        (
            [said(SIGNED, "text"), said(SIGNED, call("read", id="c1")), result("c1", "x")],
            ["thinking", "text", "tool_use"],
        ),
        ([said("text", SIGNED)], ["text"]),
        ([said(SIGNED), said("text")], ["thinking", "text"]),
    ],
    ids=["behind another message's text", "twice", "at the end", "from an entry of its own"],
)
def test_thinking_that_anthropic_would_refuse_is_left_out_whole(entries: list[Entry], kinds: list[str]) -> None:
    made = anthropic(user("go"), *(from_wire(entry, "anthropic") for entry in entries))[1]["content"]
    assert (["text"] if isinstance(made, str) else [b["type"] for b in made]) == kinds


def test_a_message_of_nothing_but_thinking_vanishes() -> None:
    assert anthropic(user("a"), from_wire(said(SIGNED), "anthropic"), user("b")) == [
        {"role": "user", "content": blocks("a", "b")}
    ]


@pytest.mark.parametrize(
    ("after", "kept"),
    [
        (said("answer"), True),
        (call("read", id="c1"), True),
        (said(SEALED, "answer"), True),
        (user("b"), False),
        (None, False),
    ],
    ids=["answer", "call", "more of it", "user", "nothing"],
)
def test_a_reasoning_item_needs_the_item_that_it_led_to(after: Entry | None, kept: bool) -> None:
    entries = [user("a"), from_wire(said(SEALED), "openai-responses")]
    if after is not None:
        entries.append(from_wire(after, "openai-responses"))
    assert (R_SEALED in responses(*entries)) is kept


def test_reasoning_does_not_lead_to_somebody_elses_item() -> None:
    assert R_SEALED not in responses(
        user("a"), from_wire(said(SEALED), "openai-responses"), said("a text of our making")
    )


def test_unknown_blocks() -> None:
    """GW-14: given back to their own wire, JSON text for another, and never in the assistant's mouth (SE-16)."""
    novelty = Unknown({"type": "novelty", "n": 1})
    history = (user("see", novelty), said("ok", novelty), call("read"), result("c1", novelty))
    as_json = '{"type":"novelty","n":1}'
    assert chat(*history) == [
        {"role": "user", "content": blocks("see", as_json)},
        {"role": "assistant", "content": "ok", "tool_calls": [function("c1", "{}")]},
        {"role": "tool", "tool_call_id": "c1", "content": as_json},
    ]
    own = from_wire(user("see", novelty), "anthropic")
    made = wire_by_name("anthropic").write(session(own)).messages
    assert made == [{"role": "user", "content": [*blocks("see"), {"type": "novelty", "n": 1}]}]


def test_a_server_side_compaction_goes_to_its_provider_only() -> None:
    raw = {"type": "compaction", "id": "cmp_1", "encrypted_content": "opaque"}
    history = (user("a"), Entry(id="", role="assistant", blocks=(Unknown(raw),)), user("b"))
    assert responses(*history)[1] == raw
    assert "opaque" not in str(chat(*history))
    assert "opaque" not in str(anthropic(*history))


# ---------------------------------------------------------------------------------------------------------- cache marks


def test_at_most_four_cache_marks() -> None:
    """GW-11: those of the system prompt, then the newest; nothing else is touched."""
    wire = wire_by_name("anthropic")
    mark = {"cache_control": {"type": "ephemeral"}}
    prompt = [{"type": "text", "text": "base", **mark}]
    messages: list[Any] = []
    for number in range(6):
        messages.append({"role": "user", "content": [{"type": "text", "text": f"q{number}", **mark}]})
        messages.append({"role": "assistant", "content": f"a{number}"})
    out = wire.write(wire.read(messages, system=prompt))
    assert_valid("anthropic", out.messages, out.system)
    assert out.system == prompt
    assert [("cache_control" in m["content"][0]) for m in out.messages[::2]] == [False, False, False, True, True, True]
    assert [m["content"][0]["text"] for m in out.messages[::2]] == [f"q{n}" for n in range(6)]
