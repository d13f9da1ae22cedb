"""Parse the custom form of StableHLO operations without a definition here, as other tools print them.

    %0 = stablehlo.dot %a, %b, precision = [HIGH, DEFAULT] : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
    %1 = stablehlo.tuple %0, %c : tuple<tensor<4x3xf32>, tensor<f32>>

They become the same unregistered operations as their generic form, and are printed in it. Forms: `StablehloOps.td`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, StringAttr, TupleType, UnregisteredOp, i32, i64
from xdsl.ir import Attribute, Operation
from xdsl.parser import Parser, UnresolvedOperand

from ..dialects.stablehlo.contraction import parse_precisions
from ..dialects.stablehlo.formats import Properties, i64_array
from ..dialects.stablehlo.structs import parse_dimensions, parse_int64

Value = Callable[[Parser], Attribute]
Types = tuple[Sequence[Attribute], Sequence[Attribute]]


def _number(parser: Parser) -> Attribute:
    return IntegerAttr(parse_int64(parser), i64)


def _numbers(parser: Parser) -> Attribute:
    return i64_array(parse_dimensions(parser))


def _text(parser: Parser) -> Attribute:
    return StringAttr(parser.parse_str_literal())


def _distribution(parser: Parser) -> Attribute:
    word = parser.parse_identifier()
    return Parser(parser.ctx, f"#stablehlo<rng_distribution {word}>").parse_attribute()


def _function_types(parser: Parser) -> Types:
    types = parser.parse_function_type()
    return types.inputs.data, types.outputs.data


def _result_type(parser: Parser) -> Types:
    return (), (parser.parse_type(),)


def _types_of_tuple(parser: Parser) -> Types:
    start, result = parser.pos, parser.parse_type()
    if not isinstance(result, TupleType):
        parser.raise_error("expected a type tuple<...>", start, parser.pos)
    return result.types.data, (result,)


@dataclass(frozen=True)
class CustomForm:
    """`name %a, %b, keyword = value {...} : types`, where `keyword` spells the property `spelled`.

    `inherent`: properties that are spelled in the dictionary.
    """

    keyword: str = ""
    spelled: str = ""
    value: Value = _number
    types: Callable[[Parser], Types] = _function_types
    is_optional: bool = False
    inherent: tuple[str, ...] = ()

    def parse(self, parser: Parser) -> tuple[list[UnresolvedOperand], Properties]:
        """The operands, and the properties that are spelled after them."""
        operands = list[UnresolvedOperand]()
        has_comma = False
        while (operand := parser.parse_optional_unresolved_operand()) is not None:
            operands.append(operand)
            has_comma = parser.parse_optional_punctuation(",") is not None
            if not has_comma:
                break
        if not self.keyword and has_comma:
            parser.raise_error("expected an operand")
        if not self.keyword or (self.is_optional and not has_comma):
            return operands, {}
        if not has_comma:
            parser.raise_error(f"expected ', {self.keyword} = '")
        parser.parse_keyword(self.keyword)
        parser.parse_punctuation("=")
        return operands, {self.spelled: self.value(parser)}


class _Element(CustomForm):
    """`stablehlo.get_tuple_element %t[0]`"""

    def parse(self, parser: Parser) -> tuple[list[UnresolvedOperand], Properties]:
        operand = parser.parse_unresolved_operand()
        parser.parse_punctuation("[")
        index = parse_int64(parser)
        parser.parse_punctuation("]")
        return [operand], {"index": IntegerAttr(index, i32)}


FORMS: Mapping[str, CustomForm] = {
    "stablehlo.broadcast": CustomForm("sizes", "broadcast_sizes", _numbers),
    "stablehlo.create_token": CustomForm(types=_result_type),
    "stablehlo.dot": CustomForm("precision", "precision_config", parse_precisions, is_optional=True),
    "stablehlo.dynamic_broadcast_in_dim": CustomForm(
        "dims",
        "broadcast_dimensions",
        _numbers,
        inherent=("known_expanding_dimensions", "known_nonexpanding_dimensions"),
    ),
    "stablehlo.dynamic_iota": CustomForm("dim", "iota_dimension"),
    "stablehlo.dynamic_pad": CustomForm(),
    "stablehlo.dynamic_reshape": CustomForm(),
    "stablehlo.einsum": CustomForm("config", "einsum_config", _text),
    "stablehlo.get_dimension_size": CustomForm("dim", "dimension"),
    "stablehlo.get_tuple_element": _Element(),
    "stablehlo.real_dynamic_slice": CustomForm(),
    "stablehlo.rng": CustomForm("distribution", "rng_distribution", _distribution),
    "stablehlo.set_dimension_size": CustomForm("dim", "dimension"),
    "stablehlo.tuple": CustomForm(types=_types_of_tuple),
    "stablehlo.unary_einsum": CustomForm("config", "einsum_config", _text),
}


def with_custom_form(name: str, op_type: type[UnregisteredOp]) -> type[Operation] | None:
    """A class that parses the custom form of the operation `name` into an `op_type`; None for unknown operations."""
    form = FORMS.get(name)
    if form is None:
        return None

    class CustomForm(op_type):
        """Parses the custom form."""

        @classmethod
        def parse(cls, parser: Parser) -> Operation:
            start = parser.pos
            operands, properties = form.parse(parser)
            attributes = parser.parse_optional_attr_dict()
            properties |= {name: attributes.pop(name) for name in form.inherent if name in attributes}
            parser.parse_punctuation(":")
            operand_types, result_types = form.types(parser)
            return op_type.create(
                operands=parser.resolve_operands(operands, operand_types, start),
                result_types=result_types,
                properties=properties,
                attributes=attributes,
            )

    return CustomForm
