"""Translation of IR to the numbers on which the XLA:CPU model works."""

from __future__ import annotations

import pytest

from recompute.analysis.memory.xla.memory import xla_form
from recompute.analysis.memory.xla.program import KernelProgram
from recompute.analysis.memory.xla.traits import Trait
from recompute.analysis.step.order import functions_of
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module


def program(text: str) -> KernelProgram:
    """Return the program of the only function, and check that the module is not changed."""
    module = parse_module(text)
    before = print_module(module)
    result = xla_form(functions_of(module)[0])[0]
    assert print_module(module) == before
    return result


def short(names: tuple[str, ...]) -> list[str]:
    return [name.partition(".")[2] for name in names]


def test_bf16_product_converts_operands_and_result() -> None:
    narrow = "tensor<8x8xbf16>"
    result = program(f"""func.func @f(%x: {narrow}, %y: {narrow}) -> {narrow} {{
  %dead = stablehlo.tanh %x : {narrow}
  %c = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : ({narrow}, {narrow}) -> {narrow}
  func.return %c : {narrow}
}}""")
    assert short(result.names) == ["convert", "convert", "dot_general", "convert", "return"]
    # The values of the step keep their numbers; those of the copies come after them.
    assert result.operands == ((0,), (1,), (3, 4), (2,), (5,))
    assert result.sizes == (128, 128, 256, 256, 256, 128)
    assert result.returned == (5,)


def test_operand_in_other_layout_is_transposed() -> None:
    wide, flat = "tensor<2x4x8xf32>", "tensor<4x8x2x4xf32>"
    result = program(f"""func.func @f(%x: {wide}, %y: {wide}) -> {flat} {{
  %c = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : ({wide}, {wide}) -> tensor<4x8x4x8xf32>
  %d = stablehlo.reshape %c : (tensor<4x8x4x8xf32>) -> tensor<4x8x2x16xf32>
  %e = stablehlo.slice %d [0:4, 0:8, 0:2, 0:4] : (tensor<4x8x2x16xf32>) -> {flat}
  func.return %e : {flat}
}}""")
    assert short(result.names) == ["transpose", "dot_general", "reshape", "slice", "return"]
    assert result.operands[:2] == ((0,), (5, 1))
    assert result.reshapes == {2: 0} and result.root == (0, 1, 2, 2, 4, 5)
    assert result.readers == ((1,), (3,), (3,), (4,), ())
    assert result.sources == ((), (0,), (1,), (1,), (3,))


@pytest.mark.parametrize(("batch", "copied"), [(1, 2), (8, 1)])
def test_dropped_unit_batch_transposes_both_operands(batch: int, copied: int) -> None:
    """Operands are transposed as in the optimized HLO of both cases; without a dropped dimension %x may have either
    layout."""
    of, by, to = f"tensor<{batch}x4x8x8xf32>", f"tensor<{batch}x8x4x2xf32>", f"tensor<{batch}x4x8x2xf32>"
    numbers = "batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1]"
    result = program(f"""func.func @f(%x: {of}, %y: {by}) -> {to} {{
  %c = stablehlo.dot_general %x, %y, {numbers} : ({of}, {by}) -> {to}
  func.return %c : {to}
}}""")
    assert short(result.names) == ["transpose"] * copied + ["dot_general", "return"]


def test_body_sees_through_outer_reshape() -> None:
    result = program("""func.func @f(%x: tensor<4x4xf32>, %p: tensor<i32>) -> tensor<16xf32> {
  %r = stablehlo.reshape %x : (tensor<4x4xf32>) -> tensor<16xf32>
  %z = "stablehlo.case"(%p) ({
    %a = stablehlo.tanh %r : tensor<16xf32>
    stablehlo.return %a : tensor<16xf32>
  }, {
    %b = stablehlo.reshape %r : (tensor<16xf32>) -> tensor<4x4xf32>
    %c = stablehlo.reshape %b : (tensor<4x4xf32>) -> tensor<16xf32>
    stablehlo.return %c : tensor<16xf32>
  }) : (tensor<i32>) -> tensor<16xf32>
  func.return %z : tensor<16xf32>
}""")
    first, second = result.bodies[1]
    # The reshape and what it is the memory of, both from outside.
    assert (first.arguments, first.maker, first.root) == (0, (-1, -1, 0), (0, 0, 2))
    assert second.returned == (0,)


def test_loop_reads_captured_values() -> None:
    result = program("""func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = stablehlo.tanh %x : tensor<4xf32>
  %r = stablehlo.while(%c = %x) : tensor<4xf32>
   cond {
    %p = stablehlo.constant dense<false> : tensor<i1>
    stablehlo.return %p : tensor<i1>
   } do {
    %n = stablehlo.add %c, %y : tensor<4xf32>
    stablehlo.return %n : tensor<4xf32>
   }
  func.return %r : tensor<4xf32>
}""")
    assert short(result.names) == ["tanh", "while", "return"]
    assert result.reads[1] == (0, 1)


@pytest.mark.parametrize("turned", [False, True])
def test_division_cost_differs_for_equal_types(turned: bool) -> None:
    items = ["%a = stablehlo.divide %x, %c : tensor<8xf32>", "%b = stablehlo.divide %x, %x : tensor<8xf32>"]
    lines = "\n".join(reversed(items) if turned else items)
    text = f"""
func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {{
  %c = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>
  {lines}
  func.return %a, %b : tensor<8xf32>, tensor<8xf32>
}}
"""
    result = xla_form(functions_of(parse_module(text))[0])[0]
    divides = [traits for name, traits in zip(result.names, result.traits, strict=True) if name == "stablehlo.divide"]
    expensive = [bool(traits & Trait.EXPENSIVE) for traits in divides]
    assert expensive == [turned, not turned]
