"""Functions that compile the variants of one step, for the search under its budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp

CompileModule = Callable[[ModuleOp, Mapping[str, Any]], jax.stages.Compiled]


@dataclass(frozen=True)
class Compilers:
    """Functions that compile a step.

    Attributes:
        compile_plain: Compiles the plain step.
        compile_rewritten: Compiles a rewritten module of the step, with compiler options in addition to the step's own.
        key: A string that is equal for compilers that measure the same sizes.
        compile_keeping: Compiles the plain step with its own barriers (`jax.checkpoint`); None if the step has no such
            barriers, or if `compile_plain` keeps them.
    """

    compile_plain: Callable[[], jax.stages.Compiled]
    compile_rewritten: CompileModule
    key: str
    compile_keeping: Callable[[], jax.stages.Compiled] | None = None
