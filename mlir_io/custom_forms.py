"""Custom forms of xDSL's operations that lose information, as xDSL 0.73 and 0.74 read and print them.

Reading: what xDSL would drop is an error. Printing: operations whose custom form does not say everything are printed in
generic form.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import FunctionType, UnregisteredOp, i1
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.linalg.abstract_ops import NamedOperation
from xdsl.ir import Attribute, Operation
from xdsl.parser import Parser
from xdsl.utils.lexer import Position

from ..dialects.stablehlo.control import OptimizationBarrierOp, WhileOp

_RESULTS = re.compile(r"(?:%[^=]*=\s*)?")


def start_of_name(text: str, start: Position) -> Position:
    """Where the name of the operation stands whose results, if it has some, are named from `start` on."""
    match = _RESULTS.match(text, start)
    assert match is not None, "the pattern matches the empty text"
    return match.end()


class CustomSyntaxParser(Parser):
    """Knows which attributes the text gives to the operation that is being read."""

    def __init__(self, context: Context, text: str, name: str):
        super().__init__(context, text, name)
        self._given: list[dict[str, Position]] = []
        """Where the dictionary stands that gives an attribute, for each operation that is being read."""
        self._open_dictionaries = 0

    def parse_operation(self) -> Operation:
        text, start = self.lexer.input.content, start_of_name(self.lexer.input.content, self.pos)
        self._given.append({})
        op = super().parse_operation()
        given = self._given.pop()
        if given and not text.startswith('"', start):
            self._check_that_all_were_taken(op, given)
        return op

    def parse_optional_dictionary_attr_dict(self) -> dict[str, Attribute]:
        start = self.pos
        self._open_dictionaries += 1
        found = super().parse_optional_dictionary_attr_dict()
        self._open_dictionaries -= 1
        if not self._open_dictionaries and self._given:
            self._given[-1].update(dict.fromkeys(found, start))
        return found

    def _check_that_all_were_taken(self, op: Operation, given: dict[str, Position]) -> None:
        if not type(op).__module__.startswith("xdsl.") or isinstance(op, FuncOp):
            # Ours take what they are given; the dictionaries in the signature of a function are not its own.
            return
        for name, start in given.items():
            if name not in op.attributes and name not in op.properties:
                self.raise_error(f"'{name}' would be lost: write {op.name} in generic form", start)


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
