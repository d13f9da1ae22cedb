"""Facts about the operations of the func dialect and of the recompute dialect."""

from __future__ import annotations

from .facts import (
    Carry,
    Facts,
    OpClass,
    RegionStorage,
    forwards,
    impure,
    no_work,
    once,
    pure_if_body_is,
    pure_movement,
    table,
    terminator,
)

OPERATIONS: dict[str, Facts] = {
    "func.call": impure(
        "a call can be recomputed only after inlining: run recompute-inline (it reports why a call is not inlined)"
    ),
    "func.call_indirect": impure("its callee is unknown"),
    "func.constant": pure_movement(),
    "recompute.token": pure_movement(OpClass.ORDERING),
    "recompute.depend": forwards(OpClass.ORDERING),
    **table("recompute", "segment gradient", pure_if_body_is(no_work, once, (RegionStorage(Carry.RESULTS),))),
    **table("func", "return", terminator()),
    **table("recompute", "yield", terminator()),
}
