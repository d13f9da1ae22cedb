"""arith: https://mlir.llvm.org/docs/Dialects/ArithOps/. All of it is pure."""

from __future__ import annotations

from .facts import Facts, constant, moves, pure, table

_ARITHMETIC = """
addf addi addui_extended andi ceildivsi ceildivui cmpf cmpi divf divsi divui floordivsi maximumf maxnumf maxsi maxui
minimumf minnumf minsi minui mulf muli mulsi_extended mului_extended negf ori remf remsi remui select shli shrsi shrui
subf subi xori
"""
_CASTS = "bitcast extf extsi extui fptosi fptoui index_cast index_castui sitofp truncf trunci uitofp"

OPERATIONS: dict[str, Facts] = {
    **table("arith", _ARITHMETIC, pure()),
    **table("arith", _CASTS, moves()),
    "arith.constant": constant(),
}
