"""Entry points of the interpreter: find a function in a module, compile it, and run it on numpy arrays.

Operations run in program order, and each value is freed after its last use, as the static timeline assumes.
Floating-point warnings are off, because infinities and NaN are ordinary values.
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
        function: The function to run. The functions that it calls are looked up in its module.
        inputs: One array for each argument.
        observer: Receives the values that the run computes.

    Raises:
        ValueError: An input does not match the signature.
        Refusal: An operation cannot be executed, or fails.
    """
    return Executable.of(function, observer).run(inputs)


@dataclass(frozen=True)
class Executable:
    """A compiled function, which can run any number of times."""

    function: FuncOp
    program: BlockProgram

    @classmethod
    def of(cls, function: FuncOp, observer: Observer | None = None) -> Executable:
        """Compile a function. Raises `Refusal` for an operation that cannot be executed."""
        return cls(function, BlockCompiler(observer).function(function))

    def run(self, inputs: Sequence[Any]) -> tuple[Array, ...]:
        """Run the function and return its results, with tuples flattened. Raises the same exceptions as `execute`."""
        arrays = check_inputs(self.function, inputs)
        with np.errstate(all="ignore"):
            return tuple(leaf for result in self.program.run(*arrays) for leaf in leaves(result))


def function_named(module: ModuleOp, name: str | None = None) -> FuncOp:
    """Return the function with this name. If no name is given, return `main` or the only public function.

    The name of a function in an inner module starts with the name of the module, as in `inner::main`. A module without
    a name has an index instead, as in `0::main`.

    Raises:
        BadRequest: No function has this name.
        Refusal: No name is given, and the module does not have exactly one public function.
    """
    functions = dict(_named_functions(module))
    if name is not None and name not in functions:
        names = f"; the module contains {', '.join(functions) or 'no functions'}"
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
