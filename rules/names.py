"""The name of an operation, whether its dialect is registered or not: rules and passes go by name."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import Operation


def name_of(op: Operation) -> str:
    # Not by class: to ask an abstract class costs several times as much, and this is asked of everything.
    return cast(UnregisteredOp, op).op_name.data if op.name == UnregisteredOp.name else op.name
