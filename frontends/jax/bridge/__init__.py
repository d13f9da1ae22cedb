"""Between the modules of JAX's MLIR and ours, object by object, where the other way is to print and to parse.

    module = read(lowered.compiler_ir())  # jaxlib.mlir.ir.Module -> xdsl ModuleOp, as parsing its text would give
    theirs = write(module, context)       # and back, verified by MLIR

What cannot cross raises `NotBridged`: whoever calls has the text.
"""

from __future__ import annotations

from .not_bridged import NotBridged
from .reading import read
from .writing import write

__all__ = ["NotBridged", "read", "write"]
