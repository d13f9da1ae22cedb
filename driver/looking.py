"""What a module holds, for who looks and changes nothing: timelines and explanations of a copy, inlined and flat."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ..analysis.explain.explanation import Explanation, explain
from ..analysis.memory.labels import Labels
from ..analysis.memory.timeline import Timeline, timeline
from ..analysis.memory.xla.memory import xla_timeline
from ..analysis.request.selection import BadSelection, Selection
from ..analysis.request.stated_checkpoints import as_stated
from ..analysis.step.functions import functions_of
from ..analysis.step.phases import Phases, phases
from ..dialects.diagnostics import Refusal
from ..rules.costs.cost import FLOPS, BadCost
from ..transforms.inline import inline
from ..transforms.inline_gradient import inline_gradient
from ..transforms.inline_segments import inline_segments
from ..transforms.phase import steps_of

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
    """Explain every step of the module. `Refusal` where there is no gradient, no such segment or no such cost."""
    copy = _flat(module)
    selection, _ = as_stated(copy, selection)
    return [_explain(function, found, selection, cost) for function, found in steps_of(copy)]


def _flat(module: ModuleOp) -> ModuleOp:
    """A copy without calls and segments to flatten."""
    copy = module.clone()
    inline(copy)
    inline_gradient(copy)
    inline_segments(copy)
    return copy


def _explain(function: FuncOp, found: Phases, selection: Selection, cost: str) -> Explanation:
    try:
        return explain(function, found, selection, cost)
    except (BadSelection, BadCost) as error:
        raise Refusal(function, str(error)) from error
