"""Describe the position of an operation, for messages about failed proofs.

    model.py:55:13 (%2038 at less.mlir:2040, "jit(loss)/jvp(block2)/tanh")

Unrolled blocks share the lines of the model, so the position in the model alone does not identify an operation.
"""

from __future__ import annotations

from xdsl.ir import Operation

from ...support.diagnostics import UNKNOWN, position_of
from ...support.locations import name_without_position, scope_of, text_line_of


def describe_position(op: Operation) -> str:
    """Return the source position of an operation, followed by its line and name in the text and by its scope; "" if the
    position is unknown.

    If the source position is in the text itself, only a location that is a name is added.
    """
    position = position_of(op)
    if position == UNKNOWN:
        return ""
    line = text_line_of(op)
    if line is None or position.startswith(f"{line.file}:{line.line}:"):
        name = name_without_position(op)
        return f'{position} ("{name}")' if name else position
    in_text = f"{line.results} at {line.file}:{line.line}".removeprefix(" at ")
    scope = scope_of(op)
    return f'{position} ({in_text}, "{scope}")' if scope else f"{position} ({in_text})"


def with_position(op: Operation, name: str) -> str:
    """Return the name of an operation with its position, if that is known."""
    position = describe_position(op)
    return f"{name} at {position}" if position else name
