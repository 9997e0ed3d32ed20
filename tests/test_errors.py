from __future__ import annotations

import pickle
import re

import pytest

from firsthand import errors


def every_error() -> list[errors.FirsthandError]:
    made = [
        errors.AmbiguousEntryError("abcdef", ["abcdef-2", "abcdef-1"], in_session=True),
        errors.OutputCeilingError(8_192, 8_192, 512),
        errors.UnknownNameError("strategy", "best", ["b", "a"]),
        errors.MissingExtraError("exact counts", "exact"),
        errors.CompactionRefusedError("budget-exceeded", "too large", {"size": 3}),
        errors.RequestTooLargeError("too large", {"size": 3}),
        errors.ContextOverflowError("too large", {"limit": 3}),
        errors.ProviderError(500, "body"),
    ]
    special = {type(error) for error in made}
    plain = [getattr(errors, name) for name in errors.__all__]
    return made + [kind("what happened") for kind in plain if kind not in special]


@pytest.mark.parametrize("error", every_error(), ids=lambda error: type(error).__name__)
def test_errors_survive_pickling(error: errors.FirsthandError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), vars(copy)) == (str(error), vars(error))


def test_the_tree_at_the_top_names_every_error() -> None:
    drawn = re.findall(r"[─ ](\w+Error)\b", errors.__doc__ or "")
    assert sorted(drawn) == sorted(errors.__all__)
