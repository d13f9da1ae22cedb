"""Derive `Kernel` and `Pool` from the types of an operation."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import bf16, f32
from xdsl.ir import Operation, SSAValue

from ....rules.storage import element_bytes
from ....support.type_guards import is_tensor
from ...step.storage import value_bytes
from .layouts import copied
from .program import Kernel, Pool

POOL = "stablehlo.select_and_scatter"
# XLA counts elements in s32.
_INDEX = 4


def kernel_of(op: Operation) -> Kernel:
    (result,) = op.results
    return Kernel(
        transposed=copied(op),
        wide=tuple([_bytes_in_f32(operand) if _is_bf16(operand) else 0 for operand in op.operands]),
        wide_result=_bytes_in_f32(result) if _is_bf16(result) else 0,
    )


def pool_of(op: Operation) -> Pool:
    operand, source, _ = op.operands
    return Pool(_shape(operand), prod(_shape(operand)) * _INDEX, prod(_shape(source)) * _INDEX)


def _is_bf16(value: SSAValue) -> bool:
    return is_tensor(value.type) and value.type.element_type == bf16


def _bytes_in_f32(value: SSAValue) -> int:
    wide, narrow = element_bytes(f32), element_bytes(bf16)
    assert wide is not None and narrow is not None, "both are numbers"
    return value_bytes(value) // narrow * wide


def _shape(value: SSAValue) -> tuple[int, ...]:
    return value.type.get_shape() if is_tensor(value.type) else ()
