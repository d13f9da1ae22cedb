"""Run a script of the corpus eagerly and compiled by us, and say whether the results are the same bits."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

import torch

from recompute.benchmarks.torch.step import Outcome

from .script import Compile, Results, Script

DIFFERENCES = 3
"""Differing tensors that a detail names."""


class Verdict(StrEnum):
    """What became of a script under our compiler. The last two are faults of ours."""

    EQUAL = "equal"
    FALLBACK = "equal, fallback"
    AS_TORCH = "as torch.compile"
    ERROR_AS_TORCH = "error of torch.compile"
    BROKEN = "fails in eager mode"
    REFUSED = "budget refused"
    WRONG = "WRONG"
    CRASH = "CRASH"

    @property
    def is_fault(self) -> bool:
        return self in (Verdict.WRONG, Verdict.CRASH)


@dataclass(frozen=True)
class Judgement:
    """The verdict on a script, and the reason, difference or error."""

    script: str
    verdict: Verdict
    detail: str = ""


@dataclass(frozen=True)
class Attempt:
    """The results of a run, or its error, and the warnings of our frontend."""

    results: Results | None
    error: Exception | None
    warnings: tuple[str, ...]


def eager(target: Any) -> Any:
    return target


def by_torch(target: Any) -> Any:
    """PyTorch's own compiler without Inductor, which decides nothing on recomputation by itself."""
    return torch.compile(target, backend="aot_eager")


def by_us(target: Any, budget: str) -> Any:
    import recompute.torch as rt

    return torch.compile(target, backend=rt.backend(budget=budget))


def attempt(script: Script, compile: Compile) -> Attempt:
    torch._dynamo.reset()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            results, error = script.body(compile), None
        except Exception as raised:
            results, error = None, raised
    ours = [w for w in caught if "recompute" in f"{w.category.__module__} {w.filename}"]
    return Attempt(results, error, tuple(dict.fromkeys(first_line(w.message) for w in ours)))


def judge(script: Script, budget: str) -> Judgement:
    """Compare our run with the eager one; where they part, with PyTorch's own compiled run."""
    plain = attempt(script, eager)
    if plain.results is None:
        return Judgement(script.name, Verdict.BROKEN, described(plain.error))
    ours = attempt(script, partial(by_us, budget=budget))
    if ours.results is not None:
        lines = Outcome(ours.results).differences(Outcome(plain.results))
        if not lines:
            verdict = Verdict.FALLBACK if ours.warnings else Verdict.EQUAL
            return Judgement(script.name, verdict, "; ".join(ours.warnings))
    theirs = attempt(script, by_torch)
    if ours.results is None:
        return Judgement(script.name, error_verdict(ours.error, theirs.error), described(ours.error))
    if theirs.results is not None and not Outcome(ours.results).differences(Outcome(theirs.results)):
        return Judgement(script.name, Verdict.AS_TORCH, "; ".join(ours.warnings))
    return Judgement(script.name, Verdict.WRONG, f"{len(lines)} differ: {', '.join(lines[:DIFFERENCES])}")


def error_verdict(ours: Exception | None, theirs: Exception | None) -> Verdict:
    """Whether our error is a refusal of the budget, PyTorch's own, or a fault."""
    if "Refusal" in type(ours).__name__ or "Refusal" in str(ours):
        return Verdict.REFUSED
    return Verdict.ERROR_AS_TORCH if type(ours) is type(theirs) else Verdict.CRASH


def described(error: Exception | None) -> str:
    return f"{type(error).__name__}: {first_line(error)}"


def first_line(text: object) -> str:
    return next((line for line in str(text).splitlines() if line.strip()), "")[:300]
