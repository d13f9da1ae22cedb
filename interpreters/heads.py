"""Heads of terms: everything that an operation is apart from its operands, as numbers.

    name, attributes, properties, types of the results, bodies of the regions; of effects also the types of the operands

This is where an operation's parts are taken in (`anatomy.py`); what cannot be compared is refused here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.ir import Attribute, Operation, SSAValue

from ..support.diagnostics import Refusal
from .anatomy import name_of, properties_of
from .attribute_keys import AttributeKeys, OpaqueAttributeError
from .terms import Attributes, Head, Kind


class Heads:
    """Numbers what heads are made of. Every method raises `Refusal` where something cannot be compared."""

    def __init__(self, keys: AttributeKeys):
        self._keys = keys

    def of(self, kind: Kind, op: Operation, attributes: Mapping[str, Attribute], bodies: tuple[int, ...] = ()) -> Head:
        types = self.types(op.results, op)
        # The type of another operand follows from the term that it is.
        taken = self.types(op.operands, op) if kind == "effect" else ()
        return Head(kind, name_of(op), self.attributes(op, attributes), types, bodies, properties_of(op), taken)

    def attributes(self, op: Operation, attributes: Mapping[str, Attribute]) -> Attributes:
        """In the order of their names."""
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
