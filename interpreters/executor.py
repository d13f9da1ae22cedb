"""Run a function of a module on numpy arrays, operation by operation, in program order.

Every value is freed after the last operation that reads it, so that the memory in use is what the program order asks
for. Floating point warnings are off: infinities and NaN are values like others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument

from ..dialects.diagnostics import Refusal
from ..dialects.elements import DType
from .kernels.arrays import Array, dtype_at, row_by_row, shape_at
from .preparation import Preparation
from .program import Observer, Program


def execute(function: FuncOp, inputs: Sequence[Any], observer: Observer | None = None) -> tuple[Array, ...]:
    """The results of the function, some of which may be its inputs.

    `ValueError` names an input that does not fit the signature; `Refusal` an operation that cannot be executed.
    """
    return Executable.of(function, observer).run(inputs)


@dataclass(frozen=True)
class Executable:
    """A function that is ready to run, as often as one likes."""

    function: FuncOp
    program: Program

    @classmethod
    def of(cls, function: FuncOp, observer: Observer | None = None) -> Executable:
        """Raises `Refusal` at an operation that cannot be executed."""
        return cls(function, Preparation(observer).function(function))

    def run(self, inputs: Sequence[Any]) -> tuple[Array, ...]:
        """As `execute`."""
        arrays = checked_inputs(self.function, inputs)
        with np.errstate(all="ignore"):
            return self.program.run(*arrays)


def checked_inputs(function: FuncOp, inputs: Sequence[Any]) -> list[Array]:
    """The inputs as arrays that lie row by row, of exactly the types that the function takes."""
    arguments = function.body.block.args
    if len(inputs) != len(arguments):
        raise ValueError(f"function '{function.sym_name.data}' takes {len(arguments)} inputs, not {len(inputs)}")
    arrays = [np.asarray(value) for value in inputs]
    for index, (array, argument) in enumerate(zip(arrays, arguments, strict=True)):
        shape, dtype = _type_of(argument)
        if array.shape != shape or array.dtype != dtype:
            raise ValueError(f"input #{index} is {array.dtype}{list(array.shape)}, expected {dtype}{list(shape)}")
    return [row_by_row(array) for array in arrays]


def _type_of(argument: BlockArgument) -> tuple[tuple[int, ...], DType]:
    try:
        return shape_at(argument), dtype_at(argument)
    except ValueError as error:
        around = argument.block.parent_op()
        assert around is not None, "the argument of a function lies in one"
        raise Refusal(around, f"argument #{argument.index} cannot be given: {error}") from error


def function_named(module: ModuleOp, name: str | None = None) -> FuncOp:
    """The function of that name; without one `main`, or the only function that can be called from outside."""
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp) and op.body.blocks}
    if name is not None and name not in functions:
        raise Refusal(module, f"there is no function '{name}'; there are {', '.join(functions) or 'none'}")
    if name is not None or "main" in functions:
        return functions[name or "main"]
    public = [op for op in functions.values() if op.sym_visibility is None or op.sym_visibility.data != "private"]
    if len(public) != 1:
        raise Refusal(module, f"{len(public)} functions can be called from outside: name one")
    return public[0]
