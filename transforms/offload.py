"""recompute-offload: have marked values lie on the host between the forward pass and their gradient.

    %1 = stablehlo.tanh %0 {recompute.recompute = "offload"}
    %9 = stablehlo.multiply %ct, %1            // gradient

becomes

    %1 = stablehlo.tanh %0 {recompute.recompute = "offload"}
    %h = stablehlo.custom_call @annotate_device_placement(%1) {… "pinned_host" …}
    %d = stablehlo.custom_call @annotate_device_placement(%h) {… "device" …, recompute.recompute = true}
    %9 = stablehlo.multiply %ct, %d            // gradient

To fetch a value is to run an operation again whose operand takes no memory of the device: `recompute-clone` copies it
behind a token to where the gradient needs it, as it copies any other, and plans and proofs need to know nothing more.
What nobody fetches is withdrawn (`withdraw`, which `recompute-cse` calls), and with it the move to the host.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from functools import partial
from math import ceil, inf

from xdsl.context import Context
from xdsl.dialects.builtin import BoolAttr, ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ..analysis.request.policies import OFFLOADING
from ..analysis.request.resolved import resolve
from ..analysis.step.constants import constants_only
from ..analysis.step.marks import Policy, asks_to_recompute, mark_of, say
from ..analysis.step.phases import Phases
from ..analysis.step.storage import value_bytes
from ..analysis.step.unplaced import unplaced_values
from ..dialects.context import tell
from ..dialects.placements import is_from_host, is_offload, is_placement, is_to_host, to_device, to_host
from ..dialects.recompute import Names
from ..options.selection import AUTO, Selection
from ..planning.offload import Offload
from ..rules.costs.cost import PICOSECONDS, cost_named
from ..rules.effects import why_impure
from ..rules.names import name_of
from ..rules.registry import facts_of
from ..support.diagnostics import Remark
from ..support.type_guards import is_tensor
from ..support.walk import every_operation
from .phase import steps_of
from .plans.misfits import Misfits

LEAST_BYTES = 1 << 12
"""What is smaller is not worth a move."""
MARKED_ALONE = Offload(marked=True)
NO_TENSOR = "'offload' says nothing here: only tensors of StableHLO are moved to the host; it is kept"
CONSTANT = "'offload' says nothing here: what comes from constants alone takes no memory"
NOT_FORWARD = "'offload' says nothing here: only what the forward pass computes on the device is moved"
UNPLACED = "it is not moved: it is not known to lie in the memory of the device, behind an operation of unknown effect"
NOT_READ = "'offload' says nothing here: no gradient operation reads the value"


def offer(values: Iterable[SSAValue], speed: int, forced: bool = False) -> int:
    """Put a move to the host and back behind each value, for all who read it; returns how many.

    `speed`: bytes per second of the move, 0 where it costs nothing. `forced`: it is fetched whatever that saves.
    """
    count = 0
    for value in values:
        there = to_host(value, speed)
        there.attributes[Names.RECOMPUTE] = BoolAttr.from_bool(False)
        back = to_device(there.results[0], speed)
        if forced:
            back.attributes[Names.RECOMPUTE] = BoolAttr.from_bool(True)
        value.replace_uses_with_if(back.results[0], lambda use, there=there: use.operation is not there)
        assert isinstance(value.owner, Operation), "arguments are not offered"
        Rewriter.insert_op([there, back], InsertPoint.after(value.owner))
        count += 1
    return count


def offered(module: ModuleOp, selection: Selection = AUTO, offload: Offload = MARKED_ALONE) -> list[Remark]:
    """Offer what is marked `offload` or meant by a policy that offloads, in a flat module, and what else may be moved;
    remarks on marks that cannot be heard. Raises `Refusal`, also where the selection does not fit a step."""
    remarks, misfits = list[Remark](), Misfits()
    for function, found in steps_of(module) if offload.offers else ():
        constant, forced = constants_only(found.order), list[SSAValue]()
        unplaced = unplaced_values(function, found.order)
        meant = misfits.fitted(function, partial(_meant, found, selection)) if offload.marked else None
        for value in _marked(found, meant or frozenset()) if offload.marked else ():
            assert isinstance(value.owner, Operation), "marks are on operations"
            if (reason := why_not_moved(value, found, constant, unplaced)) is None:
                forced.append(value)
            else:
                remarks.append(Remark(value.owner, reason))
        others = [value for value in _worth_offering(found, offload, constant | unplaced) if value not in forced]
        offer(forced, offload.reckoned, forced=True)
        offer(others, offload.reckoned)
    misfits.refuse()
    return remarks


def _meant(found: Phases, selection: Selection) -> frozenset[SSAValue]:
    """By a policy that offloads. Raises `BadSelection`."""
    return resolve(found, selection).offloaded if selection.policy in OFFLOADING else frozenset()


def _marked(found: Phases, meant: Set[SSAValue]) -> Iterator[SSAValue]:
    for op in found.order.operations:
        for value in op.results:
            if mark_of(value) is Policy.OFFLOAD or (value in meant and mark_of(value) is None):
                yield value


def _worth_offering(found: Phases, offload: Offload, excluded: Set[SSAValue]) -> Iterator[SSAValue]:
    """Those of the size of an array that take longest to make for their bytes, and those that may not be made again,
    until the link is busy for its share of the forward pass."""
    if not offload.share:
        return
    operations = found.order.operations
    costs = dict(zip(operations, cost_named(offload.cost).of(operations), strict=True))
    seconds = sum(cost for op, cost in costs.items() if found.is_forward(op)) / PICOSECONDS
    left, worth = seconds * offload.speed * offload.share / 100, list[tuple[float, SSAValue]]()
    for op in operations:
        # A view is of something that may be moved itself.
        for value in op.results if not _is_view(op) else ():
            if value not in excluded and why_not_moved(value, found) is None and value_bytes(value) >= LEAST_BYTES:
                worth.append((inf if why_impure(op) else costs[op] / value_bytes(value), value))
    for _, value in sorted(worth, key=lambda one: -one[0]):
        left -= value_bytes(value)
        if left >= 0:
            yield value


def _is_view(op: Operation) -> bool:
    facts = facts_of(op)
    return facts is not None and facts.view is not None


def why_not_moved(
    value: SSAValue,
    found: Phases,
    constant: Set[SSAValue] = frozenset(),
    unplaced: Set[SSAValue] = frozenset(),
) -> str | None:
    """Why a value stays in the device's memory. `constant`: those that come from constants alone. `unplaced`: those of
    which the memory is unknown."""
    if value in constant:
        return CONSTANT
    op = value.owner
    if not isinstance(op, Operation) or not found.is_forward(op) or is_placement(op):
        return NOT_FORWARD
    if not is_tensor(value.type) or name_of(op).partition(".")[0] not in _PLACED:
        return NO_TENSOR
    if value in unplaced:
        return UNPLACED
    return None if _is_read_late(value, found) else NOT_READ


def _is_read_late(value: SSAValue, found: Phases) -> bool:
    """By a gradient operation, itself or through what only the backward pass needs, which may run again there."""
    return any(
        found.is_gradient(reader)
        or (
            (_is_view(reader) or found.phase[reader] == "residual")
            and any(_is_read_late(made, found) for made in reader.results)
        )
        for reader in found.order.readers(value)
    )


_PLACED = frozenset({"stablehlo", "chlo", "sdy"})


@dataclass(frozen=True)
class Moves:
    """So many `values` lie on the host meanwhile; bytes that go `there`, and that come `back`."""

    values: int = 0
    there: int = 0
    back: int = 0

    def charged(self, speed: int) -> int:
        """In picoseconds, as each way back is charged for both."""
        return ceil(PICOSECONDS * 2 * self.back / speed) if speed else 0

    def waiting(self, speed: int, forward: int, backward: int) -> int:
        """Picoseconds that the work waits for copies: there beside the forward pass, and back beside the backward pass,
        which take so long by themselves."""
        if not speed:
            return 0
        waits = (PICOSECONDS * size / speed - work for size, work in ((self.there, forward), (self.back, backward)))
        return ceil(sum(max(0.0, wait) for wait in waits))


NO_MOVES = Moves()


def withdraw(module: ModuleOp) -> Moves:
    """Take back the offers: who does not read what was fetched reads the value itself. Returns what is moved."""
    moves = [op for op in every_operation(module) if is_offload(op)]
    for op in moves:
        if is_from_host(op) and Names.COPY not in op.attributes and is_to_host(there := _owner(op.operands[0])):
            _erase(op, there.operands[0])
    for op in moves:
        op.attributes.pop(Names.RECOMPUTE, None)
        if is_to_host(op) and not op.results[0].uses:
            _erase(op, op.operands[0])
    left = [op for op in moves if op.parent is not None]
    there, back = [op for op in left if is_to_host(op)], [op for op in left if is_from_host(op)]
    return Moves(len(there), _bytes(there), _bytes(back))


def _bytes(moves: Iterable[Operation]) -> int:
    return sum(value_bytes(op.results[0]) for op in moves)


def mark_moved(module: ModuleOp) -> None:
    """Mark what is to lie on the host, which what fetches it is marked to do, and take the moves back."""
    for op in every_operation(module):
        if is_offload(op) and is_from_host(op) and asks_to_recompute(op):
            say(_owner(op.operands[0]).operands[0], StringAttr(Policy.OFFLOAD.value))
    withdraw(module)


def _owner(value: SSAValue) -> Operation:
    assert isinstance(value.owner, Operation), "what is fetched was moved to the host by an operation"
    return value.owner


def _erase(op: Operation, value: SSAValue) -> None:
    op.results[0].replace_all_uses_with(value)
    op.detach()
    op.erase()


@dataclass(frozen=True)
class OffloadPass(Selection, ModulePass):
    """Have what is marked `offload` lie on the host until its gradient comes.

    Policies that offload mean what they name, as `save_and_offload_only_these_names` does.
    """

    name = "recompute-offload"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        tell(ctx, offered(op, self))
