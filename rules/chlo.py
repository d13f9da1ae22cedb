"""CHLO, what JAX and others write beside StableHLO: all of it is elementwise, or small."""

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
