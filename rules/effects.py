"""What may be executed twice: every operation that is known to be a function of its operands, by name.

An operation that is in neither table has unknown effects and is never recomputed.
"""

from __future__ import annotations

from xdsl.ir import Operation

from .names import name_of

_STABLEHLO_PURE = """
abs add and atan2 bitcast_convert broadcast_in_dim cbrt ceil clamp compare complex concatenate constant convert
convolution cosine count_leading_zeros divide dot_general dynamic_slice dynamic_update_slice exponential
exponential_minus_one floor gather imag iota is_finite log log_plus_one logistic maximum minimum multiply negate not
optimization_barrier or pad popcnt power real reduce_precision remainder reshape reverse rng_bit_generator
round_nearest_afz round_nearest_even rsqrt select shift_left shift_right_arithmetic shift_right_logical sign sine slice
sqrt subtract tan tanh transpose xor
""".split()

PURE = frozenset(f"stablehlo.{name}" for name in _STABLEHLO_PURE) | {"recompute.token", "recompute.depend"}

# Pure exactly when everything in their regions is.
_STABLEHLO_PURE_IF_BODY_IS = "case if reduce reduce_window scatter select_and_scatter sort while".split()

PURE_IF_BODY_IS = frozenset(f"stablehlo.{name}" for name in _STABLEHLO_PURE_IF_BODY_IS) | {
    "recompute.segment",
    "recompute.gradient",
}

TERMINATORS = frozenset({"stablehlo.return", "func.return", "recompute.yield"})

# Known not to be functions of their operands, with the words for the user.
IMPURE: dict[str, str] = {
    "stablehlo.rng": "it draws from a hidden random state: a copy would draw other numbers; "
    "draw with stablehlo.rng_bit_generator, whose state is an operand",
    "stablehlo.custom_call": "the effects of a custom call are unknown",
    "stablehlo.infeed": "it reads from outside",
    "stablehlo.outfeed": "it writes to the outside",
    "stablehlo.send": "it communicates",
    "stablehlo.recv": "it communicates",
    "stablehlo.all_reduce": "it is a collective, and recomputing collectives is off",
    "stablehlo.all_gather": "it is a collective, and recomputing collectives is off",
    "stablehlo.all_to_all": "it is a collective, and recomputing collectives is off",
    "stablehlo.reduce_scatter": "it is a collective, and recomputing collectives is off",
    "stablehlo.collective_permute": "it is a collective, and recomputing collectives is off",
    "func.call": "calls are recomputed after inlining; run recompute-inline first",
}


def why_impure(op: Operation) -> str | None:
    """Why running the operation twice could change a result, or None when it could not."""
    name = name_of(op)
    if name in PURE or name in TERMINATORS:
        return None
    if name not in PURE_IF_BODY_IS:
        return IMPURE.get(name, f"the effects of {name} are unknown")
    for region in op.regions:
        for inner in region.walk():
            if name_of(inner) not in PURE_IF_BODY_IS and (reason := why_impure(inner)) is not None:
                return f"{name_of(inner)} inside: {reason}"
    return None
