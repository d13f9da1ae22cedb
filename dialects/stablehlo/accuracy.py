"""Attributes for the accuracy of transcendental functions.

#stablehlo.result_accuracy<atol = 1.0e-05, ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from ..constants.elements import format_float
from .attributes import parse_int64


class ResultAccuracyMode(StrEnum):
    DEFAULT = "DEFAULT"
    HIGHEST = "HIGHEST"
    TOLERANCE = "TOLERANCE"


@irdl_attr_definition
class ResultAccuracyModeAttr(EnumAttribute[ResultAccuracyMode]):
    """The accuracy mode of a transcendental operation: `#stablehlo.result_accuracy_mode<HIGHEST>`."""

    name = "stablehlo.result_accuracy_mode"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ResultAccuracyMode:
        with parser.in_angle_brackets():
            return parser.parse_str_enum(ResultAccuracyMode)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data.value}>")


@dataclass(frozen=True)
class ResultAccuracy:
    """Absolute tolerance, relative tolerance, and tolerance in units in the last place. A result must satisfy at least
    one of them."""

    atol: float
    rtol: float
    ulps: int
    mode: ResultAccuracyMode

    def why_wrong(self) -> str | None:
        tolerances = (self.atol, self.rtol, self.ulps)
        if any(math.copysign(1, tolerance) < 0 for tolerance in tolerances):
            return "tolerances must not be negative"
        if self.mode != ResultAccuracyMode.TOLERANCE and any(tolerances):
            return f"mode {self.mode.value} takes no tolerances: remove them, or use the mode TOLERANCE"
        return None


@irdl_attr_definition
class ResultAccuracyAttr(Data[ResultAccuracy]):
    """The required accuracy of results, `#stablehlo.result_accuracy<…>`. Tolerances of zero are not printed."""

    name = "stablehlo.result_accuracy"

    def verify(self) -> None:
        if (wrong := self.data.why_wrong()) is not None:
            raise VerifyException(wrong)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ResultAccuracy:
        start = parser.pos
        with parser.in_angle_brackets():
            atol, rtol = _parse_tolerance(parser, "atol"), _parse_tolerance(parser, "rtol")
            ulps = _parse_ulps(parser)
            parser.parse_keyword("mode")
            parser.parse_punctuation("=")
            mode = parser.parse_attribute()
            if not isinstance(mode, ResultAccuracyModeAttr):
                parser.raise_error("expected a mode, #stablehlo.result_accuracy_mode<…>", start, parser.pos)
        accuracy = ResultAccuracy(atol, rtol, ulps, mode.data)
        if (wrong := accuracy.why_wrong()) is not None:
            parser.raise_error(wrong, start, parser.pos)
        return accuracy

    def print_parameter(self, printer: Printer) -> None:
        tolerances = (("atol", self.data.atol), ("rtol", self.data.rtol))
        texts = [f"{name} = {_text(value)}, " for name, value in tolerances if value]
        if self.data.ulps:
            texts.append(f"ulps = {self.data.ulps}, ")
        printer.print_string(f"<{''.join(texts)}mode = ")
        printer.print_attribute(ResultAccuracyModeAttr(self.data.mode))
        printer.print_string(">")


def _parse_tolerance(parser: AttrParser, name: str) -> float:
    """Parse a tolerance such as `atol = 1.0e-05,`; return zero if the field is missing."""
    if parser.parse_optional_keyword(name) is None:
        return 0.0
    parser.parse_punctuation("=")
    start = parser.pos
    value = parser.parse_float()
    if math.isinf(value):
        parser.raise_error("the tolerance is too large for a double", start, parser.pos)
    parser.parse_punctuation(",")
    return value


def _parse_ulps(parser: AttrParser) -> int:
    if parser.parse_optional_keyword("ulps") is None:
        return 0
    parser.parse_punctuation("=")
    value = parse_int64(parser)
    parser.parse_punctuation(",")
    return value


def _text(value: float) -> str:
    return format_float(np.float64(value).tobytes(), np.dtype(np.float64))


ACCURACY: list[type[Attribute]] = [ResultAccuracyAttr, ResultAccuracyModeAttr]
