"""Facts about the func dialect and the recompute dialect."""

from __future__ import annotations

from .facts import (
    Carry,
    Facts,
    OpClass,
    RegionStorage,
    forwards,
    impure,
    moves,
    nothing,
    once,
    pure_if_body_is,
    table,
    terminator,
)

OPERATIONS: dict[str, Facts] = {
    "func.call": impure("calls are recomputed once inlined: run recompute-inline, which reports why a call is kept"),
    "func.call_indirect": impure("its callee is unknown"),
    "func.constant": moves(),
    "recompute.token": moves(OpClass.ORDERING),
    "recompute.depend": forwards(OpClass.ORDERING),
    **table("recompute", "segment gradient", pure_if_body_is(nothing, once, (RegionStorage(Carry.RESULTS),))),
    **table("func", "return", terminator()),
    **table("recompute", "yield", terminator()),
}
