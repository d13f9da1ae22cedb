"""A step as XLA:CPU rewrites it before it fuses: with the copies that its kernels ask for, of a clone of the function.

Convolutions want their operands as `[b, 0, 1, f]` and `[0, 1, i, o]`, and matrix products want the contracted
dimensions last on the left and first on the right. An operand that lies otherwise is transposed into a copy, unless it
is a plain matrix: kernels read those either way. The convolution that makes the gradient of a kernel reads the forward
activation so, and the copy of it is made as soon as the activation is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation
from xdsl.transforms.dead_code_elimination import region_dce

from ..dialects.stablehlo.records import ConvolutionAttr, DotAttr
from ..dialects.stablehlo.shapes import TransposeOp
from ..rules.names import name_of
from .functions import single_block
from .storage import rank_of


@dataclass(frozen=True)
class XlaForm:
    """`origin`: the operation of the original that each operation of the rewritten block is or is a copy for."""

    function: FuncOp
    block: Block
    origin: Mapping[Operation, Operation]


def xla_form(function: FuncOp) -> XlaForm:
    """The clone is for counting only: a transposed operand does not fit its operation's types."""
    copy = function.clone()
    block = single_block(copy)
    origin = dict(zip(block.ops, single_block(function).ops, strict=True))
    region_dce(copy.body)
    for op in list(block.ops):
        for index, permutation in enumerate(_permutations(op)):
            if list(permutation) != sorted(permutation):
                transpose = TransposeOp(op.operands[index], permutation)
                block.insert_op_before(transpose, op)
                op.operands[index] = transpose.result
                origin[transpose] = origin[op]
    return XlaForm(copy, block, origin)


def _permutations(op: Operation) -> Sequence[Sequence[int]]:
    """How each operand is transposed before the operation reads it."""
    rule = _RULES.get(name_of(op))
    return rule(op) if rule is not None else ()


def _of_dot(op: Operation) -> Sequence[Sequence[int]]:
    numbers = op.properties["dot_dimension_numbers"]
    assert isinstance(numbers, DotAttr), "dot_general is registered and verified"
    left, right = (rank_of(operand) for operand in op.operands)
    batch, contracted = numbers.data.lhs_batching_dimensions, numbers.data.lhs_contracting_dimensions
    lhs = [*batch, *(d for d in range(left) if d not in (*batch, *contracted)), *contracted]
    batch, contracted = numbers.data.rhs_batching_dimensions, numbers.data.rhs_contracting_dimensions
    rhs = [*batch, *contracted, *(d for d in range(right) if d not in (*batch, *contracted))]
    return [
        range(len(permutation)) if _is_read_either_way(permutation, len(contracted)) else permutation
        for permutation in (lhs, rhs)
    ]


def _is_read_either_way(permutation: Sequence[int], contracted: int) -> bool:
    """A matrix, or a batch of matrices, whose last two dimensions are exchanged."""
    *batch, row, column = permutation if len(permutation) > 1 else (0, 1)
    return contracted == 1 and batch == sorted(batch) and batch == list(range(len(batch))) and row > column


def _of_convolution(op: Operation) -> Sequence[Sequence[int]]:
    numbers = op.properties["dimension_numbers"]
    assert isinstance(numbers, ConvolutionAttr), "convolution is registered and verified"
    spatial = [str(dimension) for dimension in range(rank_of(op.operands[0]) - 2)]
    lhs, rhs = ["b", *spatial, "f"], [*spatial, "i", "o"]
    return [
        [numbers.data.lhs.index(name) for name in lhs],
        [numbers.data.rhs.index(name) for name in rhs],
    ]


_RULES: dict[str, Callable[[Operation], Sequence[Sequence[int]]]] = {
    "stablehlo.dot_general": _of_dot,
    "stablehlo.convolution": _of_convolution,
}
