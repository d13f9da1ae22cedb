"""recompute-merge-remat: undo `jax.checkpoint`, so that the whole step can be re-divided into segments.

    %a = stablehlo.sine %x                                loc("jvp(f)/sin")
    %b = stablehlo.optimization_barrier %x                loc("transpose(jvp(f))/remat2")
    %c = stablehlo.sine %b                                loc("transpose(jvp(f))/checkpoint/rematted_computation/sin")

becomes `%a` alone, which replaces `%c`. Some operations of the second forward pass have no equal operation in the first
one, such as a derivative that the backward pass reads. They move to the first forward pass, where they would be without
`jax.checkpoint`. Barriers and repeated operations that are not from `jax.checkpoint` stay. If there is a barrier of
`jax.checkpoint`, private functions are inlined first.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, NameLoc, StringAttr
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ..analysis.step.direction import Direction
from ..analysis.step.jax_paths import forward_path, path_of, scope_of, split_path
from ..analysis.step.order import functions_of, producers, single_block
from ..dialects.cloning import clone_of
from ..dialects.stablehlo.control import OptimizationBarrierOp
from ..rules.effects import is_constant, why_impure
from ..support.operations import every_operation, name_of
from ..support.remarks import Remark, tell
from .calls.call_attributes import keep_whole
from .cse import merge_into_first
from .inline import inline

_CONTROL = frozenset({"stablehlo.while", "stablehlo.case", "stablehlo.if"})
_SECOND_PASS = "rematted_computation"
_PRIMITIVES = frozenset({"checkpoint", "remat", "remat2"})
"""The last path components of operations from `jax.checkpoint`, in all supported versions of JAX."""


def merge_remat(module: ModuleOp) -> int:
    """Merge each second forward pass of `jax.checkpoint` with the original forward pass. Return the number of removed
    operations.

    A module without barriers of `jax.checkpoint` stays unchanged.

    Raises:
        Refusal: Private functions cannot be inlined.
    """
    if not any(map(is_of_remat, every_operation(module))):
        return 0
    with keep_whole(module):
        inline(module)
    barriers = [op for op in every_operation(module) if is_of_remat(op)]
    for barrier in barriers:
        _remove_barrier(barrier)
    # Duplicates are now equal as expressions. The first one is in the same block as the second one or in an enclosing
    # block.
    merged = merge_into_first(module, _may_be_merged)
    for function in functions_of(module):
        _move_to_first_pass(single_block(function))
    return len(barriers) + merged


def without_remat(module: ModuleOp) -> ModuleOp:
    """Return a copy of the module without the second forward passes of `jax.checkpoint`."""
    merged = clone_of(module)
    merge_remat(merged)
    return merged


def is_of_remat(op: Operation) -> bool:
    """Return whether the operation is a barrier that `jax.checkpoint` inserts before a second forward pass."""
    return isinstance(op, OptimizationBarrierOp) and split_path(path_of(op.location))[-1] in _PRIMITIVES


def _may_be_merged(op: Operation) -> bool:
    """Return whether the operation may be replaced by an equal earlier operation. This is true of operations in a
    second forward pass, and of constants, whose live ranges cost no memory.

    The body of a loop in a second forward pass stays as it is, so that the whole loop equals the loop in the first one.
    """
    around = op.parent_op()
    return is_constant(op) or (is_in_second_pass(op) and (around is None or not is_in_second_pass(around)))


def is_in_second_pass(op: Operation) -> bool:
    """Return whether the operation belongs to a second forward pass of `jax.checkpoint`."""
    return _SECOND_PASS in split_path(path_of(op.location))


def _move_to_first_pass(block: Block) -> None:
    """Move each operation of the second forward pass after its operands, if all operands belong to the first forward
    pass.

    Only pure operations without control flow move: a branch or loop that moved would run for a third time.
    """
    late, positions = set[Operation](), _Positions(block)
    for op in list(block.ops):
        if positions.is_floating(op):
            continue
        if late.isdisjoint(producers(op)):
            if is_in_second_pass(op) and why_impure(op) is None and name_of(op) not in _CONTROL:
                positions.move(op)
                continue
            if scope_of(op.location).direction is not Direction.BACKWARD:
                continue
        late.add(op)


class _Positions:
    """The positions to which operations of a block can move: after an original operation, or before all of them.

    Constant expressions have no fixed position: they move together with an operation that reads them.
    """

    def __init__(self, block: Block):
        self._block = block
        self._position_of = {op: index for index, op in enumerate(block.ops)}
        self._last_at = {index: op for op, index in self._position_of.items()}
        self._floating = set[Operation]()

    def is_floating(self, op: Operation) -> bool:
        """Return whether the operation is a constant expression. Must be called for all operations in program order."""
        is_candidate = is_constant(op) or (bool(op.operands) and not op.regions and why_impure(op) is None)
        if not is_candidate or any(value.owner not in self._floating for value in op.operands):
            return False
        self._floating.add(op)
        return True

    def move(self, op: Operation) -> None:
        """Move the operation directly after its operands, as in the forward pass."""
        fixed = (
            producer for producer in producers(op) if producer in self._position_of and producer not in self._floating
        )
        self._put(op, max((self._position_of[producer] for producer in fixed), default=-1))

    def _put(self, op: Operation, where: int) -> None:
        for producer in producers(op):
            if producer in self._floating and self._position_of[producer] > where:
                self._put(producer, where)
        # The last operation at a position never moves: a floating operation is put there only for an operation that
        # follows it.
        op.detach()
        last, first = self._last_at.get(where), self._block.first_op
        assert first is not None, "a block has a terminator"
        if last is not None:
            self._block.insert_op_after(op, last)
        else:
            self._block.insert_op_before(op, first)
        self._position_of[op], self._last_at[where] = where, op
        _write_forward_location(op)


def _write_forward_location(op: Operation) -> None:
    if isinstance(op.location, NameLoc):
        op.location = NameLoc(StringAttr(forward_path(path_of(op.location))), op.location.location)


def _remove_barrier(barrier: Operation) -> None:
    for result, value in zip(barrier.results, barrier.operands, strict=True):
        result.replace_all_uses_with(value)
    Rewriter.erase_op(barrier)


@dataclass(frozen=True)
class MergeRematPass(ModulePass):
    name = "recompute-merge-remat"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not merge_remat(op):
            tell(ctx, [Remark(op, "nothing is merged: no location in the step names a barrier of jax.checkpoint")])
