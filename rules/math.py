"""Facts about the math dialect, whose operations are all pure: https://mlir.llvm.org/docs/Dialects/MathOps/."""

from __future__ import annotations

from .facts import Facts, pure, table
from .flop_counts import per_element

_PURE = """
absf absi acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh ctlz ctpop cttz erf erfc exp exp2 expm1
floor fpowi ipowi isfinite isinf isnan isnormal log log10 log1p log2 powf round roundeven rsqrt sin sincos sinh sqrt
tan tanh trunc
"""

OPERATIONS: dict[str, Facts] = {**table("math", _PURE, pure()), "math.fma": pure(per_element(2))}
