"""Kernels of loops and branches, which store values as the static timeline (`analysis/memory/timeline.py`) assumes.

On entry to a loop, each initial value is copied into a buffer of its own. These buffers store the results of the loop,
and the region arguments alias them. A value that an iteration yields becomes the next carry. The value is moved if the
iteration allocated it and yields it for the first time; otherwise, it is copied. After that, the previous carry is
freed.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from xdsl.dialects.scf import IndexSwitchOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ..dialects.chlo.scan import ScanOp
from .block_programs import BlockProgram, Observer, captures_of
from .kernels.arrays import Array, Kernel, dtype_at, shape_at


class Programs(Protocol):
    """The part of the `BlockCompiler` interface that the kernels of loops and branches use.

    Attributes:
        observer: Observer of the run, or None.
        views: Values that alias the buffer of another value.
    """

    @property
    def observer(self) -> Observer | None: ...

    @property
    def views(self) -> set[SSAValue]: ...

    def block(self, block: Block, outer: Sequence[SSAValue] = ()) -> BlockProgram: ...


def _body(programs: Programs, op: Operation, region: Region, flags: int = 0) -> LoopBody:
    program = programs.block(region.block, captures_of(op))
    return LoopBody(program, yield_moves(region.block, programs.views, flags), flags)


def _conditional_loop(programs: Programs, op: Operation) -> Kernel:
    condition, body = op.regions
    program = programs.block(condition.block, captures_of(op))
    return conditional_loop(op, program, _body(programs, op, body), programs.observer)


def _for_loop(programs: Programs, op: Operation) -> Kernel:
    return for_loop(op, _body(programs, op, op.regions[0]), programs.observer)


def _two_part_loop(programs: Programs, op: Operation) -> Kernel:
    before, after = op.regions
    first = _body(programs, op, before, flags=1)
    return two_part_loop(op, first, _body(programs, op, after), programs.observer)


def _branches(choose: Callable[[Operation, Sequence[Array]], int]) -> Callable[[Programs, Operation], Kernel]:
    def make(programs: Programs, op: Operation) -> Kernel:
        bodies = [_body(programs, op, region) if region.blocks else None for region in op.regions]
        return branches(op, lambda values: choose(op, values), bodies, programs.observer)

    return make


def _branch_by_condition(op: Operation, values: Sequence[Array]) -> int:
    return 0 if values[0] else 1


def _branch_by_index(op: Operation, values: Sequence[Array]) -> int:
    """Return the index of the selected branch. As StableHLO specifies, an index that is out of range selects the last
    branch."""
    (selector,) = values
    index = int(selector) if selector.dtype != np.bool_ else int(not selector)
    return index if 0 <= index < len(op.regions) else len(op.regions) - 1


def _branch_by_case(op: Operation, values: Sequence[Array]) -> int:
    """Return the index of the region of `scf.index_switch` that the operand selects. The default region has index 0."""
    assert isinstance(op, IndexSwitchOp), "the table maps only scf.index_switch"
    cases = [int(case) for case in op.cases.get_values()]
    number = int(values[0])
    return 1 + cases.index(number) if number in cases else 0


def _first_branch(op: Operation, values: Sequence[Array]) -> int:
    return 0


def _computation(programs: Programs, op: Operation) -> Kernel:
    """Make the kernel of an operation whose single region takes the operands as arguments."""
    body = _body(programs, op, op.regions[0])

    def run(*values: Array) -> tuple[Array, ...]:
        results = tuple(body.take_results(body.program.run(*values)))
        if programs.observer is not None:
            programs.observer.on_carry(op, results)
        return results

    return run


def _scan(programs: Programs, op: Operation) -> Kernel:
    """Make the kernel of `chlo.scan`, which runs the body on each slice in order and passes the carries from one run to
    the next."""
    assert isinstance(op, ScanOp), "the table maps only chlo.scan"
    body = _body(programs, op, op.body)
    axis = op.axis
    count = len(op.inputs)
    outputs = len(op.outputs)
    made = [(shape_at(result), dtype_at(result)) for result in op.outputs]
    length = op.length
    order = range(length - 1, -1, -1) if op.is_reverse is not None and op.is_reverse.value.data else range(length)

    def run(*values: Array) -> tuple[Array, ...]:
        stacks = [np.empty(shape, dtype) for shape, dtype in made]
        carry = [value.copy() for value in values[count:]]
        for index in order:
            slices = [np.array(value.take(index, axis), order="C") for value in values[:count]]
            returned = body.take_results(body.program.run(*slices, *carry))
            carry = returned[outputs:]
            for stack, piece in zip(stacks, returned, strict=False):
                stack[(slice(None),) * axis + (index,)] = piece
        results = (*stacks, *carry)
        if programs.observer is not None:
            programs.observer.on_carry(op, results)
        return results

    return run


def _async_start(programs: Programs, op: Operation) -> Kernel:
    """Make the kernel of `stablehlo.async_start`, which runs the region immediately and returns the results as the
    future."""
    body = _body(programs, op, op.regions[0])
    return lambda *values: (tuple(body.take_results(body.program.run(*values))),)  # pyright: ignore[reportReturnType]


CONTROL_FLOW: dict[str, Callable[[Programs, Operation], Kernel]] = {
    "stablehlo.while": _conditional_loop,
    "stablehlo.if": _branches(_branch_by_condition),
    "stablehlo.case": _branches(_branch_by_index),
    "scf.for": _for_loop,
    "scf.while": _two_part_loop,
    "scf.if": _branches(_branch_by_condition),
    "scf.index_switch": _branches(_branch_by_case),
    "scf.execute_region": _branches(_first_branch),
    "stablehlo.async_start": _async_start,
    "sdy.named_computation": _computation,
    "chlo.scan": _scan,
}


@dataclass(frozen=True)
class LoopBody:
    """A compiled region of a loop or branch.

    Attributes:
        program: The program of the region's block.
        moves: For each yielded value, whether it is moved into the next carry; otherwise it is copied.
        flags: Number of leading operands of the terminator that are not yielded, such as the condition of `scf.while`.
    """

    program: BlockProgram
    moves: Sequence[bool]
    flags: int = 0

    def take_results(self, values: Sequence[Any]) -> list[Any]:
        """Return the yielded values: the values themselves if they are moved, else copies."""
        return [value if move else value.copy() for value, move in zip(values[self.flags :], self.moves, strict=True)]

    def iterate(self, carry: Sequence[Array], outer: Sequence[Array], observer: Observer | None) -> list[Array]:
        """Run one iteration and return the next carry."""
        # Copied values stay live together with their copies until the observer is notified.
        results = self.program.run(*carry, *outer)
        following = self.take_results(results)
        if observer is not None:
            observer.on_yield(self.program.end, following)
        return following


def conditional_loop(op: Operation, condition: BlockProgram, body: LoopBody, observer: Observer | None) -> Kernel:
    """Make the kernel of `stablehlo.while`. The kernel takes the initial values, then the captures of both regions."""
    count = len(op.operands)

    def run(*values: Array) -> tuple[Array, ...]:
        outer = values[count:]
        carry = _copy_initial(op, values[:count], observer)
        while condition.run(*carry, *outer)[0]:
            carry = body.iterate(carry, outer, observer)
            if observer is not None:
                observer.on_carry(op, carry)
        return tuple(carry)

    return run


def for_loop(op: Operation, body: LoopBody, observer: Observer | None) -> Kernel:
    """Make the kernel of `scf.for`. The kernel takes the lower bound, upper bound, step and initial values, then the
    captures of the region.
    """
    count = len(op.operands)

    def run(low: Array, high: Array, step: Array, *values: Array) -> tuple[Array, ...]:
        if int(step) <= 0:
            raise ValueError(f"its step is {int(step)}, expected a positive number")
        outer = values[count - 3 :]
        carry = _copy_initial(op, values[: count - 3], observer)
        for index in range(int(low), int(high), int(step)):
            carry = body.iterate([np.asarray(index, low.dtype), *carry], outer, observer)
            if observer is not None:
                observer.on_carry(op, carry)
        return tuple(carry)

    return run


def _copy_initial(op: Operation, initial: Sequence[Array], observer: Observer | None) -> list[Array]:
    carry = [value.copy() for value in initial]
    if observer is not None:
        observer.on_carry(op, carry)
    return carry


def two_part_loop(op: Operation, before: LoopBody, after: LoopBody, observer: Observer | None) -> Kernel:
    """Make the kernel of `scf.while`.

    The first region yields a flag and values. The values are the arguments of the second region if the flag is set,
    otherwise the results of the loop. The arguments of the first region have their own storage, which is freed after
    the region has run.
    """
    count = len(op.operands)

    def run(*values: Array) -> tuple[Array, ...]:
        outer = values[count:]
        carry = [value.copy() for value in values[:count]]
        if observer is not None:
            observer.on_yield(before.program.end, carry)
        continues, passed = first_part(carry, outer)
        while continues:
            carry[:] = after.iterate(passed, outer, observer)
            passed.clear()
            continues, passed = first_part(carry, outer)
        return tuple(passed)

    def first_part(carry: list[Array], outer: Sequence[Array]) -> tuple[bool, list[Array]]:
        results = before.program.run(*carry, *outer)
        passed = before.take_results(results)
        if observer is not None:
            observer.on_yield(before.program.end, passed)
            observer.on_carry(op, passed)
        carry.clear()
        return bool(results[0]), passed

    return run


def branches(
    op: Operation,
    choose: Callable[[Sequence[Array]], int],
    blocks: Sequence[LoopBody | None],
    observer: Observer | None,
) -> Kernel:
    """Make the kernel of a conditional. Results that the branch allocates are moved out of it; all other results are
    copied.

    Args:
        op: The conditional.
        choose: Returns the index of the branch to run, given the values of the operands.
        blocks: The branches; None for a branch without operations or results.
        observer: Receives the results.
    """
    count = len(op.operands)

    def run(*values: Array) -> tuple[Array, ...]:
        chosen = blocks[choose(values[:count])]
        if chosen is None:
            return ()
        results = tuple(chosen.take_results(chosen.program.run(*values[count:])))
        if observer is not None:
            observer.on_carry(op, results)
        return results

    return run


def yield_moves(block: Block, views: Container[SSAValue], flags: int = 0) -> list[bool]:
    """Return, for each yielded value, whether the value can be moved. This requires that the block allocates the value
    and yields it for the first time.

    `flags`: the number of leading operands of the terminator to skip.
    """
    assert block.last_op is not None, "the body of a loop has a terminator"
    values = block.last_op.operands[flags:]
    return [
        value.owner is not block and value.owner.parent is block and value not in views and value not in values[:index]
        for index, value in enumerate(values)
    ]
