"""Kernels of CHLO, which use the functions of numpy, or of scipy (imported on first use) if numpy lacks a function."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from xdsl.ir import Operation

from ...dialects.chlo.top_k import TopKOp
from ...dialects.constants.elements import bit_width
from . import complex_numbers
from .arrays import Array, Compute, Kernel, as_owned, dtype_at, kind_of, on_two, row_by_row
from .elementwise import total_order, working_dtype

NUMPY: dict[str, Compute] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "conj": np.conjugate,
    "cosh": np.cosh,
    "is_inf": np.isinf,
    "is_neg_inf": np.isneginf,
    "is_pos_inf": np.isposinf,
    "sinh": np.sinh,
    "square": np.square,
    "tan": np.tan,
}
COMPLEX: dict[str, Compute] = {"square": complex_numbers.square}
# The functions of `scipy.special`, with their names there.
SCIPY = {
    "bessel_i1e": "i1e",
    "digamma": "digamma",
    "erf": "erf",
    "erf_inv": "erfinv",
    "erfc": "erfc",
    "lgamma": "gammaln",
    "polygamma": "polygamma",
    "zeta": "zeta",
}


def elementwise(op: Operation) -> Kernel:
    return special(op.name.removeprefix("chlo."), op)


def special(word: str, op: Operation) -> Kernel:
    """Make the kernel of the special function that `word` names. For types smaller than f32, the kernel computes in f32
    and rounds once.

    Raises:
        ValueError: The function needs scipy, which is not installed.
    """
    operand, dtype = dtype_at(op.operands[0]), dtype_at(op.results[0])
    compute = COMPLEX.get(word) if kind_of(operand) == "c" else None
    compute, working = compute or NUMPY.get(word) or _from_scipy(SCIPY[word]), working_dtype(operand)
    return lambda *operands: (as_owned(compute(*(row_by_row(operand, working) for operand in operands)), dtype),)


def _from_scipy(word: str) -> Compute:
    try:
        special: Any = import_module("scipy.special")
    except ImportError as error:
        raise ValueError(f"{word} needs scipy: pip install scipy") from error
    return getattr(special, word)


def next_after(op: Operation) -> Kernel:
    """Make the kernel of `chlo.next_after`. The kernel does not compute in a wider type, because the adjacent numbers
    of a wider type are different."""
    return on_two(lambda a, b: as_owned(np.nextafter(row_by_row(a), row_by_row(b)), a.dtype))


def multiply_high(op: Operation) -> Kernel:
    """Make the kernel of `chlo.mulhi`, which computes the product with Python integers and returns the upper half."""
    dtype = dtype_at(op.results[0])
    width = bit_width(dtype)
    return on_two(lambda a, b: ((a.astype(object) * b.astype(object)) >> width).astype(dtype))


def top_k(op: TopKOp) -> Kernel:
    """Make the kernel of `chlo.top_k`.

    As in XLA, elements are compared with the total order of IEEE 754: -0.0 < 0.0, and NaNs are at both ends. Equal
    elements stay in order.
    """
    k = op.k.value.data
    dtype = dtype_at(op.values)
    indices = dtype_at(op.indices)
    rank = total_order if kind_of(dtype) == "f" else np.asarray

    def run(operand: Array) -> tuple[Array, ...]:
        # The rows are reversed before and after the stable sort, so that the largest elements come first and equal
        # elements stay in order.
        order = np.argsort(rank(operand)[..., ::-1], axis=-1, kind="stable")[..., ::-1][..., :k]
        chosen = operand.shape[-1] - 1 - order
        return as_owned(np.take_along_axis(operand, chosen, -1), dtype), as_owned(chosen, indices)

    return run
