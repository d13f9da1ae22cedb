"""The module of a step from JAX to us and back: by the bridge, and where it does not reach by way of text.

Both ways come to the same module, so nobody has to know which one was taken.
"""

from __future__ import annotations

from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp

from ...mlir_io.parser import parse_module
from ...mlir_io.printer import print_module
from . import private


def module_of(lowered: jax.stages.Lowered, name: str) -> ModuleOp:
    """What JAX lowered, with locations. Raises `ParseError` where the text has to be read and cannot be."""
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
    """A copy of `lowered` that compiles this module, which MLIR has verified. Raises what MLIR raises."""
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
