from __future__ import annotations

from firsthand.projection.repair import UNKNOWN_OUTCOME
from firsthand.session.requests import Attachment, attached
from firsthand.testing.builders import call, result, said, session, user
from firsthand.transcript import Entry, Text, ToolCall, ToolResult


def lines(entries: tuple[Entry, ...]) -> list[str]:
    out = []
    for entry in entries:
        for block in entry.blocks:
            match block:
                case Text(text=text):
                    out.append(f"{entry.role}: {text[:12]}")
                case ToolCall(id=id_):
                    out.append(f"call {id_}")
                case ToolResult(call_id=id_):
                    out.append(f"{'placeholder' if block.text == UNKNOWN_OUTCOME else 'result'} {id_}")
    return out


def replay(*entries: Entry, sent_at: tuple[int, ...], front: int = 0) -> list[list[str]]:
    """What is sent when the session has grown to each of the lengths `sent_at`."""
    history = session(*entries)
    stored: list[Attachment] = []
    requests = []
    for length in sent_at:
        shown, new = attached(history[:front], history[front:length], stored, "cut")
        stored += new
        requests.append(lines(shown))
    return requests


def test_answered_calls_need_nothing() -> None:
    history = session(user("go"), call("a", id="1"), result("1", "x"), said("ok"))
    shown, new = attached((), history, ())
    assert shown == history
    assert all(a is b for a, b in zip(shown, history, strict=True))
    assert new == ()


def test_a_late_result_never_changes_what_was_sent() -> None:
    first, second, third = replay(
        user("go"), said(call("a", id="1"), call("b", id="2")), result("2", "x"), user("still there?"), result("1", "late"), sent_at=(3, 4, 5)
    )  # fmt: skip
    assert first == ["user: go", "call 1", "call 2", "result 2", "placeholder 1"]
    assert second == [*first, "user: still there?"[:18]]
    assert third == [*second, "user: [late tool r"]


def test_a_result_whose_call_was_covered_is_data() -> None:
    (shown,) = replay(user("go"), result("gone", "late", error=True), sent_at=(2,))
    assert shown == ["user: go", "user: [late tool r"]


def test_an_open_call_of_the_front_is_answered_once() -> None:
    first, second = replay(user("go"), call("a", id="1"), user("next"), user("more"), sent_at=(2, 4), front=2)
    assert first == ["user: go", "call 1", "placeholder 1"]
    assert second == [*first, "user: next", "user: more"]


def test_recall_is_part_of_the_message_it_was_attached_to() -> None:
    history = session(user("where is it?"))
    shown, new = attached((), history, [Attachment("e1", "recall", "[found: e9]")])
    assert lines(shown) == ["user: where is it?"[:18], "user: [found: e9]"]
    assert new == ()
