"""Find the option that prevents recomputation, for a rewrite that recomputes nothing.

    recompute{primal-results=1}             result 1 is not the loss, so nearly all operations are forward
    recompute{policy=everything_saveable}   every value is saved

The message names the option and the reason.
"""

from __future__ import annotations

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import SSAValue

from ..analysis.step.phases_by_results import returned_values
from ..analysis.step.step import Steps
from ..options.selection import Selection
from ..support.counted import counted
from ..support.interface import option
from ..support.type_guards import is_tensor

EVERYTHING = "everything_saveable"
MARKS_ALONE = "none"


def option_at_fault(steps: Steps, selection: Selection) -> str | None:
    """Return a message that names the option that most likely prevents recomputation, and a remedy; None if there is no
    such option."""
    if selection.policy == EVERYTHING:
        return f"policy={EVERYTHING} saves every value: choose another policy"
    if selection.segments == MARKS_ALONE and selection.checkpoints is None:
        return f"segments={MARKS_ALONE} selects only marked operations: mark operations, or choose segments"
    if selection.segment_count == 1:
        count = option("segment-count")
        return f"{count}=1 makes a single segment, whose values the backward pass reads first: use {count}=2 or more"
    if selection.phase_hint:
        return "; ".join([_phases_by_hint(steps, selection), *_scalar_suggestion(steps, selection)])
    return None


def _phases_by_hint(steps: Steps, selection: Selection) -> str:
    """Return a message with the number of operations in each pass according to the phase hint."""
    forward = sum(sum(step.graph.forward) for _, step in steps)
    gradient = sum(sum(step.graph.gradient) for _, step in steps)
    return (
        f"with {selection.phase_hint} the forward pass has {counted(forward, 'operation')} and the backward pass "
        f"{gradient}: name the loss"
    )


def _scalar_suggestion(steps: Steps, selection: Selection) -> list[str]:
    """If the hint names no scalar results, return a suggestion to name scalar results instead, because losses are
    usually scalars."""
    named = selection.phase_hint.results
    for function, _ in steps if named else ():
        values = returned_values(function.body.block.last_op) if function.body.block.last_op is not None else ()
        scalars = [number for number, value in enumerate(values) if _is_scalar(value)]
        if scalars and not set(scalars) & set(named):
            results = option("primal-results")
            listed = " or ".join(f"{results}={number}" for number in scalars[:3])
            return [f"result {named[0]} is a {values[named[0]].type}, and most losses are scalars: try {listed}"]
    return []


def _is_scalar(value: SSAValue) -> bool:
    type_ = value.type
    return is_tensor(type_) and not type_.get_shape() and isinstance(type_.element_type, AnyFloat)
