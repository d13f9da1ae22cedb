"""Facts about the arith dialect, whose operations are all pure: https://mlir.llvm.org/docs/Dialects/ArithOps/."""

from __future__ import annotations

from .facts import Facts, cast, constant, pure, pure_movement, table

_ARITHMETIC = """
addf addi addui_extended andi ceildivsi ceildivui cmpf cmpi divf divsi divui floordivsi maximumf maxnumf maxsi maxui
minimumf minnumf minsi minui mulf muli mulsi_extended mului_extended negf ori remf remsi remui select shli shrsi shrui
subf subi xori
"""
_CASTS = "extf extsi extui truncf trunci"
_CONVERSIONS = "fptosi fptoui sitofp uitofp"
_BITS = "bitcast index_cast index_castui"

OPERATIONS: dict[str, Facts] = {
    **table("arith", _ARITHMETIC, pure()),
    **table("arith", _CASTS, cast()),
    **table("arith", _CONVERSIONS, pure()),
    **table("arith", _BITS, pure_movement()),
    "arith.constant": constant(),
}
