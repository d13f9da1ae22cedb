"""Infer phases from data flow, given the primal results, for operations without phase information.

    results 0 = loss, 1 = new weights              primal-results=0

The ancestors of the loss are primal. Other operations before the last of these ancestors are residual: they are
computed for the backward pass. Operations after it are gradient, up to the last operation that reads a forward value;
the operations after that are update. Dependences alone cannot separate local derivatives from gradients: if the seed of
the gradient is folded into a constant, neither `1 - y²` nor `2 (y - t) / n` depends on a backward operation.

Instead of a result, a value that is not returned may be named: primal-values=%loss. Operations that only the primal
results need but that come after the gradient, such as a loss that is computed last, must first be moved before the
gradient (`late_operations`). If the function returns a single tuple, the results are the elements of the tuple.

Cotangent arguments may be given instead of primal results: operations that depend on a cotangent are gradient, and
results that depend on no cotangent are primal.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from xdsl.ir import Operation, OpResult, SSAValue

from ...options.selection import PhaseHint
from ...support.diagnostics import BadRequest, Refusal
from ...support.interface import option
from ...support.operations import name_of
from ...support.phase import FORWARD_PHASES, Phase
from .direction import Direction
from .order import Order, constants_only
from .phase_sources import directions_of, source_of, sources


def returned_values(terminator: Operation) -> tuple[SSAValue, ...]:
    """Return the operands of the terminator; if its only operand is a tuple, return the elements of the tuple."""
    values = tuple(terminator.operands)
    if len(values) == 1 and isinstance(values[0], OpResult) and name_of(values[0].op) == "stablehlo.tuple":
        return tuple(values[0].op.operands)
    return values


def late_operations(order: Order, hint: PhaseHint, named: Sequence[Operation]) -> tuple[int, list[int]]:
    """Find primal operations that come after the gradient.

    Args:
        order: The operations.
        hint: The primal results.
        named: The operations that the hint names.

    Returns:
        A pair of a position and a list of positions. The position p is that of the last operation on which both primal
        results and other operations depend. The list contains the later operations, on which only primal results
        depend. It is empty if at most half of the other operations are between p and the last operation of the list, as
        in a step that computes its loss before the gradient.

    Raises:
        Refusal: The hint contains an index that is out of range.
    """
    primal = ancestors_of(order, _primal_roots(order, hint, named, _dependents_of_cotangents(order, hint.cotangents)))
    constants, last = order.constants, len(order.operations) - 1
    shared = [
        index
        for index in primal
        for result in order.operations[index].results
        if result not in constants
        and any(
            order.position[reader] not in primal for reader in order.readers(result) if _computes_value(order, reader)
        )
    ]
    end = max(shared, default=last)
    late = [index for index in sorted(primal) if index > end]
    others = [
        index
        for index, op in enumerate(order.operations[:last])
        if index not in primal and not all(result in constants for result in op.results)
    ]
    between = [index for index in others if late and end < index < late[-1]]
    return end, late if 2 * len(between) > len(others) else []


def _computes_value(order: Order, reader: Operation) -> bool:
    """Return whether the operation computes a value, unlike the terminator and tuples."""
    return reader is not order.operations[-1] and name_of(reader) != "stablehlo.tuple"


def _primal_roots(order: Order, hint: PhaseHint, named: Sequence[Operation], backward: Container[int]) -> list[int]:
    """Return the positions of the operations that compute the primal results.

    Raises:
        Refusal: The hint contains an index that is out of range.
    """
    terminator = order.operations[-1]
    values = returned_values(terminator)
    _check_number(terminator, option("primal-results"), hint.results, len(values), "results")
    numbers = hint.results or (
        () if named else [index for index, value in enumerate(values) if order.definition(value) not in backward]
    )
    roots = [order.definition(values[index]) for index in numbers]
    return [*roots, *(order.position[owner] for op in named if (owner := order.owner_here(op)) is not None)]


def phases_by_results(order: Order, hint: PhaseHint, named: Sequence[Operation] = ()) -> dict[Operation, Phase]:
    """Return the phase of every operation except for constants and the terminator.

    Args:
        order: The operations.
        hint: The primal results.
        named: The operations that the hint names.

    Raises:
        Refusal: The hint contains an index that is out of range, a primal result depends on a cotangent, or a phase
            source contradicts the phases.
    """
    *operations, _ = order.operations
    backward = _dependents_of_cotangents(order, hint.cotangents)
    primal = ancestors_of(order, _primal_roots(order, hint, named, backward))
    if (wrong := min(primal & backward, default=None)) is not None:
        raise Refusal(
            order.operations[wrong],
            f"a primal result depends on the gradient operation {name_of(order.operations[wrong])}",
        )
    end = max(primal, default=min(backward, default=len(operations)) - 1)
    constants = constants_only(order)
    phase = dict[Operation, Phase]()
    for index, op in enumerate(operations):
        if op.results and all(result in constants for result in op.results):
            continue
        if index in primal:
            phase[op] = Phase.PRIMAL
        else:
            phase[op] = Phase.RESIDUAL if index <= end and index not in backward else Phase.GRADIENT
    _mark_update(order, phase)
    return phase | _corrections_by_locations(order, phase)


def _check_number(op: Operation, option: str, numbers: Iterable[int], count: int, noun: str) -> None:
    for number in numbers:
        if not 0 <= number < count:
            raise BadRequest(op, f"{option}={number} is out of range: the function has {count} {noun}, numbered from 0")


def _dependents_of_cotangents(order: Order, cotangents: Sequence[int]) -> set[int]:
    """Return the positions of the operations that depend on the cotangents. Raises `Refusal` for an invalid index."""
    _check_number(order.operations[-1], "cotangents", cotangents, len(order.block.args), "arguments")
    cotangent_values = {order.block.args[number] for number in cotangents}
    dependents = set[int]()
    for index in range(len(order.operations) - 1):
        if not cotangent_values.isdisjoint(order.reads[index]) or not dependents.isdisjoint(order.producers[index]):
            dependents.add(index)
    return dependents


def ancestors_of(order: Order, operations: Iterable[int]) -> set[int]:
    """Return the positions of the given operations and of their transitive producers.

    Negative positions, which represent values from outside the block, are ignored.
    """
    ancestors = set[int]()
    stack = [index for index in operations if index >= 0]
    while stack:
        index = stack.pop()
        if index not in ancestors:
            ancestors.add(index)
            stack.extend(order.producers[index])
    return ancestors


def _mark_update(order: Order, phase: dict[Operation, Phase]) -> None:
    """Change `gradient` to `update` after the last gradient operation that reads a value of the forward pass."""
    behind = True
    for index in reversed(range(len(order.operations) - 1)):
        op = order.operations[index]
        if phase.get(op) is not Phase.GRADIENT:
            continue
        reads_forward = any(phase.get(order.operations[maker]) in FORWARD_PHASES for maker in order.producers[index])
        behind = behind and (name_of(op) == "stablehlo.tuple" or not reads_forward)
        if not behind:
            return
        phase[op] = Phase.UPDATE


def _corrections_by_locations(order: Order, phases: Mapping[Operation, Phase]) -> dict[Operation, Phase]:
    """Return the operations whose inferred phase contradicts the phase sources, each with the phase from the sources.

    An operation that reads only forward values and has only gradient readers may belong to either pass, so its phase is
    taken from the sources.

    Raises:
        Refusal: The sources contradict the phase of any other operation.
    """
    phase_sources = sources()
    directions = directions_of(order.operations, phase_sources)
    changed = dict[Operation, Phase]()
    for op, phase in phases.items():
        direction = directions[op]
        forward = direction is Direction.FORWARD
        if direction is Direction.NONE or forward == phase.is_forward:
            if direction is Direction.BACKWARD:
                changed[op] = Phase.GRADIENT
            continue
        if phase is Phase.PRIMAL or not _is_between(order, op, phases):
            side = "forward pass" if phase.is_forward else "backward pass"
            raise Refusal(
                op,
                f"sources disagree: according to the primal results, {name_of(op)} belongs to the {side}, but "
                f"{source_of(op, phase_sources)} says {direction.value}; list every result of the forward pass",
            )
        changed[op] = Phase.RESIDUAL if forward else Phase.GRADIENT
    return changed


def _is_between(order: Order, op: Operation, phases: Mapping[Operation, Phase]) -> bool:
    makers = (phases.get(order.operations[index], Phase.PRIMAL) for index in order.producers[order.position[op]])
    readers = (phases.get(reader, Phase.UPDATE) for result in op.results for reader in order.readers(result))
    return all(phase.is_forward for phase in makers) and all(phase is Phase.GRADIENT for phase in readers)
