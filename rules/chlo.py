"""Facts about CHLO. JAX emits operations of CHLO together with StableHLO."""

from __future__ import annotations

from .body_runs import scan_iterations
from .expansions import OF_CHLO, expansions_of
from .facts import Facts, constant, no_work, product, pure, pure_if_body_is, pure_movement, table
from .flop_counts import per_element, ragged_dot, sort_comparisons

_ARITHMETIC = """
add and compare complex divide maximum minimum multiply or remainder select shift_left shift_right_arithmetic
shift_right_logical subtract xor
"""
_EXPANDED = ("next_after", "polygamma", "zeta")

OPERATIONS: dict[str, Facts] = {
    **expansions_of("chlo", OF_CHLO),
    **table("chlo", " ".join(f"broadcast_{word}" for word in _ARITHMETIC.split()), pure()),
    **table("chlo", "broadcast_atan2 broadcast_power", pure(no_work, per_element(1))),
    **expansions_of("chlo", {f"broadcast_{word}": OF_CHLO[word] for word in _EXPANDED}),
    "chlo.constant": constant(),
    "chlo.constant_like": pure_movement(),
    "chlo.ragged_dot": product(pure(ragged_dot)),
    "chlo.scan": pure_if_body_is(no_work, scan_iterations),
    "chlo.top_k": pure(sort_comparisons),
}
