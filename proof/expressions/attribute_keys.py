"""Hash-consing of attributes and types: two attributes get the same id if and only if they are equal bit for bit.

xDSL's own equality is replaced where it is too coarse (in xDSL 0.73 all NaNs are equal) or too fine (unregistered
attributes of two parse contexts are never equal). A splat constant equals the constant that lists the same element for
each position. Two resources of one type are equal if they have the same content, whatever their names.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Hashable, Iterable
from functools import singledispatchmethod
from math import prod
from typing import Any

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    DictionaryAttr,
    FloatData,
    SymbolRefAttr,
    TensorType,
    UnregisteredAttr,
)
from xdsl.ir import Attribute, Data, ParametrizedAttribute

from ...dialects.constants.dense import DenseAttr, SplatBytes
from ...mlir_io.resources import resource_content, unknown_content

_SYMBOL = re.compile(r'@(?:"([^"]*)"|([\w$.-]+))')
# An alias is a number (`#0`) or a name without a dialect (`#map`, but not `#other.map` or `#other<map>`). A backslash
# escape may hide an alias.
_OUTSIDE = re.compile(r"[#!](?:\d|[A-Za-z_$-][\w$-]*(?![\w$.<-]))|dense_resource|\\")

MAX_PRINTED_BYTES = 1000
"""Maximum size, in bytes, of a constant that messages print in full."""


class OpaqueAttributeError(Exception):
    """Raised for an attribute that refers to content outside itself, because equal text then does not imply equal
    content."""


class AttributeKeys:
    """Table that assigns ids to attributes and types.

    Args:
        functions: Names of all functions of both programs. An attribute that refers to one of them raises
            `OpaqueAttributeError`, because functions with the same name may have different bodies in the two programs.
    """

    def __init__(self, functions: frozenset[str]):
        self._functions = functions
        self._numbers: dict[Hashable, int] = {}
        self._first: list[Attribute] = []
        # The entry also holds the attribute, so that Python does not reuse its id.
        self._by_id: dict[int, tuple[Attribute, int]] = {}

    def number(self, attribute: Attribute) -> int:
        """Return the id of an attribute in this table; equal attributes have equal ids.

        Raises:
            OpaqueAttributeError: The attribute refers to content outside itself.
        """
        if (entry := self._by_id.get(id(attribute))) is not None:
            return entry[1]
        number = self._numbers.setdefault(self._key(attribute), len(self._numbers))
        if number == len(self._first):
            self._first.append(attribute)
        self._by_id[id(attribute)] = attribute, number
        return number

    def attribute(self, number: int) -> Attribute:
        """Return the first attribute that was assigned this id."""
        return self._first[number]

    def by_name(self, numbers: Iterable[tuple[str, int]]) -> dict[str, Attribute]:
        """Return the attributes by name. `numbers`: pairs of an attribute's name and its id."""
        return {name: self.attribute(number) for name, number in numbers}

    def text(self, number: int) -> str:
        """Return the attribute as a string for messages, without the data of large constants."""
        match attribute := self._first[number]:
            case DenseAttr(type=type_, data=data) | DenseIntOrFPElementsAttr(type=type_, data=data):
                return str(attribute) if len(data.data) <= MAX_PRINTED_BYTES else f"dense<…> : {type_}"
            case DenseResourceAttr(resource_handle=handle, type=type_):
                return f"dense_resource of {_content_of(handle.data)} : {type_}"
            case _:
                return str(attribute)

    @singledispatchmethod
    def _key(self, attribute: Attribute) -> Hashable:
        raise OpaqueAttributeError(f"{attribute} is of a class that is neither `Data` nor `ParametrizedAttribute`")

    @_key.register
    def _parameters(self, attribute: ParametrizedAttribute) -> Hashable:
        return (type(attribute), *map(self.number, attribute.parameters))

    @_key.register(Data)
    def _data(self, attribute: Data[Any]) -> Hashable:
        if type(attribute.data) in (int, str, bytes):
            return type(attribute), attribute.data
        # The key also contains the text, because floats with different bits may compare equal (-0.0 == 0.0).
        return type(attribute), attribute, repr(attribute.data)

    @_key.register
    def _float(self, attribute: FloatData) -> Hashable:
        return FloatData, struct.pack("<d", attribute.data)

    @_key.register(ArrayAttr)
    def _array(self, attribute: ArrayAttr[Attribute]) -> Hashable:
        return (ArrayAttr, *map(self.number, attribute.data))

    @_key.register
    def _dictionary(self, attribute: DictionaryAttr) -> Hashable:
        return (DictionaryAttr, *((name, self.number(attribute.data[name])) for name in sorted(attribute.data)))

    @_key.register(TensorType)
    def _tensor(self, attribute: TensorType[Attribute]) -> Hashable:
        return TensorType, attribute.get_shape(), self.number(attribute.element_type), self.number(attribute.encoding)

    @_key.register
    def _small_constant(self, attribute: DenseAttr) -> Hashable:
        count = 1 if attribute.is_splat else prod(attribute.type.get_shape())
        return "dense", self.number(attribute.type), _without_repetition(attribute.data.data, count)

    @_key.register(DenseIntOrFPElementsAttr)
    def _constant(self, attribute: DenseIntOrFPElementsAttr) -> Hashable:
        storage: object = attribute.data
        if isinstance(storage, SplatBytes):
            # The expanded constant may not fit in memory.
            return "dense", self.number(attribute.type), storage.element if storage.count else b""
        count = prod(attribute.get_shape())
        return "dense", self.number(attribute.type), _without_repetition(attribute.data.data, count)

    @_key.register
    def _resource(self, attribute: DenseResourceAttr) -> Hashable:
        return "resource", self.number(attribute.type), _content_of(attribute.resource_handle.data)

    @_key.register
    def _symbol(self, attribute: SymbolRefAttr) -> Hashable:
        self._refuse_function(attribute.root_reference.data)
        names = (attribute.root_reference, *attribute.nested_references.data)
        return (SymbolRefAttr, *(name.data for name in names))

    @_key.register
    def _text(self, attribute: UnregisteredAttr) -> Hashable:
        text = attribute.value.data
        if _OUTSIDE.search(text):
            raise OpaqueAttributeError(f"{attribute} contains an alias, a resource or an escape")
        for quoted, plain in _SYMBOL.findall(text):
            self._refuse_function(quoted or plain)
        return UnregisteredAttr, attribute.attr_name.data, attribute.is_type.data, attribute.is_opaque.data, text

    def _refuse_function(self, name: str) -> None:
        if name in self._functions:
            raise OpaqueAttributeError(f"it refers to the function @{name}")


def _content_of(resource: str) -> str:
    """Return the alignment and the elements of a resource, in hexadecimal. Raises `OpaqueAttributeError` if the program
    omits them."""
    if (content := resource_content(resource)) is None:
        raise OpaqueAttributeError(unknown_content(resource))
    return content


def _without_repetition(data: bytes, count: int) -> bytes:
    """Return the bytes of a single element if all `count` elements are equal, otherwise `data`."""
    if count and data == (element := data[: len(data) // count]) * count:
        return element
    return data
