"""Values that are computed from constants alone, as XLA treats them.

XLA folds small ones at compile time, and they cost nothing. A splat is a broadcast, and an ascending range is an iota:
values computed from these are computed at run time, equal values once, before all other operations. Kernels that can
fuse such a value compute it themselves; for the others it is stored from the start of the step to its last reader.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from xdsl.ir import Attribute, Operation, SSAValue

from ....dialects.dense import DenseAttr, to_numpy
from ....rules.fusion import FUSIBLE
from ....rules.names import name_of
from ....rules.storage import DENSE_VIEWS
from ....support.type_guards import is_tensor


@dataclass(frozen=True)
class SplatNumber:
    """A splat: all elements are one number. Equal for equal numbers."""

    key: Hashable
    literal: DenseAttr | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Computed:
    """A value that is computed at run time: equal for equal computations."""

    key: Hashable


@dataclass
class FromConstants:
    """Classifies values; operations whose operands all come from constants must be added in program order."""

    classes: dict[SSAValue, SplatNumber | Computed] = field(default_factory=dict[SSAValue, "SplatNumber | Computed"])

    def add(self, op: Operation) -> None:
        if len(op.results) == 1 and not op.regions and (classified := self._of(op)) is not None:
            self.classes[op.results[0]] = classified

    def alike(self, value: SSAValue) -> tuple[Hashable, Attribute] | None:
        """A key that is equal for values that XLA makes once; None for values that cost nothing."""
        classified = self.classes.get(value)
        if classified is None or not is_tensor(value.type) or not value.type.get_shape():
            return None
        return classified, value.type

    def is_one_number(self, value: SSAValue) -> bool:
        return isinstance(self.classes.get(value), SplatNumber)

    def left_alone(self, op: Operation) -> SSAValue | None:
        """The operand that the operation returns unchanged: `x` of `x + 0` or of a maximum with minus infinity."""
        neutral = _NEUTRAL.get(name_of(op))
        if neutral is None:
            return None
        left, right = op.operands
        if self._is(right, neutral):
            return left
        return right if name_of(op) not in _ONE_SIDED and self._is(left, neutral) else None

    def _is(self, value: SSAValue, number: float) -> bool:
        splat = self.classes.get(value)
        if not isinstance(splat, SplatNumber) or not isinstance(splat.literal, DenseAttr):
            return False
        array = to_numpy(splat.literal)
        return bool((array == number).all())

    def _of(self, op: Operation) -> SplatNumber | Computed | None:
        name, read = name_of(op), [self.classes.get(operand) for operand in op.operands]
        if name == "stablehlo.constant":
            return _literal(op.properties["value"])
        if (
            read
            and all(isinstance(operand, SplatNumber) for operand in read)
            and (name in FUSIBLE or name in DENSE_VIEWS)
        ):
            if name == "stablehlo.broadcast_in_dim" or name in DENSE_VIEWS:
                return read[0]
            return SplatNumber((name, _element(op.results[0]), *read))
        runs = name == "stablehlo.iota" or any(self.alike(operand) for operand in op.operands)
        if not runs:
            return None
        properties = tuple(sorted(op.properties.items()))
        inputs = [classified or operand for classified, operand in zip(read, op.operands, strict=True)]
        return Computed((name, properties, op.results[0].type, *inputs))


_NEUTRAL = {
    "stablehlo.add": 0.0,
    "stablehlo.subtract": 0.0,
    "stablehlo.multiply": 1.0,
    "stablehlo.divide": 1.0,
    "stablehlo.maximum": float("-inf"),
    "stablehlo.minimum": float("inf"),
}
_ONE_SIDED = frozenset({"stablehlo.subtract", "stablehlo.divide"})


def _literal(value: Attribute) -> SplatNumber | None:
    if isinstance(value, DenseAttr) and (value.is_splat or not value.type.get_shape()):
        return SplatNumber((value.data, value.type.element_type), value)
    return None


def _element(value: SSAValue) -> Attribute | None:
    return value.type.element_type if is_tensor(value.type) else None
