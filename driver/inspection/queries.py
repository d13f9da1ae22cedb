"""Queries about the steps of a module. They read an inlined and flattened copy, and leave the module unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from xdsl.dialects.builtin import ModuleOp

from ...analysis.explain.executed_flops import executed_flops
from ...analysis.explain.explanation import Explanation
from ...analysis.explain.saved_values import SavedValue, still_saved
from ...analysis.memory.timeline import Timeline
from ...analysis.request.checkpoints import with_stated_checkpoints
from ...analysis.step.module_steps import steps_of
from ...analysis.step.order import functions_of
from ...dialects.stablehlo.control import WhileOp
from ...options.recompute_options import RecomputeOptions
from ...options.selection import Selection
from ...rules.costs.cost import FLOPS, BadCost, cost_named
from ...support.diagnostics import BadRequest, position_of
from ...support.operations import name_of
from ...support.remarks import Remark
from ...transforms.outlining.nested_steps import outline_nested_steps
from ...transforms.per_device.outline import outline_device_steps
from ...transforms.phase import write_phases
from ...transforms.plans.misfits import for_each_step
from ...transforms.preparation.timelines import flat_copy, timelines_of
from .explain_function import explain


def explanations_of(
    module: ModuleOp, selection: Selection, cost: str = FLOPS, options: RecomputeOptions | None = None
) -> tuple[list[Explanation], list[Remark]]:
    """Explain every step of the module, including steps in loops and branches.

    `options`: the options of a rewrite whose choice the explanations must describe; None for no rewrite.

    Returns:
        The explanations, and remarks on guessed phases. `recompute` makes the same guesses.

    Raises:
        Refusal: The module has no gradient, or the segment or the cost is unknown.
    """
    try:
        cost_named(cost)
    except BadCost as error:
        raise BadRequest(module, str(error)) from error
    copy = flat_copy(module)
    guessed = write_phases(copy, selection.phase_hint)
    places = _outline(copy)
    selection, _ = with_stated_checkpoints(copy, selection)
    choosing = None if options is None else replace(options, selection=selection)
    explain_step = partial(explain, selection=selection, cost=cost, options=choosing)
    explanations = for_each_step(steps_of(copy), explain_step).values()
    return [replace(each, place=places.get(each.function, "")) for each in explanations], guessed


def timelines_apart(module: ModuleOp, model: str) -> dict[str, tuple[str, Timeline]]:
    """Return the timeline of each function and a phrase that locates it, by function name.

    Loop bodies and per-device bodies that contain a gradient are treated as functions. For all other functions, the
    phrase is "".
    """
    copy = flat_copy(module)
    places = _outline(copy)
    return {name: (places.get(name, ""), timeline) for name, timeline in timelines_of(copy, model)}


def step_flops(module: ModuleOp) -> int:
    """Return the FLOPs of the functions of the module, over all iterations of loops."""
    blocks = [block for function in functions_of(flat_copy(module)) for block in function.body.blocks]
    return sum(executed_flops(op) for block in blocks for op in block.ops)


def still_saved_of(module: ModuleOp, kept: Mapping[str, str]) -> list[SavedValue]:
    """Return the values that each rewritten step of the module saves for its backward pass.

    `kept`: for each segment that is not recomputed, the reason.
    """
    copy = flat_copy(module)
    _outline(copy)
    return [value for _, phases in steps_of(copy) for value in still_saved(phases, kept)]


def _outline(module: ModuleOp) -> dict[str, str]:
    """Outline the nested steps of an inlined module as functions. Return a phrase that locates each step."""
    outline_device_steps(module)
    places = dict[str, str]()
    for step in outline_nested_steps(module):
        name = step.function.sym_name.data
        holder = step.placeholder.parent_op()
        if step.is_later:
            places[name] = f"step {int(name.rpartition('+')[2]) + 1}"
        elif holder is not None:
            around = "loop" if isinstance(holder, WhileOp) else name_of(holder)
            places[name] = f"inside the {around} at {position_of(step.function)}"
    return places
