"""The name of an operation, whether its dialect is registered or not: rules and passes go by name."""

from __future__ import annotations

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import Operation


def name_of(op: Operation) -> str:
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name
