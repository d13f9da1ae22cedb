"""Checks for custom forms in which xDSL 0.73 and 0.74 lose information.

The parser raises an error for an attribute that xDSL would drop. The printer uses the generic form for an operation
whose custom form would lose information.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.arith import SelectOp
from xdsl.dialects.builtin import FunctionType, UnregisteredOp, i1
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.linalg.abstract_ops import NamedOperation
from xdsl.ir import Attribute, Operation
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Position

from ..dialects.stablehlo.control import OptimizationBarrierOp, WhileOp

_ARROW = re.compile(r"->\s*\Z")
_RESULTS = re.compile(r"(?:%[^=]*=\s*)?")


def start_of_name(text: str, start: Position) -> Position:
    """Return the position of the operation name, for the operation that begins at `start`. The name follows the
    results."""
    match = _RESULTS.match(text, start)
    assert match is not None, "the pattern matches the empty string"
    return match.end()


def _hint_at_attributes(text: str, start: Position, error: ParseError) -> str | None:
    """Return the error message for attributes that xDSL does not accept in a custom form; None for any other error.

    Args:
        text: The text of the module.
        start: The position of the operation name.
        error: The error of xDSL's parser.
    """
    written = re.match(r"[\w.]+", text[start : start + 40])
    if written is None or written[0] not in WITHOUT_ATTRIBUTES or not text.startswith("{", error.span.start):
        return None
    name = written[0]
    return f"xDSL reads neither attributes nor a short body in the custom form of {name}: write {name} in generic form"


ElementT = TypeVar("ElementT")


class CustomSyntaxParser(Parser):
    """A parser that raises an error for an attribute in the text that xDSL's parser would silently drop."""

    def __init__(self, context: Context, text: str, name: str):
        super().__init__(context, text, name)
        self._written: list[dict[str, Position]] = []
        """For each open operation, with the innermost last, a map from the names of attributes in its text to the
        positions of their dictionaries."""
        self._open_dictionaries = 0
        self._is_scf = False
        """Whether the operation that began last belongs to the dialect `scf` and is in custom form."""

    def parse_operation(self) -> Operation:
        text = self.lexer.input.content
        start = start_of_name(self.lexer.input.content, self.pos)
        self._written.append({})
        self._is_scf = text.startswith("scf.", start)
        try:
            op = super().parse_operation()
        except ParseError as error:
            if (hint := _hint_at_attributes(text, start, error)) is not None:
                self.raise_error(hint, error.span.start, error.span.end)
            raise
        self._is_scf = False
        written = self._written.pop()
        if written and not text.startswith('"', start):
            self._check_kept(op, written)
        return op

    def parse_optional_dictionary_attr_dict(self) -> dict[str, Attribute]:
        start = self.pos
        self._open_dictionaries += 1
        dictionary = super().parse_optional_dictionary_attr_dict()
        self._open_dictionaries -= 1
        if not self._open_dictionaries and self._written:
            self._written[-1].update(dict.fromkeys(dictionary, start))
        return dictionary

    def parse_comma_separated_list(
        self, delimiter: Parser.Delimiter, parse: Callable[[], ElementT], context_msg: str = ""
    ) -> list[ElementT]:
        # MLIR also accepts `scf.for … -> f32 {`, a single result type without the parentheses that xDSL requires.
        if delimiter is Parser.Delimiter.PAREN and self._is_scf and self._follows_arrow():
            return [parse()]
        return super().parse_comma_separated_list(delimiter, parse, context_msg)

    def _follows_arrow(self) -> bool:
        """Return whether the current token follows `->` and is not a parenthesis."""
        text = self.lexer.input.content
        return not text.startswith("(", self.pos) and _ARROW.search(text, max(self.pos - 80, 0), self.pos) is not None

    def _check_kept(self, op: Operation, written: dict[str, Position]) -> None:
        """Raise `ParseError` for the first attribute in the text that the parsed operation lacks."""
        if not type(op).__module__.startswith("xdsl.") or isinstance(op, FuncOp):
            # The parsers of this project's operations drop no attributes. The dictionaries in the signature of a
            # function belong to its arguments and results.
            return
        for name, start in written.items():
            if name not in op.attributes and name not in op.properties:
                self.raise_error(f"the attribute '{name}' would be lost: write {op.name} in generic form", start)


WITHOUT_ATTRIBUTES = frozenset(
    """
    arith.cmpf arith.cmpi linalg.broadcast linalg.reduce linalg.transpose memref.cast memref.copy memref.rank
    scf.execute_region scf.parallel tensor.empty
    """.split()
)
"""Operations whose custom form omits the attributes."""

ATTRIBUTES_ELSEWHERE = frozenset({"memref.dim", "tensor.dim", "tensor.reshape"})
"""Operations whose custom form prints the attributes at a position where MLIR does not expect them."""

WITHOUT_TERMINATOR = frozenset({"scf.execute_region", "scf.for", "scf.if", "scf.parallel"})
"""Operations whose custom form omits a terminator without operands, and with it the terminator's attributes."""

WITHOUT_REGION = frozenset({"linalg.broadcast", "linalg.transpose"})
"""Operations whose custom form omits the region. By default, the region yields its first argument."""

NOT_SHOWN_BY_LINALG = ("indexing_maps", "linalg.memoized_indexing_maps", "iterator_types", "doc", "library_call")
"""Attributes that the custom form of named linalg operations omits."""


NEVER_PRINTED = "operandSegmentSizes"
"""An attribute that xDSL omits from every custom form, even if it is a discardable attribute."""


def is_lossless(op: Operation, with_locations: bool = False) -> bool:
    """Return whether the custom form parses back to the same operation.

    `with_locations`: whether locations are printed.
    """
    if NEVER_PRINTED in op.attributes:
        return False
    return _is_never_lossy(type(op)) or _has_lossless_form(op, with_locations)


@cache
def _is_never_lossy(kind: type[Operation]) -> bool:
    """Return whether the custom form is lossless for every operation of the class."""
    special = (
        FuncOp,
        CallOp,
        SelectOp,
        scf.ExecuteRegionOp,
        scf.WhileOp,
        WhileOp,
        OptimizationBarrierOp,
        NamedOperation,
    )
    names = WITHOUT_REGION | WITHOUT_ATTRIBUTES | ATTRIBUTES_ELSEWHERE | WITHOUT_TERMINATOR
    return not issubclass(kind, special) and kind.name not in names


def _has_lossless_form(op: Operation, with_locations: bool) -> bool:
    match op:
        case FuncOp(body=body, function_type=type_):
            has_position_attributes = (op.arg_attrs or op.res_attrs) is not None
            return (bool(body.blocks) or not has_position_attributes) and not _is_a_function(type_.outputs.data)
        case SelectOp(cond=condition):
            # xDSL does not print the type of the condition. MLIR requires it unless it is a scalar.
            return condition.type == i1
        case CallOp():
            return not _is_a_function(op.result_types)
        case scf.ExecuteRegionOp():
            # Without results, xDSL omits the terminator, but MLIR requires it.
            return bool(op.results) and not _loses_attributes(op) and not _loses_terminator(op)
        case scf.WhileOp():
            # xDSL prints the location before the regions. MLIR does not expect it there.
            return not with_locations
        # StableHLO's custom form of loops and barriers prints each type once, although the type of a result may differ
        # from the type of the operand in dynamic extents.
        case WhileOp(cond=cond, body=body):
            arguments = (region.blocks[0].arg_types for region in (cond, body) if region.blocks)
            return all(types == op.operand_types for types in (op.result_types, *arguments))
        case OptimizationBarrierOp():
            return op.result_types == op.operand_types
        case NamedOperation():
            return _has_default_body(op)
        case _ if op.name in WITHOUT_REGION:
            return _yields_its_first_argument(op) and not op.attributes and op.result_types == op.operand_types[-1:]
        case _:
            return not (_loses_attributes(op) or _loses_terminator(op))


def _is_a_function(types: Sequence[Attribute]) -> bool:
    """Return whether the operation has a single result and the result type is a function type. xDSL omits the
    parentheses that such a type requires."""
    return len(types) == 1 and isinstance(types[0], FunctionType)


def _loses_attributes(op: Operation) -> bool:
    return op.name in WITHOUT_ATTRIBUTES | ATTRIBUTES_ELSEWHERE and bool(op.attributes)


def _loses_terminator(op: Operation) -> bool:
    if op.name not in WITHOUT_TERMINATOR:
        return False
    last = [block.last_op for region in op.regions for block in region.blocks if block.last_op is not None]
    # xDSL adds no terminator after an unregistered operation, because that operation may be a terminator.
    return any(
        terminator.attributes or (not terminator.operands and isinstance(terminator.prev_op, UnregisteredOp))
        for terminator in last
    )


def _has_default_body(op: NamedOperation) -> bool:
    """Return whether the operation has the default body and the default indexing maps of operations with its name."""
    definitions = op.get_irdl_definition().properties
    has_defaults = all(
        (op.properties | op.attributes).get(name)
        in (None, definitions[name].default_value if name in definitions else None)
        for name in NOT_SHOWN_BY_LINALG
    )
    return has_defaults and op.regions[0].is_structurally_equivalent(op.get_hidden_region(op.inputs, op.outputs))


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
