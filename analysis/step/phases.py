"""The phase of each operation of a training step: primal, residual, gradient or update.

    primal     forward pass: ancestors of a result that exists before the gradient, such as the loss
    residual   forward pass: computed only for the backward pass, such as masks and local derivatives
    gradient   backward pass: operations that depend on a cotangent
    update     operations after the gradient on which the gradient does not depend, such as the optimizer

The forward pass consists of the primal and the residual operations. Masks and local derivatives are residual, because
the loss does not depend on them.

Phases are derived from the sources in `phase_sources.py` (`recompute.phase` attributes, then locations) and from
positions in the program. Both are checked against each other.

A function may contain several gradients in sequence, f1 b1 f2 b2, as in a GAN or with accumulated gradients: a step
begins at the first forward operation after a gradient. If every operation has the attribute, positions do not matter,
and steps may alternate as in pipeline schedules.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ...dialects.names import Names
from ...rules.buffers import type_bytes
from ...support.diagnostics import Refusal
from ...support.operations import name_of
from ...support.phase import FORWARD_PHASES, Phase
from .direction import Direction
from .order import Order, single_block
from .phase_sources import PhaseSource, directions_of, source_of, sources, stated_phase


@dataclass(frozen=True)
class Phases:
    """The phase of every operation of a function's block."""

    order: Order
    phase: Mapping[Operation, Phase]

    def is_forward(self, op: Operation) -> bool:
        return self.phase[op] in FORWARD_PHASES

    def is_gradient(self, op: Operation) -> bool:
        return self.phase[op] is Phase.GRADIENT


def updated_phases(before: Phases) -> Phases:
    """Return the phases of a block from which operations were removed, or into which copies for the backward pass were
    inserted."""
    order = Order.of(before.order.block)
    return Phases(order, {op: before.phase.get(op, Phase.GRADIENT) for op in order.operations})


def phases(function: FuncOp, use_attributes: bool = True, structured: bool = False) -> Phases | None:
    """Return the phase of every operation; None if the function contains no gradient.

    Args:
        function: The function, which must have one block.
        use_attributes: Whether the attribute `recompute.phase` is a source of phases.
        structured: Treat each segment or gradient region as one operation, instead of rejecting it.

    Raises:
        Refusal: The sources disagree, the function contains a gradient of a gradient, or segment and gradient regions
            are not inlined yet.
    """
    order = Order.of(single_block(function))
    if not structured:
        _check_flat(order)
    phase_sources = sources(use_attributes)
    stated_phases = _explicit_phases(order) if use_attributes else {}
    constants = order.constant_operations
    direction = _directions(order, constants, phase_sources)
    backward = [op for op in order.operations if direction[op] is Direction.BACKWARD]
    if not backward:
        return None
    if (stated := _stated_phases(order, stated_phases)) is not None:
        return Phases(order, stated)
    starts = step_starts(order, direction)
    for op in (order.operations[start] for start in starts[1:]):
        if op in stated_phases:
            _refuse_position(order, direction, op, phase_sources)
    phase = dict[Operation, Phase]()
    for start, end in pairwise((*starts, len(order.operations))):
        phase |= _phases_between(order, direction, start, end)
    for op, stated in stated_phases.items():
        if op not in constants and stated.is_forward != phase[op].is_forward:
            raise Refusal(
                op,
                f"conflicting phases: the attribute {Names.PHASE} says '{stated}', but the position in the program "
                f"says '{phase[op]}'",
            )
    return Phases(order, phase | stated_phases)


def _directions(
    order: Order, constants: Collection[Operation], phase_sources: Sequence[PhaseSource]
) -> Mapping[Operation, Direction]:
    """Return the direction of each operation.

    The direction of `constants` is used only if no other operation is backward. Otherwise, operations that are computed
    only from constants take the phase of the surrounding operations, because compilers hoist them to arbitrary places.
    For example, JAX divides two constants of an inner loss's gradient under the path of the outer gradient.
    """
    direction = directions_of([op for op in order.operations if op not in constants], phase_sources)
    if Direction.BACKWARD not in direction.values():
        return directions_of(order.operations, phase_sources)
    return {op: direction.get(op, Direction.NONE) for op in order.operations}


_FLATTENED_BY = {"recompute.segment": "recompute-inline-segments", "recompute.gradient": "recompute-inline-gradient"}


def _check_flat(order: Order) -> None:
    for op in order.operations:
        if (flattening := _FLATTENED_BY.get(name_of(op))) is not None:
            raise Refusal(
                op,
                f"{name_of(op)} must be flattened before phases can be assigned to its operations: run {flattening}",
            )


def _explicit_phases(order: Order) -> dict[Operation, Phase]:
    return {op: stated for op in order.operations if (stated := stated_phase(op)) is not None}


def _stated_phases(order: Order, explicit: Mapping[Operation, Phase]) -> dict[Operation, Phase] | None:
    """Return the phases of a function whose attributes give all of them, or None if some are missing.

    Terminators and constants need no attribute: a constant without one takes the phase of its first reader.
    """
    if not explicit:
        return None
    *operations, terminator = order.operations
    unmarked = [op for op in operations if op not in explicit]
    if not order.constant_operations.keys() >= set(unmarked):
        return None
    phase = {terminator: Phase.UPDATE} | dict(explicit)
    for op in reversed(unmarked):
        readers = [reader for result in op.results for reader in order.readers(result)]
        phase[op] = phase[min(readers, key=order.position.__getitem__)] if readers else Phase.PRIMAL
    return phase


def step_starts(order: Order, direction: Mapping[Operation, Direction]) -> list[int]:
    """Return the start positions of the steps of a function with several gradients in sequence.

    A step starts at the first operation, and at every forward operation that follows a backward operation. As an
    exception, no step starts at a forward operation if later gradients read at least half of the residual bytes of the
    current step: they are further gradients of the same forward pass, as in
    `(y, pull) = jax.vjp(f, x); pull(a); pull(b)`.
    """
    starts, is_backward = [0], False
    for index, op in enumerate(order.operations):
        if direction[op] is Direction.FORWARD and is_backward:
            if not _is_differentiated_again(order, direction, starts[-1], index):
                starts.append(index)
            is_backward = False
        is_backward = is_backward or direction[op] is Direction.BACKWARD
    return starts


def _is_differentiated_again(order: Order, direction: Mapping[Operation, Direction], start: int, end: int) -> bool:
    """Return whether gradients from position `end` on read at least half of the residual bytes of the step from `start`
    to `end`."""
    read_bytes, read_later_bytes = 0, 0
    for op in order.operations[start:end]:
        if direction[op] is Direction.BACKWARD:
            break  # The forward pass ends here.
        for result in op.results:
            readers = [reader for reader in order.readers(result) if direction[reader] is Direction.BACKWARD]
            if result in order.constants or not readers or order.position[readers[0]] >= end:
                continue
            size = type_bytes(result.type) or 0
            read_bytes += size
            read_later_bytes += size if order.position[readers[-1]] >= end else 0
    return 0 < read_bytes <= 2 * read_later_bytes


def _refuse_position(
    order: Order, direction: Mapping[Operation, Direction], op: Operation, phase_sources: Sequence[PhaseSource]
) -> None:
    """Raise `Refusal` for an operation that follows a gradient operation but is stated to be forward."""
    first = next(operation for operation in order.operations if direction[operation] is Direction.BACKWARD)
    raise Refusal(
        op,
        f"sources disagree: {source_of(op, phase_sources)} puts {name_of(op)} in the forward pass, but it follows "
        f"the gradient operation {name_of(first)} (source: {source_of(first, phase_sources)}); "
        "a step with several gradients needs one function per gradient, or recompute.gradient regions, or "
        f"{Names.PHASE} on every operation",
    )


def _phases_between(
    order: Order, direction: Mapping[Operation, Direction], start: int, end: int
) -> dict[Operation, Phase]:
    """Return the phase of each operation of the step between the positions `start` and `end`.

    In a step without a gradient, all operations but the terminator of the block are forward.
    """
    operations = order.operations[start:end]
    backward = (index for index, op in enumerate(operations, start) if direction[op] is Direction.BACKWARD)
    boundary = next(backward, end)
    gradient = _gradient_operations(order, direction, boundary, end)
    returned = _ancestors_of_early_results(order, start, boundary, end)
    phase = dict[Operation, Phase]()
    for index, op in enumerate(operations, start):
        if index < boundary:
            phase[op] = Phase.PRIMAL if op in returned else Phase.RESIDUAL
        else:
            phase[op] = Phase.GRADIENT if op in gradient else Phase.UPDATE
    if end == len(order.operations):
        phase[order.operations[-1]] = Phase.UPDATE
    return phase


def _gradient_operations(
    order: Order, direction: Mapping[Operation, Direction], boundary: int, end: int
) -> set[Operation]:
    """Return the backward operations, and the operations after the boundary that backward operations depend on."""
    gradient, needed = set[Operation](), set[int]()
    for index in range(end - 1, boundary - 1, -1):
        op = order.operations[index]
        if index in needed or direction[op] is Direction.BACKWARD:
            gradient.add(op)
            needed.update(order.producers[index])
    return gradient


def _ancestors_of_early_results(order: Order, start: int, boundary: int, end: int) -> set[Operation]:
    """Return the forward operations of a step on which its early results depend; all forward operations if there is no
    early result.

    A result is early if it is defined before the gradient, and is returned by the function or read by a later step.
    """
    *_, terminator = order.operations
    early = [definition for value in terminator.operands if start <= (definition := order.definition(value)) < boundary]
    early += [definition for index in range(end, len(order.operations) - 1) for definition in order.producers[index]]
    stack = [definition for definition in early if start <= definition < boundary]
    if not stack:
        return set(order.operations[start:boundary])
    ancestors = set[int]()
    while stack:
        index = stack.pop()
        if index not in ancestors:
            ancestors.add(index)
            stack.extend(definition for definition in order.producers[index] if definition >= start)
    return {order.operations[index] for index in ancestors}
