"""Facts about CHLO. JAX emits operations of CHLO together with StableHLO."""

from __future__ import annotations

from .body_runs import scan_iterations
from .expansions import OF_CHLO, expansions_of
from .facts import (
    Facts,
    FusionRole,
    constant,
    fused,
    in_kernel_library,
    no_work,
    product,
    pure,
    pure_if_body_is,
    pure_movement,
    table,
)
from .flop_counts import per_element, ragged_dot, sort_comparisons


def _with_broadcast(names: str) -> str:
    return " ".join(f"broadcast_{name}" for name in names.split())


_ARITHMETIC = """
add and compare complex maximum minimum multiply or select shift_left shift_right_arithmetic shift_right_logical
subtract xor
"""
_COSTLY_ARITHMETIC = "divide remainder"
_EXPANDED = ("next_after", "polygamma", "zeta")

_FACTS: dict[str, Facts] = {
    **expansions_of("chlo", OF_CHLO),
    **table("chlo", _with_broadcast(_ARITHMETIC), fused(pure())),
    **table("chlo", _with_broadcast(_COSTLY_ARITHMETIC), fused(pure(), FusionRole.EXPENSIVE)),
    **table("chlo", "broadcast_atan2 broadcast_power", fused(pure(no_work, per_element(1)), FusionRole.EXPENSIVE)),
    **expansions_of("chlo", {f"broadcast_{word}": OF_CHLO[word] for word in _EXPANDED}),
    "chlo.constant": constant(),
    "chlo.constant_like": fused(pure_movement()),
    "chlo.ragged_dot": product(pure(ragged_dot)),
    "chlo.scan": pure_if_body_is(no_work, scan_iterations),
    "chlo.top_k": pure(sort_comparisons),
}
OPERATIONS: dict[str, Facts] = {
    **_FACTS,
    **{name: in_kernel_library(_FACTS[name]) for name in ("chlo.erf", "chlo.square")},
}
