"""Fingerprints are equal for equal content in every process, and different for different content."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

import pytest

from recompute.support.fingerprint import NoFingerprint, fingerprint
from recompute.test.imports import ROOT


@dataclass(frozen=True)
class Pair:
    left: object
    right: object = None


class Colour(Enum):
    RED = 1
    BLUE = 2


def function(source: str, **names: object) -> Callable[..., Any]:
    """Return the function `f` that a source text defines in a module of the user."""
    space: dict[str, Any] = {"__name__": "users_module", **names}
    exec(source, space)
    return space["f"]


ADD = "def f(x): return x + 1"
GLOBAL = "def f(x): return x * N"
CLOSURE = "def make(n):\n  def g(x): return x * n\n  return g\nf = make(N)"
CALLS = "def helper(x): return x + M\ndef f(x): return helper(x)"
DIFFERENT: list[Any] = [
    *(None, True, 1, 1.0, "1", b"1", (), (1,), ((1,),), [1], {1}, {1: 2}, {2: 1}, ("ab", "c"), ("a", "bc")),
    *(Pair(1), Pair(1, 1), Pair(None, 1), Colour.RED, Colour.BLUE, Pair, Colour, len, os),
    *(function(ADD), function("def f(x): return x + 2"), function("def f(x=1): return x + 1")),
    *(function(GLOBAL, N=1), function(GLOBAL, N=2), function(CLOSURE, N=1), function(CLOSURE, N=2)),
    *(function(CALLS, M=1), function(CALLS, M=2)),
    *(partial(function(ADD), 1), partial(function(ADD), 2), function("f = lambda x: (lambda: x + 1)()")),
    *(function("import math\ndef f(x): return math.sqrt(x)"), function("def f(x): return f(x - 1) if x else 0")),
]


def test_different_values_differ():
    digests = [fingerprint(value) for value in DIFFERENT]
    equal = [(first, two) for at, first in enumerate(digests) for two in digests[:at] if first == two]
    assert equal == [] and all(len(digest) == 64 for digest in digests)


def test_equal_values_agree():
    assert fingerprint({1: "a", 2: "b"}) == fingerprint({2: "b", 1: "a"})
    assert fingerprint({"x", "y", "z"}) == fingerprint({"z", "y", "x"})
    assert fingerprint(function(ADD)) == fingerprint(function(ADD))
    assert fingerprint(function(CLOSURE, N=(1, 2))) == fingerprint(function(CLOSURE, N=(1, 2)))


def test_fingerprint_is_equal_in_another_process():
    """Another process with another hash seed computes the same fingerprint."""
    code = (
        "from recompute.support.fingerprint import fingerprint\n"
        "print(fingerprint(({'a', 'b', 'c'}, {'x': 1, 'y': 2}, 1.5, fingerprint)))"
    )
    stdouts = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT.parent,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(stdouts) == 1


@pytest.mark.parametrize("value", [object(), iter([1]), (1, [object()]), function(GLOBAL, N=object())])
def test_values_without_content_have_no_fingerprint(value: object):
    with pytest.raises(NoFingerprint):
        fingerprint(value)
