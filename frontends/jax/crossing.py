"""Convert the module of a step between JAX's MLIR and xDSL: through the bridge, or through text as a fallback.

Both give the same module.
"""

from __future__ import annotations

from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp

from ...mlir_io.parser import parse_module
from ...mlir_io.printer import print_module
from . import private


def module_of(lowered: jax.stages.Lowered, name: str) -> ModuleOp:
    """Return the lowered module, with locations. Raises `ParseError` if the bridge cannot convert it and its text is
    rejected by the parser."""
    try:
        from .bridge import NotBridged, read
    except (ImportError, AttributeError):
        return _from_text(lowered, name)
    try:
        module: Any = lowered.compiler_ir()
        return read(module)
    except NotBridged:
        return _from_text(lowered, name)


def with_module(lowered: jax.stages.Lowered, module: ModuleOp) -> jax.stages.Lowered:
    """Return a copy of `lowered` that compiles this module, verified by MLIR. Raises MLIR's errors."""
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
    return private.with_module(lowered, private.parsed(print_module(module, debuginfo=True)))
