"""Process of `judge.py`: jaxlib's MLIR in a context as JAX creates it. A line of JSON is a batch of tasks.

Each answer is a line that is written at once, so that a crash can be attributed to its text.
"""

# jaxlib brings few stubs.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from jax._src.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.passmanager import PassManager

from .jax_programs import lowered

PIPELINE = "builtin.module(inline,cse,symbol-dce)"


def new_context() -> ir.Context:
    context = mlir.make_ir_context()
    context.allow_unregistered_dialects = True
    # With threads, the verifier waits for itself on some calls in nested modules.
    context.enable_multithreading(False)
    return context


class Reader:
    """Context for all texts without resources; the names of resources depend on the texts read before."""

    def __init__(self):
        self._context = new_context()

    def module(self, text: str) -> ir.Module:
        context = new_context() if "{-#" in text or "dense_resource" in text else self._context
        return ir.Module.parse(text, context)

    def canonical(self, text: str) -> str:
        return canonical_text(self.module(text))

    def processed(self, text: str) -> str:
        """Return the canonical text after `PIPELINE`; raises `ValueError` where the passes are known to crash."""
        module = self.module(text)
        if has_unknown_regions(module.operation, module.context):
            raise ValueError("jaxlib's passes crash on regions of operations that it does not know")
        with module.context:
            PassManager.parse(PIPELINE).run(module.operation)
        return canonical_text(module)

    def form(self, text: str, generic: bool, locations: bool) -> str:
        """Return the text as MLIR prints it, with aliases."""
        return module_text(self.module(text), print_generic_op_form=generic, enable_debug_info=locations)


def has_unknown_regions(op: ir.Operation, context: ir.Context) -> bool:
    nested = (inner.operation for region in op.regions for block in region.blocks for inner in block.operations)
    known = context.is_registered_operation(op.name)
    return (len(op.regions) > 0 and not known) or any(has_unknown_regions(inner, context) for inner in nested)


def canonical_text(module: ir.Module) -> str:
    text = module_text(module, print_generic_op_form=True, use_local_scope=True)
    if "dense_resource" not in text:
        return text
    # Local scope leaves the section of resources out.
    whole = module_text(module, print_generic_op_form=True)
    section = whole.find("\n{-#")
    return text + whole[section:] if section >= 0 else text


def module_text(module: ir.Module, **options: bool) -> str:
    text = module.operation.get_asm(assume_verified=True, **options)
    assert isinstance(text, str), "bytes only if asked for"
    return text


def main() -> None:
    reader = Reader()
    tasks: dict[str, Callable[..., Any]] = {
        "canonical": reader.canonical,
        "processed": reader.processed,
        "form": reader.form,
        "lowered": lowered,
    }
    for line in sys.stdin:
        for name, arguments in json.loads(line):
            answer: dict[str, str] = {}
            try:
                answer["text"] = tasks[name](*arguments)
            except (ir.MLIRError, ValueError) as error:
                answer["error"] = str(error)
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
