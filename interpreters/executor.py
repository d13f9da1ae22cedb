"""Entry points of the interpreter on numpy arrays: find a function of a module, compile it, and run it.

The operations run in program order, and each value is freed after its last use, so that memory usage follows program
order. Floating-point warnings are off: infinities and NaN are ordinary values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ..support.diagnostics import BadRequest, Refusal
from ..support.nested_modules import named_modules
from ..support.operations import is_private
from ..support.suggestions import did_you_mean
from .block_compiler import BlockCompiler
from .block_programs import BlockProgram, Observer
from .inputs import check_inputs
from .kernels.arrays import Array, leaves


def execute(function: FuncOp, inputs: Sequence[Any], observer: Observer | None = None) -> tuple[Array, ...]:
    """Run a function on numpy arrays. The results may alias the inputs.

    Args:
        function: The function; its callees are looked up in its module.
        inputs: One array for each argument.
        observer: Receives the values of the run.

    Raises:
        ValueError: An input does not match the signature.
        Refusal: An operation cannot be executed, or fails.
    """
    return Executable.of(function, observer).run(inputs)


@dataclass(frozen=True)
class Executable:
    """Compiled function that can run any number of times."""

    function: FuncOp
    program: BlockProgram

    @classmethod
    def of(cls, function: FuncOp, observer: Observer | None = None) -> Executable:
        """Compile a function. Raises `Refusal` for an operation that cannot be executed."""
        return cls(function, BlockCompiler(observer).function(function))

    def run(self, inputs: Sequence[Any]) -> tuple[Array, ...]:
        """Run the function and return its results, with tuples flattened. Raises as `execute` does."""
        arrays = check_inputs(self.function, inputs)
        with np.errstate(all="ignore"):
            return tuple(leaf for result in self.program.run(*arrays) for leaf in leaves(result))


def function_named(module: ModuleOp, name: str | None = None) -> FuncOp:
    """Return the function with this name; without a name, `main` or the only public function.

    A function of an inner module is named with its module: `inner::main`, or `0::main` in a module without a name.

    Raises:
        BadRequest: No function has the name.
        Refusal: No name is given, and several functions or none are public.
    """
    functions = dict(_named_functions(module))
    if name is not None and name not in functions:
        names = f"; there are {', '.join(functions) or 'none'}"
        raise BadRequest(module, f"there is no function '{name}'{did_you_mean(name, functions) or names}")
    if name is not None or "main" in functions:
        return functions[name or "main"]
    public = {name: op for name, op in functions.items() if not is_private(op)}
    mains = [name for name in public if name.endswith("::main")]
    if len(public) != 1 and len(mains) != 1:
        names = f": {', '.join(public)}" if public else ""
        raise Refusal(module, f"the module has {len(public)} public functions; name the one to run{names}")
    return public[mains[0]] if len(mains) == 1 else next(iter(public.values()))


def _named_functions(module: ModuleOp) -> Iterator[tuple[str, FuncOp]]:
    for prefix, named in named_modules(module):
        for op in named.ops:
            if isinstance(op, FuncOp) and op.body.blocks:
                yield f"{prefix}{op.sym_name.data}", op
