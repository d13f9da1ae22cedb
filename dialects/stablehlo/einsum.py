"""The equations of `einsum` and `unary_einsum`: `"ab,bc->ac"`, `"...ab->...ba"`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DYNAMIC_INDEX

from .checks import Shape

_EQUATION = re.compile(r"([A-Za-z.]*)(?:,([A-Za-z.]*))?->([A-Za-z.]*)")
ELLIPSIS = "..."


@dataclass(frozen=True)
class Einsum:
    """A label for each dimension of the operands and of the result; extents are known by label.

    The dimensions of an ellipsis are labelled `.0`, `.1`, … from the last one.
    """

    operands: tuple[tuple[str, ...], ...]
    result: tuple[str, ...]
    extents: Mapping[str, int]

    @classmethod
    def parse(cls, equation: str, shapes: Sequence[Shape]) -> Einsum:
        """Parse an equation for operands of these shapes. Raises `ValueError` for an equation that does not fit."""
        match = _EQUATION.fullmatch(equation.replace(" ", ""))
        if match is None:
            raise ValueError(f"'{equation}' is no equation such as 'ab,bc->ac'")
        terms = [term for term in match.groups()[:2] if term is not None]
        if len(terms) != len(shapes):
            raise ValueError(f"'{equation}' has {len(terms)} operands, expected {len(shapes)}")
        operands = [_labels(term, len(shape)) for term, shape in zip(terms, shapes, strict=True)]
        extents: dict[str, int] = {}
        for labels, shape in zip(operands, shapes, strict=True):
            for label, extent in zip(labels, shape, strict=True):
                _merge(extents, label, extent)
        hidden = max((sum(label.startswith(".") for label in labels) for labels in operands), default=0)
        result = _labels(match[3], len(match[3].replace(ELLIPSIS, "")) + (hidden if ELLIPSIS in match[3] else 0))
        if unknown := [label for label in result if label not in extents]:
            raise ValueError(f"the result of '{equation}' has '{unknown[0]}', which no operand has")
        if len(set(result)) != len(result):
            raise ValueError(f"the result of '{equation}' has a label twice")
        return cls(tuple(operands), result, extents)

    def result_shape(self) -> list[int]:
        return [self.extents[label] for label in self.result]

    @property
    def contracted(self) -> tuple[str, ...]:
        """The labels that are summed over."""
        return tuple(label for label in self.extents if label not in self.result)


def _labels(term: str, rank: int) -> tuple[str, ...]:
    before, dots, after = term.partition(ELLIPSIS)
    hidden = rank - len(before) - len(after)
    if "." in before + after or hidden < 0 or (hidden and not dots):
        raise ValueError(f"'{term}' does not name {rank} dimensions")
    return (*before, *(f".{index}" for index in reversed(range(hidden))), *after)


def _merge(extents: dict[str, int], label: str, extent: int) -> None:
    known = extents.get(label, DYNAMIC_INDEX)
    if DYNAMIC_INDEX not in (known, extent) and known != extent:
        raise ValueError(f"'{label}' has the extents {known} and {extent}")
    extents[label] = extent if known == DYNAMIC_INDEX else known
