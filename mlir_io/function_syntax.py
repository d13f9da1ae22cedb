"""The complete custom form of `func.func`, including the argument and result attributes of declarations, which xDSL
drops.

Example:
    func.func private @f(f32 {a.b}, %x: f32 loc("x")) -> (f32 {a.c}) attributes {…} {…}
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, Region, TypeAttribute
from xdsl.parser import Parser
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from ..support.counted import counted
from ..support.diagnostics import Refusal

VISIBILITIES = ("public", "private", "nested")
TypeAndAttributes = tuple[TypeAttribute, dict[str, Attribute]]


@dataclass(frozen=True)
class _Argument:
    type: Attribute
    attributes: dict[str, Attribute]
    named: Parser.Argument | None


class FunctionSyntax(FuncOp):
    """A parser for the custom form of functions, which creates xDSL's `FuncOp`."""

    @classmethod
    def parse(cls, parser: Parser) -> FuncOp:
        visibility = parser.parse_optional_visibility_keyword()
        name = parser.parse_symbol_name().data
        start = parser.pos
        arguments = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, lambda: _parse_argument(parser))
        named = [argument.named for argument in arguments if argument.named is not None]
        if named and len(named) != len(arguments):
            parser.raise_error("either all arguments or no arguments must have a name", start, parser.pos)
        results = _parse_results(parser)
        attributes = parser.parse_optional_attr_dict_with_keyword(("sym_name", "function_type", "sym_visibility"))
        start = parser.pos
        body = parser.parse_optional_region(named or None)
        if body is not None and not body.blocks:
            parser.raise_error("expected a non-empty function body", start, parser.pos)
        function = FuncOp(
            name,
            ([argument.type for argument in arguments], [type for type, _ in results]),
            body or Region(),
            visibility,
            arg_attrs=_if_any([argument.attributes for argument in arguments]),
            res_attrs=_if_any([result_attributes for _, result_attributes in results]),
        )
        function.attributes.update(attributes.data if attributes is not None else {})
        return function


def _parse_argument(parser: Parser) -> _Argument:
    """Parse an argument of a function: `%x: type {…} loc(…)`, or `type {…} loc(…)` in a declaration."""
    named = parser.parse_optional_argument()
    type = parser.parse_type() if named is None else named.type
    attributes = parser.parse_optional_attr_dict()
    location = parser.parse_optional_location()
    if named is not None:
        named.location = location
    return _Argument(type, attributes, named)


def _parse_results(parser: Parser) -> list[TypeAndAttributes]:
    if parser.parse_optional_punctuation("->") is None:
        return []

    def parse_result() -> TypeAndAttributes:
        return parser.parse_type(), parser.parse_optional_attr_dict()

    results = parser.parse_optional_comma_separated_list(Parser.Delimiter.PAREN, parse_result)
    return [(parser.parse_type(), {})] if results is None else results


def _if_any(attributes: Sequence[dict[str, Attribute]]) -> ArrayAttr[DictionaryAttr] | None:
    return ArrayAttr(map(DictionaryAttr, attributes)) if any(attributes) else None


def verify_functions(operations: Iterable[Operation]) -> None:
    """Check the invariants of functions that xDSL assumes but does not verify.

    Raises:
        Refusal: A function is malformed. The error is located at the first such function.
    """
    for op in operations:
        if op.name != FuncOp.name or not isinstance(op, FuncOp):
            continue
        try:
            verify_function(op)
            _verify_ends(op)
        except VerifyException as error:
            raise Refusal(op, f"func.func: {error}") from error


def _verify_ends(function: FuncOp) -> None:
    for block in function.body.blocks:
        last = block.last_op
        if last is None or not last.has_trait(IsTerminator, value_if_unregistered=True):
            raise VerifyException("each block of a function must end with a terminator")


def verify_function(function: FuncOp) -> None:
    """Check the invariants on which the printer of the custom form relies.

    Raises:
        VerifyException: The function lacks a name or a type, does not have exactly one region, or has a malformed
            visibility or malformed attributes.
    """
    if len(function.regions) != 1:
        raise VerifyException(
            f"a function must have exactly one region (empty if there is no body); this function has "
            f"{len(function.regions)} regions"
        )
    properties = function.properties
    signature, visibility = properties.get("function_type"), properties.get("sym_visibility")
    if not isinstance(properties.get("sym_name"), StringAttr):
        raise VerifyException("the attribute 'sym_name' of a function, its name, must be a string")
    if not isinstance(signature, FunctionType):
        raise VerifyException("the attribute 'function_type' of a function must be a type such as (f32) -> f32")
    if visibility is not None and not (isinstance(visibility, StringAttr) and visibility.data in VISIBILITIES):
        raise VerifyException(
            f"the visibility of a function must be one of {', '.join(VISIBILITIES)}, not {visibility}"
        )
    _verify_count("argument", properties.get("arg_attrs"), len(signature.inputs))
    _verify_count("result", properties.get("res_attrs"), len(signature.outputs))


def _verify_count(position: str, attributes: Attribute | None, count: int) -> None:
    if attributes is None:
        return
    if not isa(attributes, ArrayAttr[DictionaryAttr]):
        raise VerifyException(f"the attributes of the {position}s must be a list of dictionaries")
    if len(attributes) != count:
        raise VerifyException(
            f"the function has {counted(count, position)}, but attributes for {counted(len(attributes), position)}"
        )
