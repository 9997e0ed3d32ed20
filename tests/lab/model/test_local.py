"""A small closed-book and open-book run from end to end with a real model. It is far too small to answer; the path is what is proved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from firsthand.codec import encode
from firsthand.errors import FirsthandError
from firsthand.formats import read_sessions
from firsthand.formats.wire import wire_by_name
from firsthand.lab.arms import Arm
from firsthand.lab.cache.session import SYSTEM, TOOLS, entries
from firsthand.lab.model.endpoint import Endpoint, reply_usage
from firsthand.lab.model.jobs import Jobs
from firsthand.lab.model.ledger import Ledger
from firsthand.lab.model.open_book import ROUNDS, open_book
from firsthand.lab.model.reading import Plan, places, read
from firsthand.lab.model.results import rows_of
from firsthand.lab.money.prices import price_given
from firsthand.testing.local_model import LocalModel, model_file

PLAN = Plan(arms=(Arm("codex-local", summariser="none"),), values=3, replicates=1, exam_tail=0, max_output=16)


@pytest.mark.model
def test_closed_and_open_book_with_a_real_model(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    try:
        path = model_file()
    except FirsthandError as error:
        pytest.skip(str(error))
    messages = wire_by_name("openai-chat").write(entries()).messages
    (tmp_path / "s.json").write_bytes(
        encode({"messages": [{"role": "system", "content": SYSTEM}, *messages], "tools": TOOLS})
    )
    found = list(places(read_sessions(tmp_path / "s.json"), PLAN))
    rounds = [one for one in ROUNDS if one.name in ("tools", "recall", "forced")]
    with LocalModel(path) as model, Ledger(tmp_path / "l.db", currency="USD", budget=0) as paid:
        endpoint = Endpoint(model.url + "/v1", "SmolLM2-135M", price_given("SmolLM2-135M", "0,0", "USD"))
        closed = read(found, PLAN, Jobs(endpoint, paid))
        opened = open_book(found, PLAN, rounds, Jobs(endpoint, paid))
        for call in paid.calls():
            usage = reply_usage(call.reply)
            assert usage is not None
            assert usage.input_tokens == model.prompt_tokens(json.loads(call.request)) < 1_500
            assert call.charged == 0
    assert (closed.asked, closed.planned, closed.unresolved) == (1, 1, [])
    assert sum(row.of for row in rows_of(closed.answers, "model:SmolLM2-135M", "session", "session")) == 3
    assert [one.round for one in opened.answers] == ["tools", "recall", "forced"]
    assert all(sum(opened.fates(name).values()) == 3 for name in ("tools", "recall"))
    assert opened.answers[1].recalled > 0
    # Whether a server forces the call is its own matter; a round that it did not force counts nowhere.
    forced = opened.answers[2]
    assert forced.ignored is (not forced.calls)
    assert sum(opened.fates("forced").values()) == (0 if forced.ignored else 3)
