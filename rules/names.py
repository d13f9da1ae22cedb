"""The name of an operation, registered or not, by which rules and passes identify it."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import Operation


def name_of(op: Operation) -> str:
    # Not by `isinstance`, which is several times slower for an abstract class; this is called for every operation.
    return cast(UnregisteredOp, op).op_name.data if op.name == UnregisteredOp.name else op.name
