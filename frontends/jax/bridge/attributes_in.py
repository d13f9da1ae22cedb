"""Convert MLIR's types and attributes to xDSL's: each distinct one once, the common ones without text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxlib.mlir import ir
from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, TypeAttribute

from ....support.locations import is_plain
from .constants import bits_in, small, standard
from .not_bridged import NotBridged
from .texts import Texts


class AttributesIn:
    """Converts and caches. `types`, `attributes` and `values` cache the results of `type`, `get` and `value`."""

    def __init__(self, context: Context):
        self.texts = Texts(context)
        self.types: dict[ir.Type, TypeAttribute] = {}
        self.attributes: dict[ir.Attribute, Attribute] = {}
        self.values: dict[ir.Attribute, Attribute] = {}
        self._kinds: dict[type[ir.Attribute], Callable[[Any], Attribute]] = {
            ir.IntegerAttr: self._integer,
            ir.StringAttr: self._string,
            ir.FlatSymbolRefAttr: self._symbol,
            ir.TypeAttr: lambda attribute: self.type(attribute.value),
            ir.UnitAttr: lambda _: UnitAttr(),
            ir.ArrayAttr: self._array,
            ir.DictAttr: self._dictionary,
            ir.DenseI64ArrayAttr: lambda attribute: DenseArrayBase.from_list(i64, list(attribute)),
            ir.DenseIntElementsAttr: lambda attribute: standard(*self._bits(attribute)),
            ir.DenseFPElementsAttr: lambda attribute: standard(*self._bits(attribute)),
            ir.DenseResourceElementsAttr: _resource,
        }

    def type(self, type: ir.Type) -> TypeAttribute:
        converted = self.types.get(type)
        if converted is None:
            converted = self.types[type] = self._type(type)
        return converted

    def _type(self, type: ir.Type) -> TypeAttribute:
        if isinstance(type, ir.RankedTensorType) and type.has_static_shape and type.encoding is None:
            return TensorType(self.type(type.element_type), type.shape)
        if isinstance(type, ir.FunctionType):
            return FunctionType.from_lists([*map(self.type, type.inputs)], [*map(self.type, type.results)])
        return self.texts.type(type)

    def get(self, attribute: ir.Attribute) -> Attribute:
        converted = self.attributes.get(attribute)
        if converted is None:
            convert = self._kinds.get(type(attribute), self.texts.attribute)
            converted = self.attributes[attribute] = convert(attribute)
        return converted

    def value(self, constant: ir.Attribute) -> Attribute:
        """The value of a `stablehlo.constant`: a dense constant becomes a `DenseAttr`."""
        converted = self.values.get(constant)
        if converted is None:
            dense = isinstance(constant, ir.DenseElementsAttr)
            converted = self.values[constant] = small(*self._bits(constant)) if dense else self.get(constant)
        return converted

    def _bits(self, constant: Any) -> tuple[Any, bytes]:
        shaped: Any = self.type(constant.type)
        bits = bits_in(constant, shaped)
        return self.texts.dense(constant) if bits is None else (shaped, bits)

    def _integer(self, attribute: Any) -> Attribute:
        kind: Any = self.type(attribute.type)
        # Other types are rare, and the bindings return no integers beyond 64 bits.
        return IntegerAttr(attribute.value, kind) if kind in (i32, i64) else self.texts.attribute(attribute)

    def _string(self, attribute: Any) -> Attribute:
        raw = attribute.value_bytes
        if not (raw.isascii() and isinstance(attribute.type, ir.NoneType)):
            return self.texts.attribute(attribute)
        text = raw.decode()
        return StringAttr(text) if is_plain(text) else self.texts.attribute(attribute)

    def _symbol(self, attribute: Any) -> Attribute:
        return SymbolRefAttr(attribute.value) if is_plain(attribute.value) else self.texts.attribute(attribute)

    def _array(self, attribute: Any) -> Attribute:
        try:
            return ArrayAttr([self.get(element) for element in attribute])
        except TypeError:
            # The bindings do not return constants of complex numbers.
            return self.texts.attribute(attribute)

    def _dictionary(self, attribute: Any) -> Attribute:
        names = [attribute[index].name for index in range(len(attribute))]
        try:
            return DictionaryAttr({name: self.get(attribute[name]) for name in names})
        except TypeError:
            return self.texts.attribute(attribute)


def _resource(attribute: ir.Attribute) -> Attribute:
    raise NotBridged("a constant is a resource")
