"""The normal form of sharding constraints on scalar integers and on stacks.

Notation: `C[s](x)` constrains x to the sharding s.

    C[](i) of a scalar integer                      i                       a scalar has no other sharding
    C[s](C[s](x))                                   C[s](x)
    C[{}, s](reshape(x))                            reshape(C[s](x))        if no sharded dimension is reshaped
    C[{}, s](dynamic_update_slice(w, x, n))         dynamic_update_slice(w, C[{}, s](x), n)         for a carry w
    C[{}, s](rows(j -> r(j)))                       rows(j -> C[{}, s](r(j)))

The last two rules apply if the first dimension is not sharded: the stack has the sharding s if and only if each of its
slices has it. Instead of the constraint on the stack, the constraints on slices in the normal form must be preserved
(`PreservedOperations`). JAX writes all of these constraints for a mesh with explicit axes.
"""

from __future__ import annotations

from typing import Protocol

from xdsl.dialects.builtin import IntegerType

from ...dialects.sdy.sharding_text import parse_sharding, with_free_dimensions, without_free_dimensions
from ...dialects.sdy.shardings import ShardingAttr
from ...support.type_guards import is_tensor
from ..expressions.terms import Head, Terms
from .integers import Integers
from .stack_terms import RowTermBuilder, extents, keeps_order

CONSTRAINT = "sdy.sharding_constraint"


class ConstraintTerms(Protocol):
    """The part of the `LoopRules` interface that the rules for sharding constraints use."""

    terms: Terms
    integers: Integers
    rows: RowTermBuilder

    def make(self, head: Head, operands: tuple[int, ...]) -> int: ...


def normal_form(rules: ConstraintTerms, head: Head, operand: int) -> int | None:
    """Return the normal form of a constraint on the term `operand`; None if no rule applies.

    `head`: the head of the constraint, which contains its name, attributes and types (`terms.py`).
    """
    terms = rules.terms
    if head.numbers or head.bodies or (sharding := _sharding(terms, head)) is None:
        return None
    inner = terms.head_of(operand)
    if inner == head or _is_scalar_integer(terms, head, sharding):
        return operand
    if keeps_order(terms, operand):
        return _inside_reshape(rules, head, operand, sharding)
    if without_free_dimensions(sharding)[1] == 0:
        return None
    if inner.kind == "rows":
        return rules.rows.with_constraint(operand, head)
    if (inner.kind, inner.name) == ("operation", "stablehlo.dynamic_update_slice"):
        stack, slice_, *starts = terms.operands_of(operand)
        is_row = extents(terms, terms.types_of(slice_)) == (1, *(extents(terms, head.types) or ())[1:])
        is_carry = terms.head_of(stack).kind == "variable" and not inner.attributes
        if not (is_row and is_carry and all(rules.integers.constant(start) == 0 for start in starts[1:])):
            return None
        constrained = rules.make(head._replace(types=terms.types_of(slice_)), (slice_,))
        return terms.term(inner, (stack, constrained, *starts))
    return None


def _inside_reshape(rules: ConstraintTerms, head: Head, operand: int, sharding: ShardingAttr) -> int | None:
    """Move the constraint on the reshape `operand` to the operand of this reshape. Return the reshape of the new
    constraint, or None if a sharded dimension is reshaped."""
    terms = rules.terms
    (source,) = terms.operands_of(operand)
    before, after = extents(terms, terms.types_of(source)), extents(terms, head.types)
    trailing, free = without_free_dimensions(sharding)
    if before is None or after is None:
        return None
    rank = len(after) - free
    if rank > len(before) or before[len(before) - rank :] != after[free:]:
        return None
    number = terms.attributes.number(with_free_dimensions(trailing, len(before) - rank))
    constraint = head._replace(attributes=(("sharding", number),), types=terms.types_of(source))
    return rules.make(terms.head_of(operand), (rules.make(constraint, (source,)),))


def _sharding(terms: Terms, head: Head) -> ShardingAttr | None:
    """Return the sharding of a constraint; None if the constraint has further attributes."""
    attributes = terms.attributes.by_name(head.attributes)
    sharding = attributes.pop("sharding", None)
    return sharding if isinstance(sharding, ShardingAttr) and not attributes else None


def _is_scalar_integer(terms: Terms, head: Head, sharding: ShardingAttr) -> bool:
    type_ = terms.attributes.attribute(head.types[0])
    is_integer = is_tensor(type_) and type_.get_shape() == () and isinstance(type_.element_type, IntegerType)
    return is_integer and not parse_sharding(sharding.data).all_axes()
