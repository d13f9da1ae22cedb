"""Which copies of a segment run first, where one token for all of them would set too much loose at once.

A segment is often two computations that meet late: random bits, which run through many large values and leave a small
mask, and the layer itself. An executor that starts what it can would run both side by side and hold the temporaries of
both. So the part that runs through much more than it leaves comes first, and the rest waits for what it leaves. For two
independent computations the order by (peak - what is left) is the best one: R. Sethi, J. D. Ullman, "The generation of
optimal code for arithmetic expressions", 1970; J. W. H. Liu, "An application of generalized tree pebbling to sparse
matrix factorization", 1987.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from ..liveness import inner_bytes
from ..order import producers, read_values
from ..step import Step
from ..storage import value_bytes

# A barrier also keeps a compiler from fusing across it. Worth it where it holds back at least this share of the bytes
# that the segment frees.
WORTH = 0.25
# How many parts of a segment are looked at.
PARTS = 32


@dataclass(frozen=True)
class Stage:
    """Copies behind one token.

    `inputs` are the values from outside the segment that these copies read and no earlier stage does; the token waits
    for the segment's gates, and for the copies of the `awaited` values of the stage before.
    """

    originals: tuple[Operation, ...]
    inputs: tuple[SSAValue, ...]
    awaited: tuple[SSAValue, ...] = ()


def split(step: Step, originals: Sequence[Operation], freed_bytes: int) -> tuple[Stage, ...]:
    """One stage, or two where the first holds back enough. `originals` are in program order."""
    inputs = outside_values(step, originals)
    first = _first_to_run(step, originals, inputs, freed_bytes)
    if not first:
        return (Stage(tuple(originals), inputs),)
    early = tuple(op for op in originals if op in first)
    late = tuple(op for op in originals if op not in first)
    early_inputs = outside_values(step, early)
    late_inputs = tuple(value for value in inputs if value not in early_inputs)
    awaited = tuple(value for value in _left(step, early) if value not in step.constants)
    return Stage(early, early_inputs), Stage(late, late_inputs, awaited)


def in_turn(step: Step, groups: Sequence[Sequence[Operation]], left: Set[SSAValue]) -> tuple[Stage, ...]:
    """One stage for each group; each waits for what the one before it leaves, of the values `left` for good."""
    stages, read = list[Stage](), set[SSAValue]()
    awaited: tuple[SSAValue, ...] = ()
    for group in groups:
        made = [result for op in group for result in op.results]
        inputs = tuple(value for value in outside_values(step, group) if value not in read)
        stages.append(Stage(tuple(group), inputs, awaited))
        read.update(inputs)
        read.update(made)
        awaited = tuple(value for value in made if value in left and value not in step.constants)
    return tuple(stages)


def outside_values(step: Step, originals: Iterable[Operation]) -> tuple[SSAValue, ...]:
    """What the operations read from outside of themselves, constants left out; in order of reading."""
    listed = list(originals)
    inside = {result for op in listed for result in op.results}
    read = dict.fromkeys(value for op in listed for value in read_values(op))
    return tuple(value for value in read if value not in inside and value not in step.constants)


def _first_to_run(
    step: Step, originals: Sequence[Operation], inputs: Sequence[SSAValue], freed_bytes: int
) -> set[Operation]:
    """The part that runs through most beyond what it leaves: all operations that need only some of the inputs.

    Of a large segment the parts that need the fewest inputs are looked at, so that the work is in proportion to it.
    """
    needs = _needed_inputs(originals, inputs)
    inner = held_inside(step, originals)
    best, most = set[Operation](), WORTH * freed_bytes
    for mask in sorted(sorted(set(needs.values()), key=int.bit_count)[:PARTS]):
        part = [op for op in originals if needs[op] | mask == mask]
        if len(part) < len(originals) and (excess := excess_bytes(step, part, inner)) > most:
            best, most = set(part), excess
    return best


def _needed_inputs(originals: Sequence[Operation], inputs: Sequence[SSAValue]) -> Mapping[Operation, int]:
    """For each operation the inputs that it depends on, as a set of bits."""
    bit = {value: 1 << index for index, value in enumerate(inputs)}
    needs = dict[Operation, int]()
    for op in originals:
        mask = 0
        for value in read_values(op):
            mask |= bit.get(value, 0)
        for producer in producers(op):
            mask |= needs.get(producer, 0)
        needs[op] = mask
    return needs


def _left(step: Step, part: Sequence[Operation]) -> list[SSAValue]:
    """What somebody outside of the part reads."""
    inside = set(part)
    order = step.phases.order
    return [
        result
        for op in part
        for result in op.results
        if any(reader not in inside and not step.phases.is_update(reader) for reader in order.readers(result))
    ]


def held_inside(step: Step, operations: Iterable[Operation]) -> dict[Operation, int]:
    """Bytes that the regions of each operation hold."""
    return {op: inner_bytes(op, step.constants, step.storages) for op in operations}


def excess_bytes(step: Step, part: Sequence[Operation], inner: Mapping[Operation, int]) -> int:
    """Peak of the part run on its own, in program order, less what it leaves behind.

    `inner`: see `held_inside`.
    """
    left = {step.storages.of(value) for value in _left(step, part)}
    made = {result for op in part for result in op.results} - step.constants
    last = {step.storages.of(value): op for op in part for value in read_values(op)}
    live = peak = 0
    for op in part:
        owned = [r for r in op.results if r in made and step.storages.of(r) is r]
        live += sum(value_bytes(value) for value in owned)
        peak = max(peak, live + inner[op])
        dead = [root for root in {*map(step.storages.of, read_values(op)), *owned} if last.get(root, op) is op]
        live -= sum(value_bytes(root) for root in dead if root in made and root not in left)
    return peak - sum(value_bytes(root) for root in left if root in made)
