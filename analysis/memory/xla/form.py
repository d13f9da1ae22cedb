"""A step as XLA:CPU rewrites it before it fuses: with the copies that its kernels ask for, of a clone of the function.

Convolutions want their operands as `[b, 0, 1, f]` and `[0, 1, i, o]`, and matrix products want the contracted
dimensions last on the left and first on the right. An operand that lies otherwise is transposed into a copy, unless it
is a plain matrix: kernels read those either way. The convolution that makes the gradient of a kernel reads the forward
activation so, and the copy of it is made as soon as the activation is there. Products in bf16 are computed in f32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType, bf16, f32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ....dialects.dead_code import drop_dead_code
from ....dialects.guards import is_tensor
from ....dialects.stablehlo.records import ConvolutionAttr, DotAttr
from ....dialects.stablehlo.representation import ConvertOp
from ....dialects.stablehlo.shapes import TransposeOp
from ....rules.names import name_of
from ...step.functions import single_block
from ...step.storage import rank_of


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
    drop_dead_code(copy.body)
    for op in list(block.ops):
        if name_of(op) in _RULES:
            added = [*_widened(op), *_transposed(op)]
            origin.update(dict.fromkeys(added, origin[op]))
    return XlaForm(copy, block, origin)


def _widened(op: Operation) -> Iterator[Operation]:
    """Operands and the result of a product in bf16 are stored in f32, and rounded by who reads the result."""
    for index, operand in enumerate(op.operands):
        if _is_bf16(operand):
            yield (convert := _insert(ConvertOp(operand, _in_f32(operand)), InsertPoint.before(op)))
            op.operands[index] = convert.results[0]
    (result,) = op.results
    if _is_bf16(result):
        narrow = result.type
        wide = Rewriter.replace_value_with_new_type(result, _in_f32(result))
        yield (convert := _insert(ConvertOp(wide, narrow), InsertPoint.after(op)))
        wide.replace_uses_with_if(convert.results[0], lambda use: use.operation is not convert)


def _transposed(op: Operation) -> Iterator[Operation]:
    """Operands as the kernel wants them."""
    for index, permutation in enumerate(_RULES[name_of(op)](op)):
        if list(permutation) != sorted(permutation):
            yield (transpose := _insert(TransposeOp(op.operands[index], permutation), InsertPoint.before(op)))
            op.operands[index] = transpose.results[0]


def _insert(op: Operation, place: InsertPoint) -> Operation:
    Rewriter.insert_op(op, place)
    return op


def _is_bf16(value: SSAValue) -> bool:
    return is_tensor(value.type) and value.type.element_type == bf16


def _in_f32(value: SSAValue) -> TensorType[Attribute]:
    assert is_tensor(value.type), "products are of tensors"
    return TensorType(f32, value.type.get_shape())


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
