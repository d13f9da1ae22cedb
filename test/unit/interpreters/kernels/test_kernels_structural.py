"""Kernels that move, contract, reduce and index, against numpy and JAX."""

# JAX's types say little about lambdas.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import tracemalloc
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recompute.interpreters.executor import execute, function_named
from recompute.mlir_io.parser import parse_module
from recompute.test.unit.interpreters.evaluate import array, evaluate


def normal(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def test_constants_and_iota_have_the_expected_elements() -> None:
    results = evaluate("%r = stablehlo.constant dense<[0x7FC00001, -0.0]> : tensor<2xf32>", "tensor<2xf32>")
    assert results.view(np.uint32).tolist() == [0x7FC00001, 0x80000000]
    splat = evaluate("%r = stablehlo.constant dense<2.0> : tensor<2x3xbf16>", "tensor<2x3xbf16>")
    assert splat.astype(np.float32).tolist() == [[2.0] * 3] * 2
    results = evaluate("%r = stablehlo.iota dim = 1 : tensor<2x3xui8>", "tensor<2x3xui8>")
    assert results.tolist() == [[0, 1, 2]] * 2


@pytest.mark.parametrize("dialect", ["stablehlo", "arith"])
@pytest.mark.parametrize(
    "reads",
    [
        "%r = stablehlo.slice %c [0:2, 0:2] : (L) -> tensor<2x2xf32>",
        "%r = stablehlo.dynamic_slice %c, %i, %i, sizes = [2, 2] : (L, tensor<i32>, tensor<i32>) -> tensor<2x2xf32>",
        """%d = stablehlo.reshape %c : (L) -> tensor<2048x65536xf32>
           %r = stablehlo.slice %d [7:9, 0:65536:32768] : (tensor<2048x65536xf32>) -> tensor<2x2xf32>""",
        """%o = stablehlo.optimization_barrier %c : L
           %t = stablehlo.transpose %o, dims = [1, 0] : (L) -> tensor<8192x16384xf32>
           %r = stablehlo.slice %t [7:9, 7:9] : (tensor<8192x16384xf32>) -> tensor<2x2xf32>""",
    ],
)
def test_large_splat_is_not_expanded(dialect: str, reads: str) -> None:
    """Four elements of a splat of half a gigabyte are read without expanding it."""
    body = f"""%i = stablehlo.constant dense<5> : tensor<i32>
        %c = {dialect}.constant dense<1.5> : L
        {reads}"""
    tracemalloc.start()
    results = evaluate(body.replace("L", "tensor<16384x8192xf32>"), "tensor<2x2xf32>")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert results.tolist() == [[1.5, 1.5], [1.5, 1.5]]
    assert peak < 10_000_000


def test_carried_and_returned_splats_are_expanded() -> None:
    """Splats that a loop carries or a function returns are expanded, since these need buffers of their own."""
    text = """func.func @main(%n: tensor<i32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
      %c = stablehlo.constant dense<1.5> : tensor<2x3xf32>
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %r:2 = stablehlo.while(%k = %zero, %x = %c) : tensor<i32>, tensor<2x3xf32>
      cond {
        %p = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %m = stablehlo.add %k, %one : tensor<i32>
        %d = stablehlo.constant dense<2.5> : tensor<2x3xf32>
        stablehlo.return %m, %d : tensor<i32>, tensor<2x3xf32>
      }
      return %r#1, %c : tensor<2x3xf32>, tensor<2x3xf32>
    }"""
    carried, constant = execute(function_named(parse_module(text)), [array(2, "i32")])
    assert carried.flags.owndata and carried.tolist() == [[2.5] * 3] * 2
    assert constant.tolist() == [[1.5] * 3] * 2


def test_broadcast_may_permute() -> None:
    a = normal(3, 1, 2)
    body = "%r = stablehlo.broadcast_in_dim %a, dims = [3, 0, 1] : (T) -> tensor<4x2x5x3xf32>"
    expected = np.broadcast_to(a.transpose(1, 2, 0)[:, :, np.newaxis, :], (4, 2, 5, 3))
    np.testing.assert_array_equal(evaluate(body, "tensor<4x2x5x3xf32>", a), expected)


def test_slices_and_concatenation_equal_numpy() -> None:
    a = normal(4, 6)
    results = evaluate("%r = stablehlo.slice %a [1:4:2, 0:6] : (T) -> tensor<2x6xf32>", "tensor<2x6xf32>", a)
    np.testing.assert_array_equal(results, a[1:4:2])
    body = "%r = stablehlo.concatenate %a, %b, dim = 1 : (T, tensor<4x2xf32>) -> tensor<4x8xf32>"
    results = evaluate(body, "tensor<4x8xf32>", a, a[:, :2].copy())
    np.testing.assert_array_equal(results, np.concatenate([a, a[:, :2]], axis=1))


def test_dot_general_supports_batch_and_several_contracting_dimensions() -> None:
    a, b = normal(2, 3, 4, 5), normal(5, 6, 2, 3)
    body = """%r = stablehlo.dot_general %a, %b, batching_dims = [0] x [2], contracting_dims = [1, 3] x [3, 0]
        : (T, tensor<5x6x2x3xf32>) -> tensor<2x4x6xf32>"""
    results = evaluate(body, "tensor<2x4x6xf32>", a, b)
    np.testing.assert_allclose(results, np.einsum("bcid,djbc->bij", a, b), rtol=1e-5)
    assert results.flags.owndata


@pytest.mark.parametrize(("element", "result"), [("bf16", "f32"), ("bf16", "bf16"), ("i8", "i32"), ("i4", "i4")])
def test_dot_general_accumulates_in_the_result(element: str, result: str) -> None:
    a = array(np.arange(24).reshape(4, 6) % 7 - 3, element)
    body = f"""%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1] : (T, T) -> tensor<4x4x{result}>"""
    results = evaluate(body, f"tensor<4x4x{result}>", a, a)
    wide = a.astype(np.int64)
    np.testing.assert_array_equal(results, array(wide @ wide.T, result))


def test_dot_general_accepts_scalars_and_empty_arrays() -> None:
    body = "%r = stablehlo.dot_general %a, %b, contracting_dims = [] x [] : (T, T) -> T"
    assert evaluate(body, "tensor<f32>", array(2.0, "f32"), array(3.0, "f32")) == 6.0
    a = np.empty((2, 0), np.float32)
    body = "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1] : (T, T) -> tensor<2x2xf32>"
    np.testing.assert_array_equal(evaluate(body, "tensor<2x2xf32>", a, a), np.zeros((2, 2)))


def reduce(combiner: str, init: str, operand: object, element: str, dimension: int = 0) -> Any:
    a = array(operand, element)
    shape = "x".join([*(str(n) for d, n in enumerate(a.shape) if d != dimension), element])
    body = f"""%i = stablehlo.constant dense<{init}> : tensor<{element}>
        %r = stablehlo.reduce(%a init: %i) applies stablehlo.{combiner} across dimensions = [{dimension}]
        : (T, tensor<{element}>) -> tensor<{shape}>"""
    return evaluate(body, f"tensor<{shape}>", a).tolist()


def test_reductions_equal_numpy() -> None:
    assert reduce("add", "1", [2, 3], "i32") == 6
    assert reduce("add", "0", [100, 100], "i8") == -56
    assert reduce("and", "true", [True, False], "i1") is False
    assert reduce("xor", "0", [5, 6], "ui32") == 3
    assert reduce("multiply", "1.0", [[1.0, 2.0], [3.0, 4.0]], "f32") == [3.0, 8.0]
    assert np.isnan(reduce("maximum", "0xFF800000", [1.0, np.nan, 2.0], "f32"))
    assert str(reduce("maximum", "-1.0", [[-0.0, -0.0], [0.0, -0.0]], "f32", 1)) == "[-0.0, 0.0]"
    assert str(reduce("minimum", "1.0", [[0.0, 0.0], [0.0, -0.0]], "f32", 1)) == "[0.0, -0.0]"
    assert reduce("add", "7.0", np.empty((0, 2)), "f32") == [7.0, 7.0]


def test_sums_do_not_depend_on_the_layout_and_are_exact_in_bf16() -> None:
    a = normal(333, 257)
    body = """%i = stablehlo.constant dense<0.0> : tensor<f32>
        %t = stablehlo.transpose %a, dims = [1, 0] : (T) -> tensor<257x333xf32>
        %r = stablehlo.reduce(%t init: %i) applies stablehlo.add across dimensions = [1]
        : (tensor<257x333xf32>, tensor<f32>) -> tensor<257xf32>"""
    strided = evaluate(body, "tensor<257xf32>", a)
    plain = reduce("add", "0.0", np.ascontiguousarray(a.T), "f32", 1)
    assert strided.tolist() == plain
    assert reduce("add", "0.0", np.ones(1000), "bf16") == 1000.0


ARGMAX = """func.func @main(%a: tensor<2x4xf32>, %n: tensor<2x4xi32>) -> (tensor<2xf32>, tensor<2xi32>) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.reduce(%a init: %low), (%n init: %zero) across dimensions = [1]
    : (tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
    reducer(%x: tensor<f32>, %y: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {
      %c = stablehlo.compare GE, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %v = stablehlo.select %c, %x, %y : tensor<i1>, tensor<f32>
      %k = stablehlo.select %c, %i, %j : tensor<i1>, tensor<i32>
      stablehlo.return %v, %k : tensor<f32>, tensor<i32>
    }
  return %r#0, %r#1 : tensor<2xf32>, tensor<2xi32>
}"""


def test_reduction_may_have_two_operands() -> None:
    a = array([[1, 5, 5, 2], [9, 3, 0, 4]], "f32")
    positions = np.tile(np.arange(4, dtype=np.int32), (2, 1))
    values, places = execute(function_named(parse_module(ARGMAX)), [a, positions])
    assert values.tolist() == [5.0, 9.0]
    assert places.tolist() == [1, 0]


def test_reduce_with_non_elementwise_capturing_region() -> None:
    body = """%r = stablehlo.reduce(%a init: %b) across dimensions = [0] : (T, tensor<f32>) -> tensor<f32>
      reducer(%x: tensor<f32>, %y: tensor<f32>) {
        %u = stablehlo.reshape %y : (tensor<f32>) -> tensor<1xf32>
        %v = stablehlo.reshape %u : (tensor<1xf32>) -> tensor<f32>
        %w = stablehlo.multiply %v, %c : tensor<f32>
        %z = stablehlo.add %x, %w : tensor<f32>
        stablehlo.return %z : tensor<f32>
      }"""
    operands = array([1, 2, 3], "f32"), array(10, "f32"), array(2, "f32")
    assert evaluate(body, "tensor<f32>", *operands) == 22.0
    flat = body.replace("%u = ", "//").replace("%v = stablehlo.reshape %u : (tensor<1xf32>) -> tensor<f32>", "")
    assert evaluate(flat.replace("%v, %c", "%y, %c"), "tensor<f32>", *operands) == 22.0


def from_jax(function: Any, *operands: object) -> None:
    """Assert that the program that JAX lowers from the function gives the bits of JAX."""
    jitted = jax.jit(function, keep_unused=True)
    text = jitted.lower(*operands).as_text()
    results = execute(function_named(parse_module(text)), [np.asarray(operand) for operand in operands])
    expected = jax.tree.leaves(jitted(*operands))
    for first, other in zip(results, expected, strict=True):
        assert first.dtype == other.dtype and first.shape == other.shape
        np.testing.assert_array_equal(first, np.asarray(other))


EDGES = np.array([0, -0.0, 1e-8, 6e-5, -6.2e-5, 65519, 65520, -1e30, np.inf, np.nan, 1 / 3, 300, 0.01], np.float32)
INDICES = jnp.array([3, -1, 0, 3, 99, 2])


@pytest.mark.parametrize(
    ("function", "operands"),
    [
        (lambda x, i: x[i], (normal(5, 3), INDICES)),
        (lambda x, i: x[:, i], (normal(3, 5), INDICES)),
        (lambda x, i: x[i, i % 3], (normal(5, 3), INDICES)),
        (lambda x, i: jnp.take_along_axis(x, i[:, None] % 4, axis=1), (normal(6, 4), INDICES)),
        (lambda x, i: jax.vmap(lambda row, at: jax.lax.dynamic_slice(row, (at,), (2,)))(x, i), (normal(6, 5), INDICES)),
        (lambda x, i: x.at[i].set(7.0), (normal(5, 3), INDICES)),
        (lambda x, i: x.at[i].add(1.0), (normal(5, 3), INDICES)),
        (lambda x, i: x.at[i].max(0.25), (normal(5, 3), INDICES)),
        (lambda x, i: x.at[:, i].multiply(2.0), (normal(3, 5), INDICES)),
        (lambda x, i: x.at[i].add(1), (np.arange(5, dtype=np.int32), INDICES)),
        (lambda x, i: jax.vmap(lambda row, at: row.at[at].add(3.0))(x, i), (normal(6, 5), INDICES)),
        (lambda k, i: jax.random.bits(jax.random.fold_in(k, i[0]), (3, 5)), (jnp.array([1, 2], jnp.uint32), INDICES)),
        (lambda k, i: jax.random.bernoulli(k, 0.3, (17,)), (jnp.array([1, 2], jnp.uint32), INDICES)),
        (lambda x, i: jax.lax.dynamic_slice(x, (i[4], i[1]), (2, 2)), (normal(5, 3), INDICES)),
        (lambda x, i: jax.lax.dynamic_update_slice(x, x[:2, :2], (i[4], i[2])), (normal(5, 3), INDICES)),
        (lambda x, i: jax.lax.pad(x, 7.0, [(1, 2, 2), (-1, 0, 0), (-2, -1, 1)]), (normal(3, 3, 4), INDICES)),
        (lambda x, i: jax.lax.pad(x, 7.0, [(-9, 8, 0), (0, -3, 4)]), (normal(3, 3), INDICES)),
        (lambda x, i: jnp.flip(x, (0, 2)), (normal(2, 3, 4), INDICES)),
        (lambda x, i: jax.lax.complex(x, -x).real, (normal(2, 3), INDICES)),
        (lambda x, i: jax.lax.reduce_precision(x, 5, 10), (EDGES, INDICES)),
        (lambda x, i: jax.lax.reduce_precision(x, 8, 7), (EDGES, INDICES)),
        (lambda x, i: jax.lax.reduce_precision(x, 4, 23), (EDGES, INDICES)),
        (lambda x, i: jnp.cumsum(i), (normal(1), INDICES)),
        (lambda x, i: jax.lax.reduce_window(x, -1.0, jax.lax.max, (2, 3), (1, 2), "SAME"), (normal(5, 6), INDICES)),
        (lambda x, i: jax.lax.cond(i[0] > i[1], lambda: x + 1, lambda: x), (normal(3), INDICES)),
        (lambda x, i: jax.lax.switch(i[4], [lambda: x, lambda: -x, lambda: x + x]), (normal(3), INDICES)),
        (lambda x, i: (jnp.argmax(x, axis=1), jnp.argmin(i)), (normal(4, 6), INDICES)),
    ],
)
def test_indexing_and_random_bits_equal_jax(function: object, operands: tuple[object, ...]) -> None:
    from_jax(function, *operands)


def convolve(lhs: Any, rhs: Any, **options: Any) -> None:
    jitted = jax.jit(lambda x, y: jax.lax.conv_general_dilated(x, y, **options))
    (result,) = execute(function_named(parse_module(jitted.lower(lhs, rhs).as_text())), [lhs, rhs])
    expected: np.ndarray[Any, Any] = np.asarray(jitted(lhs, rhs))
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


def test_convolutions_equal_jax() -> None:
    image, kernel = normal(4, 6, 7, 8), normal(6, 6, 3, 2)
    convolve(image, kernel, window_strides=(1, 1), padding="SAME")
    convolve(image, kernel, window_strides=(2, 1), padding=[(2, -1), (0, 3)], lhs_dilation=(2, 3), rhs_dilation=(1, 2))
    convolve(image, normal(4, 3, 3, 2), window_strides=(1, 1), padding="VALID", feature_group_count=2)
    convolve(image, normal(4, 6, 3, 2), window_strides=(1, 1), padding="VALID", batch_group_count=2)
    numbers = ("NHWC", "HWIO", "NHWC")
    convolve(normal(2, 5, 5, 3), normal(3, 3, 3, 4), window_strides=(1, 1), padding="SAME", dimension_numbers=numbers)


@pytest.mark.parametrize("strides", [(1, 1), (2, 3)])
@pytest.mark.parametrize("padding", ["VALID", [(0, 0), (1, 1)], [(-1, 1), (0, -2)]])
@pytest.mark.parametrize(
    ("image", "kernel"),
    [
        ((2, 3, 2, 5), (4, 3, 3, 2)),
        ((2, 3, 0, 5), (4, 3, 2, 7)),
        ((0, 3, 4, 4), (4, 3, 3, 2)),
        ((2, 0, 4, 4), (4, 0, 3, 2)),
        ((2, 3, 4, 4), (0, 3, 2, 2)),
    ],
)
def test_empty_convolutions_are_zero(
    image: tuple[int, ...], kernel: tuple[int, ...], padding: Any, strides: tuple[int, int]
) -> None:
    """Results are zero or empty if the window fits nowhere, fits along one dimension only, or has nothing to sum."""
    convolve(np.ones(image, np.float32), np.ones(kernel, np.float32), window_strides=strides, padding=padding)


def test_empty_reduce_windows_give_the_initial_value() -> None:
    for shape, padding in (((0, 5), ((-1, 0), (0, 2))), ((2, 5), ((0, 0), (0, 0))), ((3, 0), ((-3, 0), (-3, -3)))):
        from_jax(
            lambda x, padding=padding: jax.lax.reduce_window(x, 1.0, jax.lax.add, (3, 2), (1, 1), padding),
            np.ones(shape, np.float32),
        )
