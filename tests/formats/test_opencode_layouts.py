from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firsthand.errors import EmptySessionError, FormatError
from firsthand.formats.files.base import Input
from firsthand.formats.files.opencode.reader import OpenCodeReader
from firsthand.transcript import Transcript

from .opencode_layouts import (
    READER,
    SES,
    START,
    Builder,
    Session,
    compacted,
    database,
    dump,
    export,
    finish,
    real_sessions,
    tool,
    tree,
)
from .reading import one, opened, shapes, subset

# ---------------------------------------------------------------- layouts


def layouts(sessions: list[Session], folder: Path) -> dict[str, list[Transcript]]:
    out = {"dump": READER.read(opened(dump(sessions)))}
    out["tree"] = READER.read(Input.open(tree(sessions, folder / "storage")))
    with closing(database(sessions, folder / "live" / "opencode.db")):
        out["live database"] = READER.read(Input.open(folder / "live" / "opencode.db"))
    out["closed database"] = READER.read(Input.open(folder / "live" / "opencode.db"))
    out["data folder"] = READER.read(Input.open(folder / "live"))
    out["bytes"] = READER.read(opened((folder / "live" / "opencode.db").read_bytes()))
    out["exports"] = [one(READER, opened(export(s, None))) for s in sessions]
    order = [t.id for t in out["dump"]]
    out["exports"].sort(key=lambda t: order.index(t.id))
    return out


def test_all_layouts_give_the_same(tmp_path: Path) -> None:
    """IM-11, on a session with everything."""
    made = compacted(tail="msg_003", part={"overflow": True})
    made.assistant(
        START, {"type": "reasoning", "text": "hm", "metadata": {"p": {"x": 1}}}, tool("c1"), finish(input=9, output=1)
    )
    made.user("e\u0000\\u0000 \ud83d end", revert=1).assistant(tool("c2", None, status="running"))
    made.info["revert"] = {"messageID": "msg_010"}
    child = Builder(id="ses_2", parentID=SES, time={"created": 5_000}).user("sub")
    found = layouts([made.session, child.session], tmp_path)
    first = found.pop("dump")
    assert [t.id for t in first] == [SES, "ses_2"]
    for name, transcripts in found.items():
        assert transcripts == first, name


def test_all_layouts_of_the_real_sessions_give_the_same(tmp_path: Path) -> None:
    """IM-11, on real input."""
    sessions = real_sessions()
    found = layouts(sessions, tmp_path)
    assert sum(len(t.entries) for t in found["dump"]) == 246
    for name, transcripts in found.items():
        assert transcripts == found["dump"], name


def test_the_database_is_left_alone(tmp_path: Path) -> None:
    """Reading a database that no client has open leaves no file beside it and no byte of it changed."""
    path = tmp_path / "opencode.db"
    database([Builder().user("hi").session], path).close()
    before = path.read_bytes()
    assert os.listdir(tmp_path) == ["opencode.db"]
    assert shapes(one(READER, Input.open(path))) == [("user", "hi")]
    assert os.listdir(tmp_path) == ["opencode.db"]
    assert path.read_bytes() == before


def test_a_client_that_is_writing_is_neither_held_up_nor_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    with closing(database([Builder().user("hi").session], path)) as client:
        main = path.read_bytes()
        client.execute("BEGIN IMMEDIATE")
        client.execute("UPDATE message SET data = ''")
        assert shapes(one(READER, Input.open(path))) == [("user", "hi")]
        client.execute("ROLLBACK")
        client.execute("UPDATE part SET data = json_set(data, '$.text', 'ho')")
        assert shapes(one(READER, Input.open(path))) == [("user", "ho")]
        assert path.read_bytes() == main, "it is all still in the -wal file"


@pytest.mark.skipif(os.geteuid() == 0, reason="no folder is read-only for root")
def test_a_database_in_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with closing(database([Builder().user("hi").session], folder / "opencode.db")):
        (folder / "opencode.db-shm").unlink()
        folder.chmod(0o500)
        try:
            assert shapes(one(READER, Input.open(folder / "opencode.db"))) == [("user", "hi")]
        finally:
            folder.chmod(0o700)


def test_a_row_that_cannot_be_read_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    with closing(database([Builder().user("hi").assistant("ho").session], path)) as client:
        client.execute("UPDATE part SET data = '{\"type\": \"te' WHERE message_id = 'msg_002'")
        client.execute("UPDATE message SET data = '[]' WHERE id = 'msg_002'")
        transcript = one(READER, Input.open(path))
    assert shapes(transcript) == [("user", "hi")]
    assert [d.reason.partition(":")[0] for d in transcript.damaged] == ["message msg_002", "part prt_00200"]


def test_other_databases_are_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE session (id)")
    assert not READER.sniff(Input.open(path))
    with pytest.raises(FormatError, match="cannot read"):
        READER.read(Input.open(path))
    path.write_bytes(b"SQLite format 3\x00" + bytes(100))
    assert not READER.sniff(Input.open(path))
    with pytest.raises(FormatError, match="cannot read"):
        READER.read(Input.open(path))


def test_one_session_of_many(tmp_path: Path) -> None:
    sessions = [Builder(id=f"ses_{n}").user(f"text {n}").session for n in range(3)]
    root = tree(sessions, tmp_path / "storage")
    (one_file,) = root.glob("session/*/ses_1.json")
    assert READER.sniff(Input.open(one_file))
    assert shapes(one(READER, Input.open(one_file))) == [("user", "text 1")]
    with closing(database(sessions, tmp_path / "opencode.db")):
        wanted = OpenCodeReader(session="ses_2")
        assert shapes(one(wanted, Input.open(tmp_path / "opencode.db"))) == [("user", "text 2")]
        with pytest.raises(FormatError, match="'ses_7'"):
            OpenCodeReader(session="ses_7").read(Input.open(tmp_path / "opencode.db"))


def test_the_tree_of_the_first_versions(tmp_path: Path) -> None:
    info, messages = Builder().user("hi").session
    root = tmp_path / "project" / "p" / "storage" / "session"
    for path, value in [
        (root / "info" / f"{SES}.json", info),
        (root / "message" / SES / "msg_001.json", messages[0][0]),
        (root / "part" / SES / "msg_001" / "prt_00100.json", messages[0][1][0]),
    ]:
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(value))
    assert READER.sniff(Input.open(tmp_path))
    assert shapes(one(READER, Input.open(tmp_path))) == [("user", "hi")]


def test_a_tree_with_damaged_files_and_links(tmp_path: Path) -> None:
    root = tree([Builder().user("hi").assistant("ho").session], tmp_path / "storage")
    (root / "part" / "msg_002" / "prt_00200.json").write_text('{"type": "te')
    (root / "message" / SES / "msg_003.json").symlink_to(root / "message" / SES / "msg_001.json")
    (root / "session_diff").mkdir()
    (root / "session_diff" / "ses_1.json").write_text("[]")
    transcript = one(READER, Input.open(tmp_path))
    assert shapes(transcript) == [("user", "hi")]
    assert transcript.damaged[0].reason.startswith("part/msg_002/prt_00200.json:")


def test_what_a_server_and_a_run_print() -> None:
    made = Builder().user("hi").assistant("ho", tool("c1"))
    listed = json.dumps([{"info": m, "parts": p} for m, p in made.messages])
    assert shapes(one(READER, opened(listed))) == shapes(made.read())
    events = "\n".join(
        json.dumps({"type": p["type"], "sessionID": SES, "part": p}) for _, ps in made.messages for p in ps
    )
    assert [s[0] for s in shapes(one(READER, opened(events)))] == ["user", "assistant", "tool"]


# ---------------------------------------------------------------- damage


@pytest.mark.parametrize("indent", [None, 2])
@given(st.data())
@settings(max_examples=60)
def test_a_cut_export_gives_what_stands_before_the_cut(indent: int | None, data: st.DataObject) -> None:
    session = compacted(tail="msg_003").assistant(START, tool("c1"), "x", finish(input=1, output=1)).session
    whole = export(session, indent)
    cut = whole[: data.draw(st.integers(1, len(whole) - 2))]
    try:
        transcript = one(READER, opened(cut))
    except EmptySessionError:
        return
    assert transcript.damaged
    subset(transcript, one(READER, opened(whole)))


def test_an_export_that_is_cut_in_its_last_message() -> None:
    whole = export(Builder().user("one").assistant("two", tool("c1", "output"), "three").session)
    transcript = one(READER, opened(whole[: whole.index(b'"three"') + 3]))
    assert shapes(transcript) == [
        ("user", "one"),
        ("assistant", "two", ("call", "c1", "bash", '{"a":1}')),
        ("tool", ("result", "c1", "output")),
    ]
    assert "breaks off" in transcript.damaged[0].reason


def test_an_export_that_is_damaged_in_the_middle() -> None:
    whole = export(Builder().user("one").assistant("two").user("three").session)
    transcript = one(READER, opened(whole.replace(b'"two"', b'"two')))
    assert shapes(transcript) == [("user", "one"), ("user", "three")]
    assert len(transcript.damaged) == 1


def test_a_dump_with_a_damaged_object() -> None:
    whole = dump([Builder().user("one").assistant("two").session])
    transcript = one(READER, opened(whole.replace(b'"two"', b'"two')))
    assert shapes(transcript) == [("user", "one")]
    assert len(transcript.damaged) == 1


@pytest.mark.parametrize(
    "content",
    [
        '{"id": "ses_1", "title": "x"}',
        '{"info": {"id": "ses_1"}, "messages": []}',
        '{"id": "ses_1"}\n{"id": "evt_1", "kind": "new"}',
        '{"id": "msg_1", "sessionID": "ses_1", "role": "user"}',
    ],
)
def test_nothing_is_never_a_success(content: str) -> None:
    """IM-09."""
    assert READER.sniff(opened(content))
    with pytest.raises(EmptySessionError, match="no entry could be read"):
        READER.read(opened(content))


@pytest.mark.parametrize(
    "content",
    ["", "hello", '{"sessionId": "x"}', '{"role": "user", "content": "an \\"id\\": \\"msg_1\\" inside"}', "[1, 2]"],
)
def test_what_is_not_recognised(content: str) -> None:
    assert not READER.sniff(opened(content))
