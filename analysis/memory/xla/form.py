"""A function as XLA:CPU compiles it: without dead code, and with the copies that its kernels require."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ....dialects.dead_code import drop_dead_code, has_dead_code
from ...step.functions import single_block
from ...step.order import Order
from .kernel_copies import with_kernel_copies
from .program import KernelProgram
from .read_program import program_of


def xla_form(function: FuncOp, order: Order | None = None) -> tuple[KernelProgram, Sequence[Operation]]:
    """The program, and for each of its operations the operation of the function that it comes from.

    `order`: the order of the block, if it is already computed. Raises `Refusal` for dynamic shapes.
    """
    program, operations = _without_dead_code(function, order)
    form = with_kernel_copies(program)
    return form.program, [operations[op] for op in form.origin]


def _without_dead_code(function: FuncOp, order: Order | None) -> tuple[KernelProgram, Sequence[Operation]]:
    if not has_dead_code(function):
        block = single_block(function)
        return program_of(block, order), tuple(block.ops)
    copy = function.clone()
    block = single_block(copy)
    origin = dict(zip(block.ops, single_block(function).ops, strict=True))
    drop_dead_code(copy.body)
    return program_of(block), [origin[op] for op in block.ops]
