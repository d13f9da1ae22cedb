"""Programs that are the same to the byte: equal, whatever they hold."""

from __future__ import annotations

from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr

from ..mlir_io.printer import print_module
from ..support.walk import every_operation
from .proof import Proof


def same_text(before: ModuleOp, after: ModuleOp) -> bool:
    """Whether the generic text of both modules, resources included, is the same to the byte."""
    # A clone does not keep the names of blocks, and one of the two may be one.
    one, other = (print_module(module.clone(), generic=True) for module in (before, after))
    return one == other


def proof_of_identity(module: ModuleOp) -> Proof:
    """For two programs of which every byte is the same, whatever they hold."""
    results = 0
    for op in module.ops:
        type_, visibility = op.properties.get("function_type"), op.properties.get("sym_visibility")
        if isinstance(type_, FunctionType) and visibility != StringAttr("private"):
            results += len(type_.outputs)
    return Proof(True, "", "", None, results, size(module), size(module), identical=True)


def size(module: ModuleOp) -> int:
    """How many operations it holds."""
    return len(every_operation(module)) - 1
