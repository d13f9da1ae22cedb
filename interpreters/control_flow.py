"""Kernels of loops and branches: the roles of their regions, a line for each operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from xdsl.dialects.scf import IndexSwitchOp
from xdsl.ir import Block, Operation, Region, SSAValue

from .kernels.arrays import Array, Kernel
from .loops import LoopBody, branches, conditional_loop, counted_loop, two_part_loop, yield_moves
from .program import BlockProgram, Observer, captured


class Programs(Protocol):
    """Compiles a block to an executable program."""

    @property
    def observer(self) -> Observer | None: ...

    @property
    def views(self) -> set[SSAValue]: ...

    def block(self, block: Block, outer: Sequence[SSAValue] = ()) -> BlockProgram: ...


def _body(programs: Programs, op: Operation, region: Region, flags: int = 0) -> LoopBody:
    program = programs.block(region.block, captured(op))
    return LoopBody(program, yield_moves(region.block, programs.views, flags), flags)


def _conditional_loop(programs: Programs, op: Operation) -> Kernel:
    condition, body = op.regions
    program = programs.block(condition.block, captured(op))
    return conditional_loop(op, program, _body(programs, op, body), programs.observer)


def _counted_loop(programs: Programs, op: Operation) -> Kernel:
    return counted_loop(op, _body(programs, op, op.regions[0]), programs.observer)


def _two_part_loop(programs: Programs, op: Operation) -> Kernel:
    before, after = op.regions
    first = _body(programs, op, before, flags=1)
    return two_part_loop(op, first, _body(programs, op, after), programs.observer)


def _branches(choose: Callable[[Operation, Sequence[Array]], int]) -> Callable[[Programs, Operation], Kernel]:
    def make(programs: Programs, op: Operation) -> Kernel:
        bodies = [_body(programs, op, region) if region.blocks else None for region in op.regions]
        return branches(op, lambda values: choose(op, values), bodies, programs.observer)

    return make


def _first_if_true(op: Operation, values: Sequence[Array]) -> int:
    return 0 if values[0] else 1


def _by_number(op: Operation, values: Sequence[Array]) -> int:
    """Indices out of range choose the last branch."""
    (which,) = values
    index = int(which) if which.dtype != np.bool_ else int(not which)
    return index if 0 <= index < len(op.regions) else len(op.regions) - 1


def _by_case(op: Operation, values: Sequence[Array]) -> int:
    """The default region comes first."""
    assert isinstance(op, IndexSwitchOp), "the table maps scf.index_switch only"
    cases = [int(case) for case in op.cases.get_values()]
    number = int(values[0])
    return 1 + cases.index(number) if number in cases else 0


def _only_one(op: Operation, values: Sequence[Array]) -> int:
    return 0


CONTROL_FLOW: dict[str, Callable[[Programs, Operation], Kernel]] = {
    "stablehlo.while": _conditional_loop,
    "stablehlo.if": _branches(_first_if_true),
    "stablehlo.case": _branches(_by_number),
    "scf.for": _counted_loop,
    "scf.while": _two_part_loop,
    "scf.if": _branches(_first_if_true),
    "scf.index_switch": _branches(_by_case),
    "scf.execute_region": _branches(_only_one),
}
