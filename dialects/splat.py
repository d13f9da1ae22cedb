"""The data of xDSL's dense constants with equal elements, stored once."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import BytesAttr
from xdsl.ir import BuiltinAttribute, Data
from xdsl.parser import AttrParser
from xdsl.printer import Printer

LARGEST_EXPANDED = 1 << 20
"""The maximum number of bytes that a comparison expands."""


class SplatBytes(Data[bytes], BuiltinAttribute):
    """A `BytesAttr` of `count` equal elements, whose bytes are created on access.

    It is a virtual subclass of `BytesAttr`, and equal to the `BytesAttr` of the same bytes, unless these are more than
    `LARGEST_EXPANDED`: then the two compare unequal, which only keeps passes from merging them.
    """

    name = "bytes"

    element: bytes
    count: int

    def __init__(self, element: bytes, count: int):
        # Attributes are frozen.
        object.__setattr__(self, "element", element)
        object.__setattr__(self, "count", count)

    @property
    def data(self) -> bytes:  # pyright: ignore[reportIncompatibleVariableOverride]
        """All bytes, created on each access."""
        return self.element * self.count

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SplatBytes) and len(self.element) == len(other.element):
            return self.count == other.count and (self.element == other.element or not self.count)
        return isinstance(other, BytesAttr) and self._is_small and self.data == other.data

    def __hash__(self) -> int:
        return hash(BytesAttr(self.data) if self._is_small else (self.element, self.count))

    @property
    def _is_small(self) -> bool:
        return len(self.element) * self.count <= LARGEST_EXPANDED

    def __repr__(self) -> str:
        return f"SplatBytes({self.element!r}, {self.count})"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> bytes:
        raise ValueError("the data of a dense constant is not an attribute of its own in a text")

    def print_parameter(self, printer: Printer) -> None:
        raise ValueError("the data of a dense constant is not an attribute of its own in a text")

    def print_builtin(self, printer: Printer) -> None:
        BytesAttr(self.data).print_builtin(printer)


# xDSL's attributes cannot be subclassed.
BytesAttr.register(SplatBytes)


def splat_bytes(element: bytes, count: int) -> BytesAttr:
    """The bytes of `count` equal elements."""
    return BytesAttr(element) if count == 1 else cast(BytesAttr, SplatBytes(element, count))
