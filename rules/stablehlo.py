"""StableHLO: https://openxla.org/stablehlo/spec."""

from __future__ import annotations

from . import counts
from .facts import (
    Carry,
    Facts,
    RegionStorage,
    View,
    cast,
    collective,
    communication,
    constant,
    forwards,
    impure,
    moves,
    nothing,
    once,
    product,
    pure,
    pure_if_body_is,
    random,
    table,
    terminator,
    view,
)

_CONDITION = RegionStorage(Carry.RESULTS, hands_on=None)
_BODY = RegionStorage(Carry.RESULTS)
_BRANCH = RegionStorage(Carry.NOTHING)

_ARITHMETIC = """
abs add and atan2 cbrt ceil clamp compare complex cosine count_leading_zeros divide exponential exponential_minus_one
floor imag is_finite log log_plus_one logistic maximum minimum multiply negate not or popcnt power real
reduce_precision remainder round_nearest_afz round_nearest_even rsqrt select shift_left shift_right_arithmetic
shift_right_logical sign sine sqrt subtract tan tanh xor
"""
_MOVES = """
bitcast_convert concatenate dynamic_slice dynamic_update_slice gather iota pad reverse slice
"""
_WHOLE_MATRICES = "cholesky fft"
_COLLECTIVES = "all_gather all_reduce all_to_all collective_broadcast collective_permute reduce_scatter"
_DEVICE = "partition_id replica_id"

OPERATIONS: dict[str, Facts] = {
    **table("stablehlo", _ARITHMETIC, pure()),
    **table("stablehlo", _MOVES, moves()),
    **table("stablehlo", _WHOLE_MATRICES, pure()),
    **table("stablehlo", _DEVICE, moves()),
    "stablehlo.convert": cast(),
    "stablehlo.constant": constant(),
    "stablehlo.transpose": view(),
    "stablehlo.broadcast_in_dim": view(),
    "stablehlo.reshape": view(layout=View.DENSE),
    "stablehlo.optimization_barrier": forwards(),
    "stablehlo.rng_bit_generator": random(state=0),
    "stablehlo.dot_general": product(pure(counts.dot)),
    "stablehlo.convolution": product(pure(counts.convolution)),
    "stablehlo.reduce": pure_if_body_is(counts.reduction),
    **table("stablehlo", "reduce_window scatter select_and_scatter sort", pure_if_body_is()),
    "stablehlo.while": pure_if_body_is(nothing, once, (_CONDITION, _BODY)),
    **table("stablehlo", "case if", pure_if_body_is(nothing, once, (_BRANCH,))),
    "stablehlo.return": terminator(),
    "stablehlo.rng": impure(
        "it draws from a hidden random state: a copy would draw other numbers; "
        "draw with stablehlo.rng_bit_generator, whose state is an operand"
    ),
    "stablehlo.custom_call": impure("the effects of a custom call are unknown"),
    "stablehlo.infeed": impure("it reads from outside"),
    "stablehlo.outfeed": impure("it writes to the outside"),
    **table("stablehlo", _COLLECTIVES, collective()),
    **table("stablehlo", "recv send", communication()),
}
