"""Facts about the scf dialect: https://mlir.llvm.org/docs/Dialects/SCFDialect/.

Loops and branches are pure if all operations in their regions are pure.
"""

from __future__ import annotations

from .body_runs import trip_count
from .facts import Carry, Facts, RegionStorage, branches, impure, no_work, once, pure_if_body_is, table, terminator

_BRANCH = RegionStorage(Carry.NOTHING)
_BODY = RegionStorage(Carry.RESULTS)
# In the first region of `scf.while`, the first operand of the terminator is the condition; the others become results.
_BEFORE = RegionStorage(Carry.OPERANDS, hands_on=1)
_PARALLEL = "its iterations are combined in an unspecified order"

OPERATIONS: dict[str, Facts] = {
    "scf.execute_region": pure_if_body_is(no_work, once, (_BRANCH,)),
    **table("scf", "if index_switch", branches(_BRANCH)),
    "scf.for": pure_if_body_is(no_work, trip_count, (_BODY,)),
    "scf.while": pure_if_body_is(no_work, once, (_BEFORE, _BODY)),
    **table("scf", "condition reduce.return yield", terminator()),
    **table("scf", "forall parallel reduce", impure(_PARALLEL)),
}
