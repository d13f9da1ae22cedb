"""Operations that differ from an earlier one in a single part are distinct, although the proof shares the heads of
equal ones."""

from __future__ import annotations

import pytest

from recompute.mlir_io.parser import parse_module
from recompute.proof.prove import prove

REDUCE = """%{name} = "stablehlo.reduce"(%x, %init) <{{dimensions = array<i64: {dimension}>}}> ({{
^bb0(%p: tensor<f32>, %q: tensor<f32>):
  %r = stablehlo.{combiner} {operands} : tensor<f32>
  "stablehlo.return"(%r) : (tensor<f32>) -> ()
}}) : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
"""


def reduce(name: str, dimension: int = 0, combiner: str = "subtract", operands: str = "%p, %q") -> str:
    return REDUCE.format(name=name, dimension=dimension, combiner=combiner, operands=operands)


def program(*operations: str) -> str:
    return (
        "func.func @main(%x: tensor<4x4xf32>, %init: tensor<f32>, %n: tensor<4xi32>, %m: tensor<4xi32>) -> "
        f"(tensor<4xf32>, tensor<4xf32>) {{\n{''.join(operations)}"
        "return %a, %b : tensor<4xf32>, tensor<4xf32>\n}"
    )


DIFFERENT = {
    "attribute": reduce("b", dimension=1),
    "operation in the region": reduce("b", combiner="maximum"),
    "order of the operands in the region": reduce("b", operands="%q, %p"),
    "operand in the region": reduce("b", operands="%p, %p"),
    "value from outside in the region": reduce("b", operands="%p, %init"),
}


@pytest.mark.parametrize("part", DIFFERENT)
def test_operations_differing_in_one_part_are_distinct(part: str) -> None:
    before = parse_module(program(reduce("a"), reduce("b")))
    after = parse_module(program(reduce("a"), DIFFERENT[part]))
    assert prove(before, before.clone()).proved
    assert prove(after, after.clone()).proved
    assert not prove(before, after).proved
    assert not prove(after, before).proved


def test_possibly_failing_division_is_distinguished() -> None:
    """A division by a constant is repeated with a divisor that may be 0, which only the second program runs."""
    constant = "%two = stablehlo.constant dense<2> : tensor<4xi32>\n"
    safe, unsafe = (
        f"%{name} = stablehlo.divide %n, %{by} : tensor<4xi32>\n" for name, by in (("s", "two"), ("u", "m"))
    )
    before = parse_module(program(constant, safe, reduce("a"), reduce("b")))
    after = parse_module(program(constant, safe, unsafe, reduce("a"), reduce("b")))
    assert not prove(before, after).proved
    assert "may fail" in prove(before, after).reason
    assert prove(after, before).proved


def test_splats_of_two_types_are_distinguished() -> None:
    """One constant is broadcast to two types, and the second program reads the other one."""
    text = (
        "func.func @main() -> (tensor<4xf32>, tensor<2xf32>) {{\n%c = stablehlo.constant dense<1.0> : tensor<f32>\n"
        "%d = stablehlo.constant dense<2.0> : tensor<f32>\n"
        "%a = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<4xf32>\n"
        "%b = stablehlo.broadcast_in_dim %{operand}, dims = [] : (tensor<f32>) -> tensor<2xf32>\n"
        "return %a, %b : tensor<4xf32>, tensor<2xf32>\n}}"
    )
    before, after = (parse_module(text.format(operand=operand)) for operand in "cd")
    assert prove(before, before.clone()).proved
    assert not prove(before, after).proved
