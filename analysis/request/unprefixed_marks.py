"""Find attributes that look like marks without the prefix `recompute.`, such as `{recompute = true}`.

An attribute without the prefix belongs to another tool. It is therefore not an error, but it has no effect here.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation

from ...dialects.discardable import KNOWN
from ...dialects.names import Names
from ...support.counted import counted
from ...support.operations import every_operation
from ...support.remarks import Remark, Topic

AMBIGUOUS = frozenset(
    {
        Names.CHECKPOINT,
        Names.CHECKPOINTS,
        Names.COPY,
        Names.ID,
        Names.NAME,
        Names.OFFLOAD,
        Names.REPEATABLE,
        Names.SEGMENT,
        Names.WHOLE,
    }
)
"""Marks whose names without the prefix are common attributes of other dialects."""
_MARKS = {name.removeprefix(Names.PREFIX): name for name in KNOWN if name not in AMBIGUOUS}


def unprefixed_marks(module: ModuleOp) -> list[Remark]:
    """Return a remark for each attribute name that looks like a mark without its prefix, located at the first operation
    that has it."""
    operations_with = dict[str, list[Operation]]()
    for op in every_operation(module):
        for name, value in op.attributes.items():
            if name in _MARKS and _is_plausible(_MARKS[name], value):
                operations_with.setdefault(name, []).append(op)
    return [
        Remark(operations[0], _reason(name, len(operations)), topic=Topic.NO_EFFECT)
        for name, operations in operations_with.items()
    ]


def _is_plausible(mark: str, value: Attribute) -> bool:
    """Return whether the value may be meant for the mark. `phase` is a common name, so its value must be a phase."""
    return mark != Names.PHASE or (isinstance(value, StringAttr) and KNOWN[mark].is_valid(value))


def _reason(name: str, count: int) -> str:
    return f"the attribute '{name}' of {counted(count, 'operation')} has no effect; did you mean '{_MARKS[name]}'?"
