"""Names of the operations that XLA:CPU fuses into their users (`xla/service/cpu/cpu_instruction_fusion.cc`)."""

from __future__ import annotations

_CHEAP = """
abs add and bitcast_convert broadcast_in_dim ceil clamp compare complex concatenate convert cosine count_leading_zeros
dynamic_slice floor gather imag iota is_finite maximum minimum multiply negate not or popcnt real reduce_precision
reverse round_nearest_afz round_nearest_even select shift_left shift_right_arithmetic shift_right_logical sign sine
slice subtract transpose xor
""".split()

# XLA neither duplicates these into several fusions nor recomputes them for each element of a larger user.
_EXPENSIVE = """
atan2 cbrt divide exponential exponential_minus_one log log_plus_one logistic pad power remainder rsqrt sqrt tan tanh
""".split()

# CHLO operations expand into chains of StableHLO operations: short chains of cheap ones, or long or expensive ones.
_CHEAP_IN_CHLO = """
broadcast_add broadcast_and broadcast_compare broadcast_complex broadcast_maximum broadcast_minimum broadcast_multiply
broadcast_next_after broadcast_or broadcast_select broadcast_shift_left broadcast_shift_right_arithmetic
broadcast_shift_right_logical broadcast_subtract broadcast_xor conj constant_like is_inf is_neg_inf is_pos_inf mulhi
next_after square
""".split()
_EXPENSIVE_IN_CHLO = """
acos acosh asin asinh atan atanh bessel_i1e broadcast_atan2 broadcast_divide broadcast_polygamma broadcast_power
broadcast_remainder broadcast_zeta cosh digamma erf erf_inv erfc lgamma polygamma sinh tan zeta
""".split()

EXPENSIVE = frozenset(f"stablehlo.{name}" for name in _EXPENSIVE) | frozenset(f"chlo.{n}" for n in _EXPENSIVE_IN_CHLO)
FUSIBLE = frozenset(f"stablehlo.{name}" for name in _CHEAP) | frozenset(f"chlo.{n}" for n in _CHEAP_IN_CHLO) | EXPENSIVE
# A reduction fuses operands that have no other user, as in a sum of squares. It reads the others from memory.
REDUCTIONS = frozenset({"stablehlo.reduce"})

# Operations that XLA:CPU's kernel library, YNNPACK, fuses with a sum or a maximum
# (`xla/backends/cpu/ynn_support.cc`).
_LIBRARY = """
abs add ceil convert divide exponential exponential_minus_one floor log log_plus_one logistic maximum minimum multiply
negate power round_nearest_even rsqrt sign sqrt subtract tanh
""".split()
LIBRARY = frozenset(f"stablehlo.{name}" for name in _LIBRARY) | {"chlo.erf", "chlo.square"}

# These update their first operand in place if it has no other use; a loop updates all of its carries.
WRITES_OVER = frozenset({"stablehlo.scatter", "stablehlo.while", "stablehlo.dynamic_update_slice"})
