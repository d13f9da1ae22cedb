"""The data of xDSL's dense constants where all elements are alike, held once."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import BytesAttr
from xdsl.ir import BuiltinAttribute, Data
from xdsl.parser import AttrParser
from xdsl.printer import Printer

LARGEST_EXPANDED = 1 << 20
"""Bytes that are made for a comparison."""


class SplatBytes(Data[bytes], BuiltinAttribute):
    """A `BytesAttr` of `count` times the same element, whose bytes are made when somebody asks for them.

    It is an instance of that class to whoever asks, and equal to the `BytesAttr` of the same bytes, unless these are
    too many to be made for a comparison: then the two differ, which keeps a pass from merging them and no more.
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
        """All bytes, made anew each time."""
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


# xDSL does not let its attributes be subclassed.
BytesAttr.register(SplatBytes)


def splat_bytes(element: bytes, count: int) -> BytesAttr:
    """`count` times the element."""
    return BytesAttr(element) if count == 1 else cast(BytesAttr, SplatBytes(element, count))
