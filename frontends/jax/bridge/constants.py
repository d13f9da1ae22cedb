"""Dense constants, by their bits.

The bindings show the bits of some element types as a buffer, and take those of all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxlib.mlir import ir
from xdsl.ir import Attribute

from ....dialects.dense import DenseAttr, to_standard
from ....dialects.dense_literal import masked
from ....dialects.elements import dtype_of
from ....support.type_guards import AnyShaped, is_shaped, is_tensor
from .building import build
from .not_bridged import NotBridged


def bits_in(constant: Any, type: AnyShaped) -> bytes | None:
    """The bits of one element for a splat, else of all in row-major order; None where the bindings do not show them."""
    try:
        view = memoryview(constant)
    except BufferError:
        return None
    dtype = dtype_of(type.element_type)
    if view.itemsize != dtype.itemsize:
        raise NotBridged(f"the bindings show a {type} in elements of {view.itemsize} bytes")
    values = np.asarray(view)
    if constant.is_splat and values.size:
        values = values.reshape(-1)[:1]
    return masked(values.tobytes(), dtype)


def small(type: Attribute, bits: bytes) -> DenseAttr:
    """The value of `stablehlo.constant`."""
    assert is_tensor(type), "MLIR's constants are tensors"
    return DenseAttr.get(type, bits)


def standard(type: Attribute, bits: bytes) -> Attribute:
    """xDSL's own attribute."""
    assert is_shaped(type), "dense constants have a shape"
    return to_standard(type, bits)


def constant_out(type: ir.Type, element: Attribute, bits: bytes) -> ir.Attribute:
    """The bits of one element, or of all. MLIR finds splats on its own."""
    dtype = dtype_of(element)
    # One byte for each element below a byte, as MLIR takes them from a buffer; what is wider only has to be as wide.
    form = f"u{dtype.itemsize}" if dtype.itemsize <= 8 and dtype.kind != "c" else dtype
    values = np.frombuffer(bits, form)
    return build.DenseElementsAttr.get(values, type=type)
