"""Facts about StableHLO: https://openxla.org/stablehlo/spec."""

from __future__ import annotations

from dataclasses import replace

from ..dialects.placements import is_offload, is_to_host
from ..dialects.stablehlo.custom_call import CustomCallOp
from . import counts
from .expansions import OF_STABLEHLO, expanded
from .facts import (
    Carry,
    Facts,
    RegionStorage,
    View,
    branches,
    cast,
    collective,
    communication,
    constant,
    forwards,
    idle,
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
abs add and bitcast_convert ceil clamp compare complex count_leading_zeros divide floor imag is_finite maximum minimum
multiply negate not or popcnt real reduce_precision remainder round_nearest_afz round_nearest_even select shift_left
shift_right_arithmetic shift_right_logical sign subtract xor
"""
_TRANSCENDENTAL = "atan2 cbrt cosine exponential_minus_one logistic power rsqrt sine tan tanh"
_MOVES = """
concatenate dynamic_gather dynamic_iota dynamic_pad dynamic_slice dynamic_update_slice gather get_dimension_size iota
pad real_dynamic_slice reverse set_dimension_size slice torch_index_select tuple
"""
_COLLECTIVES = "all_gather all_to_all collective_broadcast collective_permute reduce_scatter"
_DEVICE = "partition_id replica_id"
_DRAWS = (
    "it draws from a hidden random state: a copy would draw different numbers; "
    "draw with stablehlo.rng_bit_generator, whose state is an operand"
)

_TO_HOST = "it moves its operand to the host, where it stays"
_PLACED = "it moves its operand to another memory"

OPERATIONS: dict[str, Facts] = {
    **table("stablehlo", _ARITHMETIC, pure()),
    **table("stablehlo", _MOVES, moves()),
    **table("stablehlo", _TRANSCENDENTAL, pure(nothing, counts.per_element(1))),
    **expanded("stablehlo", OF_STABLEHLO),
    "stablehlo.cholesky": pure(counts.factorization),
    "stablehlo.fft": pure(counts.transform),
    **table("stablehlo", _DEVICE, moves()),
    "stablehlo.convert": cast(),
    "stablehlo.constant": constant(),
    "stablehlo.transpose": view(),
    **table("stablehlo", "broadcast broadcast_in_dim dynamic_broadcast_in_dim get_tuple_element", view()),
    **table("stablehlo", "reshape dynamic_reshape", view(layout=View.DENSE)),
    "stablehlo.optimization_barrier": forwards(),
    "stablehlo.rng_bit_generator": random(0, nothing, counts.per_element(1)),
    "stablehlo.dot_general": product(pure(counts.dot)),
    "stablehlo.dot": product(pure(counts.legacy_dot)),
    **table("stablehlo", "einsum unary_einsum", product(pure(counts.einsum))),
    "stablehlo.triangular_solve": pure(counts.substitution),
    # Operations on each element, as in the formulas of the specification; XLA does not count them.
    "stablehlo.batch_norm_training": pure(counts.per_operand_element(8)),
    "stablehlo.batch_norm_inference": pure(counts.per_operand_element(4)),
    "stablehlo.batch_norm_grad": pure(counts.per_operand_element(12)),
    **table("stablehlo", "uniform_dequantize uniform_quantize", pure()),
    "stablehlo.convolution": product(pure(counts.convolution)),
    "stablehlo.dynamic_conv": product(pure(counts.convolution)),
    "stablehlo.reduce": pure_if_body_is(nothing, counts.reductions),
    "stablehlo.reduce_window": pure_if_body_is(nothing, counts.combined),
    "stablehlo.scatter": pure_if_body_is(nothing, counts.scattered),
    "stablehlo.select_and_scatter": pure_if_body_is(nothing, (counts.selected, counts.added)),
    "stablehlo.map": pure_if_body_is(nothing, counts.per_element(1)),
    "stablehlo.sort": pure_if_body_is(counts.comparisons),
    "stablehlo.while": pure_if_body_is(nothing, once, (_CONDITION, _BODY)),
    **table("stablehlo", "case if", branches(_BRANCH)),
    "stablehlo.return": terminator(),
    "stablehlo.rng": replace(idle(impure(_DRAWS)), transcendentals=counts.per_element(1)),
    "stablehlo.custom_call": impure("the effects of a custom call are unknown"),
    "stablehlo.infeed": idle(impure("it receives data from outside the program")),
    "stablehlo.outfeed": idle(impure("it sends data out of the program")),
    **table("stablehlo", _COLLECTIVES, idle(collective())),
    **table("stablehlo", "all_reduce collective_reduce", collective()),
    **table("stablehlo", "after_all create_token", idle(impure("it orders effects"))),
    **table("stablehlo", "async_done async_start", idle(impure("it runs asynchronously"))),
    "stablehlo.composite": impure("composites are recomputed once inlined: run recompute-inline-composites"),
    **table("stablehlo", "recv send", idle(communication())),
}


TO_HOST = idle(replace(impure(_TO_HOST), on_host=True))
FROM_HOST = idle(pure())
PLACED = idle(impure(_PLACED))


def placement_facts(op: CustomCallOp) -> Facts:
    """Return the facts about a custom call that moves a value between memories (`dialects/placements.py`).

    A fetch from the host may be repeated only if it belongs to an offload that this compiler has inserted.
    """
    if is_to_host(op):
        return TO_HOST
    return FROM_HOST if is_offload(op) else PLACED
