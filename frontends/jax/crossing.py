"""Convert the module of a step between JAX's MLIR and xDSL: by the bridge, or else through text, with equal results."""

from __future__ import annotations

from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp

from ...dialects.recompute import RECOMPUTE
from ...mlir_io.parser import parse_module
from ...mlir_io.printer import print_module
from ...support.diagnostics import Refusal
from ...support.operations import every_operation
from . import private

RECOMPUTE_PREFIX = f"{RECOMPUTE.name}."
"""The prefix of the names of operations that JAX does not know."""


def module_of(lowered: jax.stages.Lowered, name: str) -> ModuleOp:
    """Return the lowered module with its locations.

    `name`: the name of the step, for errors. Raises `ParseError` if neither the bridge nor the parser accepts the
    module."""
    try:
        from .bridge import NotBridged, read
    except (ImportError, AttributeError):
        return _from_text(lowered, name)
    try:
        module: Any = lowered.compiler_ir()
        return read(module)
    except NotBridged:
        return _from_text(lowered, name)


def demand_lowered(module: ModuleOp) -> None:
    """Raise `Refusal` at the first operation of the dialect `recompute`, which a pipeline of the user may leave."""
    for op in every_operation(module):
        if op.name.startswith(RECOMPUTE_PREFIX):
            raise Refusal(op, f"{op.name} is unknown to JAX: the pipeline must end with recompute-lower")


def with_module(lowered: jax.stages.Lowered, module: ModuleOp) -> jax.stages.Lowered:
    """Return a copy of `lowered` that compiles this module, verified by MLIR.

    Raises MLIR's errors, and `Refusal` for a module with operations of the dialect `recompute`."""
    demand_lowered(module)
    context = private.mlir_context()
    try:
        from .bridge import NotBridged, write
    except (ImportError, AttributeError):
        return _with_text(lowered, module)
    try:
        return private.with_module(lowered, write(module, context))
    except NotBridged:
        return _with_text(lowered, module)


def _from_text(lowered: jax.stages.Lowered, name: str) -> ModuleOp:
    return parse_module(lowered.as_text(debug_info=True), name)


def _with_text(lowered: jax.stages.Lowered, module: ModuleOp) -> jax.stages.Lowered:
    return private.with_module(lowered, private.parse_mlir(print_module(module, debuginfo=True)))
