"""Run-time conditions: requirements on the operands of an operation. If they are not met, the operation fails or its
behaviour is undefined.

The rewritten program may drop an operation that has a run-time condition, but must not run such an operation where the
original program does not run it (`risks.py`). These operations have a condition:

* Every operation with a type of unknown extents, except those in `_TOTAL`: "Constraints will be verified statically if
  possible, otherwise they are deferred to runtime and mismatches will result in undefined behavior" (StableHLO,
  Dynamism).
* Operations for which the specification or the documentation of the dialect gives a condition. Some always have one
  (`_ALWAYS`), others only with certain attributes, element types or operands (`RunTimeConditions.of`).
* Operations that are pure only because the user declares them pure.

A loop that may not terminate is treated like an operation with a condition (`termination.py`). Implementation-defined
behaviour is not a failure: integers wrap around, and indices are clamped where StableHLO clamps them.

Sources: https://openxla.org/stablehlo/spec (the sections of the operations, Dynamism, Errors) and
https://mlir.llvm.org/docs/Dialects/.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import BoolAttr, IndexType, UnrankedMemRefType, UnrankedTensorType
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.constants.dense import DenseAttr, to_numpy
from ...dialects.placements import is_placement
from ...support.operations import name_of
from ...support.type_guards import is_integer_attribute, is_integer_type, is_standard_dense, is_tensor
from ..operations.operation_parts import attributes_of
from .terms import Terms

_DIVISION = "its divisor is not 0"
_RANGE = "its indices, sizes and offsets are in range"
_SHAPE = "the given shape matches its types"
_ALWAYS = {
    **dict.fromkeys(
        "arith.ceildivsi arith.ceildivui arith.divsi arith.divui arith.floordivsi arith.remsi arith.remui".split(),
        _DIVISION,
    ),
    "math.ipowi": "0 is not raised to a negative power",
    **dict.fromkeys(
        """
        tensor.dim tensor.extract tensor.extract_slice tensor.gather tensor.insert tensor.insert_slice tensor.scatter
        stablehlo.real_dynamic_slice stablehlo.set_dimension_size stablehlo.torch_index_select
        """.split(),
        _RANGE,
    ),
    **dict.fromkeys(
        """
        tensor.cast tensor.reshape stablehlo.dynamic_broadcast_in_dim stablehlo.dynamic_conv stablehlo.dynamic_gather
        stablehlo.dynamic_iota stablehlo.dynamic_pad stablehlo.dynamic_reshape
        """.split(),
        _SHAPE,
    ),
    "stablehlo.cholesky": "its operand is positive definite",
    "chlo.ragged_dot": "the sizes of its groups fit",
    "stablehlo.custom_call": "the call returns",
}
"""Operations that have a condition for all types, and the condition."""

_TOTAL = frozenset("recompute.token sdy.sharding_constraint stablehlo.get_dimension_size tensor.rank".split())
"""Operations without a condition even if extents are dynamic."""

_ASSUMED_SORTED = "its indices are sorted"
_BY_FLAG = {
    "stablehlo.gather": {"indices_are_sorted": _ASSUMED_SORTED},
    "stablehlo.scatter": {"indices_are_sorted": _ASSUMED_SORTED, "unique_indices": "its indices are unique"},
    "stablehlo.triangular_solve": {"unit_diagonal": "the diagonal is 1"},
}
"""Attributes with which a program asserts a condition, and the condition: "otherwise the behavior is undefined"."""

_INTEGER_DIVISION = frozenset(
    """
    stablehlo.divide stablehlo.remainder chlo.broadcast_divide chlo.broadcast_remainder
    linalg.div linalg.div_unsigned linalg.elementwise
    """.split()
)


class RunTimeConditions:
    """Determines the run-time conditions of operations. Caches which types have unknown extents."""

    def __init__(self, terms: Terms):
        self._terms = terms
        # The entry also holds the type, so that Python does not reuse its id.
        self._dynamic = dict[int, tuple[Attribute, bool]]()

    def of(self, op: Operation, operands: Sequence[int]) -> str | None:
        """Return the run-time condition of the operation as a clause, such as "its divisor is not 0", or None if there
        is no condition.

        `operands`: the terms of the operands; constant operands may rule out a condition.
        """
        name = name_of(op)
        if (condition := _ALWAYS.get(name)) is not None:
            return None if is_placement(op) else condition
        if name in _INTEGER_DIVISION and self._may_divide_by_zero(op, operands):
            return _DIVISION
        if (flags := _BY_FLAG.get(name)) is not None:
            attributes = attributes_of(op)
            for flag, condition in flags.items():
                if attributes.get(flag, BoolAttr.from_bool(False)) != BoolAttr.from_bool(False):
                    return condition
        if name == "scf.for" and not (len(operands) > 2 and self._is_positive(operands[2])):
            return "its step is positive"
        if name.startswith("tensor.") and name != "tensor.from_elements" and _has_index(op.operands):
            return _RANGE
        if name not in _TOTAL and self._is_dynamic((*op.operands, *op.results)):
            return "the extents of its operands and results match"
        return None

    def depends_on_operands(self, op: Operation) -> bool:
        """Return whether the values of the operands, not only attributes and types, determine the condition."""
        is_integer_division = name_of(op) in _INTEGER_DIVISION and _has_integers(op)
        return is_integer_division or name_of(op) == "scf.for"

    def _may_divide_by_zero(self, op: Operation, operands: Sequence[int]) -> bool:
        if not _has_integers(op):
            return False
        divisor = operands[1] if name_of(op).startswith("stablehlo.") else None
        if divisor is None or (elements := self._constant(divisor)) is None:
            return True
        # The division of the smallest integer by -1 overflows.
        return bool(np.any(elements == 0)) or bool(np.any(elements == -1))

    def _is_positive(self, number: int) -> bool:
        elements = self._constant(number)
        return elements is not None and bool(np.all(elements > 0))

    def _constant(self, number: int) -> NDArray[Any] | None:
        """Return the elements of an integer constant, looking through broadcasts and reshapes, or None for other terms.
        For a select between two constants, return the elements of both."""
        while (head := self._terms.head_of(number)).kind == "operation" and (
            head.name in _COPIES_ELEMENTS or (head.name == "stablehlo.convert" and self._keeps_type(number))
        ):
            (number,) = self._terms.operands_of(number)
        if (head.kind, head.name) == ("operation", "stablehlo.select"):
            choices = [self._constant(choice) for choice in self._terms.operands_of(number)[1:]]
            constants = [elements.reshape(-1) for elements in choices if elements is not None]
            return np.concatenate(constants) if len(constants) == len(choices) else None
        if head.kind != "operation" or head.name not in ("stablehlo.constant", "arith.constant"):
            return None
        value = next((value for name, value in head.attributes if name == "value"), None)
        return None if value is None else integer_elements(self._terms.attributes.attribute(value))

    def _keeps_type(self, number: int) -> bool:
        (operand,) = self._terms.operands_of(number)
        return self._terms.types_of(operand) == self._terms.types_of(number)

    def _is_dynamic(self, values: Sequence[SSAValue]) -> bool:
        for value in values:
            type_ = value.type
            if (entry := self._dynamic.get(id(type_))) is None:
                entry = self._dynamic[id(type_)] = type_, _has_unknown_extents(type_)
            if entry[1]:
                return True
        return False


_COPIES_ELEMENTS = frozenset("stablehlo.broadcast stablehlo.broadcast_in_dim stablehlo.reshape".split())


def _has_unknown_extents(type_: Attribute) -> bool:
    if isinstance(type_, UnrankedTensorType | UnrankedMemRefType):
        return True
    return is_tensor(type_) and not type_.has_static_shape()


def _has_integers(op: Operation) -> bool:
    return any(_has_integer_elements(value.type) for value in op.operands)


def _has_integer_elements(type_: Attribute) -> bool:
    element = type_.element_type if is_tensor(type_) else type_
    return isinstance(element, IndexType) or is_integer_type(element)


def integer_elements(attribute: Attribute) -> NDArray[Any] | None:
    """Return the elements of an integer constant, or None for any other attribute."""
    if is_integer_attribute(attribute):
        return np.array(attribute.value.data)
    if isinstance(attribute, DenseAttr) or is_standard_dense(attribute):
        return to_numpy(attribute) if is_integer_type(attribute.type.element_type) else None
    return None


def _has_index(values: Sequence[SSAValue]) -> bool:
    return any(isinstance(value.type, IndexType) for value in values)
