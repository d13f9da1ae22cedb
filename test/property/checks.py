"""Properties of a program after the pipeline has run; each check yields descriptions of violations.

`check(case)` runs all checks. An exception also counts as a violation.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Operation, SSAValue
from xdsl.transforms.canonicalize import CanonicalizePass
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination
from xdsl.transforms.dead_code_elimination import DeadCodeElimination

from recompute.analysis.memory.xla.memory import xla_timeline
from recompute.analysis.step.marks import explicit_mark
from recompute.analysis.step.order import constants_only, read_values, single_block
from recompute.analysis.step.phases import Phases, phases
from recompute.analysis.step.residuals import residuals
from recompute.dialects.context import make_context
from recompute.dialects.names import Names
from recompute.driver.verification.verified import verify_module
from recompute.interpreters.execute_check import PreparedPair
from recompute.interpreters.inputs import InputKind, random_inputs
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.options.recompute_options import RecomputeOptions
from recompute.planning.objective import MIN_SAVED_SHARE
from recompute.proof.prove import prove
from recompute.rewriting.rewrite import Recomputation, rewrite_in_place
from recompute.rewriting.schedule import schedule
from recompute.support.diagnostics import UNKNOWN, Refusal, position_of
from recompute.support.operations import name_of
from recompute.test.examples import peaks_of
from recompute.transforms.inline import inline
from recompute.transforms.verify import verify

from .requests import Request, step_of

# Refusals that a valid program with a valid request may get.
EXPECTED_REFUSALS = ("no segment matches", "cannot divide", "there is no segment", "no checkpoint")


@dataclass(frozen=True)
class Problem:
    check: str
    detail: str

    @property
    def kind(self) -> str:
        """Description without numbers and names, which is equal for violations of the same kind."""
        words = re.sub(r"'[^']*'|%\w+|\d+|\(.*\)", "_", self.detail.splitlines()[0])
        return f"{self.check}: {words[:160]}"


@dataclass(frozen=True)
class Case:
    """Run of the pipeline on a program."""

    request: Request
    before: ModuleOp
    after: ModuleOp
    recomputation: Recomputation

    @cached_property
    def inlined(self) -> ModuleOp:
        """The original program with its private functions inlined, as memory is measured."""
        module = self.before.clone()
        inline(module)
        return module

    @cached_property
    def flat(self) -> ModuleOp:
        """The result with its calls inlined, as memory is measured."""
        module = self.after.clone()
        inline(module)
        return module

    @cached_property
    def text(self) -> str:
        return print_module(self.after, debuginfo=True)

    @cached_property
    def held(self) -> SavedValue:
        return holding(self.flat)


@dataclass(frozen=True)
class SavedValue:
    """Residuals by operation and type, and peaks, which later cleanups must not change."""

    residuals: tuple[tuple[str, str], ...]
    peak_bytes: int
    eager_peak_bytes: int


@dataclass(frozen=True)
class Outcome:
    """Outcome of all checks. `refusal`: the reason of an expected refusal."""

    copies: int = 0
    refusal: str = ""
    problems: tuple[Problem, ...] = ()


def holding(module: ModuleOp) -> SavedValue:
    classes = classified(module)
    owners = ((residual.value.owner, residual.value.type) for residual in residuals(classes))
    names = sorted((name_of(owner), str(type_)) for owner, type_ in owners if isinstance(owner, Operation))
    peaks = peaks_of(module)
    return SavedValue(tuple(names), peaks.in_order, peaks.eager)


def classified(module: ModuleOp) -> Phases:
    actual = phases(step_of(module))
    assert actual is not None, "every generated program has a gradient"
    return actual


def run(before: ModuleOp, request: Request, calls: bool = True) -> Case:
    """Run the pipeline on a copy, and raise what it raises. `calls`: whether calls are restored."""
    after = before.clone()
    result = rewrite_in_place(
        after,
        RecomputeOptions(
            request.selection, copies=request.copies, target=request.target, calls=calls, offload=request.offload
        ),
    )
    return Case(request, before, after, result)


def check(before: ModuleOp, request: Request, checks: Checks | None = None) -> Outcome:
    """Run the pipeline and all checks; exceptions are recorded as problems."""
    try:
        case = run(before, request)
    except Refusal as refusal:
        return _refused(refusal, has_positions=request.phases != "attributes")
    except Exception as error:
        return Outcome(problems=(Problem("pipeline", _words(error)),))
    listed = CHECKS if checks is None else checks
    problems = tuple(problem for name, first in listed.items() for problem in _problems(name, first, case))
    return Outcome(case.recomputation.copies, "", problems)


def _refused(refusal: Refusal, has_positions: bool) -> Outcome:
    if not any(words in refusal.reason for words in EXPECTED_REFUSALS):
        return Outcome(problems=(Problem("refusal", refusal.reason),))
    if has_positions and position_of(refusal.operation) == UNKNOWN:
        return Outcome(problems=(Problem("refusal without a position", refusal.reason),))
    return Outcome(refusal=refusal.reason)


def _problems(name: str, actual: Check, case: Case) -> Iterator[Problem]:
    try:
        yield from (Problem(name, detail) for detail in actual(case))
    except Exception as error:
        yield Problem(name, _words(error))


def _words(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} (in {frame.name}, line {frame.lineno})"


Check = Callable[[Case], Iterator[str]]
Checks = dict[str, Check]


def _verifies(case: Case) -> Iterator[str]:
    """Check that the result verifies, and that its copies keep the invariants if the target can order operations."""
    verify_module(case.after)
    if case.request.target == "stablehlo":
        verify(case.after)
        verify(case.flat)
    yield from (f"{op.name} is left" for op in case.after.walk() if op.name.startswith("recompute."))


def _proved(case: Case) -> Iterator[str]:
    """Check that the result is proved equal (R13)."""
    proof = prove(case.before, case.after)
    if not proof:
        yield proof.reason


def _peak(case: Case) -> Iterator[str]:
    """Check that a policy does not raise a peak noticeably, and that it lowers one if it makes copies."""
    if not case.request.is_policy_only or not case.recomputation.copies:
        return
    before, after = holding(case.inlined), holding_of(case)
    is_for_xla = case.request.target == "stablehlo"
    peaks = {"peak": (before.peak_bytes, after.peak_bytes)}
    if is_for_xla:
        peaks["eager peak"] = (before.eager_peak_bytes, after.eager_peak_bytes)
    for what, (old, new) in peaks.items():
        if new > old * (1 + MIN_SAVED_SHARE):
            yield f"the {what} goes from {old} to {new} bytes"
    if not any(map(_falls, peaks.values())) and not (is_for_xla and _falls(_under_xla(case))):
        yield f"no peak falls: {peaks}"


def _falls(peaks: tuple[int, int]) -> bool:
    before, after = peaks
    return after < before * (1 - MIN_SAVED_SHARE)


def _under_xla(case: Case) -> tuple[int, int]:
    before, after = (xla_timeline(step_of(module)).peak_bytes for module in (case.inlined, case.flat))
    return before, after


def holding_of(case: Case) -> SavedValue:
    """Return the residuals and peaks of the result, inlined: an unchanged step may still have calls."""
    if case.recomputation.copies:
        return case.held
    return holding(case.inlined)


def _silent(case: Case) -> Iterator[str]:
    """Check that without copies nothing changes, and that a remark gives the reason (R15, R11)."""
    if case.recomputation.copies:
        return
    if case.text != print_module(case.before, debuginfo=True):
        yield "the step has changed although nothing is recomputed"
    if not case.recomputation.remarks:
        yield "nothing is recomputed, and no remark says why"


def _second_run(case: Case) -> Iterator[str]:
    """Check that a second run changes nothing (R12)."""
    again = case.after.clone()
    request = case.request
    result = rewrite_in_place(
        again,
        RecomputeOptions(request.selection, copies=request.copies, target=request.target, offload=request.offload),
    )
    if print_module(again, debuginfo=True) != case.text:
        yield f"a second run changes the step and makes {result.copies} copies"


def _later_cleanups(case: Case) -> Iterator[str]:
    """Check that later cleanups change neither residuals nor peaks."""
    if not case.recomputation.copies:
        return
    module = case.after.clone()
    context = make_context()
    for _ in range(3):
        for cleanup in (CommonSubexpressionElimination(), CanonicalizePass(), DeadCodeElimination()):
            cleanup.apply(context, module)
    inline(module)
    held = holding(module)
    if held.residuals != case.held.residuals:
        gone = sorted(set(case.held.residuals) - set(held.residuals)) or "some of several alike"
        new = sorted(set(held.residuals) - set(case.held.residuals)) or "some of several alike"
        yield f"cleanups change the residuals: gone {gone}, new {new}"
    if held.peak_bytes != case.held.peak_bytes:
        yield f"cleanups change the peak from {case.held.peak_bytes} to {held.peak_bytes} bytes"
    if case.request.target == "stablehlo":
        if held.eager_peak_bytes != case.held.eager_peak_bytes:
            yield f"cleanups change the eager peak from {case.held.eager_peak_bytes} to {held.eager_peak_bytes} bytes"
        verify(module)


def _text(case: Case) -> Iterator[str]:
    """Check that printing and parsing lose nothing."""
    if print_module(parse_module(case.text), debuginfo=True) != case.text:
        yield "print, parse, print gives another text"


def _gated(case: Case) -> Iterator[str]:
    """Check the gates by reachability, independent of the passes.

    Every operand of a copy comes from a copy, from a constant, or through a barrier that a gradient value also passes.
    """
    if case.request.target != "stablehlo" or not case.recomputation.copies:
        return
    classes = classified(case.flat)
    constants = constants_only(classes.order)
    waiting = set[SSAValue](constants)
    for op in classes.order.operations:
        if Names.COPY in op.attributes:
            for value in read_values(op):
                if value not in waiting:
                    yield f"a copy of {name_of(op)} reads a value that does not wait for a gradient"
            waiting.update(op.results)
            if not {Names.ID, Names.DUPLICATED} <= op.attributes.keys():
                yield f"a copy of {name_of(op)} does not say of what"
        elif name_of(op) == "stablehlo.optimization_barrier" and any(
            value not in constants and _is_gradient(classes, value) for value in op.operands
        ):
            waiting.update(op.results)


def _is_gradient(actual: Phases, value: SSAValue) -> bool:
    owner = value.owner
    return isinstance(owner, Operation) and Names.COPY not in owner.attributes and actual.is_gradient(owner)


def _scheduled(case: Case) -> Iterator[str]:
    """Check recompute-schedule on the step before and after: equal results and phases, and no higher peak."""
    for given in (case.inlined, *([case.flat] if case.recomputation.copies else [])):
        module = given.clone()
        before = classified(module)
        schedule(module)
        verify_module(module)
        if (changed := _changed_phases(before, classified(module))) is not None:
            yield f"the schedule changes the phase of {changed}"
        held, was = holding(module), holding(given)
        if held.peak_bytes > was.peak_bytes or held.eager_peak_bytes > was.eager_peak_bytes:
            peaks = f"{held.peak_bytes} and {held.eager_peak_bytes}"
            yield f"the schedule takes the peaks from {was.peak_bytes} and {was.eager_peak_bytes} to {peaks}"
        if not (proof := prove(given, module)):
            yield proof.reason


def _changed_phases(before: Phases, after: Phases) -> str | None:
    """Return the name of an operation whose phase changes, or None. Constants run when their first reader does."""
    constants = constants_only(after.order)
    for op in after.order.operations:
        if after.phase[op] != before.phase[op] and not all(result in constants for result in op.results):
            return name_of(op)
    return None


def _marks(case: Case) -> Iterator[str]:
    """Check that values which the user wants to keep have no copy. A note that copies inherit identifies
    operations."""
    if not case.request.marks:
        return
    noted = case.before.clone()
    kept = set[int]()
    for position, op in enumerate(single_block(step_of(noted)).ops):
        op.attributes[_NOTE] = IntegerAttr(position, i64)
        if explicit_mark(op) is False:
            kept.add(position)
    after = run(noted, case.request).after
    for op in after.walk():
        note = op.attributes.get(_NOTE)
        if Names.COPY in op.attributes and isinstance(note, IntegerAttr) and note.value.data in kept:
            yield f"{name_of(op)} has a copy although it is marked to be kept"


_NOTE = "test.position"


def _executed(case: Case) -> Iterator[str]:
    """Check that the bits are equal on moderate inputs, and on zeros of both signs, infinities and NaN (R13)."""
    if not is_executable(case.before):
        return
    steps = PreparedPair.of(case.before, case.after)
    for kind in INPUTS:
        proof = steps.compare(random_inputs(step_of(case.before), 0, kind))
        if not proof.equal:
            yield f"on {kind} inputs: {proof.difference}"


INPUTS: tuple[InputKind, ...] = ("random", "adversarial")


def is_executable(module: ModuleOp) -> bool:
    return all(name_of(op).startswith(("stablehlo.", "func.", "builtin.", "recompute.")) for op in module.walk())


CHECKS: Checks = {
    "verifies": _verifies,
    "proved": _proved,
    "peak": _peak,
    "left alone": _silent,
    "second run": _second_run,
    "later cleanups": _later_cleanups,
    "text": _text,
    "gated": _gated,
    "marks": _marks,
    "scheduled": _scheduled,
}

EXECUTION: Checks = {"executed": _executed}
