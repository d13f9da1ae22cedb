"""Contradicting attributes of an operation, reported at the operation before any pass runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from xdsl.dialects.builtin import BoolAttr, StringAttr
from xdsl.ir import Operation

from ..support.diagnostics import Refusal
from .names import Names
from .structured import SegmentOp

_MARKED = (BoolAttr.from_bool(True), StringAttr("must_recompute"))
_KEPT = (BoolAttr.from_bool(False), StringAttr("must_save"))
_BACKWARD = (StringAttr("gradient"), StringAttr("update"))


def _is_marked(op: Operation) -> bool:
    return op.attributes.get(Names.RECOMPUTE) in _MARKED


def _is_kept(op: Operation) -> bool:
    return op.attributes.get(Names.RECOMPUTE) in _KEPT


def _is_backward(op: Operation) -> bool:
    return op.attributes.get(Names.PHASE) in _BACKWARD


@dataclass(frozen=True)
class Contradiction:
    """`holds`: whether the operation contradicts itself this way. `words`: the message, with a remedy."""

    holds: Callable[[Operation], bool]
    words: str


CONTRADICTIONS = (
    Contradiction(
        lambda op: _is_marked(op) and Names.CHECKPOINT in op.attributes,
        f"it is to be recomputed ({Names.RECOMPUTE} = true) and to be kept ({Names.CHECKPOINT}): remove one of them",
    ),
    Contradiction(
        lambda op: _is_marked(op) and _is_backward(op),
        f"only forward operations are recomputed: remove {Names.RECOMPUTE}, or correct {Names.PHASE}",
    ),
    Contradiction(
        lambda op: Names.RECOMPUTE in op.attributes and Names.COPY in op.attributes,
        f"it is a copy ({Names.COPY}), and copies are not recomputed again: remove {Names.RECOMPUTE}",
    ),
    Contradiction(
        lambda op: Names.OUTPUT_RECOMPUTE in op.attributes and not isinstance(op, SegmentOp),
        f"{Names.OUTPUT_RECOMPUTE} belongs to recompute.segment: mark the outputs themselves, {Names.RECOMPUTE} = true",
    ),
    Contradiction(
        lambda op: Names.OUTPUT_RECOMPUTE in op.attributes and _is_kept(op),
        f"it is to be kept ({Names.RECOMPUTE} = false) and its outputs to be recomputed: remove one of them",
    ),
)

# Every contradiction involves one of these.
_INVOLVED = frozenset({Names.RECOMPUTE, Names.OUTPUT_RECOMPUTE})


def verify_marks(operations: Iterable[Operation]) -> None:
    """Raises `Refusal` at the first operation with contradicting attributes."""
    for op in operations:
        if _INVOLVED.isdisjoint(op.attributes):
            continue
        for contradiction in CONTRADICTIONS:
            if contradiction.holds(op):
                raise Refusal(op, contradiction.words)
