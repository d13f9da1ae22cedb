"""Run a function of a module on numpy arrays, operation by operation, in program order.

Every value is freed after its last use, so that memory usage follows program order. Floating point warnings are off:
infinities and NaN are ordinary values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ..support.diagnostics import Refusal
from .arguments import checked_inputs
from .kernels.arrays import Array
from .kernels.tuples import leaves
from .nested_modules import named_modules
from .preparation import Preparation
from .program import BlockProgram, Observer


def execute(function: FuncOp, inputs: Sequence[Any], observer: Observer | None = None) -> tuple[Array, ...]:
    """Run a function; results may alias inputs.

    Raises `ValueError` for an input that does not match the signature, `Refusal` for an operation without a kernel.
    """
    return Executable.of(function, observer).run(inputs)


@dataclass(frozen=True)
class Executable:
    """A prepared function, which can run any number of times."""

    function: FuncOp
    program: BlockProgram

    @classmethod
    def of(cls, function: FuncOp, observer: Observer | None = None) -> Executable:
        """Prepare a function. Raises `Refusal` at an operation that cannot be executed."""
        return cls(function, Preparation(observer).function(function))

    def run(self, inputs: Sequence[Any]) -> tuple[Array, ...]:
        """Run the function; raises as `execute` does. A tuple that it returns is its elements."""
        arrays = checked_inputs(self.function, inputs)
        with np.errstate(all="ignore"):
            return tuple(leaf for result in self.program.run(*arrays) for leaf in leaves(result))


def function_named(module: ModuleOp, name: str | None = None) -> FuncOp:
    """The function of that name; without a name `main`, or the only public function. Raises `Refusal`.

    Functions of inner modules are named with their module: `inner::main`, or `0::main` in a module without a name.
    """
    functions = dict(_named_functions(module))
    if name is not None and name not in functions:
        raise Refusal(module, f"there is no function '{name}'; there are {', '.join(functions) or 'none'}")
    if name is not None or "main" in functions:
        return functions[name or "main"]
    public = {name: op for name, op in functions.items() if not _is_private(op)}
    mains = [name for name in public if name.endswith("::main")]
    if len(public) != 1 and len(mains) != 1:
        names = f": {', '.join(public)}" if public else ""
        raise Refusal(module, f"{len(public)} functions can be called from outside: name one{names}")
    return public[mains[0]] if len(mains) == 1 else next(iter(public.values()))


def _is_private(function: FuncOp) -> bool:
    return function.sym_visibility is not None and function.sym_visibility.data == "private"


def _named_functions(module: ModuleOp) -> Iterator[tuple[str, FuncOp]]:
    for prefix, named in named_modules(module):
        for op in named.ops:
            if isinstance(op, FuncOp) and op.body.blocks:
                yield f"{prefix}{op.sym_name.data}", op
