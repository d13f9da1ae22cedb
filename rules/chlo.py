"""CHLO, which JAX and others emit beside StableHLO: its operations are elementwise, or small."""

from __future__ import annotations

from .counts import comparisons
from .expansions import OF_CHLO, expanded
from .facts import Facts, constant, moves, pure

OPERATIONS: dict[str, Facts] = {
    **expanded("chlo", OF_CHLO),
    "chlo.constant": constant(),
    "chlo.constant_like": moves(),
    "chlo.top_k": pure(comparisons),
}
