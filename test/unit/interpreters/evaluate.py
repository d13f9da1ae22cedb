"""Evaluation of a single operation, given as MLIR text, on numpy arrays."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np

from recompute.dialects.constants.elements import DType
from recompute.interpreters.executor import execute, function_named
from recompute.interpreters.kernels.arrays import Array
from recompute.mlir_io.parser import parse_module

TYPES: dict[str, DType] = {
    "f64": np.dtype(np.float64),
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "i64": np.dtype(np.int64),
    "i32": np.dtype(np.int32),
    "i8": np.dtype(np.int8),
    "i4": np.dtype(ml_dtypes.int4),
    "ui32": np.dtype(np.uint32),
    "ui8": np.dtype(np.uint8),
    "ui4": np.dtype(ml_dtypes.uint4),
    "i1": np.dtype(np.bool_),
    "complex<f32>": np.dtype(np.complex64),
}
NAMES = {dtype: name for name, dtype in TYPES.items()}


def tensor(array: Array) -> str:
    return f"tensor<{'x'.join([*map(str, array.shape), NAMES[array.dtype]])}>"


def array(values: Any, element: str) -> Array:
    return np.array(values).astype(TYPES[element])


def evaluate(body: str, result: str, *operands: Array) -> Array:
    """Return the value `%r`, of type `result`, that `body` computes from the operands `%a`, `%b`, …

    `T` in the body stands for the type of `%a`.
    """
    types = [tensor(operand) for operand in operands]
    arguments = ", ".join(f"%{name}: {type_}" for name, type_ in zip("abcdef", types, strict=False))
    body = re.sub(r"\bT\b", types[0], body) if types else body
    text = f"func.func @main({arguments}) -> {result} {{\n{body}\nreturn %r : {result}\n}}"
    (actual,) = execute(function_named(parse_module(text, "f.mlir")), operands)
    return actual


def elementwise(name: str, *operands: Array) -> Array:
    """Evaluate a StableHLO operation whose result has the type of its operands."""
    values = ", ".join(f"%{letter}" for letter, _ in zip("abc", operands, strict=False))
    return evaluate(f"%r = stablehlo.{name} {values} : T", tensor(operands[0]), *operands)


def convert(operand: Array, element: str) -> Array:
    result = tensor(np.empty(operand.shape, TYPES[element]))
    return evaluate(f"%r = stablehlo.convert %a : (T) -> {result}", result, operand)
