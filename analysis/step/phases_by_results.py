"""Phases by structure, for programs whose operations say nothing: which results are the forward pass's is enough.

    results 0 = loss, 1 = new weights              primal-results=0

What the loss needs is primal. What stands in front of the last such operation and is not needed by it was computed for
the backward pass: residual. What stands behind it is gradient, up to the last operation that reads a forward value, and
update from there on. By what they need alone, local derivatives and gradients could not be told apart: where the seed
of the gradient was folded into a constant, `1 - y²` needs no more of the backward pass than `2 (y - t) / n` does.

A value that is returned nowhere may be named in place of a result: primal-values=%loss. Operations that only the primal
results need, and that stand behind the gradient (a loss that is computed last), are to be moved in front of it first
(`late_operations`). Of a result that is a tuple the elements are counted.

Arguments that are cotangents say the same: what needs one is gradient, and the results that need none are primal.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from xdsl.ir import Operation, OpResult, SSAValue

from ...options.phase_hint import PhaseHint
from ...rules.names import name_of
from ...support.diagnostics import Refusal
from .constants import constants_only
from .direction import Direction
from .order import Order
from .phase_sources import directions_of, sources, who_says

_FORWARD = frozenset({"primal", "residual"})


def returned_values(terminator: Operation) -> tuple[SSAValue, ...]:
    """What the function returns; of a single tuple its elements."""
    values = tuple(terminator.operands)
    if len(values) == 1 and isinstance(values[0], OpResult) and name_of(values[0].op) == "stablehlo.tuple":
        return tuple(values[0].op.operands)
    return values


def late_operations(order: Order, hint: PhaseHint, named: Sequence[Operation]) -> tuple[int, list[int]]:
    """The last operation whose value both the primal results and others need, and the operations behind it that only
    the primal results need: none where most of the others stand behind these anyway, as in a step that computes its
    loss before the gradient. `named`: the operations that the hint names. Raises `Refusal`."""
    primal = needed(order, _primal_roots(order, hint, named, _behind_cotangents(order, hint.cotangents)))
    constants, last = order.constants, len(order.operations) - 1
    shared = [
        index
        for index in primal
        for result in order.operations[index].results
        if result not in constants
        and any(order.position[reader] not in primal for reader in order.readers(result) if _counts(order, reader))
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


def _counts(order: Order, reader: Operation) -> bool:
    """Whether it does more than to hand values on to the caller."""
    return reader is not order.operations[-1] and name_of(reader) != "stablehlo.tuple"


def _primal_roots(order: Order, hint: PhaseHint, named: Sequence[Operation], backward: Container[int]) -> list[int]:
    """The operations that make the primal results. Raises `Refusal` for numbers that do not exist."""
    terminator = order.operations[-1]
    values = returned_values(terminator)
    _check_number(terminator, "primal-results", hint.results, len(values))
    _check_number(terminator, "cotangents", hint.cotangents, len(order.block.args))
    listed = hint.results or (
        () if named else [index for index, value in enumerate(values) if order.definition(value) not in backward]
    )
    roots = [order.definition(values[index]) for index in listed]
    return [*roots, *(order.position[owner] for op in named if (owner := order.owner_here(op)) is not None)]


def phases_by_results(order: Order, hint: PhaseHint, named: Sequence[Operation] = ()) -> dict[Operation, str]:
    """The phase of every operation that does not come from constants alone, but for the terminator.

    `named`: the operations that the hint names. Raises `Refusal` for numbers that do not exist, for a primal result
    that needs a cotangent, and where locations say otherwise.
    """
    *operations, _ = order.operations
    backward = _behind_cotangents(order, hint.cotangents)
    primal = needed(order, _primal_roots(order, hint, named, backward))
    if (wrong := min(primal & backward, default=None)) is not None:
        raise Refusal(order.operations[wrong], f"a primal result needs {name_of(order.operations[wrong])}, a gradient")
    end = max(primal, default=min(backward, default=len(operations)) - 1)
    constants = constants_only(order)
    found = dict[Operation, str]()
    for index, op in enumerate(operations):
        if op.results and all(result in constants for result in op.results):
            continue
        if index in primal:
            found[op] = "primal"
        else:
            found[op] = "residual" if index <= end and index not in backward else "gradient"
    _state_update(order, found)
    return found | _as_locations_say(order, found)


def _check_number(op: Operation, option: str, numbers: Iterable[int], count: int) -> None:
    for number in numbers:
        if not 0 <= number < count:
            raise Refusal(op, f"{option}={number}: there are {count}, numbered from 0")


def _behind_cotangents(order: Order, cotangents: Iterable[int]) -> set[int]:
    given = {order.block.args[number] for number in cotangents}
    found = set[int]()
    for index in range(len(order.operations) - 1):
        if not given.isdisjoint(order.reads[index]) or not found.isdisjoint(order.producers[index]):
            found.add(index)
    return found


def needed(order: Order, operations: Iterable[int]) -> set[int]:
    """Positions of the operations, and of all that they need."""
    found, stack = set[int](), [index for index in operations if index >= 0]
    while stack:
        index = stack.pop()
        if index not in found:
            found.add(index)
            stack.extend(order.producers[index])
    return found


def _state_update(order: Order, found: dict[Operation, str]) -> None:
    """Behind the last gradient operation that reads what the forward pass has made, the update begins."""
    behind = True
    for index in reversed(range(len(order.operations) - 1)):
        op = order.operations[index]
        if found.get(op) != "gradient":
            continue
        reads_forward = any(found.get(order.operations[maker]) in _FORWARD for maker in order.producers[index])
        behind = behind and (name_of(op) == "stablehlo.tuple" or not reads_forward)
        if not behind:
            return
        found[op] = "update"


def _as_locations_say(order: Order, found: Mapping[Operation, str]) -> dict[Operation, str]:
    """Where both know something they must agree. Only what reads forward values alone, and is read by gradients alone,
    may run on either side: there the locations are believed."""
    asked = sources()
    said = directions_of(order.operations, asked)
    changed = dict[Operation, str]()
    for op, phase in found.items():
        direction = said[op]
        forward = direction is Direction.FORWARD
        if direction is Direction.NONE or forward == (phase in _FORWARD):
            if direction is Direction.BACKWARD:
                changed[op] = "gradient"
            continue
        if phase == "primal" or not _is_between(order, op, found):
            side = "forward pass" if phase in _FORWARD else "backward pass"
            raise Refusal(
                op,
                f"sources disagree: by the results that are said to be primal {name_of(op)} is of the {side}, and "
                f"{who_says(op, asked)} says {direction.value}; list every result of the forward pass",
            )
        changed[op] = "residual" if forward else "gradient"
    return changed


def _is_between(order: Order, op: Operation, found: Mapping[Operation, str]) -> bool:
    producers = (found.get(order.operations[index], "primal") for index in order.producers[order.position[op]])
    readers = (found.get(reader, "update") for result in op.results for reader in order.readers(result))
    return all(phase in _FORWARD for phase in producers) and all(phase == "gradient" for phase in readers)
