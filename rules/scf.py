"""scf: https://mlir.llvm.org/docs/Dialects/SCFDialect/. Loops and branches are what their bodies are."""

from __future__ import annotations

from .counts import trip_count
from .facts import Carry, Facts, RegionStorage, branches, impure, nothing, once, pure_if_body_is, table, terminator

_BRANCH = RegionStorage(Carry.NOTHING)
_BODY = RegionStorage(Carry.RESULTS)
# The first region of `scf.while` sees the operands, and hands on what becomes the results after its flag.
_BEFORE = RegionStorage(Carry.OPERANDS, hands_on=1)
_PARALLEL = "the order in which its iterations are combined is left open"

OPERATIONS: dict[str, Facts] = {
    **table("scf", "execute_region if index_switch", branches(_BRANCH)),
    "scf.for": pure_if_body_is(nothing, trip_count, (_BODY,)),
    "scf.while": pure_if_body_is(nothing, once, (_BEFORE, _BODY)),
    **table("scf", "condition reduce.return yield", terminator()),
    **table("scf", "forall parallel reduce", impure(_PARALLEL)),
}
