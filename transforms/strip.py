"""recompute-strip: remove all attributes of the dialect `recompute` from a finished step, because some tools reject
them.

    %1 = stablehlo.tanh %0 {recompute.id = 3 : i64, recompute.segment = "block0"}

becomes

    %1 = stablehlo.tanh %0

The other passes leave attributes that record their decisions, such as `recompute.id`, `recompute.copy` and
`recompute.phase`. This pass removes them, and also the attributes that the user wrote. Run this pass last: without the
attributes, a later pass does not know which operations are copies, and `recompute-cse` may merge the copies with their
originals. Operations of the dialect are not changed; `recompute-lower` removes the tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from .calls.templates import strip_operation


def strip(module: ModuleOp) -> None:
    """Remove the attributes of the dialect `recompute` from the module and all operations in it."""
    for op in module.walk():
        strip_operation(op)


@dataclass(frozen=True)
class StripPass(ModulePass):
    name = "recompute-strip"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        strip(op)
