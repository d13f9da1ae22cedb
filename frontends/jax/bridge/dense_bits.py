"""Convert dense constants bit by bit, without parsing numbers.

The bindings accept the bits of a constant for all element types, but expose them, as a buffer, only for some element
types.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxlib.mlir import ir
from xdsl.ir import Attribute

from ....dialects.constants.dense import DenseAttr, to_standard
from ....dialects.constants.dense_literal import mask_bits
from ....dialects.constants.elements import dtype_of
from ....support.type_guards import AnyShaped, is_shaped, is_tensor
from .bindings import NotBridged, build


def exposed_bits(constant: Any, type: AnyShaped) -> bytes | None:
    """Return the bits of all elements in row-major order, or for a splat, the bits of its single element.

    Return None if the bindings do not expose the bits of this element type.
    """
    try:
        view = memoryview(constant)
    except BufferError:
        return None
    dtype = dtype_of(type.element_type)
    if view.itemsize != dtype.itemsize:
        raise NotBridged(f"the bindings expose the data of a {type} with {view.itemsize}-byte elements")
    values = np.asarray(view)
    if constant.is_splat and values.size:
        values = values.reshape(-1)[:1]
    return mask_bits(values.tobytes(), dtype)


def dense_attr(type: Attribute, bits: bytes) -> DenseAttr:
    """Return the bits as a `DenseAttr`, the value attribute of a `stablehlo.constant`."""
    assert is_tensor(type), "MLIR's constants are tensors"
    return DenseAttr.get(type, bits)


def standard_dense(type: Attribute, bits: bytes) -> Attribute:
    """Return the bits as the dense attribute that xDSL itself defines."""
    assert is_shaped(type), "dense constants have a shape"
    return to_standard(type, bits)


def elements_attr(type: ir.Type, element: Attribute, bits: bytes) -> ir.Attribute:
    """Return the bits of one element or of all elements as MLIR's attribute. MLIR detects splats itself."""
    dtype = dtype_of(element)
    # MLIR reads an element narrower than a byte from a whole byte. For wider elements, only the width has to match.
    form = f"u{dtype.itemsize}" if dtype.itemsize <= 8 and dtype.kind != "c" else dtype
    values = np.frombuffer(bits, form)
    return build.DenseElementsAttr.get(values, type=type)
