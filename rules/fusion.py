"""The names of the operations that XLA:CPU fuses into their users. Source:
`xla/service/cpu/cpu_instruction_fusion.cc`."""

from __future__ import annotations

from .expansions import OF_STABLEHLO
from .stablehlo import ARITHMETIC, TRANSCENDENTAL

# XLA treats elementwise arithmetic as cheap and transcendental functions as expensive, with the following exceptions.
_COSTLY_ARITHMETIC = frozenset({"divide", "remainder"})
_CHEAP_FUNCTIONS = frozenset({"cosine", "sine"})
_CHEAP = (
    frozenset(ARITHMETIC.split()) - _COSTLY_ARITHMETIC
    | _CHEAP_FUNCTIONS
    | frozenset("broadcast_in_dim concatenate convert dynamic_slice gather iota reverse slice transpose".split())
)
# XLA neither duplicates these operations into several fusions, nor recomputes them for each element of a larger user.
_EXPENSIVE = frozenset(TRANSCENDENTAL.split()) - _CHEAP_FUNCTIONS | _COSTLY_ARITHMETIC | {*OF_STABLEHLO, "pad"}

# CHLO operations expand into chains of StableHLO operations. The operations listed as cheap expand into short chains of
# cheap operations.
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
# A reduction fuses operands that have no other user, as in a sum of squares. It reads all other operands from memory.
REDUCTIONS = frozenset({"stablehlo.reduce"})

# Operations that XLA:CPU's kernel library, YNNPACK, fuses with a sum or a maximum
# (`xla/backends/cpu/ynn_support.cc`).
_LIBRARY = """
abs add ceil convert divide exponential exponential_minus_one floor log log_plus_one logistic maximum minimum multiply
negate power round_nearest_even rsqrt sign sqrt subtract tanh
""".split()
LIBRARY = frozenset(f"stablehlo.{name}" for name in _LIBRARY) | {"chlo.erf", "chlo.square"}

# Operations that update their first operand in place if it has no other use. A loop updates all of its carries in
# place.
WRITES_OVER = frozenset({"stablehlo.scatter", "stablehlo.while", "stablehlo.dynamic_update_slice"})
