"""Derive the MLIR types of FX nodes from the fake values in their metadata."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from xdsl.dialects.builtin import (
    BFloat16Type,
    ComplexType,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    Signedness,
    TensorType,
)
from xdsl.ir import Attribute

from ....dialects.torch import NoneType
from .unsupported import Unsupported

_ELEMENTS: dict[torch.dtype, Attribute] = {
    torch.float64: Float64Type(),
    torch.float32: Float32Type(),
    torch.float16: Float16Type(),
    torch.bfloat16: BFloat16Type(),
    torch.bool: IntegerType(1),
    torch.complex64: ComplexType(Float32Type()),
    torch.complex128: ComplexType(Float64Type()),
    **{getattr(torch, f"int{bits}"): IntegerType(bits) for bits in (8, 16, 32, 64)},
    **{getattr(torch, f"uint{bits}"): IntegerType(bits, Signedness.UNSIGNED) for bits in (8, 16, 32, 64)},
}
NONE = NoneType()


def type_of(value: Any, node: torch.fx.Node) -> Attribute:
    """Return the MLIR type of a fake value.

    Raises `Unsupported` for a value that is not a dense tensor, a number, a Boolean or None.
    """
    if value is None:
        return NONE
    if isinstance(value, bool | torch.SymBool):
        return IntegerType(1)
    if isinstance(value, int | torch.SymInt):
        return IntegerType(64)
    if isinstance(value, float | torch.SymFloat):
        return Float64Type()
    if not isinstance(value, FakeTensor) or value.layout is not torch.strided:
        raise Unsupported(node, f"it returns a {type(value).__name__}, but only dense tensors are supported")
    return _tensor(value.dtype, tuple([_extent(size, node) for size in value.shape]), node)


def stored_bytes(value: Any, node: torch.fx.Node) -> int | None:
    """Return the bytes of the storage that a node allocates, if they exceed the bytes of the result's elements.

    For example, `aten.copy` into a slice returns a tensor with the strides of the slice. The storage of this tensor
    includes the gaps. Return None for other nodes.
    """
    if not isinstance(value, FakeTensor) or value.layout is not torch.strided:
        return None
    storage = value.untyped_storage()
    elements = value.numel()
    allocated = storage.nbytes()
    if not isinstance(allocated, int) or not isinstance(elements, int) or allocated <= elements * value.itemsize:
        return None
    read = [operand.meta.get("val") for operand in node.all_input_nodes]
    is_view = any(isinstance(each, FakeTensor) and _is_stored_in(each, storage) for each in read)
    return None if is_view else allocated


def _is_stored_in(value: FakeTensor, storage: torch.UntypedStorage) -> bool:
    return value.layout is torch.strided and value.untyped_storage()._cdata == storage._cdata


def _tensor(dtype: torch.dtype, shape: tuple[int, ...], node: torch.fx.Node) -> Attribute:
    if dtype not in _ELEMENTS:
        raise Unsupported(node, f"its element type {dtype} is not supported")
    return _tensor_type(dtype, shape)


@cache
def _tensor_type(dtype: torch.dtype, shape: tuple[int, ...]) -> Attribute:
    return TensorType(_ELEMENTS[dtype], shape)


def _extent(size: int | torch.SymInt, node: torch.fx.Node) -> int:
    """Return a size, or the hint of a symbolic size.

    A plan is made for the current shapes, but is valid for all shapes.
    """
    if isinstance(size, int):
        return size
    if not size.node.has_hint():
        raise Unsupported(node, f"the size {size} of its result is known only at run time")
    return int(size.node.hint)
