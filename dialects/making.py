"""Create xDSL operations and fill blocks without xDSL's checks, whose conditions are met here by construction.

When xDSL inserts an operation into a block, it checks that the operation has no parent and does not contain the block,
and it fills in default properties. Here, blocks and operations are new, and each operation is a clone or comes from
MLIR with all its properties. If the fields of xDSL's classes differ from `EXPECTED_FIELDS`, xDSL's own constructors are
used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, cast

from xdsl.dialects.builtin import LocationAttr, NameLoc, StringAttr, UnregisteredOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue, SSAValues, Use
from xdsl.irdl import IRDLOperation, OptionalDef

from .stablehlo.creation import DenseConstantOp

EXPECTED_FIELDS = {
    Operation: "_operands _operand_uses results _successors _successor_uses properties attributes location regions "
    "parent _next_op _prev_op",
    Use: "_operation _index _prev_use _next_use",
    OpResult: "_name first_use _type op index",
    BlockArgument: "_name first_use _type block index location",
    NameLoc: "desc location",
    StringAttr: "data",
}
"""The fields that this module sets. They must be all the fields of these classes."""


def has_expected_fields() -> bool:
    return all(" ".join(field.name for field in fields(kind)) == names for kind, names in EXPECTED_FIELDS.items())


HAS_EXPECTED_FIELDS = has_expected_fields()


def can_be_made(kind: type[Operation]) -> bool:
    """Return whether `make` can create operations of the class. The class must have neither its own constructor nor
    default properties."""
    if not HAS_EXPECTED_FIELDS or not issubclass(kind, IRDLOperation) or issubclass(kind, UnregisteredOp):
        return False
    irdl = kind.get_irdl_definition()
    definitions = (*irdl.properties.values(), *irdl.attributes.values())
    has_default = any(not isinstance(named, OptionalDef) and named.default_value is not None for named in definitions)
    # The `create` of a constant converts its value to a `DenseAttr`; clones, and operations from the bridge, already
    # have one.
    own = kind.create.__func__ not in (Operation.create.__func__, DenseConstantOp.create.__func__)  # type: ignore
    return not (has_default or own or kind.__post_init__ is not IRDLOperation.__post_init__)


def make(
    kind: type[Operation],
    operands: Sequence[SSAValue],
    result_types: Sequence[Attribute],
    dictionaries: tuple[dict[str, Attribute], dict[str, Attribute]],
    location: LocationAttr,
    regions: Sequence[Region],
) -> Operation:
    """Create an operation as `kind.create` does. The operation takes ownership of the dictionaries (properties and
    attributes) and of the regions, so none of them may be shared."""
    op: Any = object.__new__(kind)
    give_operands(op, operands)
    op.results = SSAValues([OpResult(type, op, index) for index, type in enumerate(result_types)])
    op.properties, op.attributes = dictionaries
    op.location = location
    op.regions = tuple(regions)
    for region in regions:
        region.parent = op
    return op


def give_operands(op: Any, operands: Sequence[SSAValue]) -> None:
    """Set the operands of an operation that has none."""
    if not HAS_EXPECTED_FIELDS:
        op.operands = operands
        return
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


def fill(block: Block, ops: Sequence[Operation]) -> None:
    """Insert operations into an empty block. None of them may have a parent."""
    if not HAS_EXPECTED_FIELDS:
        return block.add_ops(ops)
    before: Any = None
    op: Any
    for op in ops:
        op.parent = block
        op._prev_op = before
        if before is not None:
            before._next_op = op
        before = op
    if ops:
        untyped_block: Any = block
        untyped_block._first_op, untyped_block._last_op = ops[0], ops[-1]


def _unchecked_name(text: str, child: Attribute) -> NameLoc:
    name: Any = object.__new__(StringAttr)
    object.__setattr__(name, "data", text)
    location: Any = object.__new__(NameLoc)
    object.__setattr__(location, "desc", name)
    object.__setattr__(location, "location", child)
    return location


def checked_name(text: str, child: Attribute) -> NameLoc:
    return NameLoc(StringAttr(text), cast(LocationAttr, child))


name_location: Callable[[str, Attribute], NameLoc] = _unchecked_name if HAS_EXPECTED_FIELDS else checked_name
"""Creates the location `loc("text"(child))`. Nearly all locations of a module have this form, and no two are equal."""
