"""The constraints of StableHLO's specification, with their labels there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

OpT = TypeVar("OpT", bound=Operation)
OpT_contra = TypeVar("OpT_contra", bound=Operation, contravariant=True)


@dataclass(frozen=True)
class Constraint(Generic[OpT_contra]):
    """`check` raises `VerifyException` for an operation that violates the constraint `label`. It may rely on earlier
    constraints."""

    label: str
    check: Callable[[OpT_contra], object]


def verify_constraints(op: OpT, constraints: Sequence[Constraint[OpT]]) -> None:
    """Raises `VerifyException` with the label of the first violated constraint: `C7: offset_dims [1, 0] …`"""
    for constraint in constraints:
        try:
            constraint.check(op)
        except VerifyException as error:
            # Not `from error`: a report of the cause of an exception would lose the label.
            raise VerifyException(f"{constraint.label}: {error}") from None
