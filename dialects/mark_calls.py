"""Custom calls with which a framework marks values. Each call returns its first operand, and marks the operation that
defines this operand.

    %2 = stablehlo.custom_call @recompute.save(%1) : (tensor<8xf32>) -> tensor<8xf32>
    %3 = stablehlo.custom_call @recompute.name(%1) {backend_config = "hidden"} : (tensor<8xf32>) -> tensor<8xf32>
    %5 = stablehlo.custom_call @recompute.checkpoints(%4, %1) {backend_config = "hidden,wave"} :
        (tensor<f32>, tensor<8xf32>) -> tensor<f32>

`checkpoints` lists the values at which the step is cut into segments, by name and as further operands.
"""

from __future__ import annotations

from typing import TypeGuard

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from .mark_kind import MarkKind
from .names import Names
from .stablehlo.custom_call import CustomCallOp

NAME = f"{Names.PREFIX}name"
CHECKPOINTS = Names.CHECKPOINTS
MARK_KIND_OF = {
    f"{Names.PREFIX}save": MarkKind.MUST_SAVE,
    f"{Names.PREFIX}again": MarkKind.MUST_RECOMPUTE,
    f"{Names.PREFIX}offload": MarkKind.OFFLOAD,
}
"""The kind of mark that each call target sets."""
MARKS = (*MARK_KIND_OF, NAME, CHECKPOINTS)
_ALLOWED = frozenset({"call_target_name", "backend_config", "has_side_effect", "api_version"})


def is_named_as_mark(op: Operation) -> TypeGuard[CustomCallOp]:
    """Return whether the operation is a custom call whose target begins with `recompute.`."""
    return type(op) is CustomCallOp and op.call_target_name.data.startswith(Names.PREFIX)


def is_mark(op: Operation) -> TypeGuard[CustomCallOp]:
    """Return whether the operation is a well-formed mark."""
    return is_named_as_mark(op) and why_malformed(op) is None


def why_malformed(op: CustomCallOp) -> str | None:
    """Return the reason that a call whose target begins with `recompute.` is malformed; None if it is well formed."""
    target = op.call_target_name.data
    if target not in MARKS:
        return f"unknown mark '{target}'; expected one of {', '.join(MARKS)}"
    marked = op.operands[:1] if target == CHECKPOINTS else op.operands
    if len(marked) != 1 or [value.type for value in marked] != [result.type for result in op.results]:
        return f"{target} must take one value and return one value of the same type"
    if target == NAME and not name_in(op):
        return f"{target} must have a name in its backend_config"
    if (op.has_side_effect is not None and op.has_side_effect.value.data) or not _ALLOWED.issuperset(op.properties):
        return f"{target} is the identity: the call must have no effect, layouts or aliases"
    return None


def name_in(mark: CustomCallOp) -> str:
    """Return the name that a `recompute.name` sets, or the names that a `recompute.checkpoints` lists, separated by
    commas."""
    return mark.backend_config.data if isinstance(mark.backend_config, StringAttr) else ""
