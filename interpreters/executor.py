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

from ..support.diagnostics import Refusal
from .arguments import checked_inputs
from .kernels.arrays import Array
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
        """Raises `Refusal` at an operation that cannot be executed, and for an argument that cannot be given."""
        return cls(function, Preparation(observer).function(function))

    def run(self, inputs: Sequence[Any]) -> tuple[Array, ...]:
        """As `execute`."""
        arrays = checked_inputs(self.function, inputs)
        with np.errstate(all="ignore"):
            return self.program.run(*arrays)


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
