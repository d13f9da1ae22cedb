"""Queries that leave the module unchanged: explanations, on an inlined and flattened copy."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from xdsl.dialects.builtin import ModuleOp

from ..analysis.explain.explanation import Explanation, explain
from ..analysis.explain.saved_values import SavedValue, still_saved
from ..analysis.memory.timeline import Timeline
from ..analysis.request.checkpoints import with_stated_checkpoints
from ..options.selection import Selection
from ..rules.costs.cost import FLOPS, BadCost, cost_named
from ..support.diagnostics import BadRequest, Remark
from ..transforms.per_device.outline import outline_device_steps
from ..transforms.phase import steps_of, write_phases
from ..transforms.plans.misfits import Misfits
from ..transforms.preparation.nested_steps import outline_nested_steps
from ..transforms.preparation.timelines import flat, timelines_of


def explanations_of(
    module: ModuleOp, selection: Selection, cost: str = FLOPS
) -> tuple[list[Explanation], list[Remark]]:
    """Explain every step of the module, including steps in loops and branches.

    Returns:
        The explanations, and remarks on guessed phases, which are those that `recompute` guesses.

    Raises:
        Refusal: The module has no gradient, or the segment or the cost is unknown.
    """
    try:
        cost_named(cost)
    except BadCost as error:
        raise BadRequest(module, str(error)) from error
    copy = flat(module)
    guessed = write_phases(copy, selection.phase_hint)
    outline_device_steps(copy)
    outline_nested_steps(copy)
    selection, _ = with_stated_checkpoints(copy, selection)
    explanations, misfits = list[Explanation](), Misfits()
    for function, step in steps_of(copy):
        explanation = misfits.try_on(function, partial(explain, function, step, selection, cost))
        explanations.extend([] if explanation is None else [explanation])
    misfits.refuse()
    return explanations, guessed


def timelines_apart(module: ModuleOp, model: str) -> dict[str, Timeline]:
    """Return the timeline of each function, with loop bodies and per-device bodies that contain a gradient as
    functions."""
    copy = flat(module)
    outline_device_steps(copy)
    outline_nested_steps(copy)
    return dict(timelines_of(copy, model))


def still_saved_of(module: ModuleOp, kept: Mapping[str, str]) -> list[SavedValue]:
    """Return the values that each rewritten step of the module saves for its backward pass.

    `kept`: the reasons that segments are saved, by segment, as in `still_saved`."""
    copy = flat(module)
    outline_device_steps(copy)
    outline_nested_steps(copy)
    return [value for _, phases in steps_of(copy) for value in still_saved(phases, kept)]
