"""The types of quantized numbers. xDSL stores them as text.

    !quant.uniform<i8:f32, 0.5:3>                       storage type, expressed type, scale, zero point
    !quant.uniform<i8<-100:100>:f32:1, {0.1:1, 0.2:2}>  limited storage; one scale for each index along dimension 1

Labels follow StableHLO's specification of quantized element types (C1 to C11) and tensors (C12 and C13).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from ml_dtypes import finfo
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    Signedness,
    UnregisteredAttr,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from ...support.type_guards import is_tensor
from ..constants.elements import dtype_of

_QUANTIZED = re.compile(
    r"\s*(?P<sign>[su]?i|u)(?P<bits>\d+)\s*(?:<\s*(?P<low>-?\d+)\s*:\s*(?P<high>-?\d+)\s*>)?\s*"
    r":\s*(?P<expressed>\w+)\s*(?::\s*(?P<dimension>-?\d+)\s*)?,\s*(?P<scales>.*?)\s*",
    re.DOTALL,
)
_FLOATS: dict[str, AnyFloat] = {
    "f16": Float16Type(),
    "bf16": BFloat16Type(),
    "f32": Float32Type(),
    "f64": Float64Type(),
}
_SIGNEDNESS = {
    "i": Signedness.SIGNLESS,
    "si": Signedness.SIGNED,
    "ui": Signedness.UNSIGNED,
    "u": Signedness.UNSIGNED,
}
NAME = "quant.uniform"


@dataclass(frozen=True)
class QuantizedType:
    """A quantized type, in which the stored integer `s` represents the real number `(s - zero_point) * scale`.

    Attributes:
        storage: The type of the stored integers.
        low, high: The smallest and the largest stored integer.
        expressed: The type of the real numbers.
        scales, zero_points: One for each index along `dimension`, or one for all elements.
        dimension: The dimension along which scales and zero points differ; None if all elements share them.
    """

    storage: IntegerType
    low: int
    high: int
    expressed: AnyFloat
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    dimension: int | None

    @classmethod
    def of(cls, element: Attribute) -> QuantizedType | None:
        """Parse a quantized element type; return None if the type is not a quantized type of this form."""
        # Compare names: `isinstance` is slow for `UnregisteredAttr`, an abstract class.
        if element.name != UnregisteredAttr.name:
            return None
        assert isinstance(element, UnregisteredAttr), "no other attribute has that name"
        return _of_text(element.value.data) if element.attr_name.data == NAME else None

    @property
    def element(self) -> tuple[IntegerType, int, int, AnyFloat]:
        """The storage type, its range and the expressed type."""
        return self.storage, self.low, self.high, self.expressed

    @property
    def baseline(self) -> tuple[object, ...]:
        """All parts of the type except the scales and zero points."""
        return (*self.element, self.dimension)

    def check(self) -> None:
        """Raise `VerifyException` if the specification does not allow the type."""
        if self.storage.signedness.data is Signedness.SIGNED:
            raise VerifyException(f"the storage type is {self.storage}, expected i{self.storage.width.data}")
        least, most = _range(self.storage)
        if not least <= self.low < self.high <= most:
            raise VerifyException(f"C3: the storage range {self.low}:{self.high} is not within {least}:{most}")
        # The stub of `finfo` has no types.
        limits = cast(Any, finfo)(dtype_of(self.expressed))
        least_scale, most_scale = float(limits.smallest_subnormal), float(limits.max)
        for scale in self.scales:
            if not least_scale <= scale <= most_scale:
                raise VerifyException(f"C5: the scale {scale} is not a positive, finite {self.expressed}")
        for zero_point in self.zero_points:
            if not self.low <= zero_point <= self.high:
                raise VerifyException(f"C7: the zero point {zero_point} is not within {self.low}:{self.high}")
        if self.dimension is None and len(self.scales) != 1:
            raise VerifyException(
                f"C10: there are {len(self.scales)} scales, expected 1 for a type without a quantization dimension"
            )
        if self.dimension is not None and self.dimension < 0:
            raise VerifyException(f"C11: the quantization dimension is {self.dimension}, expected at least 0")

    def check_shape(self, shape: Sequence[int]) -> None:
        """Raise `VerifyException` if the shape of a tensor is inconsistent with the quantization dimension."""
        if self.dimension is None:
            return
        if self.dimension >= len(shape):
            rank = len(shape)
            raise VerifyException(f"C12: the quantization dimension {self.dimension} must be less than rank {rank}")
        extent = shape[self.dimension]
        if extent not in (DYNAMIC_INDEX, len(self.scales)):
            raise VerifyException(
                f"C13: there are {len(self.scales)} scales, but the quantization dimension has extent {extent}"
            )


@lru_cache(4096)
def _of_text(text: str) -> QuantizedType | None:
    match = _QUANTIZED.fullmatch(text)
    if match is None or match["expressed"] not in _FLOATS:
        return None
    pairs = _pairs(match["scales"])
    if pairs is None:
        return None
    signedness = _SIGNEDNESS[match["sign"]]
    storage = IntegerType(int(match["bits"]), signedness)
    low, high = _range(storage)
    return QuantizedType(
        storage=storage,
        low=low if match["low"] is None else int(match["low"]),
        high=high if match["high"] is None else int(match["high"]),
        expressed=_FLOATS[match["expressed"]],
        scales=tuple(scale for scale, _ in pairs),
        zero_points=tuple(zero for _, zero in pairs),
        dimension=None if match["dimension"] is None else int(match["dimension"]),
    )


def _range(storage: IntegerType) -> tuple[int, int]:
    bits = storage.width.data
    if storage.signedness.data is Signedness.UNSIGNED:
        return 0, 2**bits - 1
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def _pairs(text: str) -> list[tuple[float, int]] | None:
    """Parse scales with optional zero points, `0.5:3` or `{0.5:3, 0.25}`. A missing zero point is 0."""
    entries = text.removeprefix("{").removesuffix("}").split(",")
    pairs = list[tuple[float, int]]()
    for entry in entries:
        scale, _, zero = entry.partition(":")
        try:
            pairs.append((float(scale), int(zero or 0)))
        except ValueError:
            return None
    return pairs


def same_element(first: Attribute, second: Attribute) -> bool:
    """Return whether two element types are equal. The spelling of quantized types may differ."""
    if first == second:
        return True
    type_ = QuantizedType.of(first)
    return type_ is not None and type_ == QuantizedType.of(second)


def same_parameters(first: Attribute, second: Attribute) -> bool:
    """Return whether two element types are both quantized along a dimension and equal except for that dimension."""
    parts = [QuantizedType.of(element) for element in (first, second)]
    numbers = {(part.element, part.scales, part.zero_points) for part in parts if part and part.dimension is not None}
    return None not in parts and len(numbers) == 1 and all(part and part.dimension is not None for part in parts)


def is_quantized(*values: SSAValue) -> bool:
    """Return whether any of these tensors has an element type outside the builtin dialect, such as a quantized type."""
    return any(is_tensor(value.type) and isinstance(value.type.element_type, UnregisteredAttr) for value in values)


def check_baseline(subject: str, actual: Attribute, expected: Attribute) -> None:
    """Check that two quantized element types are equal, except for scales and zero points. Other types are accepted."""
    first, second = QuantizedType.of(actual), QuantizedType.of(expected)
    if first is None and second is None:
        return
    if first is None or second is None or first.baseline != second.baseline:
        raise VerifyException(
            f"{subject} has elements of type {actual}, expected {expected} with any scales and zero points"
        )


def check_broadcast(label: str, operand_value: SSAValue, result_value: SSAValue, dimensions: Sequence[int]) -> None:
    """Check the element types of an operation that maps operand dimension i to result dimension `dimensions[i]`.

    `label` is the label of the constraint on quantization dimensions.
    """
    assert is_tensor(operand_value.type) and is_tensor(result_value.type), "by the definition of the operation"
    operand, result = operand_value.type.element_type, result_value.type.element_type
    source, target = QuantizedType.of(operand), QuantizedType.of(result)
    if source is None or target is None or None in (source.dimension, target.dimension):
        if not same_element(operand, result):
            raise VerifyException(f"C1: the result has elements of type {result}, expected {operand}")
        return
    if source.element != target.element:
        raise VerifyException(f"C1: the result has elements of type {result}, expected the storage type of {operand}")
    assert source.dimension is not None and target.dimension is not None, "both were compared with None"
    if source.dimension >= len(dimensions) or dimensions[source.dimension] != target.dimension:
        raise VerifyException(
            f"{label}: the dimensions {list(dimensions)} must map the quantization dimension of the operand "
            f"({source.dimension}) to the quantization dimension of the result ({target.dimension})"
        )
    repeated = len(target.scales) if operand_value.type.get_shape()[source.dimension] == 1 else 1
    parameters = (source.scales * repeated, source.zero_points * repeated)
    if parameters != (target.scales, target.zero_points):
        raise VerifyException(f"{label}: the result type {result} must have the scales and zero points of {operand}")


@dataclass(frozen=True)
class ProductLabels:
    """The labels of the constraints on the quantized types of a convolution or a matrix product."""

    quantized: str
    storage: str
    expressed: str
    granularity: str
    hybrid: str


def check_quantized_product(labels: ProductLabels, lhs: Attribute, rhs: Attribute, result: Attribute) -> None:
    """Check the element types of a convolution or a matrix product with a quantized operand or result."""
    left, right, output = (QuantizedType.of(element) for element in (lhs, rhs, result))
    if left is None and right is None and output is None:
        return
    if right is None or (left is None) != (output is None):
        raise VerifyException(
            f"{labels.quantized}: the element types are {lhs}, {rhs} and {result}; the right operand must be "
            "quantized, and the left operand must be quantized if and only if the result is"
        )
    if left is None or output is None:
        if not lhs == right.expressed == result:
            raise VerifyException(
                f"{labels.hybrid}: the left operand and the result have elements of the types {lhs} and {result}; both "
                f"must be {right.expressed}, the expressed type of the right operand"
            )
        return
    if left.storage != right.storage:
        raise VerifyException(
            f"{labels.storage}: the storage types of the operands are {left.storage} and {right.storage}, "
            "but they must be equal"
        )
    if not left.expressed == right.expressed == output.expressed:
        raise VerifyException(
            f"{labels.expressed}: the expressed types are {left.expressed}, {right.expressed} and "
            f"{output.expressed}, but they must be equal"
        )
    if right.dimension is None and output.dimension is not None:
        raise VerifyException(
            f"{labels.granularity}: the result is quantized along a dimension, but the operands are not"
        )
