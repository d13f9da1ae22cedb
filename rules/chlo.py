"""Facts about CHLO, which JAX emits along with StableHLO."""

from __future__ import annotations

from .counts import comparisons, per_element, ragged_dot, slices
from .expansions import OF_CHLO, expanded
from .facts import Facts, constant, moves, nothing, product, pure, pure_if_body_is, table

_ARITHMETIC = """
add and compare complex divide maximum minimum multiply or remainder select shift_left shift_right_arithmetic
shift_right_logical subtract xor
"""
_EXPANDED = ("next_after", "polygamma", "zeta")

OPERATIONS: dict[str, Facts] = {
    **expanded("chlo", OF_CHLO),
    **table("chlo", " ".join(f"broadcast_{word}" for word in _ARITHMETIC.split()), pure()),
    **table("chlo", "broadcast_atan2 broadcast_power", pure(nothing, per_element(1))),
    **expanded("chlo", {f"broadcast_{word}": OF_CHLO[word] for word in _EXPANDED}),
    "chlo.constant": constant(),
    "chlo.constant_like": moves(),
    "chlo.ragged_dot": product(pure(ragged_dot)),
    "chlo.scan": pure_if_body_is(nothing, slices),
    "chlo.top_k": pure(comparisons),
}
