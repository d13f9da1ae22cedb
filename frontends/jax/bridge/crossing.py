"""Convert the module of a step between JAX's MLIR and xDSL, with the bridge or through text. Both ways give the same
result."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp

from ....dialects.recompute import RECOMPUTE
from ....mlir_io.parser import parse_module
from ....mlir_io.printer import print_module
from ....support.diagnostics import Refusal
from ....support.operations import every_operation
from ..internals import private

RECOMPUTE_PREFIX = f"{RECOMPUTE.name}."
"""The prefix of operation names that JAX does not know."""


def module_of(lowered: jax.stages.Lowered, name: str) -> ModuleOp:
    """Convert the lowered module to an xDSL module with its locations.

    `name`: the name of the step, for errors. Raises `ParseError` if neither the bridge nor the parser accepts the
    module.
    """
    return _read(lowered.compiler_ir(), name, partial(lowered.as_text, debug_info=True))


def from_mlir(module: Any, name: str) -> ModuleOp:
    """Convert a module of JAX's MLIR, with or without locations, to xDSL. `name` and the errors are as in
    `module_of`."""
    return _read(module, name, partial(str, module))


def to_mlir(module: ModuleOp) -> Any:
    """Convert the module to JAX's MLIR in a new context, and verify it. Raises MLIR's errors."""
    try:
        from . import NotBridged, write
    except (ImportError, AttributeError):
        return private.parse_mlir(print_module(module, debuginfo=True))
    try:
        return write(module, private.mlir_context())
    except NotBridged:
        return private.parse_mlir(print_module(module, debuginfo=True))


def demand_lowered(module: ModuleOp) -> None:
    """Raise `Refusal` at the first operation of the dialect `recompute`, which a user's pipeline may have left
    behind."""
    for op in every_operation(module):
        if op.name.startswith(RECOMPUTE_PREFIX):
            raise Refusal(op, f"{op.name} is unknown to JAX: the pipeline must end with the pass recompute-lower")


def with_module(lowered: jax.stages.Lowered, module: ModuleOp) -> jax.stages.Lowered:
    """Return a copy of `lowered` that compiles this module. MLIR verifies the module.

    Raises MLIR's errors, and `Refusal` for a module with operations of the dialect `recompute`.
    """
    demand_lowered(module)
    return private.with_module(lowered, to_mlir(module))


def _read(module: Any, name: str, text: Callable[[], str]) -> ModuleOp:
    """Convert the module with the bridge, or if that fails, through its text."""
    try:
        from . import NotBridged, read
    except (ImportError, AttributeError):
        return parse_module(text(), name)
    try:
        return read(module)
    except NotBridged:
        return parse_module(text(), name)
