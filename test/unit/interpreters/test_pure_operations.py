"""The list of pure operations of the proof, held against what others say about the same operations."""

from __future__ import annotations

import pytest
from xdsl.dialects.arith import Arith
from xdsl.dialects.linalg import Linalg
from xdsl.dialects.math import Math
from xdsl.dialects.memref import MemRef
from xdsl.dialects.scf import Scf
from xdsl.dialects.tensor import Tensor

from recompute.interpreters.collectives import COLLECTIVES
from recompute.interpreters.pure_operations import OF_THE_REGION, PURE_OPERATIONS, TERMINATORS
from recompute.rules.effects import IMPURE, PURE, PURE_IF_BODY_IS
from recompute.rules.facts import Kind
from recompute.rules.registry import BUILT_IN

from .programs import T, compare, main

BY_THE_RULES = frozenset(name for name in BUILT_IN if name in PURE or name in PURE_IF_BODY_IS)
NOT_LISTED = frozenset("scf.parallel scf.reduce scf.reduce.return".split())
# Read by the proof as what they hand on, or standing for something outside of the block: a function, a mesh.
NOT_VALUES = frozenset(
    """
    stablehlo.optimization_barrier recompute.depend recompute.segment recompute.gradient func.constant sdy.mesh
    """.split()
)
# No rules of the passes speak of these: they are never copied, but may stand in a program that is proved.
NEVER_COPIED = frozenset({"chlo.ragged_dot"})


def test_the_list_and_the_rules_of_the_passes_agree() -> None:
    """Two lists, written apart: what is on one and not on the other is known by name."""
    assert PURE_OPERATIONS - BY_THE_RULES == NEVER_COPIED
    assert BY_THE_RULES - PURE_OPERATIONS == NOT_VALUES


def test_the_list_holds_every_value_operation() -> None:
    kinds = [op.name for dialect in (Arith, Math, Tensor, Linalg, Scf) for op in dialect.operations]
    assert {name for name in kinds if name not in PURE_OPERATIONS} - TERMINATORS == NOT_LISTED
    assert not any(op.name in PURE_OPERATIONS for op in MemRef.operations)


def a_copy_is_proved(name: str) -> bool:
    once = f'%a = "{name}"(%x) : ({T}) -> {T}\n'
    read = '%c = "stablehlo.add"(%a, %?)' + f" : ({T}, {T}) -> {T}\nreturn %c"
    before = main(once + read.replace("%?", "%a"))
    return compare(before, main(once + once.replace("%a", "%b") + read.replace("%?", "%b"))).proved


def test_what_the_passes_may_copy_is_proved() -> None:
    names = (BY_THE_RULES | NEVER_COPIED) - NOT_VALUES - OF_THE_REGION
    assert [name for name in sorted(names) if not a_copy_is_proved(name)] == []


@pytest.mark.parametrize(
    "name", [*sorted(name for name in BUILT_IN if name in IMPURE and name not in COLLECTIVES), "acme.unknown"]
)
def test_what_the_passes_may_not_copy_is_not(name: str) -> None:
    assert not a_copy_is_proved(name)


def test_collectives_are_copied_where_that_is_allowed() -> None:
    assert sorted(COLLECTIVES) == sorted(name for name, facts in BUILT_IN.items() if Kind.COLLECTIVE in facts.kinds)
    assert all(map(a_copy_is_proved, COLLECTIVES))
