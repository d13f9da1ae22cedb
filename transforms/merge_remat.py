"""recompute-merge-remat: take back what `jax.checkpoint` did, so that the whole step can be cut anew.

    %a = stablehlo.sine %x                                loc("jvp(f)/sin")
    %b = stablehlo.optimization_barrier %x                loc("transpose(jvp(f))/remat2")
    %c = stablehlo.sine %b                                loc("transpose(jvp(f))/checkpoint/rematted_computation/sin")

becomes `%a` alone, which all who read `%c` read. Barriers that `jax.checkpoint` did not make stay, and so does what is
computed twice outside of its second forward pass. Private functions are inlined first, where there is such a barrier.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ..analysis.step.jax_paths import path_of, split_path
from ..dialects.every import every_operation
from ..dialects.stablehlo.control import OptimizationBarrierOp
from ..rules.kinds import is_constant
from .cse import merge_into_first
from .inline import inline

_AGAIN = "rematted_computation"
_PRIMITIVES = frozenset({"checkpoint", "remat", "remat2"})
"""Names of what `jax.checkpoint` makes, in one version of JAX or another, where they end a path."""


def merge_remat(module: ModuleOp) -> int:
    """Merge every second forward pass of `jax.checkpoint` with the first, in place; returns how many operations went.

    A module without such barriers stays as it is. Raises what `inline` raises.
    """
    if not any(map(is_of_remat, every_operation(module))):
        return 0
    inline(module)
    barriers = [op for op in every_operation(module) if is_of_remat(op)]
    for barrier in barriers:
        _remove(barrier)
    # Twins are equal now as expressions, and the first stands before the other in the same block or around it.
    return len(barriers) + merge_into_first(module, _may_go)


def is_of_remat(op: Operation) -> bool:
    """Whether it is a barrier that `jax.checkpoint` put around what it computes again; one of the user's own is not."""
    return isinstance(op, OptimizationBarrierOp) and split_path(path_of(op.location))[-1] in _PRIMITIVES


def _may_go(op: Operation) -> bool:
    """Whether it runs for the second time, or costs nothing."""
    return is_constant(op) or _AGAIN in split_path(path_of(op.location))


def _remove(barrier: Operation) -> None:
    for result, value in zip(barrier.results, barrier.operands, strict=True):
        result.replace_all_uses_with(value)
    barrier.detach()
    barrier.erase()


@dataclass(frozen=True)
class MergeRematPass(ModulePass):
    """Take barriers of `jax.checkpoint` out, and merge what it computes again with what was computed first."""

    name = "recompute-merge-remat"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        merge_remat(op)
