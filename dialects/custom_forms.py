"""Where the custom form of an operation of xDSL, as xDSL 0.73 and 0.74 print it, does not say everything about it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from xdsl.dialects import scf
from xdsl.dialects.builtin import FunctionType, UnregisteredOp, i1
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.linalg.abstract_ops import NamedOperation
from xdsl.ir import Attribute, Operation

from .stablehlo.control import OptimizationBarrierOp, WhileOp

LEAVE_ATTRIBUTES_OUT = frozenset(
    """
    arith.cmpf arith.cmpi linalg.broadcast linalg.reduce linalg.transpose memref.cast memref.copy memref.rank
    scf.execute_region scf.parallel tensor.empty
    """.split()
)
"""They print no attributes."""

ATTRIBUTES_ELSEWHERE = frozenset({"memref.dim"})
"""MLIR reads their attributes in another place than xDSL."""

RESULT_IS_SCALAR = frozenset({"arith.cmpf", "arith.cmpi"})
"""They are read as if the operands were scalars, whatever type stands there."""

ELIDE_TERMINATORS = frozenset({"scf.execute_region", "scf.for", "scf.if", "scf.parallel"})
"""They leave a terminator without operands out, and its attributes with it."""

MOVE_ELEMENTS = frozenset({"linalg.broadcast", "linalg.transpose"})
"""Their form does not show the region, which hands on its first argument."""

NOT_SHOWN_BY_LINALG = ("indexing_maps", "linalg.memoized_indexing_maps", "iterator_types", "doc", "library_call")


NEVER_PRINTED = "operandSegmentSizes"
"""xDSL takes it for its own in the form of every operation, also where it is an attribute like any other."""


def says_everything(op: Operation, with_locations: bool = False) -> bool:
    """Whether the custom form, read again, is the same operation. `with_locations`: they are printed."""
    if NEVER_PRINTED in op.attributes:
        return False
    return _says_all_there_is(type(op)) or _says_everything(op, with_locations)


@cache
def _says_all_there_is(kind: type[Operation]) -> bool:
    """Whether nothing can be lost by any operation of the class."""
    special = (FuncOp, CallOp, scf.ExecuteRegionOp, scf.WhileOp, WhileOp, OptimizationBarrierOp, NamedOperation)
    names = MOVE_ELEMENTS | RESULT_IS_SCALAR | LEAVE_ATTRIBUTES_OUT | ATTRIBUTES_ELSEWHERE | ELIDE_TERMINATORS
    return not issubclass(kind, special) and kind.name not in names


def _says_everything(op: Operation, with_locations: bool) -> bool:
    match op:
        case FuncOp(body=body, function_type=type_):
            says_of_positions = (op.arg_attrs or op.res_attrs) is not None
            return (bool(body.blocks) or not says_of_positions) and not _is_a_function(type_.outputs.data)
        case CallOp():
            return not _is_a_function(op.result_types)
        case scf.ExecuteRegionOp():
            # Without results it is printed without the terminator that MLIR wants to see.
            return bool(op.results) and not _loses_attributes(op) and not _loses_terminator(op)
        case scf.WhileOp():
            # Its location is printed in front of its regions.
            return not with_locations
        # StableHLO's syntax of loops and barriers names each type once, though a result may know fewer of its extents.
        case WhileOp(cond=cond, body=body):
            arguments = (region.blocks[0].arg_types for region in (cond, body) if region.blocks)
            return all(types == op.operand_types for types in (op.result_types, *arguments))
        case OptimizationBarrierOp():
            return op.result_types == op.operand_types
        case NamedOperation():
            return _is_as_named(op)
        case _ if op.name in MOVE_ELEMENTS:
            return _yields_its_first_argument(op) and not op.attributes and op.result_types == op.operand_types[-1:]
        case _:
            loses_type = op.name in RESULT_IS_SCALAR and op.results[0].type != i1
            return not (loses_type or _loses_attributes(op) or _loses_terminator(op))


def _is_a_function(types: Sequence[Attribute]) -> bool:
    """A single result of function type, which is printed without the parentheses that it needs."""
    return len(types) == 1 and isinstance(types[0], FunctionType)


def _loses_attributes(op: Operation) -> bool:
    return op.name in LEAVE_ATTRIBUTES_OUT | ATTRIBUTES_ELSEWHERE and bool(op.attributes)


def _loses_terminator(op: Operation) -> bool:
    if op.name not in ELIDE_TERMINATORS:
        return False
    last = [block.last_op for region in op.regions for block in region.blocks if block.last_op is not None]
    # xDSL reads no terminator behind what might be one.
    return any(one.attributes or (not one.operands and isinstance(one.prev_op, UnregisteredOp)) for one in last)


def _is_as_named(op: NamedOperation) -> bool:
    """Whether its body and its maps are those that go without saying with the name."""
    defined = op.get_irdl_definition().properties
    shown = all(
        (op.properties | op.attributes).get(name) in (None, defined[name].default_value if name in defined else None)
        for name in NOT_SHOWN_BY_LINALG
    )
    return shown and op.regions[0].is_structurally_equivalent(op.get_hidden_region(op.inputs, op.outputs))


def _yields_its_first_argument(op: Operation) -> bool:
    block = op.regions[0].block
    last = block.last_op
    return (
        last is not None
        and last is block.first_op
        and last.name == "linalg.yield"
        and not last.attributes
        and last.operands[0] is block.args[0]
    )
