"""Makes xDSL's operations without the checks that hold already: whole blocks, of what nobody else has.

xDSL asks each operation that joins a block whether it stands elsewhere, or around the block, and each kind of operation
which properties have a default. Here an operation is new, in a block that is new, and was complete in MLIR. Where the
fields of xDSL's objects are not those that are known, xDSL makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from xdsl.dialects.builtin import LocationAttr, NameLoc, NoneAttr, StringAttr, UnregisteredOp
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue, SSAValues, Use
from xdsl.irdl import IRDLOperation, OptionalDef

from ....dialects.stablehlo.creation import DenseConstantOp

FIELDS = {
    Operation: "_operands _operand_uses results _successors _successor_uses properties attributes location regions "
    "parent _next_op _prev_op",
    Use: "_operation _index _prev_use _next_use",
    NameLoc: "desc location",
    StringAttr: "data",
}
"""What is set here, and all there is to set."""


def is_as_known() -> bool:
    return all(" ".join(field.name for field in fields(kind)) == names for kind, names in FIELDS.items())


KNOWN = is_as_known()


def can_be_made(kind: type[Operation]) -> bool:
    """Whether `make` may make it: nothing happens in its constructor."""
    if not KNOWN or not issubclass(kind, IRDLOperation) or issubclass(kind, UnregisteredOp):
        return False
    defined = kind.get_irdl_definition()
    named = (*defined.properties.values(), *defined.attributes.values())
    has_default = any(not isinstance(one, OptionalDef) and one.default_value is not None for one in named)
    # A constant asks for the small form of its value, which it is given here.
    own = kind.create.__func__ not in (Operation.create.__func__, DenseConstantOp.create.__func__)  # type: ignore
    return not (has_default or own or kind.__post_init__ is not IRDLOperation.__post_init__)


def make(
    kind: type[Operation],
    operands: Sequence[SSAValue],
    result_types: Sequence[Attribute],
    properties: dict[str, Attribute],
    attributes: dict[str, Attribute],
    location: LocationAttr,
    regions: Sequence[Region],
) -> Operation:
    """As `kind.create`, of what nobody else has; the dictionaries become those of the operation."""
    op: Any = object.__new__(kind)
    uses: list[Any] = []
    for index, value in enumerate(operands):
        use: Any = Use(op, index)
        before: Any = value.first_use
        if before is not None:
            use._next_use = before
            before._prev_use = use
        value.first_use = use
        uses.append(use)
    op._operands = SSAValues(operands)
    op._operand_uses = tuple(uses)
    op.results = SSAValues([OpResult(type, op, index) for index, type in enumerate(result_types)])
    op.properties = properties
    op.attributes = attributes
    op.location = location
    op.regions = tuple(regions)
    for region in regions:
        region.parent = op
    return op


def fill(block: Block, ops: Sequence[Operation]) -> None:
    """Put operations that stand nowhere into a block that is empty."""
    if not KNOWN:
        return block.add_ops(ops)
    before: Any = None
    inside: Any
    for inside in ops:
        inside.parent = block
        inside._prev_op = before
        if before is not None:
            before._next_op = inside
        before = inside
    if ops:
        filled: Any = block
        filled._first_op, filled._last_op = ops[0], ops[-1]


def _named(text: str, child: LocationAttr | NoneAttr) -> NameLoc:
    name: Any = object.__new__(StringAttr)
    object.__setattr__(name, "data", text)
    made: Any = object.__new__(NameLoc)
    object.__setattr__(made, "desc", name)
    object.__setattr__(made, "location", child)
    return made


def checked_name(text: str, child: LocationAttr | NoneAttr) -> NameLoc:
    return NameLoc(StringAttr(text), child)


name_location: Callable[[str, LocationAttr | NoneAttr], NameLoc] = _named if KNOWN else checked_name
"""`loc("text"(child))`; nearly every location is one, and no two are alike."""
