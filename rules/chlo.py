"""CHLO, what JAX and others write beside StableHLO: all of it is elementwise, or small."""

from __future__ import annotations

from .facts import Facts, constant, pure, table

_PURE = """
acos acosh asin asinh atan atanh bessel_i1e conj constant_like cosh digamma erf erf_inv erfc is_inf is_neg_inf
is_pos_inf lgamma mulhi next_after polygamma sinh square tan top_k zeta
"""

OPERATIONS: dict[str, Facts] = {**table("chlo", _PURE, pure()), "chlo.constant": constant()}
