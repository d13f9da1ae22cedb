"""Simplify operations whose results are bitwise equal to a simpler term.

    reshape(reshape(x))                     one reshape, or x if the types agree
    transpose(transpose(x))                 one transpose, or x if the permutations cancel
    reduce_precision(x) to its own format   x
    convert(x) to its own type              x
    broadcast_in_dim(splat)                 the splat constant of the result type; the same for reshape and transpose
    broadcast_in_dim(x), new extents all 1  reshape(x), if the dimensions of x stay in order
    get_tuple_element(tuple(x, y))[1]       y

The rules apply only to operations without further attributes. All rules except the last also require static types
without an encoding, because two values of the same dynamic type may have different extents.
"""

from __future__ import annotations

from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseArrayBase,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerAttr,
    NoneAttr,
    i64,
)
from xdsl.ir import Attribute, Operation

from ...dialects.constants.dense import DenseAttr
from ...support.operations import name_of
from ...support.type_guards import is_integer_array, is_tensor
from ..operations.operation_parts import attributes_of
from .terms import ELEMENT, TUPLE, Heads, Terms

RESHAPE, TRANSPOSE, CONSTANT = "stablehlo.reshape", "stablehlo.transpose", "stablehlo.constant"
SIMPLIFIED = frozenset(
    {
        *(RESHAPE, TRANSPOSE, ELEMENT),
        *("stablehlo.reduce_precision", "stablehlo.convert", "stablehlo.broadcast_in_dim"),
    }
)
"""Operations that may be equal to a simpler term."""
_FORMATS: dict[type[Attribute], tuple[int, int]] = {
    Float16Type: (5, 10),
    BFloat16Type: (8, 7),
    Float32Type: (8, 23),
    Float64Type: (11, 52),
}
"""Number of exponent bits and of mantissa bits of each float type (IEEE 754; bfloat16)."""


class Identities:
    """Simplification rules for the terms of one table."""

    def __init__(self, terms: Terms, heads: Heads):
        self._terms = terms
        self._heads = heads
        # Keyed by the id of the result type. The entry also holds the type, so that Python does not reuse its id.
        self._splats = dict[tuple[int, int], tuple[Attribute, int | None]]()
        # Keyed by the id of a type, likewise.
        self._static = dict[int, tuple[Attribute, bool]]()

    def value(self, op: Operation, operands: tuple[int, ...]) -> int | None:
        """Return the simpler term that equals the operation applied to these operands, or None."""
        name = name_of(op)
        if name not in SIMPLIFIED:
            return None
        if name == ELEMENT:
            return self._element(op, operands)
        if len(operands) != 1 or not self._has_static_types(op):
            return None
        attributes, operand = attributes_of(op), operands[0]
        match name, attributes.keys():
            case "stablehlo.reshape", keys if not keys:
                return self._simplify_reshape(op, operand, self._heads.types(op.results, op))
            case "stablehlo.transpose", keys if keys == {"permutation"}:
                types = self._heads.types(op.results, op)
                return self._simplify_transpose(op, operand, types, attributes["permutation"])
            case "stablehlo.reduce_precision", keys if keys == {"exponent_bits", "mantissa_bits"}:
                requested_format = tuple(_integer(attributes[name]) for name in ("exponent_bits", "mantissa_bits"))
                return operand if requested_format == _format_of(op.operands[0].type) else None
            case "stablehlo.convert", keys if not keys:
                return operand if self._terms.types_of(operand) == self._heads.types(op.results, op) else None
            case "stablehlo.broadcast_in_dim", keys if keys == {"broadcast_dimensions"}:
                return self._simplify_broadcast(op, operand, attributes["broadcast_dimensions"])
            case _:
                return None

    def _has_static_types(self, op: Operation) -> bool:
        known = self._static
        for value in (*op.operands, *op.results):
            type_ = value.type
            if (entry := known.get(id(type_))) is None:
                entry = known[id(type_)] = type_, _is_static(type_)
            if not entry[1]:
                return False
        return True

    def _element(self, op: Operation, operands: tuple[int, ...]) -> int | None:
        """Return the tuple element that a `stablehlo.get_tuple_element` selects, or None if its operand is not a
        `stablehlo.tuple`."""
        attributes = attributes_of(op)
        if attributes.keys() != {"index"} or len(operands) != 1 or not self._is_plain(operands[0], TUPLE):
            return None
        index = _integer(attributes["index"])
        values = self._terms.operands_of(operands[0])
        if index is None or not 0 <= index < len(values):
            return None
        is_same = self._terms.types_of(values[index]) == self._heads.types(op.results, op)
        return values[index] if is_same else None

    def _simplify_reshape(self, op: Operation, operand: int, types: tuple[int, ...]) -> int | None:
        if (splat := self._splat(op, operand)) is not None:
            return splat
        source = self._reshaped(operand)
        if self._terms.types_of(source) == types:
            return source
        return None if source == operand else self._terms.term(self._heads.of("operation", op, {}), (source,))

    def _simplify_broadcast(self, op: Operation, operand: int, dimensions: Attribute) -> int | None:
        """Simplify a broadcast of a splat constant, or a broadcast that only adds dimensions of extent 1."""
        if (splat := self._splat(op, operand)) is not None:
            return splat
        if not _is_reshape(op.operands[0].type, op.results[0].type, dimensions):
            return None
        source = self._reshaped(operand)
        head = self._heads.of("operation", op, {})._replace(name=RESHAPE)
        return source if self._terms.types_of(source) == head.types else self._terms.term(head, (source,))

    def _reshaped(self, number: int) -> int:
        """Return the operand of a term that is a reshape, or else the term itself."""
        if self._is_plain(number, RESHAPE) and self._is_static(self._terms.operands_of(number)[0]):
            (number,) = self._terms.operands_of(number)
        return number

    def _simplify_transpose(self, op: Operation, operand: int, types: tuple[int, ...], outer: Attribute) -> int | None:
        if (splat := self._splat(op, operand)) is not None:
            return splat
        if not self._is_plain(operand, TRANSPOSE, "permutation") or not is_integer_array(outer):
            return None
        inner = self._terms.attributes.attribute(self._terms.head_of(operand).attributes[0][1])
        (source,) = self._terms.operands_of(operand)
        if not is_integer_array(inner):
            return None
        order = [inner.get_values()[dimension] for dimension in outer.get_values()]
        if order == sorted(order):
            return source if self._terms.types_of(source) == types else None
        permutation = DenseArrayBase.from_list(i64, order)
        return self._terms.term(self._heads.of("operation", op, {"permutation": permutation}), (source,))

    def _splat(self, op: Operation, operand: int) -> int | None:
        """Return the splat constant with the result type of the operation if the operand is a splat constant, else
        None."""
        type_ = op.results[0].type
        if (entry := self._splats.get((id(type_), operand))) is None:
            entry = self._splats[id(type_), operand] = type_, self._new_splat(op, type_, operand)
        return entry[1]

    def _new_splat(self, op: Operation, type_: Attribute, operand: int) -> int | None:
        if not self._is_plain(operand, CONSTANT, "value") or not is_tensor(type_):
            return None
        constant = self._terms.attributes.attribute(self._terms.head_of(operand).attributes[0][1])
        if not isinstance(constant, DenseAttr) or not constant.is_splat:
            return None
        head = self._terms.head_of(operand)
        value = self._heads.attributes(op, {"value": DenseAttr(type_, constant.data)})
        return self._terms.term(head._replace(attributes=value, types=self._heads.types(op.results, op)))

    def _is_plain(self, number: int, name: str, *attributes: str) -> bool:
        """Return whether a term is an operation with this name, exactly these attributes, and no regions."""
        head = self._terms.head_of(number)
        names = tuple(attribute for attribute, _ in head.attributes)
        return (head.kind, head.name, names, head.bodies) == ("operation", name, attributes, ())

    def _is_static(self, number: int) -> bool:
        types = self._terms.types_of(number)
        return len(types) == 1 and _is_static(self._terms.attributes.attribute(types[0]))


def _is_static(type_: Attribute) -> bool:
    return is_tensor(type_) and type_.has_static_shape() and isinstance(type_.encoding, NoneAttr)


def _is_reshape(before: Attribute, after: Attribute, dimensions: Attribute) -> bool:
    """Return whether a broadcast with these types and `broadcast_dimensions` keeps all elements in their order and adds
    no others."""
    if not is_tensor(before) or not is_tensor(after) or not is_integer_array(dimensions):
        return False
    listed, shape, result = list(dimensions.get_values()), before.get_shape(), after.get_shape()
    # Strictly increasing dimensions keep the order. No element is repeated if each operand extent equals the extent of
    # its result dimension, and all other result dimensions have extent 1.
    if before.element_type != after.element_type or len(listed) != len(shape) or listed != sorted(set(listed)):
        return False
    if any(not 0 <= dimension < len(result) for dimension in listed):
        return False
    expected = [1] * len(result)
    for dimension, extent in zip(listed, shape, strict=True):
        expected[dimension] = extent
    return expected == list(result)


def _integer(attribute: Attribute) -> int | None:
    return attribute.value.data if isinstance(attribute, IntegerAttr) else None


def _format_of(type_: Attribute) -> tuple[int, int] | None:
    return _FORMATS.get(type(type_.element_type)) if is_tensor(type_) else None
