"""Guess the end of the forward pass of a step that has neither phase information nor a hint.

    %h = convolution(%x, %w)     read by the next block, and again by the gradient
    ...
    %turn = dot_general(...)     the forward pass ends: from here on, residuals are read again, the newest first

At each position, consider the values that have been read before and will be read again. The turn is the position where
these values have the most bytes, or the first later position after which the newest of them is read before the older
values. The turn is accepted if most of these values are read again in reverse order.

The loss is the first floating-point scalar among the results for which phase inference finds gradient operations. If
there is a turn, the loss must also depend on at least half of the ancestors of the deepest operation before the turn,
and on at most half of the operations that read residuals again. If there is no such scalar, the deepest operation
before the turn is used as the loss. In both cases, the function must return values with the types of its arguments,
because a training step returns updated parameters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import itemgetter

from xdsl.dialects.builtin import AnyFloat
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from ...options.selection import PhaseHint
from ...rules.buffers import type_bytes
from ...support.diagnostics import Refusal
from ...support.live_bytes import index_of_largest
from ...support.operations import every_operation
from ...support.phase import Phase
from ...support.type_guards import is_tensor
from .jax_paths import path_of
from .order import Order
from .phase_sources import sources
from .phases_by_results import ancestors_of, late_operations, phases_by_results, returned_values

MAX_MOVES = 64
"""The maximum number of times that the turn moves beyond a read in the forward pass.

A residual block of a network needs one or two moves. Each move takes time proportional to the length of the program.
"""


@dataclass(frozen=True)
class Guess:
    """The guessed end of the forward pass.

    Attributes:
        hint: The index of the result that is assumed to be the loss; empty if no result looks like a loss.
        turn: The last operation of the forward pass if `hint` is empty, else None.
    """

    hint: PhaseHint
    turn: Operation | None = None


def guessed_phases(function: FuncOp) -> Guess | None:
    """Guess the end of the forward pass.

    Returns:
        The guess; None if an operation has phase information, or the function does not look like a training step.
    """
    operations = every_operation(function)
    if len(function.body.blocks) != 1 or any(map(has_phase_information, operations)):
        return None
    order = Order.of(function.body.block)
    if not order.operations:
        return None
    returned = returned_values(order.operations[-1])
    if not _returns_updates(order, returned):
        return None
    turn = _turn(order)
    for number, value in enumerate(returned):
        if _rank(value) != 0 or not _is_float(value):
            continue
        hint = PhaseHint((number,))
        if (turn is None or turn.allows(order, order.definition(value))) and _leaves_a_gradient(order, hint):
            return Guess(hint)
    if turn is None or not _returns_most_parameters(order, returned):
        return None
    return Guess(PhaseHint(), order.operations[turn.deepest])


@dataclass(frozen=True)
class _Turn:
    """The turn from the forward to the backward pass, as positions in program order.

    Attributes:
        deepest: The operation with the longest use-def chain before the turn.
        readers: The operations after the turn that read residuals again.
    """

    deepest: int
    readers: frozenset[int]

    def allows(self, order: Order, loss: int) -> bool:
        """Return whether the operation at position `loss` can compute the loss, given this turn."""
        needs, before = ancestors_of(order, [loss]), ancestors_of(order, [self.deepest])
        return 2 * len(needs & before) >= len(before) and 2 * len(needs & self.readers) <= len(self.readers)


def _turn(order: Order) -> _Turn | None:
    """Return the turn at which the forward pass seems to end; None if no turn is accepted."""
    spans = _read_again(order)
    changes = [0] * (len(order.operations) + 1)
    for size, reads in spans:
        changes[reads[0] + 1] += size
        changes[reads[-1] + 1] -= size
    live_bytes = list(accumulate(changes))
    if not any(live_bytes):
        return None
    behind = index_of_largest(live_bytes)
    for _ in range(MAX_MOVES):
        crossing = _read_on_both_sides(spans, behind)
        # The backward pass reads the newest value first. If another value is read before it, as at the end of a
        # residual block, that read belongs to the forward pass.
        read_of_newest, _ = max(crossing, key=itemgetter(1))
        earlier = [read for read, _ in crossing if read < read_of_newest]
        if not earlier:
            break
        behind = earlier[-1] + 1
    else:
        return None
    steps = [later - sooner for (_, sooner), (_, later) in pairwise(crossing)]
    if sum(step < 0 for step in steps) <= len(steps) / 2:
        return None
    depth = _depths(order)
    deepest = max(range(behind), key=lambda index: (depth[index], index))
    return _Turn(deepest, frozenset(read for _, number in crossing for read in spans[number][1] if read >= behind))


def _read_on_both_sides(spans: Sequence[tuple[int, list[int]]], behind: int) -> list[tuple[int, int]]:
    """Return the values that are read both before the position `behind` and at or after it.

    Each value is a pair of the position of its next read and its index in `spans`.
    """
    return sorted(
        (next(read for read in reads if read >= behind), number)
        for number, (_, reads) in enumerate(spans)
        if reads[0] < behind <= reads[-1]
    )


def _read_again(order: Order) -> list[tuple[int, list[int]]]:
    """Return the bytes and reader positions of the values that more than one operation reads, in program order.

    Constants, and reads by the terminator, are ignored.
    """
    last = len(order.operations) - 1
    readers = [list[int]() for _ in order.operations]
    for index, makers in enumerate(order.producers[:last]):
        for maker in makers:
            readers[maker].append(index)
    return [
        (sum(type_bytes(result.type) or 0 for result in op.results), reads)
        for op, reads in zip(order.operations, readers, strict=True)
        if len(reads) > 1 and not all(result in order.constants for result in op.results)
    ]


def _depths(order: Order) -> list[int]:
    """Return, for each operation, the length of the longest use-def path from an argument; 0 for constants."""
    depths = list[int]()
    for op, makers in zip(order.operations, order.producers, strict=True):
        is_constant = bool(op.results) and all(result in order.constants for result in op.results)
        depths.append(0 if is_constant else 1 + max((depths[maker] for maker in makers), default=0))
    return depths


def _leaves_a_gradient(order: Order, hint: PhaseHint) -> bool:
    try:
        _, late = late_operations(order, hint, ())
        phase = phases_by_results(order, hint)
    except Refusal:
        return False
    return bool(late) or Phase.GRADIENT in phase.values()


def _returns_updates(order: Order, returned: Sequence[SSAValue]) -> bool:
    """Return whether a non-scalar result has the type of an argument."""
    tensors = {argument.type for argument in order.block.args if _rank(argument) > 0}
    return any(value.type in tensors for value in returned)


def _returns_most_parameters(order: Order, returned: Sequence[SSAValue]) -> bool:
    """Return whether at least half of the non-scalar float arguments have a distinct result of the same type.

    A single result with the type of an argument is not enough, because a network may map an image to an image.
    """
    arguments = Counter(arg.type for arg in order.block.args if _rank(arg) > 0 and _is_float(arg))
    results = Counter(value.type for value in returned if _rank(value) > 0)
    return 2 * (arguments & results).total() >= max(arguments.total(), 2)


def has_phase_information(op: Operation) -> bool:
    """Return whether the operation has one of JAX's paths, or a phase source knows its direction."""

    return "jit(" in path_of(op.location) or any(source.direction(op) is not None for source in sources())


def _rank(value: SSAValue) -> int:
    return len(value.type.get_shape()) if is_tensor(value.type) else -1


def _is_float(value: SSAValue) -> bool:
    return is_tensor(value.type) and isinstance(value.type.element_type, AnyFloat)
