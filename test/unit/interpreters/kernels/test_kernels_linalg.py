"""Kernels of linalg, against numpy, and operations of all dialects that cannot be executed."""

# JAX's types say little about lambdas, numpy's about ufuncs.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import numpy as np
import pytest

from recompute.interpreters.executor import execute, function_named
from recompute.interpreters.kernels.arrays import Array
from recompute.mlir_io.parser import parse_module
from recompute.support.diagnostics import Refusal
from recompute.test.unit.interpreters.evaluate import array, evaluate

X = np.arange(24, dtype=np.float32).reshape(4, 6)


def generic(maps: list[str], kinds: str, ins: str, outs: str, region: str, result: str) -> str:
    listed = ", ".join(f"affine_map<{actual}>" for actual in maps)
    iterators = ", ".join(f'"{kind}"' for kind in kinds.split())
    return (
        f"linalg.generic {{indexing_maps = [{listed}], iterator_types = [{iterators}]}} {ins} outs({outs}) "
        f"{{\n{region}\n}} -> {result}"
    )


SUM = "^bb0(%p: f32, %q: f32):\n%s = arith.addf %q, %p : f32\nlinalg.yield %s : f32"


def test_generic_reduces_in_the_order_of_the_loops() -> None:
    x = np.random.default_rng(5).normal(size=(7, 33)).astype(np.float32)
    body = "%o = arith.constant dense<1.0> : tensor<7xf32>\n%r = " + generic(
        ["(i, j) -> (i, j)", "(i, j) -> (i)"],
        "parallel reduction",
        "ins(%a : T)",
        "%o : tensor<7xf32>",
        SUM,
        "tensor<7xf32>",
    )
    expected = np.ones(7, np.float32)
    for column in x.T:
        expected = expected + column
    np.testing.assert_array_equal(evaluate(body, "tensor<7xf32>", x), expected)


def test_generic_with_windows_and_strides() -> None:
    """The sum of `a[2 i + k]` over k is computed, although its indexing map is not a plain loop dimension."""
    x = np.arange(9, dtype=np.float32)
    body = "%w = tensor.empty() : tensor<3xf32>\n%o = arith.constant dense<0.0> : tensor<4xf32>\n%r = " + generic(
        ["(i, k) -> (i * 2 + k)", "(i, k) -> (k)", "(i, k) -> (i)"],
        "parallel reduction",
        "ins(%a, %w : T, tensor<3xf32>)",
        "%o : tensor<4xf32>",
        "^bb0(%p: f32, %u: f32, %q: f32):\n%s = arith.addf %q, %p : f32\nlinalg.yield %s : f32",
        "tensor<4xf32>",
    )
    assert evaluate(body, "tensor<4xf32>", x).tolist() == [3.0, 9.0, 15.0, 21.0]


def test_generic_with_index_and_transposed_output() -> None:
    body = "%o = tensor.empty() : tensor<6x4xf32>\n%r = " + generic(
        ["(i, j) -> (i, j)", "(i, j) -> (j, i)"],
        "parallel parallel",
        "ins(%a : T)",
        "%o : tensor<6x4xf32>",
        """^bb0(%p: f32, %q: f32):
          %i = linalg.index 0 : index
          %ten = arith.constant 10 : index
          %n = arith.muli %i, %ten : index
          %w = arith.index_cast %n : index to i32
          %f = arith.sitofp %w : i32 to f32
          %s = arith.addf %p, %f : f32
          linalg.yield %s : f32""",
        "tensor<6x4xf32>",
    )
    np.testing.assert_array_equal(evaluate(body, "tensor<6x4xf32>", X), (X + 10 * np.arange(4)[:, None]).T)


def test_generic_with_branch_and_captured_tensor() -> None:
    """The region `a[i] < 2 ? table[3 - i] : a[i]`, which captures a tensor, is evaluated element by element."""
    body = (
        "%o = tensor.empty() : tensor<4xf32>\n%three = arith.constant 3 : index\n%two = arith.constant 2.0 : f32\n%r = "
    )
    body += generic(
        ["(i) -> (i)", "(i) -> (i)"],
        "parallel",
        "ins(%a : T)",
        "%o : tensor<4xf32>",
        """^bb0(%p: f32, %q: f32):
          %i = linalg.index 0 : index
          %small = arith.cmpf olt, %p, %two : f32
          %s = scf.if %small -> (f32) {
            %n = arith.subi %three, %i : index
            %t = tensor.extract %b[%n] : tensor<4xf32>
            scf.yield %t : f32
          } else {
            scf.yield %p : f32
          }
          linalg.yield %s : f32""",
        "tensor<4xf32>",
    )
    a, table = array([0, 1, 2, 3], "f32"), array([10, 11, 12, 13], "f32")
    assert evaluate(body, "tensor<4xf32>", a, table).tolist() == [13.0, 12.0, 2.0, 3.0]


def test_last_parallel_write_wins() -> None:
    body = "%o = tensor.empty() : tensor<f32>\n%r = " + generic(
        ["(i) -> (i)", "(i) -> ()"],
        "parallel",
        "ins(%a : T)",
        "%o : tensor<f32>",
        "^bb0(%p: f32, %q: f32):\nlinalg.yield %p : f32",
        "tensor<f32>",
    )
    assert evaluate(body, "tensor<f32>", array([1, 2, 3], "f32")) == 3.0


def named(line: str, result: str, *operands: Array) -> Array:
    return evaluate(f"%o = arith.constant dense<0.0> : {result}\n%r = {line}", result, *operands)


def test_named_linalg_operations_equal_numpy() -> None:
    generator = np.random.default_rng(7)
    a, b = (generator.uniform(0.5, 2, size=(4, 6)).astype(np.float32) for _ in range(2))
    t = "tensor<4x6xf32>"
    for name, expected in {
        "add": a + b,
        "sub": a - b,
        "mul": a * b,
        "max": np.maximum(a, b),
        "min": np.minimum(a, b),
    }.items():
        line = f"linalg.{name} ins(%a, %b : T, T) outs(%o : {t}) -> {t}"
        np.testing.assert_array_equal(named(line, t, a, b), expected)
    for name, expected in {"exp": np.exp(a), "log": np.log(a), "sqrt": np.sqrt(a), "copy": a}.items():
        np.testing.assert_array_equal(named(f"linalg.{name} ins(%a : T) outs(%o : {t}) -> {t}", t, a), expected)
    line = "linalg.transpose ins(%a : T) outs(%o : tensor<6x4xf32>) permutation = [1, 0]"
    np.testing.assert_array_equal(named(line, "tensor<6x4xf32>", a), a.T)
    line = "linalg.broadcast ins(%a : T) outs(%o : tensor<4x3x6xf32>) dimensions = [1]"
    np.testing.assert_array_equal(named(line, "tensor<4x3x6xf32>", a), np.broadcast_to(a[:, None], (4, 3, 6)))
    line = """linalg.reduce ins(%a : T) outs(%o : tensor<4xf32>) dimensions = [1]
      (%p: f32, %q: f32) {
        %s = arith.maximumf %p, %q : f32
        linalg.yield %s : f32
      }"""
    np.testing.assert_array_equal(named(line, "tensor<4xf32>", a), a.max(1))


def test_products_of_matrices_of_integers_are_exact() -> None:
    a, b = (
        array(np.random.default_rng(seed).integers(-128, 128, shape), "i32")
        for seed, shape in ((1, (5, 7)), (2, (7, 3)))
    )
    body = """%o = arith.constant dense<1> : tensor<5x3xi32>
      %r = linalg.matmul ins(%a, %b : T, tensor<7x3xi32>) outs(%o : tensor<5x3xi32>) -> tensor<5x3xi32>"""
    np.testing.assert_array_equal(evaluate(body, "tensor<5x3xi32>", a, b), a @ b + 1)


def test_convolution_equals_a_direct_sum() -> None:
    from numpy.lib.stride_tricks import sliding_window_view

    image, kernel = (
        array(np.random.default_rng(seed).integers(-4, 5, shape), "f32")
        for seed, shape in ((1, (2, 3, 6, 7)), (2, (4, 3, 2, 3)))
    )
    line = """linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%a, %b : T, tensor<4x3x2x3xf32>) outs(%o : tensor<2x4x5x5xf32>) -> tensor<2x4x5x5xf32>"""
    seen = sliding_window_view(image, (2, 3), axis=(2, 3))
    np.testing.assert_array_equal(
        named(line, "tensor<2x4x5x5xf32>", image, kernel), np.einsum("ncijhw,fchw->nfij", seen, kernel)
    )


def test_operation_on_memory_is_refused() -> None:
    text = """func.func @main(%a: f32, %m: memref<4xf32>) {
      linalg.fill ins(%a : f32) outs(%m : memref<4xf32>)
      return
    }"""
    with pytest.raises(Refusal, match=r"f.mlir:2:\d+: error: linalg.fill cannot be executed: it operates on a memref"):
        execute(function_named(parse_module(text, "f.mlir")), [np.float32(1), np.zeros(4, np.float32)])


@pytest.mark.parametrize(
    ("body", "result", "message"),
    [
        (
            "%d = arith.extf %a : T to tensor<4x6xf64>\n%r = math.fma %d, %d, %d : tensor<4x6xf64>",
            "tensor<4x6xf64>",
            "f64",
        ),
        (
            "%c = arith.constant 2 : index\n%e = tensor.empty(%c) : tensor<?xf32>\n"
            "%r = tensor.dim %e, %c : tensor<?xf32>",
            "index",
            r"the shape of tensor<\?xf32> is dynamic",
        ),
        (
            "%o = tensor.empty() : tensor<6xf32>\n%e = tensor.empty() : tensor<4x3xf32>\n%r = "
            + generic(
                ["(i, j) -> (i, j)", "(i, j) -> (i + j)"],
                "parallel parallel",
                "ins(%e : tensor<4x3xf32>)",
                "%o : tensor<6xf32>",
                "^bb0(%p: f32, %q: f32):\nlinalg.yield %p : f32",
                "tensor<6xf32>",
            ),
            "tensor<6xf32>",
            "the indices of each output are different loop indices",
        ),
        ('%r = "linalg.div"(%a, %a) : (T, T) -> T', "tensor<4x6xf32>", "linalg.div cannot be executed"),
    ],
)
def test_unsupported_operation_is_refused(body: str, result: str, message: str) -> None:
    with pytest.raises(Refusal, match=message):
        evaluate(body, result, X)
