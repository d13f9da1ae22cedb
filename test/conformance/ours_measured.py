"""Measurements of this project for the counterpart of a case, executed in numpy, with memory in program order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from xdsl.dialects.builtin import BoolAttr, ModuleOp, StringAttr
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination

from recompute.analysis.memory.timeline import timeline
from recompute.analysis.request.segments import find_segments
from recompute.analysis.step.marks import is_copy
from recompute.analysis.step.order import functions_of
from recompute.analysis.step.phases import Phases, phases
from recompute.analysis.step.residuals import residuals
from recompute.dialects.context import make_context
from recompute.dialects.names import Names
from recompute.interpreters.executor import execute, function_named
from recompute.interpreters.inputs import random_inputs
from recompute.mlir_io.parser import parse_module
from recompute.options.recompute_options import RecomputeOptions
from recompute.options.selection import Selection
from recompute.proof.prove import prove
from recompute.rewriting.rewrite import rewrite_in_place
from recompute.test.conformance.cases import Case
from recompute.test.conformance.measures import Array, Measures, absolute_change, relative_change
from recompute.transforms.inline import inline
from recompute.transforms.preparation.flatten import drop_dead

NETS = Path(__file__).resolve().parent / "nets"


def measure(case: Case, inputs: Sequence[Array]) -> Measures:
    """Return the measurements. `inputs` are those of the real system as far as they go; keys are drawn from a seed."""
    if not case.net:
        return Measures(why_not={"": case.without})
    before, after = load(case), load(case)
    selection = Selection("auto" if case.forced else case.segments, outputs=case.outputs)
    result = rewrite_in_place(after, RecomputeOptions(selection, calls=False))
    assert prove(before, after).proved, "the pipeline's result is always proved"
    results = [execute(function_named(module), _inputs(module, inputs)) for module in (before, after)]
    gradients = [[r for i, r in enumerate(actual) if i not in case.statistics] for actual in results]
    statistics = [[actual[index] for index in case.statistics] for actual in results]
    phases_before, phases_after = classified(before), classified(after)
    return Measures(
        clones=count_copies(after),
        clones_after_cse=_after_cse(after) if case.name == "cse" else None,
        gates=sum(len(group.batches) for group in result.groups),
        empty_gates=sum(not group.gates for group in result.groups),
        held=(len(residuals(phases_before)), len(residuals(phases_after))),
        peak_bytes=(peak_of(before, phases_before), peak_of(after, phases_after)),
        gradient_change=relative_change(*gradients),
        mask_mismatches=mismatches(results[1]) if case.net == "dropout" else None,
        running_stat_error=absolute_change(*statistics) if case.statistics else None,
        results=tuple(results[1]),
        why_not={"mask_mismatches": "the proof covers the mask", "": case.without},
    )


def _after_cse(module: ModuleOp) -> int:
    """Count the copies that remain after xDSL's own CSE."""
    cleaned = module.clone()
    CommonSubexpressionElimination().apply(make_context(), cleaned)
    return count_copies(cleaned)


def count_copies(module: ModuleOp) -> int:
    return sum(1 for op in module.walk() if is_copy(op))


def load(case: Case) -> ModuleOp:
    """Return the net, inlined and without dead code, marked if the case forces it."""
    module = parse_module((NETS / f"{case.net}.mlir").read_text(), f"{case.net}.mlir")
    inline(module)
    drop_dead(module)
    if case.forced:
        classes = classified(module)
        inside = find_segments(classes, case.segments)
        returned = set(classes.order.operations[-1].operands)
        for op, segment in inside.items():
            if not returned.intersection(op.results):
                op.attributes |= {Names.SEGMENT: StringAttr(segment), Names.RECOMPUTE: BoolAttr.from_bool(True)}
    return module


def classified(module: ModuleOp) -> Phases:
    actual = phases(functions_of(module)[0])
    assert actual is not None, "every net has a gradient"
    return actual


def peak_of(module: ModuleOp, actual: Phases) -> int:
    return timeline(functions_of(module)[0], actual).peak_bytes


def _inputs(module: ModuleOp, given: Sequence[Array]) -> list[Array]:
    function = function_named(module)
    drawn = random_inputs(function)
    fits = len(given) == len(drawn) and all(a.shape == b.shape for a, b in zip(given, drawn, strict=True))
    return [a.astype(b.dtype) for a, b in zip(given, drawn, strict=True)] if fits else drawn


def mismatches(results: Sequence[Array]) -> int:
    """Count the elements whose gradient does not match their value v = exp(tanh(n)), where n is the noise.

    The real system counts the same. The input is drawn, not 1: n = 2 x or 0, and dv/dx = v (1 - t*t) n / x.
    """
    _, value, gradient = results
    kept_in_value, kept_in_gradient = value != 1, gradient != 0
    return int(np.sum(kept_in_value != kept_in_gradient))
