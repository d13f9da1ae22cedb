"""Convert modules between JAX's MLIR bindings and xDSL object by object, without printing or parsing text.

    module = read(lowered.compiler_ir())  # jaxlib.mlir.ir.Module -> xdsl ModuleOp, the same as from parsing its text
    theirs = write(module, context)       # and back, verified by MLIR

Both functions raise `NotBridged` for a module that they cannot convert. The caller then converts this module through
text.
"""

from __future__ import annotations

from .bindings import NotBridged
from .reading import read
from .writing import write

__all__ = ["NotBridged", "read", "write"]
