"""Prepare the inputs of a function as numpy arrays: draw them at random, load them from a file, or check the caller's
arrays."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, get_args

import ml_dtypes
import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument

from ..dialects.constants.elements import DType, bit_width
from ..support.counted import counted
from ..support.diagnostics import Refusal
from .kernels.arrays import Array, dtype_at, kind_of, row_by_row, shape_at
from .kernels.conversion import convert

InputKind: TypeAlias = Literal["random", "positive", "adversarial"]
INPUT_KINDS: tuple[InputKind, ...] = get_args(InputKind)

Draw: TypeAlias = Callable[[np.random.Generator, tuple[int, ...], DType], Array]

# The upper bound on drawn integers. They may be token ids, labels or counters, so they are small enough to index small
# tables.
SMALL = 32
# Numbers of words of a random key: 2 for threefry, 4 for Philox.
KEY_WORDS = (2, 4)
SPREAD = 0.1
_FINFO: Any = ml_dtypes.finfo


def random_inputs(function: FuncOp, seed: int = 0, kind: InputKind = "random") -> list[Array]:
    """Return one array for each argument of a function. The arrays depend only on the function, the seed and the kind.

        random:       small floats of both signs, no NaN; small integers; random keys of arbitrary bits
        positive:     like `random` with non-negative floats, so that logarithms and roots of the inputs are not NaN
        adversarial:  zeros of both signs, infinities, NaN, denormals and extreme values, mixed with random values

    Raises:
        Refusal: An argument has a type that no numpy array can represent, or does not fit in memory.
        ValueError: `kind` is unknown.
    """
    if kind not in INPUT_KINDS:
        raise ValueError(f"unknown kind '{kind}'; expected one of {', '.join(INPUT_KINDS)}")
    generator = np.random.default_rng(seed)
    arguments = zip(function.body.block.args, types_of(function), strict=True)
    return [_draw(argument, kind, generator, *type_) for argument, type_ in arguments]


def _draw(
    argument: BlockArgument, kind: InputKind, generator: np.random.Generator, shape: tuple[int, ...], dtype: DType
) -> Array:
    try:
        return _DRAWS[kind](generator, shape, dtype)
    except (MemoryError, ValueError) as error:
        raise cannot_be_given(argument, f"it does not fit in memory ({error})") from error


def _random(generator: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    kind = kind_of(dtype)
    if kind == "b":
        return generator.integers(0, 2, shape).astype(dtype)
    if kind == "u" and shape and shape[-1] in KEY_WORDS:
        return convert(generator.integers(0, 1 << 32, shape), dtype)
    if kind in "iu":
        return convert(generator.integers(0, min(SMALL, 1 << (bit_width(dtype) - 1)), shape), dtype)
    real = generator.normal(0.0, SPREAD, shape)
    return convert(np.asarray(real + 1j * generator.normal(0.0, SPREAD, shape) if kind == "c" else real), dtype)


def _positive(generator: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    values = _random(generator, shape, dtype)
    return convert(np.asarray(np.abs(values.astype(np.float64))), dtype) if kind_of(dtype) == "f" else values


def _adversarial(generator: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return a random array in which about half of the elements are special values, such as NaN."""
    special = np.array(_special_values(dtype))
    ordinary = _random(generator, shape, dtype)
    chosen = convert(special[generator.integers(0, len(special), shape)], dtype)
    return np.where(generator.integers(0, 2, shape) == 1, chosen, ordinary).astype(dtype)


def _special_values(dtype: DType) -> list[float] | list[int] | list[bool]:
    kind = kind_of(dtype)
    if kind == "b":
        return [False, True]
    if kind in "iu":
        bounds = ml_dtypes.iinfo(dtype)
        return [0, 1, int(bounds.min), int(bounds.max)]
    info = _FINFO(np.float32 if kind == "c" else dtype)
    edges = [float(info.smallest_subnormal), float(info.smallest_normal), float(info.max), np.inf]
    return [0.0, -0.0, 1.0, np.nan, *edges, *(-edge for edge in edges)]


_DRAWS: dict[InputKind, Draw] = {"random": _random, "positive": _positive, "adversarial": _adversarial}


def load_inputs(path: str, function: FuncOp) -> list[Array]:
    """Load one array for each argument from an `.npz` file, in the order in which they were saved.

    Arrays of element types that numpy cannot store (bf16, f8, i4) may be saved as unsigned integers with the same size
    and bits.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is not an `.npz` file, or does not contain one array for each argument.
        Refusal: An argument has a type that no numpy array can represent.
    """
    try:
        with np.load(path) as archive:
            arrays = [archive[name] for name in archive.files]
    except (zipfile.BadZipFile, EOFError, TypeError, AttributeError) as error:
        raise ValueError(f"not an .npz file of arrays, such as numpy.savez writes: {error}") from error
    types = types_of(function)
    if len(arrays) != len(types):
        raise ValueError(
            f"the file contains {counted(len(arrays), 'array')}, expected {len(types)}, one for each argument"
        )
    return [_reinterpret(array, dtype) for array, (_, dtype) in zip(arrays, types, strict=True)]


def _reinterpret(array: Array, dtype: DType) -> Array:
    is_foreign = dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize and array.dtype.kind in "uV"
    return array.view(dtype) if is_foreign else array


def types_of(function: FuncOp) -> list[tuple[tuple[int, ...], DType]]:
    """Return the shape and element type of each argument of a function.

    Raises:
        Refusal: An argument has a type that no numpy array can represent.
    """
    return [_type_of(argument) for argument in function.body.block.args]


def _type_of(argument: BlockArgument) -> tuple[tuple[int, ...], DType]:
    try:
        return shape_at(argument), dtype_at(argument)
    except ValueError as error:
        raise cannot_be_given(argument, str(error)) from error


def cannot_be_given(argument: BlockArgument, reason: str) -> Refusal:
    function = argument.block.parent_op()
    assert function is not None, "the block of an argument belongs to a function"
    number, type_ = argument.index, argument.type
    return Refusal(function, f"no input can be given for argument #{number} of type {type_}: {reason}")


def check_inputs(function: FuncOp, inputs: Sequence[Any]) -> list[Array]:
    """Check the inputs of a function, and return them as row-major arrays.

    Raises:
        ValueError: The number of inputs, or the shape or element type of an input, does not match the arguments.
    """
    types = types_of(function)
    if len(inputs) != len(types):
        raise ValueError(f"function '{function.sym_name.data}' takes {counted(len(types), 'input')}, not {len(inputs)}")
    arrays = [np.asarray(value) for value in inputs]
    for index, (array, (shape, dtype)) in enumerate(zip(arrays, types, strict=True)):
        if array.shape != shape or array.dtype != dtype:
            raise ValueError(f"input #{index} is {array.dtype}{list(array.shape)}, expected {dtype}{list(shape)}")
    return [row_by_row(array) for array in arrays]
