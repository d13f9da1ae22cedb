"""Find `recompute.` attributes on operations, functions or arguments where no pass reads them.

These attributes are no errors, because another tool may read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.utils.hints import isa

from ...dialects.names import Names
from ...dialects.stablehlo.custom_call import CustomCallOp
from ...dialects.structured import SegmentOp
from ...rules.custom_calls import has_side_effect
from ...rules.effects import HIDDEN_STATE, is_collective
from ...support.counted import counted
from ...support.operations import every_operation, name_of
from ...support.remarks import Remark, Topic


@dataclass(frozen=True)
class Misplacement:
    """A kind of operation on which an attribute has no effect.

    Attributes:
        name: The name of the attribute.
        noun: The noun for the operations, in the singular.
        is_unread: Whether no pass reads the attribute of an operation.
        remedy: The clause of the remark after "has no effect".
    """

    name: str
    noun: str
    is_unread: Callable[[Operation], bool]
    remedy: str


def _is_function(op: Operation) -> bool:
    return isinstance(op, FuncOp)


def _is_module(op: Operation) -> bool:
    return isinstance(op, ModuleOp)


def _is_no_copy(op: Operation) -> bool:
    return Names.COPY not in op.attributes


def _is_no_segment(op: Operation) -> bool:
    return not isinstance(op, SegmentOp)


def _is_unaffected_by_repeatable(op: Operation) -> bool:
    """Return whether `recompute.repeatable` has no influence on whether the operation may run twice."""
    if isinstance(op, CustomCallOp):
        return has_side_effect(op)
    return not is_collective(op) and name_of(op) not in HIDDEN_STATE


_OF_SEGMENTS = (
    f"only recompute.segment reads it; to let a single operation run twice, use {Names.REPEATABLE}, and to save its "
    f"results, {Names.RECOMPUTE} = false"
)
_OF_OPERATIONS = {
    Names.RECOMPUTE: "mark the operations to recompute",
    Names.SEGMENT: "give it to the operations of the segment",
    Names.PHASE: "give it to the operations of the phase",
    Names.NAME: "give it to the operations whose results it names",
}
"""The attributes that belong to single operations, with the remedy for one on a function or a module."""
_OF_COPIES = (
    f"the passes write it on the copies that they make; to recompute an operation, use {Names.RECOMPUTE} = true"
)
MISPLACEMENTS = (
    *(
        Misplacement(name, noun, is_container, remedy)
        for name, remedy in _OF_OPERATIONS.items()
        for noun, is_container in (("function", _is_function), ("module", _is_module))
    ),
    *(Misplacement(name, "operation", _is_no_copy, _OF_COPIES) for name in (Names.DUPLICATED, Names.NEED_CSE)),
    *(
        Misplacement(name, "operation", _is_no_segment, _OF_SEGMENTS)
        for name in (
            Names.MP_COMM_RECOMPUTE,
            Names.PARALLEL_OPTIMIZER_COMM_RECOMPUTE,
            Names.PRESERVE_RNG_STATE,
        )
    ),
    Misplacement(
        Names.REPEATABLE,
        "operation",
        _is_unaffected_by_repeatable,
        "it applies only to collectives, to custom calls without side effects, and to operations that draw from a "
        "hidden random state",
    ),
)
_NAMES = frozenset(misplacement.name for misplacement in MISPLACEMENTS)


def misplaced_marks(module: ModuleOp) -> list[Remark]:
    """Return a remark for each kind of attribute that has no effect in its place. The remark is located at the first
    operation with the attribute, or at the function if the attribute is on an argument or a result."""
    misplaced = dict[Misplacement, list[Operation]]()
    on_values = dict[tuple[str, str], list[Operation]]()
    for op in every_operation(module):
        if not _NAMES.isdisjoint(op.attributes):
            for misplacement in MISPLACEMENTS:
                if misplacement.name in op.attributes and misplacement.is_unread(op):
                    misplaced.setdefault(misplacement, []).append(op)
        if isinstance(op, FuncOp):
            for key in _marks_on_values(op):
                on_values.setdefault(key, []).append(op)
    return [
        *(
            _remark(misplacement.name, operations, misplacement.noun, misplacement.remedy)
            for misplacement, operations in misplaced.items()
        ),
        *(_remark(name, functions, noun, ON_VALUE) for (noun, name), functions in on_values.items()),
    ]


ON_VALUE = "only attributes of operations are read"


def _marks_on_values(function: FuncOp) -> Iterator[tuple[str, str]]:
    """Yield "argument" or "result" and the name of the attribute, for each `recompute.` attribute of an argument or
    result."""
    for noun, entries in (("argument", function.arg_attrs), ("result", function.res_attrs)):
        if isa(entries, ArrayAttr[DictionaryAttr]):
            yield from ((noun, name) for entry in entries for name in entry.data if name.startswith(Names.PREFIX))


def _remark(name: str, operations: Sequence[Operation], noun: str, remedy: str) -> Remark:
    reason = f"the attribute '{name}' of {counted(len(operations), noun)} has no effect: {remedy}"
    return Remark(operations[0], reason, topic=Topic.NO_EFFECT)
