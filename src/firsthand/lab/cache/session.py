"""The session whose requests are measured: a coding session of some 700 tokens with system prompt, tools and results.

It is small because the model reads 40 to 150 tokens a second, and fixed because its tokens are what is compared.
"""

from __future__ import annotations

from ...testing.builders import call, result, said, session, user
from ...testing.coding_tools import CODING_TOOLS as TOOLS
from ...transcript import Entry

__all__ = ["SYSTEM", "TOOLS", "entries"]

SYSTEM = (
    "You are a coding assistant in a terminal. Look at files with the tools before you speak about them. Say what you found and where, name "
    "paths and numbers exactly, keep answers short, and never change a port or a limit without being asked."
)


def entries() -> tuple[Entry, ...]:
    """The session's entries, oldest first."""
    routes = "\n".join(f"ROUTES['/v1/item/{n}'] = answer({n * 37}, wait={n % 5})" for n in range(1, 13))
    return session(
        user(
            "The stub server in tests/stub.py must listen on port 8123. Find out why the login test fails, and change nothing else."
        ),
        said("I look at the stub first.", call("read", path="tests/stub.py")),
        result("c1", f"from http.server import HTTPServer\nPORT = 8132\n{routes}"),
        said("PORT is 8132 there. I run the test.", call("bash", command="pytest -q tests/test_login.py")),
        result(
            "c2",
            "tests/test_login.py:41: ConnectionRefusedError: nothing listens on 127.0.0.1:8123\n1 failed, 6 passed in 2.31s",
        ),
        said("Nothing listens on port 8123, since tests/stub.py has the port 8132: two digits are swapped."),
        user("Which line of the test is it, and what else uses that port?"),
        said("I search for it.", call("bash", command="grep -rn 8132 tests")),
        result("c3", "tests/stub.py:2:PORT = 8132\ntests/conftest.py:17:    url = 'http://127.0.0.1:8132/health'"),
        said("The test fails in line 41. tests/conftest.py has the wrong port in line 17 as well."),
        user("Good. What will you change?"),
    )
