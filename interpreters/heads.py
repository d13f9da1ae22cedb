"""Heads of terms: all parts of an operation except its operands, as numbers.

    name, attributes, properties, types of the results, bodies of the regions; of effects also the types of the operands

All parts of an operation (`anatomy.py`) enter terms here; parts that cannot be compared are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.ir import Attribute, Operation, SSAValue

from ..support.diagnostics import Refusal
from .anatomy import name_of, properties_of
from .attribute_keys import AttributeKeys, OpaqueAttributeError
from .terms import Attributes, Head, Kind


class Heads:
    """Numbers the parts of heads. Every method raises `Refusal` for a part that cannot be compared."""

    def __init__(self, keys: AttributeKeys):
        self._keys = keys

    def of(self, kind: Kind, op: Operation, attributes: Mapping[str, Attribute], bodies: tuple[int, ...] = ()) -> Head:
        types = self.types(op.results, op)
        # For other kinds the operand types follow from the operand terms.
        operand_types = self.types(op.operands, op) if kind == "effect" else ()
        return Head(kind, name_of(op), self.attributes(op, attributes), types, bodies, properties_of(op), operand_types)

    def attributes(self, op: Operation, attributes: Mapping[str, Attribute]) -> Attributes:
        """Number the attributes, in the order of their names."""
        try:
            return tuple((name, self._keys.number(attributes[name])) for name in sorted(attributes))
        except OpaqueAttributeError as error:
            raise Refusal(op, f"{name_of(op)} has an attribute that cannot be compared: {error}") from None

    def types(self, values: Iterable[SSAValue], op: Operation) -> tuple[int, ...]:
        return self.numbers([value.type for value in values], op)

    def numbers(self, types: Iterable[Attribute], op: Operation) -> tuple[int, ...]:
        try:
            return tuple([self._keys.number(type_) for type_ in types])
        except OpaqueAttributeError as error:
            raise Refusal(op, f"{name_of(op)} has a type that cannot be compared: {error}") from None
