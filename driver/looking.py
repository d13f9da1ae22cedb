"""What a module holds, for who looks and changes nothing: timelines and explanations of a copy, inlined and flat."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ..analysis.explain.explanation import Explanation, explain
from ..analysis.request.selection import BadSelection, Selection
from ..analysis.request.stated_checkpoints import as_stated
from ..analysis.step.phases import Phases
from ..dialects.diagnostics import Refusal
from ..transforms.phase import steps_of
from ..transforms.plans.counted import MODELS as MODELS
from ..transforms.plans.counted import flat
from ..transforms.plans.counted import timelines_of as timelines_of


def explanations_of(module: ModuleOp, selection: Selection) -> list[Explanation]:
    """Explain every step of the module. Raises `Refusal` where there is no gradient or no such segment."""
    copy = flat(module)
    selection, _ = as_stated(copy, selection)
    return [_explain(function, found, selection) for function, found in steps_of(copy)]


def _explain(function: FuncOp, found: Phases, selection: Selection) -> Explanation:
    try:
        return explain(function, found, selection)
    except BadSelection as error:
        raise Refusal(function, str(error)) from error
