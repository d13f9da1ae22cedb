"""FLOPs, transcendentals and fusion of elementwise functions that XLA expands into simpler operations.

The numbers are the counts of `HloCostAnalysis` in jaxlib 0.10.2 for one operation, divided by the number of result
elements. `test/unit/rules/test_against_xla.py` compares them with the installed jaxlib.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from xdsl.dialects.builtin import AnyFloat, ComplexType, Float32Type, Float64Type
from xdsl.ir import Attribute, Operation

from ..support.type_guards import is_shaped
from .body_runs import elements
from .facts import Count, Facts, FusionRole, fused, pure

Pair: TypeAlias = tuple[int, int]


@dataclass(frozen=True)
class ElementWork:
    """The work for each element, as (FLOPs, transcendentals), by element type.

    Attributes:
        single: The work for f32 and integers.
        double: The work for f64.
        narrow: The work for floats narrower than f32.
        complex: The work for complex numbers.
        fusion: `CHEAP` for a function that expands into a short chain of cheap operations.
    """

    single: Pair
    double: Pair
    narrow: Pair
    complex: Pair
    fusion: FusionRole = FusionRole.EXPENSIVE

    def of(self, element: Attribute) -> Pair:
        if isinstance(element, ComplexType):
            return self.complex
        if isinstance(element, Float64Type):
            return self.double
        return self.single if isinstance(element, Float32Type) or not isinstance(element, AnyFloat) else self.narrow


def _row(
    single: Pair, double: Pair | None = None, narrow: Pair | None = None, complex_: Pair | None = None
) -> ElementWork:
    """Return the work for each element. An element type without an entry has the work of f32."""
    return ElementWork(single, double or single, narrow or single, complex_ or single)


def _cheap(row: ElementWork) -> ElementWork:
    return replace(row, fusion=FusionRole.CHEAP)


OF_STABLEHLO: Mapping[str, ElementWork] = {
    "exponential": _row((0, 1), complex_=(15, 4)),
    "log": _row((0, 1), complex_=(62, 4)),
    "log_plus_one": _row((0, 1), complex_=(79, 5)),
    "sqrt": _row((0, 1), complex_=(86, 7)),
}
OF_CHLO: Mapping[str, ElementWork] = {
    "acos": _row((3, 2), complex_=(105, 9)),
    "acosh": _row((7, 4), complex_=(105, 9)),
    "asin": _row((5, 2), complex_=(105, 9)),
    "asinh": _row((11, 3), complex_=(104, 9)),
    "atan": _row((0, 1), complex_=(47, 2)),
    "atanh": _row((6, 2), complex_=(45, 2)),
    "bessel_i1e": _row((83, 1), (173, 1), (85, 1)),
    "conj": _cheap(_row((0, 0), complex_=(4, 0))),
    "cosh": _row((3, 2), narrow=(5, 2), complex_=(95, 12)),
    "digamma": _row((73, 3), narrow=(75, 3)),
    "erf": _row((0, 1)),
    "erf_inv": _row((37, 2), (100, 2), (39, 2)),
    "erfc": _row((62, 1), (90, 1), (64, 1)),
    "is_inf": _cheap(_row((2, 0))),
    "is_neg_inf": _cheap(_row((1, 0))),
    "is_pos_inf": _cheap(_row((1, 0))),
    "lgamma": _row((53, 4), narrow=(55, 4)),
    "mulhi": _cheap(_row((1, 0))),
    "next_after": _cheap(_row((24, 0))),
    "polygamma": _row((260, 19), narrow=(263, 19)),
    "sinh": _row((10, 3), narrow=(12, 3), complex_=(95, 12)),
    "square": _cheap(_row((1, 0), complex_=(14, 0))),
    "tan": _row((0, 1)),
    "zeta": _row((121, 11), narrow=(124, 11)),
}


def expansions_of(dialect: str, rows: Mapping[str, ElementWork]) -> dict[str, Facts]:
    """Return the facts about pure elementwise functions. `rows`: the work of each function by name, without the
    dialect."""
    return {f"{dialect}.{name}": fused(pure(_count(row, 0), _count(row, 1)), row.fusion) for name, row in rows.items()}


def _count(row: ElementWork, index: int) -> Count:
    def count(op: Operation) -> int:
        operand, result = op.operands[0].type, op.results[0].type
        return row.of(operand.element_type if is_shaped(operand) else operand)[index] * elements(result)

    return count
