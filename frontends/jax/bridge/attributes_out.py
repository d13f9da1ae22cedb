"""Convert xDSL's types and attributes to MLIR's: each once, the common ones by builders, others through text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxlib.mlir import ir
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    NoneAttr,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute

from ....dialects.dense import DenseAttr, small_bits
from ....mlir_io.printer import attribute_text
from ....support.locations import is_plain
from ....support.type_guards import is_tensor
from .building import build
from .constants import constant_out
from .not_bridged import NotBridged
from .texts import RESOURCE


class AttributesOut:
    """Converts in the current MLIR context, and caches."""

    def __init__(self):
        # Keyed by identity, which is fast; equal attributes that are several objects are converted several times.
        self.types: dict[int, ir.Type] = {}
        self._alive: list[Attribute] = []
        """Keeps the types alive whose identity is a key."""
        self._attributes: dict[int, tuple[Attribute, ir.Attribute]] = {}
        self._parsed_texts: dict[str, ir.Attribute] = {}
        self._kinds: dict[type[Attribute], Callable[[Any], ir.Attribute]] = {
            DenseAttr: lambda attribute: self._constant(attribute, attribute.data.data),
            DenseIntOrFPElementsAttr: self._dense,
            StringAttr: self._string,
            SymbolRefAttr: self._symbol,
            IntegerAttr: self._integer,
            DenseArrayBase: self._numbers,
            UnitAttr: lambda _: build.UnitAttr.get(),
            FunctionType: lambda attribute: build.TypeAttr.get(self.type(attribute)),
            ArrayAttr: lambda attribute: build.ArrayAttr.get([*map(self.get, attribute.data)]),
            DictionaryAttr: lambda attribute: build.DictAttr.get({k: self.get(v) for k, v in attribute.data.items()}),
        }

    def type(self, type: Attribute) -> ir.Type:
        converted = self.types.get(id(type))
        if converted is None:
            self._alive.append(type)
            converted = self.types[id(type)] = self._type(type)
        return converted

    def _type(self, type: Any) -> ir.Type:
        if is_tensor(type) and type.has_static_shape() and isinstance(type.encoding, NoneAttr):
            return build.RankedTensorType.get(type.get_shape(), self.type(type.element_type))
        if isinstance(type, FunctionType):
            return build.FunctionType.get([*map(self.type, type.inputs)], [*map(self.type, type.outputs)])
        other: Attribute = type
        return build.Type.parse(attribute_text(other))

    def get(self, attribute: Attribute) -> ir.Attribute:
        entry = self._attributes.get(id(attribute))
        if entry is None:
            convert: Any = self._kinds.get(type(attribute), self._parse)
            entry = self._attributes[id(attribute)] = attribute, convert(attribute)
        return entry[1]

    def _dense(self, attribute: Any) -> ir.Attribute:
        # A constant that is not a tensor, or whose element type numpy lacks, goes through its text.
        is_plain_tensor = isinstance(attribute.type, TensorType)
        return self._constant(attribute, small_bits(attribute)) if is_plain_tensor else self._parse(attribute)

    def _string(self, attribute: StringAttr) -> ir.Attribute:
        return build.StringAttr.get(attribute.data) if is_plain(attribute.data) else self._parse(attribute)

    def _symbol(self, attribute: SymbolRefAttr) -> ir.Attribute:
        name = attribute.root_reference.data
        is_simple = not attribute.nested_references.data and is_plain(name)
        return build.FlatSymbolRefAttr.get(name) if is_simple else self._parse(attribute)

    def _integer(self, attribute: Any) -> ir.Attribute:
        if attribute.type in (i32, i64):
            return build.IntegerAttr.get(self.type(attribute.type), attribute.value.data)
        return self._parse(attribute)

    def _numbers(self, attribute: Any) -> ir.Attribute:
        if attribute.elt_type == i64:
            return build.DenseI64ArrayAttr.get(attribute.get_values())
        return self._parse(attribute)

    def _constant(self, attribute: Any, bits: bytes) -> ir.Attribute:
        return constant_out(self.type(attribute.type), attribute.type.element_type, bits)

    def _parse(self, attribute: Attribute) -> ir.Attribute:
        text = attribute_text(attribute)
        if RESOURCE in text:
            raise NotBridged("a constant is a resource")
        parsed = self._parsed_texts.get(text)
        if parsed is None:
            parsed = self._parsed_texts[text] = build.Attribute.parse(text)
        return parsed
