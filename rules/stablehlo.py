"""Facts about StableHLO: https://openxla.org/stablehlo/spec."""

from __future__ import annotations

from dataclasses import replace

from ..dialects.placements import is_offload, is_to_host
from ..dialects.stablehlo.custom_call import CustomCallOp
from . import body_runs, flop_counts
from .expansions import OF_STABLEHLO, expansions_of
from .facts import (
    Carry,
    Facts,
    FusionRole,
    RegionStorage,
    View,
    branches,
    cast,
    collective,
    communication,
    constant,
    forwards,
    fused,
    impure,
    in_kernel_library,
    no_work,
    once,
    overwrites_operand,
    product,
    pure,
    pure_if_body_is,
    pure_movement,
    random,
    table,
    terminator,
    view,
    without_arithmetic,
)

_CONDITION = RegionStorage(Carry.RESULTS, hands_on=None)
_BODY = RegionStorage(Carry.RESULTS)
_BRANCH = RegionStorage(Carry.NOTHING)

# Elementwise operations. XLA:CPU fuses all of them. It treats arithmetic as cheap and transcendental functions as
# expensive, with a few exceptions.
_ARITHMETIC = """
abs add and bitcast_convert ceil clamp compare complex count_leading_zeros floor imag is_finite maximum minimum multiply
negate not or popcnt real reduce_precision round_nearest_afz round_nearest_even select shift_left shift_right_arithmetic
shift_right_logical sign subtract xor
"""
_COSTLY_ARITHMETIC = "divide remainder"
_TRANSCENDENTAL = "atan2 cbrt exponential_minus_one logistic power rsqrt tan tanh"
_CHEAP_TRANSCENDENTAL = "cosine sine"
_FUSED_MOVES = "concatenate dynamic_slice gather iota reverse slice"
_MOVES = """
dynamic_gather dynamic_iota dynamic_pad get_dimension_size real_dynamic_slice set_dimension_size torch_index_select
tuple
"""
# Operations that XLA:CPU's kernel library fuses with a sum or a maximum (`xla/backends/cpu/ynn_support.cc`).
_LIBRARY = """
abs add ceil convert divide exponential exponential_minus_one floor log log_plus_one logistic maximum minimum multiply
negate power round_nearest_even rsqrt sign sqrt subtract tanh
"""
_COLLECTIVES = "all_gather all_to_all collective_broadcast collective_permute reduce_scatter"
_DEVICE = "partition_id replica_id"
_DRAWS = (
    "it draws from a hidden random state: a copy would draw different numbers; "
    "draw with stablehlo.rng_bit_generator, whose state is an operand"
)

_TO_HOST = "it moves its operand to the host"
_PLACED = "it moves its operand to another memory"

_FUNCTION = pure(no_work, flop_counts.per_element(1))

_FACTS: dict[str, Facts] = {
    **table("stablehlo", _ARITHMETIC, fused(pure())),
    **table("stablehlo", _COSTLY_ARITHMETIC, fused(pure(), FusionRole.EXPENSIVE)),
    **table("stablehlo", _FUSED_MOVES, fused(pure_movement())),
    **table("stablehlo", _MOVES, pure_movement()),
    "stablehlo.pad": fused(pure_movement(), FusionRole.EXPENSIVE),
    "stablehlo.dynamic_update_slice": overwrites_operand(pure_movement()),
    **table("stablehlo", _TRANSCENDENTAL, fused(_FUNCTION, FusionRole.EXPENSIVE)),
    **table("stablehlo", _CHEAP_TRANSCENDENTAL, fused(_FUNCTION)),
    **expansions_of("stablehlo", OF_STABLEHLO),
    "stablehlo.cholesky": pure(flop_counts.cholesky),
    "stablehlo.fft": pure(flop_counts.fft),
    **table("stablehlo", _DEVICE, pure_movement()),
    "stablehlo.convert": fused(cast()),
    "stablehlo.constant": constant(),
    **table("stablehlo", "broadcast_in_dim transpose", fused(view())),
    **table("stablehlo", "broadcast dynamic_broadcast_in_dim get_tuple_element", view()),
    **table("stablehlo", "reshape dynamic_reshape", view(layout=View.DENSE)),
    "stablehlo.optimization_barrier": forwards(),
    "stablehlo.rng_bit_generator": random(0, no_work, flop_counts.per_element(1)),
    "stablehlo.dot_general": product(pure(flop_counts.dot)),
    "stablehlo.dot": product(pure(flop_counts.legacy_dot)),
    **table("stablehlo", "einsum unary_einsum", product(pure(flop_counts.einsum))),
    "stablehlo.triangular_solve": pure(flop_counts.triangular_solve),
    # XLA does not count these; the counts follow the formulas of the specification.
    "stablehlo.batch_norm_training": pure(flop_counts.per_operand_element(8)),
    "stablehlo.batch_norm_inference": pure(flop_counts.per_operand_element(4)),
    "stablehlo.batch_norm_grad": pure(flop_counts.per_operand_element(12)),
    **table("stablehlo", "uniform_dequantize uniform_quantize", pure()),
    "stablehlo.convolution": product(pure(flop_counts.convolution)),
    "stablehlo.dynamic_conv": product(pure(flop_counts.convolution)),
    "stablehlo.reduce": fused(pure_if_body_is(no_work, body_runs.reduce_combinations), FusionRole.REDUCTION),
    "stablehlo.reduce_window": pure_if_body_is(no_work, body_runs.reduce_window_combinations),
    "stablehlo.scatter": overwrites_operand(pure_if_body_is(no_work, body_runs.scatter_combinations)),
    "stablehlo.select_and_scatter": pure_if_body_is(
        no_work, (body_runs.select_comparisons, body_runs.scatter_additions)
    ),
    "stablehlo.map": pure_if_body_is(no_work, flop_counts.per_element(1)),
    "stablehlo.sort": pure_if_body_is(flop_counts.sort_comparisons),
    "stablehlo.while": overwrites_operand(pure_if_body_is(no_work, once, (_CONDITION, _BODY))),
    **table("stablehlo", "case if", branches(_BRANCH)),
    "stablehlo.return": terminator(),
    "stablehlo.rng": replace(without_arithmetic(impure(_DRAWS)), transcendentals=flop_counts.per_element(1)),
    "stablehlo.custom_call": impure("the effects of a custom call are unknown"),
    "stablehlo.infeed": without_arithmetic(impure("it receives data from outside the program")),
    "stablehlo.outfeed": without_arithmetic(impure("it sends data out of the program")),
    **table("stablehlo", _COLLECTIVES, without_arithmetic(collective())),
    **table("stablehlo", "all_reduce collective_reduce", collective()),
    **table("stablehlo", "after_all create_token", without_arithmetic(impure("it orders effects"))),
    **table("stablehlo", "async_done async_start", without_arithmetic(impure("it runs asynchronously"))),
    "stablehlo.composite": impure("a composite can be recomputed only after inlining: run recompute-inline-composites"),
    **table("stablehlo", "recv send", without_arithmetic(communication())),
}
_IN_LIBRARY = frozenset(f"stablehlo.{name}" for name in _LIBRARY.split())
OPERATIONS: dict[str, Facts] = {
    name: in_kernel_library(facts) if name in _IN_LIBRARY else facts for name, facts in _FACTS.items()
}


TO_HOST = without_arithmetic(replace(impure(_TO_HOST), on_host=True))
FROM_HOST = without_arithmetic(pure())
PLACED = without_arithmetic(impure(_PLACED))


def placement_facts(op: CustomCallOp) -> Facts:
    """Return the facts about a custom call that moves a value between memories (`dialects/placements.py`).

    A fetch from the host is pure only if it belongs to an offload that this compiler inserted.
    """
    if is_to_host(op):
        return TO_HOST
    return FROM_HOST if is_offload(op) else PLACED
