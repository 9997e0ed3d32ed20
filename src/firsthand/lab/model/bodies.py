"""The request that puts a question to the model: in the session's own shape, or as the published experiment put it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from ...codec import wire_safe
from ...summary.request import request_body
from ...transcript import Entry, Text
from ..exams.published import rendered
from .batches import EXAMINER
from .shape import RequestShape

__all__ = ["Way", "question_body"]

Way: TypeAlias = Literal["session", "published"]
"""`session`: system prompt and tools of the session, the projection, the question as the next user message (measures.md). `published`: the
examiner's own system prompt and one user message with the projection's text and the question, without tools (futureos.md 8.4)."""

_WIRE = "openai-chat"


def question_body(
    way: Way,
    shape: RequestShape,
    shown: Sequence[Entry],
    question: str,
    *,
    max_output: int,
    temperature: float | None = 0.0,
    recall: str | None = None,
) -> dict[str, Any]:
    """The body, without the model's name.

    Args:
        way: which of the two.
        shape: the session's system prompt and tools; of no matter in the published way.
        shown: the entries of the projection.
        question: the text of the question.
        max_output: the output cap, in tokens.
        temperature: None leaves it out, for endpoints that take none.
        recall: a block that stands behind the question in the same message, as a running session attaches it.
    """
    attached = (Text(wire_safe(recall), origin="injected"),) if recall else ()
    if way == "published":
        blocks = (Text(wire_safe(f"{rendered(shown)}\n\n{question}")), *attached)
        asked = Entry(id="question", role="user", blocks=blocks)
        body = request_body(_WIRE, (asked,), system=EXAMINER, max_output=max_output)
    else:
        asked = Entry(id="question", role="user", blocks=(Text(wire_safe(question)), *attached))
        body = request_body(
            _WIRE,
            (*without_repeated_system(shown, shape), asked),
            system=shape.system,
            tools=shape.tools,
            max_output=max_output,
        )
    if temperature is not None:
        body["temperature"] = temperature
    return body


def without_repeated_system(shown: Sequence[Entry], shape: RequestShape) -> Sequence[Entry]:
    """The entries without a leading system entry that a captured or recorded system prompt stands for; sent once, never twice."""
    if not shape.system or not shown or shown[0].role not in ("system", "developer"):
        return shown
    text = "\n\n".join(block.text for block in shown[0].blocks if isinstance(block, Text))
    return shown[1:] if shape.source == "captured" or text == shape.system else shown
