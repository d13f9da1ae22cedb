"""What a module holds, for who looks and changes nothing: timelines and explanations of a copy, inlined and flat."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ..analysis.explain.explanation import Explanation, explain
from ..analysis.memory.labels import Labels
from ..analysis.memory.timeline import Timeline, timeline
from ..analysis.memory.xla.memory import xla_timeline
from ..analysis.request.selection import Selection
from ..analysis.request.stated_checkpoints import as_stated
from ..analysis.step.functions import functions_of
from ..analysis.step.phases import Phases, phases
from ..dialects.diagnostics import Refusal
from ..rules.costs.cost import FLOPS, BadCost, cost_named
from ..transforms.inline import inline
from ..transforms.inline_gradient import inline_gradient
from ..transforms.inline_segments import inline_segments
from ..transforms.per_device.outline import outline_device_steps
from ..transforms.phase import steps_of
from ..transforms.plans.misfits import Misfits
from ..transforms.plans.nested_steps import outline_nested_steps

MODELS: dict[str, Callable[[FuncOp, Phases | None, Labels], Timeline]] = {"order": timeline, "xla": xla_timeline}
"""Program order with every result stored; and as XLA:CPU stores and runs them."""


def timelines_of(module: ModuleOp, model: str) -> list[tuple[str, Timeline]]:
    """(function name, timeline) of every function that can be called from outside, inlined."""
    copy = _flat(module)
    classified = [(function, phases(function)) for function in functions_of(copy)]
    return [
        (function.sym_name.data, MODELS[model](function, found, Labels.of(found))) for function, found in classified
    ]


def explanations_of(module: ModuleOp, selection: Selection, cost: str = FLOPS) -> list[Explanation]:
    """Explain every step of the module, those inside of something too. Raises `Refusal` where there is no gradient, no
    such segment or no such cost."""
    try:
        cost_named(cost)
    except BadCost as error:
        raise Refusal(module, str(error)) from error
    copy = _flat(module)
    outline_device_steps(copy)
    outline_nested_steps(copy)
    selection, _ = as_stated(copy, selection)
    explanations, misfits = list[Explanation](), Misfits()
    for function, found in steps_of(copy):
        explanation = misfits.fitted(function, partial(explain, function, found, selection, cost))
        explanations.extend([] if explanation is None else [explanation])
    misfits.refuse()
    return explanations


def _flat(module: ModuleOp) -> ModuleOp:
    """A copy without calls and segments to flatten."""
    copy = module.clone()
    inline(copy)
    inline_gradient(copy)
    inline_segments(copy)
    return copy
