"""What the equivalence check takes for pure: a deterministic function of operands, attributes and regions, no effect.

The checker's own list, shared with no pass and no rule table, so that a wrong entry there is not repeated here.
Whatever is not on it is an ordered effect. Left out on purpose, though StableHLO has them:
`custom_call` (unknown code), `rng` (hidden state), `infeed`, `outfeed`, `send`, `recv`, `after_all`, `create_token`
(order), `async_start`, `async_done`, `composite` (names a function) and every collective (all devices must take part).
`partition_id` and `replica_id` are constants of the device; `rng_bit_generator` takes its state as an operand.
Source: the StableHLO specification, https://openxla.org/stablehlo/spec, and ChloOps.td.
"""

from __future__ import annotations

_STABLEHLO = """
    abs add and atan2 batch_norm_grad batch_norm_inference batch_norm_training bitcast_convert broadcast
    broadcast_in_dim case cbrt ceil cholesky clamp compare complex concatenate constant convert convolution cosine
    count_leading_zeros divide dot dot_general dynamic_broadcast_in_dim dynamic_conv dynamic_gather dynamic_iota
    dynamic_pad dynamic_reshape dynamic_slice dynamic_update_slice einsum exponential exponential_minus_one fft floor
    gather get_dimension_size get_tuple_element if imag iota is_finite log log_plus_one logistic map maximum minimum
    multiply negate not or pad partition_id popcnt power real real_dynamic_slice reduce reduce_precision reduce_window
    remainder replica_id reshape reverse rng_bit_generator round_nearest_afz round_nearest_even rsqrt scatter select
    select_and_scatter set_dimension_size shift_left shift_right_arithmetic shift_right_logical sign sine slice sort
    sqrt subtract tan tanh torch_index_select transpose triangular_solve tuple unary_einsum uniform_dequantize
    uniform_quantize while xor
"""

_CHLO = """
    acos acosh asin asinh atan atanh bessel_i1e conj constant constant_like cosh digamma erf erf_inv erfc is_inf
    is_neg_inf is_pos_inf lgamma next_after polygamma ragged_dot sinh square tan top_k zeta
"""

PURE_OPERATIONS = frozenset(
    [f"stablehlo.{name}" for name in _STABLEHLO.split()]
    + [f"chlo.{name}" for name in _CHLO.split()]
    + ["recompute.token"]
)
