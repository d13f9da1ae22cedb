"""recompute-merge-remat: take back what `jax.checkpoint` did, so that the whole step can be cut anew.

    %a = stablehlo.sine %x                                loc("jvp(f)/sin")
    %b = stablehlo.optimization_barrier %x                loc("transpose(jvp(f))/remat2")
    %c = stablehlo.sine %b                                loc("transpose(jvp(f))/checkpoint/rematted_computation/sin")

becomes `%a` alone, which all who read `%c` read. What the second forward pass alone computes, as derivatives that the
backward pass reads, moves to the first, where it stands without `jax.checkpoint`. Barriers that `jax.checkpoint` did
not make stay, and so does what is computed twice elsewhere. Private functions are inlined first, where there is such a
barrier.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, NameLoc, StringAttr
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from ..analysis.step.direction import Direction
from ..analysis.step.functions import functions_of, single_block
from ..analysis.step.jax_paths import as_forward, path_of, scope_of, split_path
from ..analysis.step.order import producers
from ..dialects.stablehlo.control import OptimizationBarrierOp
from ..rules.effects import why_impure
from ..rules.kinds import is_constant
from ..rules.names import name_of
from ..support.walk import every_operation
from .calls.whole import kept_whole
from .cse import merge_into_first
from .inline import inline

_CONTROL = frozenset({"stablehlo.while", "stablehlo.case", "stablehlo.if"})
_AGAIN = "rematted_computation"
_PRIMITIVES = frozenset({"checkpoint", "remat", "remat2"})
"""Names of what `jax.checkpoint` makes, in one version of JAX or another, where they end a path."""


def merge_remat(module: ModuleOp) -> int:
    """Merge every second forward pass of `jax.checkpoint` with the first, in place; returns how many operations went.

    A module without such barriers stays as it is. Raises what `inline` raises.
    """
    if not any(map(is_of_remat, every_operation(module))):
        return 0
    with kept_whole(module):
        inline(module)
    barriers = [op for op in every_operation(module) if is_of_remat(op)]
    for barrier in barriers:
        _remove(barrier)
    # Twins are equal now as expressions, and the first stands before the other in the same block or around it.
    merged = merge_into_first(module, _may_go)
    for function in functions_of(module):
        _move_to_the_first(single_block(function))
    return len(barriers) + merged


def without_remat(module: ModuleOp) -> ModuleOp:
    """A copy of the module, merged."""
    merged = module.clone()
    merge_remat(merged)
    return merged


def is_of_remat(op: Operation) -> bool:
    """Whether it is a barrier that `jax.checkpoint` put around what it computes again; one of the user's own is not."""
    return isinstance(op, OptimizationBarrierOp) and split_path(path_of(op.location))[-1] in _PRIMITIVES


def _may_go(op: Operation) -> bool:
    """Whether it runs for the second time, or costs nothing."""
    return is_constant(op) or _runs_again(op)


def _runs_again(op: Operation) -> bool:
    return _AGAIN in split_path(path_of(op.location))


def _move_to_the_first(block: Block) -> None:
    """Move what runs again, and reads the first forward pass alone, to where the last of what it reads is made.

    Nothing but pure operations moves, and none with a branch or a loop inside, which would run there for a third time.
    """
    late, places = set[Operation](), _Places(block)
    for op in list(block.ops):
        if places.may_float(op):
            continue
        if late.isdisjoint(producers(op)):
            if _runs_again(op) and why_impure(op) is None and name_of(op) not in _CONTROL:
                places.move(op)
                continue
            if scope_of(op.location).direction is not Direction.BACKWARD:
                continue
        late.add(op)


class _Places:
    """Where operations stand in a block: behind which of those that were there, or in front of all, and in order.

    What constants alone make floats: it goes to where it is needed.
    """

    def __init__(self, block: Block):
        self._block = block
        self._place = {op: index for index, op in enumerate(block.ops)}
        self._last = {index: op for op, index in self._place.items()}
        self._floating = set[Operation]()

    def may_float(self, op: Operation) -> bool:
        """Asked of each operation, in order."""
        made = is_constant(op) or (bool(op.operands) and not op.regions and why_impure(op) is None)
        if not made or any(value.owner not in self._floating for value in op.operands):
            return False
        self._floating.add(op)
        return True

    def move(self, op: Operation) -> None:
        """Behind what it reads, as it is in the forward pass."""
        fixed = (producer for producer in producers(op) if producer in self._place and producer not in self._floating)
        self._put(op, max((self._place[one] for one in fixed), default=-1))

    def _put(self, op: Operation, where: int) -> None:
        for producer in producers(op):
            if producer in self._floating and self._place[producer] > where:
                self._put(producer, where)
        # What is last in a place is never moved away: what floats is put there for an operation that comes behind it.
        op.detach()
        last, first = self._last.get(where), self._block.first_op
        assert first is not None, "a block has a terminator"
        if last is not None:
            self._block.insert_op_after(op, last)
        else:
            self._block.insert_op_before(op, first)
        self._place[op], self._last[where] = where, op
        _say_forward(op)


def _say_forward(op: Operation) -> None:
    if isinstance(op.location, NameLoc):
        op.location = NameLoc(StringAttr(as_forward(path_of(op.location))), op.location.location)


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
