"""The functions of a module that the passes work on."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block

from ...support.diagnostics import Refusal


def functions_of(module: ModuleOp) -> list[FuncOp]:
    """Functions with a body that can be called from outside, in program order."""
    return [
        op
        for op in module.ops
        if isinstance(op, FuncOp)
        and op.body.blocks
        and (op.sym_visibility is None or op.sym_visibility.data != "private")
    ]


def single_block(function: FuncOp) -> Block:
    """The function's only block. Raises `Refusal` for control flow between blocks, which has no program order."""
    blocks = list(function.body.blocks)
    if len(blocks) != 1:
        raise Refusal(
            function,
            f"function '{function.sym_name.data}' has {len(blocks)} blocks; recomputation needs one block: "
            "express the control flow with stablehlo.while, stablehlo.case or scf",
        )
    return blocks[0]
