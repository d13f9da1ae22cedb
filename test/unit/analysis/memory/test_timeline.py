"""Memory timeline of programs whose bytes can be counted by hand. A tensor<256xf32> takes 1024 bytes."""

from __future__ import annotations

import pytest

from recompute.analysis.memory.timeline import Timeline, timeline
from recompute.analysis.step.order import functions_of
from recompute.mlir_io.parser import parse_module
from recompute.support.diagnostics import Refusal

T = "tensor<256xf32>"


def measure(body: str, arguments: str = f"%x: {T}", result: str = f"%r : {T}") -> Timeline:
    types = result.split(":")[1]
    module = parse_module(f"func.func @f({arguments}) -> {types} {{\n{body}\n  func.return {result}\n}}\n", "f.mlir")
    return timeline(functions_of(module)[0])


def test_value_lives_from_definition_to_last_reader() -> None:
    measurement = measure(
        f"""
  %a = stablehlo.sine %x : {T}
  %b = stablehlo.sine %a : {T}
  %c = stablehlo.add %b, %a : {T}
  %r = stablehlo.sine %c : {T}"""
    )
    # The result %r and the argument %x are no temporaries.
    assert measurement.live_bytes == (1024, 2048, 3072, 1024, 0)
    assert (measurement.peak_bytes, measurement.peak_index) == (3072, 2)
    assert (measurement.argument_bytes, measurement.result_bytes, measurement.aliased_bytes) == (1024, 1024, 0)
    assert measurement.device_bytes == 1024 + 1024 + 3072


def test_donated_arguments_are_counted_once() -> None:
    measurement = measure(f"  %r = stablehlo.sine %x : {T}", f"%x: {T} {{tf.aliasing_output = 0 : i32}}")
    assert measurement.device_bytes == 1024


def test_constant_expressions_cost_nothing() -> None:
    measurement = measure(
        f"""
  %c = stablehlo.constant dense<1.0> : {T}
  %d = stablehlo.sine %c : {T}
  %r = stablehlo.add %d, %x : {T}"""
    )
    assert measurement.peak_bytes == 0


def test_views_share_the_storage_of_their_operand() -> None:
    measurement = measure(
        f"""
  %a = stablehlo.sine %x : {T}
  %b = stablehlo.reshape %a : ({T}) -> tensor<16x16xf32>
  %c = stablehlo.transpose %b, dims = [1, 0] : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %r = stablehlo.sine %c : tensor<16x16xf32>""",
        result="%r : tensor<16x16xf32>",
    )
    assert measurement.live_bytes == (1024, 1024, 1024, 1024, 0)


def test_reshape_of_a_transpose_copies() -> None:
    measurement = measure(
        """
  %a = stablehlo.transpose %x, dims = [1, 0] : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %b = stablehlo.reshape %a : (tensor<16x16xf32>) -> tensor<256xf32>
  %r = stablehlo.sine %b : tensor<256xf32>""",
        "%x: tensor<16x16xf32>",
    )
    assert measurement.live_bytes == (0, 1024, 1024, 0)


def test_loop_holds_carry_and_body_peak() -> None:
    measurement = measure(
        f"""
  %n = stablehlo.constant dense<3> : tensor<i32>
  %z = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %i, %w = stablehlo.while(%j = %z, %y = %x) : tensor<i32>, {T}
  cond {{
    %p = stablehlo.compare LT, %j, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %k = stablehlo.add %j, %one : tensor<i32>
    %a = stablehlo.sine %y : {T}
    %b = stablehlo.sine %a : {T}
    stablehlo.return %k, %b : tensor<i32>, {T}
  }}
  %r = stablehlo.sine %w : {T}"""
    )
    loop = measurement.operations.index("stablehlo.while")
    # In the body %k, %a and %b are alive together; outside it the loop's two results.
    assert measurement.inner_bytes[loop] == 4 + 2 * 1024
    assert measurement.live_bytes[loop] == measurement.inner_bytes[loop] + 4 + 1024


def test_loop_copies_carry_that_cannot_be_moved() -> None:
    """A loop that yields its argument twice and a constant copies three values at the end of each iteration."""
    measurement = measure(
        f"""
  %n = stablehlo.constant dense<3.0> : {T}
  %u, %v, %w = stablehlo.while(%p = %x, %q = %x, %s = %n) : {T}, {T}, {T}
  cond {{
    %c = stablehlo.constant dense<false> : tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %k = stablehlo.constant dense<1.0> : {T}
    %a = stablehlo.sine %p : {T}
    stablehlo.return %q, %q, %k : {T}, {T}, {T}
  }}
  %r = stablehlo.add %u, %w : {T}"""
    )
    loop = measurement.operations.index("stablehlo.while")
    assert measurement.inner_bytes[loop] == 3 * 1024


def test_branch_value_becomes_the_result() -> None:
    measurement = measure(
        f"""
  %u = "stablehlo.if"(%p) ({{
    %a = stablehlo.sine %x : {T}
    %b = stablehlo.sine %a : {T}
    stablehlo.return %b : {T}
  }}, {{
    stablehlo.return %x : {T}
  }}) : (tensor<i1>) -> {T}
  %r = stablehlo.sine %u : {T}""",
        f"%x: {T}, %p: tensor<i1>",
    )
    # %a and %b together; %b is the result.
    assert measurement.live_bytes[0] == 2 * 1024


def test_reshape_of_strided_outer_value_copies() -> None:
    measurement = measure(
        """
  %v = stablehlo.transpose %x, dims = [1, 0] : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %z = stablehlo.constant dense<0.0> : tensor<256xf32>
  %u = stablehlo.while(%p = %w) : tensor<256xf32>
  cond {
    %c = stablehlo.constant dense<false> : tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %f = stablehlo.reshape %v : (tensor<16x16xf32>) -> tensor<256xf32>
    %a = stablehlo.add %p, %f : tensor<256xf32>
    stablehlo.return %a : tensor<256xf32>
  }
  %r = stablehlo.sine %u : tensor<256xf32>""",
        "%x: tensor<16x16xf32>, %w: tensor<256xf32>",
    )
    loop = measurement.operations.index("stablehlo.while")
    assert measurement.inner_bytes[loop] == 2 * 1024


def test_loop_over_constants_is_executed_and_stores_its_result() -> None:
    """XLA folds no loop, and an eager executor folds nothing."""
    measurement = measure(
        f"""
  %n = stablehlo.constant dense<3.0> : {T}
  %u = stablehlo.while(%p = %n) : {T}
  cond {{
    %c = stablehlo.constant dense<false> : tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %a = stablehlo.sine %p : {T}
    stablehlo.return %a : {T}
  }}
  %r = stablehlo.add %u, %x : {T}"""
    )
    (result,) = measurement.buffers
    assert result.bytes == 1024 and measurement.peak_bytes == 2 * 1024  # The body stores its result beside the carry.


def test_dynamic_shapes_are_refused() -> None:
    with pytest.raises(Refusal, match=r"f.mlir:\d+:\d+: error: the size in bytes of tensor<\?xf32> is unknown"):
        measure("  %r = stablehlo.sine %x : tensor<?xf32>", "%x: tensor<?xf32>", "%r : tensor<?xf32>")
