"""Operations in generic form and on scalars, and integers wrapped to a width, for tests of arith and math."""

# JAX's types say little about lambdas, numpy's about ufuncs.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

import numpy as np

from recompute.interpreters.executor import execute, function_named
from recompute.interpreters.kernels.arrays import Array
from recompute.mlir_io.parser import parse_module
from recompute.test.unit.interpreters.evaluate import evaluate, tensor


def apply(name: str, *operands: Array, result: str = "T", attributes: str = "") -> Array:
    """Evaluate an operation in generic form."""
    names = ", ".join(f"%{letter}" for letter, _ in zip("abc", operands, strict=False))
    types = ", ".join("T" for _ in operands)
    return evaluate(f'%r = "{name}"({names}) {attributes} : ({types}) -> {result}', _typed(result, operands), *operands)


def _typed(result: str, operands: tuple[Array, ...]) -> str:
    return tensor(operands[0]) if result == "T" else result


def wrap(value: int, width: int, signed: bool = True) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if signed and value >> (width - 1) else value


def scalars(body: str, result: str, arguments: str = "", *inputs: Any) -> Array:
    text = f"func.func @main({arguments}) -> {result} {{\n{body}\nreturn %r : {result}\n}}"
    (actual,) = execute(function_named(parse_module(text, "f.mlir")), inputs)
    assert isinstance(actual, np.ndarray)
    return actual
