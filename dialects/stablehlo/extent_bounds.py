"""Bounds of dynamic extents, which a tensor type stores in its encoding.

    tensor<3x?xf32, #stablehlo.bounds<?, 4>>                        the second extent is unknown, and at most 4
    tensor<3x?xf32, #stablehlo.type_extensions<bounds = [?, 4]>> the same, in an older spelling

A missing bound is written as `?` and represented here as `DYNAMIC_INDEX`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute, Data, SSAValue
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ...support.type_guards import is_tensor
from .attributes import parse_int64

Bounds = tuple[int, ...]


def _parse_bound(parser: AttrParser) -> int:
    return DYNAMIC_INDEX if parser.parse_optional_punctuation("?") is not None else parse_int64(parser)


def _text(bounds: Bounds) -> str:
    return ", ".join("?" if bound == DYNAMIC_INDEX else str(bound) for bound in bounds)


@irdl_attr_definition
class BoundsAttr(Data[Bounds]):
    """The bounds of the extents of a tensor: `#stablehlo.bounds<?, 4>`"""

    name = "stablehlo.bounds"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Bounds:
        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, lambda: _parse_bound(parser)))

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{_text(self.data)}>")


@irdl_attr_definition
class TypeExtensionsAttr(Data[Bounds]):
    """The bounds of the extents of a tensor, in an older spelling: `#stablehlo.type_extensions<bounds = [?, 4]>`"""

    name = "stablehlo.type_extensions"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Bounds:
        with parser.in_angle_brackets():
            parser.parse_keyword("bounds")
            parser.parse_punctuation("=")
            return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_bound(parser)))

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<bounds = [{_text(self.data)}]>")


def bounds_of(type_: TensorType[Attribute]) -> Bounds:
    """Return the bound of each dimension; `DYNAMIC_INDEX` for a dimension without a bound."""
    encoding = type_.encoding
    if isinstance(encoding, (BoundsAttr, TypeExtensionsAttr)) and len(encoding.data) == type_.get_num_dims():
        return encoding.data
    return (DYNAMIC_INDEX,) * type_.get_num_dims()


def largest_shape(type_: TensorType[Attribute]) -> list[int]:
    """Return the shape, with each dynamic extent replaced by its bound."""
    pairs = zip(type_.get_shape(), bounds_of(type_), strict=True)
    return [bound if extent == DYNAMIC_INDEX else extent for extent, bound in pairs]


def is_within_bounds(first: TensorType[Attribute], second: TensorType[Attribute]) -> bool:
    """Return whether no extent of either type exceeds a bound of the other type. Both types must have the same rank."""
    return all(
        bound == DYNAMIC_INDEX or extent <= bound
        for type_, other in ((first, second), (second, first))
        for extent, bound in zip(type_.get_shape(), bounds_of(other), strict=True)
    )


def check_bounds(type_: Attribute) -> None:
    """Raise `VerifyException` unless the type's bounds have one entry for each dimension, and `?` for each static
    extent."""
    if not is_tensor(type_) or not isinstance(type_.encoding, (BoundsAttr, TypeExtensionsAttr)):
        return
    bounds, shape = type_.encoding.data, type_.get_shape()
    if len(bounds) != len(shape):
        raise VerifyException(f"{type_} has {len(bounds)} bounds, expected one for each of {len(shape)} dimensions")
    for extent, bound in zip(shape, bounds, strict=True):
        if bound != DYNAMIC_INDEX and extent != DYNAMIC_INDEX:
            raise VerifyException(
                f"{type_} has the bound {bound} for the static extent {extent}, which needs no bound: write '?' as its "
                "bound"
            )


def check_static_or_bounded(subject: str, value: SSAValue) -> None:
    """Check that at most one extent is dynamic, and that a dynamic extent has a bound.

    The check is for operations whose result type alone determines the computed shape.
    """
    type_ = value.type
    assert is_tensor(type_), "by the definition of the operation"
    if type_.get_shape().count(DYNAMIC_INDEX) > 1 or DYNAMIC_INDEX in largest_shape(type_):
        words = "expected a static shape, or one dynamic extent with a bound"
        raise VerifyException(f"{subject} has type {type_}, {words}")


BOUNDS: list[type[Attribute]] = [BoundsAttr, TypeExtensionsAttr]
