"""xDSL's own interpreter with the numpy kernels as its implementations. Tests compare it with the project's executor.

xDSL's interpreter frees values only when a function ends, whereas `interpreters/executor.py` frees each value after its
last use.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.interpreter import Interpreter, InterpreterFunctions, PythonValues, impl, register_impls
from xdsl.interpreters.func import FuncFunctions
from xdsl.ir import Operation
from xdsl.traits import IsTerminator

from recompute.dialects.recompute import RECOMPUTE
from recompute.dialects.stablehlo import STABLEHLO
from recompute.interpreters.block_compiler import BlockCompiler
from recompute.interpreters.block_programs import captures_of


class NumpyFunctions(InterpreterFunctions):
    """Implementations for xDSL's interpreter that run every operation with its numpy kernel."""

    def run(self, interpreter: Interpreter, op: Operation, values: PythonValues) -> PythonValues:
        with np.errstate(all="ignore"):
            return BlockCompiler().kernel(op)(*values, *interpreter.get_values(captures_of(op)))


def _implementation(kind: type[Operation]) -> Any:
    """Return the implementation of an operation class. It is a new function for each class, because xDSL stores the
    class on it."""

    def run(functions: NumpyFunctions, interpreter: Interpreter, op: Operation, values: PythonValues) -> PythonValues:
        return functions.run(interpreter, op, values)

    return impl(kind)(run)


for _kind in (*STABLEHLO.operations, *RECOMPUTE.operations):
    if not _kind.has_trait(IsTerminator):
        setattr(NumpyFunctions, f"run_{_kind.name}", _implementation(_kind))
register_impls(NumpyFunctions)


def make_interpreter(module: ModuleOp) -> Interpreter:
    """Return xDSL's interpreter for a module of StableHLO, func and recompute operations."""
    interpreter = Interpreter(module)
    interpreter.register_implementations(NumpyFunctions())
    interpreter.register_implementations(FuncFunctions())
    return interpreter
