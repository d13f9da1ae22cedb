"""recompute-offload: offload marked values to the host between the forward pass and their gradient.

    %1 = stablehlo.tanh %0 {recompute.recompute = "offload"}
    %9 = stablehlo.multiply %ct, %1            // gradient

becomes

    %1 = stablehlo.tanh %0 {recompute.recompute = "offload"}
    %h = stablehlo.custom_call @annotate_device_placement(%1) {… "pinned_host" …}
    %d = stablehlo.custom_call @annotate_device_placement(%h) {… "device" …, recompute.recompute = true}
    %9 = stablehlo.multiply %ct, %d            // gradient

A fetch is treated as the recomputation of an operation whose operand uses no device memory. `recompute-clone` copies
the fetch to the point where the gradient reads the value, and gates it by a token, as it does for any other operation.
Plans and proofs treat the fetch like other copies. `recompute-cse` removes a move to the host if no copy fetches the
value (`remove_unused_moves`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ..analysis.request.policies import OFFLOADING
from ..analysis.request.resolved import resolve
from ..analysis.step.marks import asks_to_recompute, mark_of
from ..analysis.step.module_steps import steps_of
from ..analysis.step.movable import why_not_moved
from ..analysis.step.order import constants_only
from ..analysis.step.phases import Phases
from ..analysis.step.unplaced import unplaced_values
from ..analysis.step.views import value_bytes
from ..dialects.mark_kind import MarkKind
from ..dialects.names import Names
from ..dialects.placements import is_from_host, is_offload, is_to_host, to_device, to_host
from ..dialects.result_marks import decided_mark
from ..options.pass_options import has_options
from ..options.selection import AUTO, Selection
from ..planning.host_moves import Moves, Offload
from ..support.operations import every_operation
from ..support.remarks import Remark, Topic, tell
from .attributes.write_attributes import mark_result
from .plans.misfits import for_each_step

MARKED_ALONE = Offload(marked=True)
NOTHING_OFFLOADED = (
    "nothing is offloaded: no value has the mark 'offload', and no policy such as save_and_offload_only_these_names "
    "selects one"
)


def insert_host_moves(
    module: ModuleOp,
    selection: Selection = AUTO,
    offload: Offload = MARKED_ALONE,
    offered: Mapping[FuncOp, Sequence[SSAValue]] = MappingProxyType({}),
) -> list[Remark]:
    """Insert moves to the host and back in a flattened module.

    Args:
        module: The module, which is changed in place.
        selection: The selection. If it has an offloading policy, this policy selects values in addition to the marked
            values; all of them are always moved.
        offload: The offloading option: whether marked values are moved, and the transfer speed.
        offered: Further values of each step. They are moved only if moving them reduces memory.

    Returns:
        Remarks on marks without effect.

    Raises:
        Refusal: The selection does not apply to a step, or a step is malformed.
    """
    remarks = list[Remark]()
    steps = list(steps_of(module)) if offload.offers else ()
    selected = for_each_step(steps, lambda _, phases: _values_of_policy(phases, selection)) if offload.marked else {}
    for function, phases in steps:
        forced = list[SSAValue]()
        constant = constants_only(phases.order)
        unplaced = unplaced_values(function, phases.order)
        for value in _values_to_offload(phases, selected.get(function, frozenset())) if offload.marked else ():
            assert isinstance(value.owner, Operation), "only results of operations are marked"
            if (reason := why_not_moved(value, phases, constant, unplaced)) is None:
                forced.append(value)
            else:
                remarks.append(Remark(value.owner, reason, topic=Topic.NO_EFFECT))
        extra = [value for value in offered.get(function, ()) if value not in forced]
        insert_moves(forced, offload.assumed_speed, forced=True)
        insert_moves(extra, offload.assumed_speed)
    return remarks


def _values_of_policy(phases: Phases, selection: Selection) -> frozenset[SSAValue]:
    """Return the values that an offloading policy selects.

    Raises:
        BadSelection: The selection does not apply to the step.
    """
    return resolve(phases, selection).offloaded if selection.policy in OFFLOADING else frozenset()


def _values_to_offload(phases: Phases, selected: Set[SSAValue]) -> Iterator[SSAValue]:
    for op in phases.order.operations:
        for value in op.results:
            if mark_of(value) is MarkKind.OFFLOAD or (value in selected and mark_of(value) is None):
                yield value


def insert_moves(values: Iterable[SSAValue], speed: int, forced: bool = False) -> int:
    """Insert a move to the host and a fetch after each value, and redirect all uses to the fetch. Return the number of
    values.

    Args:
        values: Results of operations.
        speed: The transfer speed in bytes per second; 0 if transfers are free.
        forced: Whether to fetch the values in the backward pass even if that frees no memory.
    """
    count = 0
    for value in values:
        on_host = to_host(value, speed)
        on_host.attributes[Names.RECOMPUTE] = decided_mark([False])
        fetch = to_device(on_host.results[0], speed)
        if forced:
            fetch.attributes[Names.RECOMPUTE] = decided_mark([True])
        value.replace_uses_with_if(fetch.results[0], lambda use, on_host=on_host: use.operation is not on_host)
        assert isinstance(value.owner, Operation), "only results of operations are offered"
        Rewriter.insert_op([on_host, fetch], InsertPoint.after(value.owner))
        count += 1
    return count


def remove_unused_moves(module: ModuleOp) -> Moves:
    """Remove each move to the host whose value no copy fetches, and redirect all its readers to the value itself.

    Returns:
        The remaining moves.
    """
    moves = [op for op in every_operation(module) if is_offload(op)]
    for op in moves:
        if is_from_host(op) and Names.COPY not in op.attributes and is_to_host(on_host := _owner(op.operands[0])):
            _erase(op, on_host.operands[0])
    for op in moves:
        op.attributes.pop(Names.RECOMPUTE, None)
        if is_to_host(op) and not op.results[0].uses:
            _erase(op, op.operands[0])
    remaining = [op for op in moves if op.parent is not None]
    to_host_moves = [op for op in remaining if is_to_host(op)]
    fetches = [op for op in remaining if is_from_host(op)]
    return Moves(len(to_host_moves), _bytes(to_host_moves), _bytes(fetches))


def _bytes(moves: Iterable[Operation]) -> int:
    return sum(value_bytes(op.results[0]) for op in moves)


def mark_host_moves(module: ModuleOp) -> None:
    """Mark each value that the backward pass fetches as `offload`, and remove its moves."""
    for op in every_operation(module):
        if is_offload(op) and is_from_host(op) and asks_to_recompute(op):
            mark_result(_owner(op.operands[0]).operands[0], StringAttr(MarkKind.OFFLOAD.value))
    remove_unused_moves(module)


def _owner(value: SSAValue) -> Operation:
    assert isinstance(value.owner, Operation), "a fetched value was moved to the host by an operation"
    return value.owner


def _erase(op: Operation, value: SSAValue) -> None:
    op.results[0].replace_all_uses_with(value)
    Rewriter.erase_op(op)


@dataclass(frozen=True)
@has_options(Selection)
class OffloadPass(ModulePass):
    name = "recompute-offload"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        remarks = insert_host_moves(op, Selection.of(self))
        if not remarks and not any(map(is_offload, every_operation(op))):
            remarks = [Remark(op, NOTHING_OFFLOADED)]
        tell(ctx, remarks)
