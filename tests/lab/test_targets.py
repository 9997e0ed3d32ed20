from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand.lab.targets import touched
from firsthand.testing.random_entries import texts
from firsthand.transcript import ToolCall

W = "/w"


def shell(command: str) -> ToolCall:
    return ToolCall("c", "bash", json.dumps({"command": command}))


@pytest.mark.parametrize(
    ("command", "read", "written"),
    [
        ("cat a.py", ["/w/a.py"], []),
        ("cat a.py b.py | head -5", ["/w/a.py", "/w/b.py"], []),
        ("head -n 20 /x/a.py", ["/x/a.py"], []),
        ("sed -n '1,20p' a.py; sed -n '3,4p' b.py", ["/w/a.py", "/w/b.py"], []),
        ("sed -i 's/a/b/' a.py", [], ["/w/a.py"]),
        ("cd sub && cat a.py", ["/w/sub/a.py"], []),
        ("cat a.py 2>/dev/null", ["/w/a.py"], []),
        ("cat a.py > b.py", [], ["/w/b.py"]),
        ("echo x >> log", [], ["/w/log"]),
        ("cat <<EOF > b.py\nx\nEOF", [], ["/w/b.py"]),
        ("rg -n  foo src", ["$ rg -n foo src (in /w)"], []),
        ("rg 'a|b' src", ["$ rg a|b src (in /w)"], []),
        ("git show HEAD", ["$ git show HEAD (in /w)"], []),
        ("git -C /x log -1", ["$ git -C /x log -1 (in /w)"], []),
        ("git commit -m 'x'", [], ["$"]),
        ("git checkout main", [], ["*"]),
        ("git push", [], ["$"]),
        ("gh pr view 5", ["$ gh pr view 5 (in /w)"], []),
        ("gh api -X POST repos", [], []),
        ("mv a b", [], ["/w/a", "/w/b"]),
        ("tail log | tee copy", ["/w/log"], ["/w/copy"]),
        ("cargo test", [], []),
        ("FOO=1 cat a", ["/w/a"], []),
        ("cat 'open quote", ["/w/'open", "/w/quote"], []),
        ("", [], []),
    ],
)
def test_shell_commands(command: str, read: list[str], written: list[str]) -> None:
    found = touched(shell(command), W)
    assert (list(found.read), list(found.written)) == (read, written)


@pytest.mark.parametrize(
    ("name", "arguments", "read", "written"),
    [
        ("Read", '{"file_path": "/x/a.py", "offset": 3}', ["/x/a.py"], []),
        ("read", '{"path": "./a/../b.py"}', ["/w/b.py"], []),
        ("Grep", '{"pattern": "x", "path": "src"}', ['$ Grep {"pattern":"x","path":"src"}'], []),
        ("WebFetch", '{"url": "https://a.b/c", "prompt": "p"}', ["https://a.b/c"], []),
        ("Edit", '{"file_path": "a.py", "old_string": "x"}', [], ["/w/a.py"]),
        ("apply_patch", '{"input": "*** Begin Patch\\n*** Add File: n.py\\n+x\\n*** End Patch"}', [], ["/w/n.py"]),
        ("apply_patch", "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n", [], ["/w/a.py", "/w/b.py"]),
        ("shell", '{"command": ["bash", "-lc", "cat a"], "workdir": "/v"}', ["/v/a"], []),
        ("shell", '{"command": ["cat", "a b"]}', ["/w/a b"], []),
        (
            "exec",
            'await t.exec_command({cmd:"cat \\"a\\"", workdir:"/v"}); f({cmd:\'ls\'})',
            ["/v/a", "$ ls (in /v)"],
            [],
        ),
        ("TodoWrite", '{"todos": [{"content": "x"}]}', [], []),
        ("edit_notebook", '{"new_string": "x"}', [], ["*"]),
        ("Task", '{"prompt": "read a.py"}', [], []),
        ("read", "broken {", [], []),
        ("read", '["a"]', [], []),
    ],
)
def test_other_tools(name: str, arguments: str, read: list[str], written: list[str]) -> None:
    found = touched(ToolCall("c", name, arguments), W)
    assert (list(found.read), list(found.written)) == (read, written)


@given(texts(), texts(), st.sampled_from(["bash", "read", "edit", "exec", ""]))
def test_no_arguments_break_it(command: str, free: str, name: str) -> None:
    touched(ToolCall("c", name, free), W)
    touched(ToolCall("c", name, json.dumps({"command": command, "path": free, "url": command})), None)
    touched(ToolCall("c", name, json.dumps({"path": free})), W)
