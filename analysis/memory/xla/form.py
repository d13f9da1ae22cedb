"""A step as XLA:CPU rewrites it before it fuses: without dead code, and with the copies that its kernels ask for.

An operand that lies otherwise than its kernel wants it (`layouts.py`) is transposed into a copy. The convolution that
makes the gradient of a kernel reads the forward activation so, and the copy of it is made as soon as the activation is
there. Products in bf16 are computed in f32.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ....dialects.dead_code import drop_dead_code, has_dead_code
from ...step.functions import single_block
from .program import Program
from .read_program import program_of


@dataclass(frozen=True)
class XlaForm:
    """`origin`: for each operation of the program that of the function which it is, or is a copy for."""

    program: Program
    origin: tuple[Operation, ...]


def xla_form(function: FuncOp) -> XlaForm:
    """Raises `Refusal` for dynamic shapes."""
    if not has_dead_code(function):
        program, made_for = program_of(single_block(function), as_kernels_want=True)
        return XlaForm(program, tuple(made_for))
    copy = function.clone()
    block = single_block(copy)
    origin = dict(zip(block.ops, single_block(function).ops, strict=True))
    drop_dead_code(copy.body)
    program, made_for = program_of(block, as_kernels_want=True)
    return XlaForm(program, tuple([origin[op] for op in made_for]))
