"""Kernels of einsums, batch normalization, tuples and operand-given shapes, against XLA."""

from __future__ import annotations

import numpy as np
import pytest

from recompute.interpreters.executor import execute, function_named
from recompute.interpreters.kernels.arrays import Array
from recompute.mlir_io.parser import parse_module
from recompute.support.diagnostics import Refusal
from recompute.test.unit.interpreters.evaluate import tensor
from recompute.test.unit.interpreters.run_by_xla import run_by_xla

pytest.importorskip("jax", reason="XLA judges what is computed here")

F, ROW, TABLE = np.float32, (7,), (5, 7)


def values(*shape: int) -> Array:
    return np.random.default_rng(len(shape) + sum(shape)).normal(size=shape).astype(F)


def program(body: str, inputs: list[Array], results: str) -> str:
    arguments = ", ".join(f"%{name}: {tensor(value)}" for name, value in zip("abcdef", inputs, strict=False))
    return f"func.func @main({arguments}) -> ({results}) {{\n{body}\n}}"


def check(body: str, inputs: list[Array], results: str, rtol: float = 2e-5) -> None:
    """Assert that the interpreter and XLA compute the same numbers."""
    text = program(body, inputs, results)
    computed = execute(function_named(parse_module(text, "f.mlir")), inputs)
    judged = run_by_xla(text, inputs)
    assert len(computed) == len(judged)
    for ours, theirs in zip(computed, judged, strict=True):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=2e-6)


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [((5, 7), (7, 3), "5x3x"), ((5, 7), (7,), "5x"), ((7,), (7, 3), "3x"), ((7,), (7,), "")],
)
def test_dot_equals_xla(left: tuple[int, ...], right: tuple[int, ...], result: str) -> None:
    a, b = values(*left), values(*right)
    type_ = f"tensor<{result}f32>"
    line = f"%r = stablehlo.dot %a, %b : ({tensor(a)}, {tensor(b)}) -> {type_}"
    check(f"{line}\nreturn %r : {type_}", [a, b], type_)


@pytest.mark.parametrize(
    ("config", "left", "right", "result"),
    [
        ("ab,bc->ac", (5, 7), (7, 3), "5x3x"),
        ("bij,bkj->bki", (2, 5, 7), (2, 3, 7), "2x3x5x"),
        ("ab,ab->ab", (5, 7), (5, 7), "5x7x"),
    ],
)
def test_einsum_equals_xla(config: str, left: tuple[int, ...], right: tuple[int, ...], result: str) -> None:
    a, b = values(*left), values(*right)
    type_ = f"tensor<{result}f32>"
    line = f'%r = stablehlo.einsum %a, %b, config = "{config}" : ({tensor(a)}, {tensor(b)}) -> {type_}'
    check(f"{line}\nreturn %r : {type_}", [a, b], type_)


@pytest.mark.parametrize(
    ("config", "result", "summed"),
    [
        ("ab->ba", "7x5x", None),
        ("ab->a", "5x", (1,)),
        ("...b->b...", "7x5x", None),
        ("ab->", "", (0, 1)),
    ],
)
def test_unary_einsum_equals_numpy(config: str, result: str, summed: tuple[int, ...] | None) -> None:
    """Results equal numpy's, since XLA does not read the operation."""
    a = values(*TABLE)
    type_ = f"tensor<{result}f32>"
    line = f'%r = stablehlo.unary_einsum %a, config = "{config}" : ({tensor(a)}) -> {type_}'
    (computed,) = execute(
        function_named(parse_module(program(f"{line}\nreturn %r : {type_}", [a], type_), "f.mlir")), [a]
    )
    np.testing.assert_allclose(computed, a.T if summed is None else np.sum(a, axis=summed), rtol=1e-6)


def test_broadcast_equals_xla() -> None:
    a = values(*ROW)
    check(
        "%r = stablehlo.broadcast %a, sizes = [2, 3] : (tensor<7xf32>) -> tensor<2x3x7xf32>\n"
        "return %r : tensor<2x3x7xf32>",
        [a],
        "tensor<2x3x7xf32>",
    )


@pytest.mark.parametrize(
    ("shape", "index", "dimension", "batch", "result"),
    [
        ((5, 7), [1, 6, 9], 1, 0, "5x3x"),
        ((5, 7), [[4, 0]], 0, 0, "1x2x7x"),
        ((2, 3, 7), [[1, 0, 2], [5, 6, 3]], 2, 1, "2x3x3x"),
        ((2, 3, 7), [[1, 0, 2], [2, 2, 1]], 1, 1, "2x3x7x"),
    ],
)
def test_torch_index_select_equals_xla(
    shape: tuple[int, ...], index: list[list[int]], dimension: int, batch: int, result: str
) -> None:
    a, b = values(*shape), np.array(index, np.int32)
    type_ = f"tensor<{result}f32>"
    line = f"""%r = "stablehlo.torch_index_select"(%a, %b) <{{batch_dims = {batch} : i64, dim = {dimension} : i64}}>
        : ({tensor(a)}, {tensor(b)}) -> {type_}"""
    check(f"{line}\nreturn %r : {type_}", [a, b], type_)


@pytest.mark.parametrize("feature", [0, 1, 2])
def test_batch_norms_equal_xla(feature: int) -> None:
    """Batch normalization for training, its gradient, and inference equal XLA's."""
    a, grad = values(4, 3, 5), values(3, 5, 4).reshape(4, 3, 5)
    count = a.shape[feature]
    scale, offset, row = values(count), values(count)[::-1].copy(), f"tensor<{count}xf32>"
    properties = f"<{{epsilon = 0.01 : f32, feature_index = {feature} : i64}}>"
    image = tensor(a)
    body = f"""%y, %m, %v = "stablehlo.batch_norm_training"(%a, %c, %d) {properties}
        : ({image}, {row}, {row}) -> ({image}, {row}, {row})
    %g:3 = "stablehlo.batch_norm_grad"(%a, %c, %m, %v, %b) {properties}
        : ({image}, {row}, {row}, {row}, {image}) -> ({image}, {row}, {row})
    %i = "stablehlo.batch_norm_inference"(%a, %c, %d, %m, %v) {properties}
        : ({image}, {row}, {row}, {row}, {row}) -> {image}
    return %y, %m, %v, %g#0, %g#1, %g#2, %i : {image}, {row}, {row}, {image}, {row}, {row}, {image}"""
    results = ", ".join([image, row, row, image, row, row, image])
    check(body, [a, grad, scale, offset], results, rtol=1e-4)


def test_tuple_results_are_returned_as_elements() -> None:
    """A tuple is returned as its elements, including those of nested tuples."""
    a, b = values(*ROW), values(*TABLE)
    inner = f"tuple<{tensor(a)}, {tensor(b)}>"
    body = f"""%t = stablehlo.tuple %a, %b : {inner}
    %x = stablehlo.get_tuple_element %t[1] : ({inner}) -> {tensor(b)}
    %u = stablehlo.tuple %x, %t : tuple<{tensor(b)}, {inner}>
    return %u : tuple<{tensor(b)}, {inner}>"""
    text = program(body, [a, b], f"tuple<{tensor(b)}, {inner}>")
    computed = execute(function_named(parse_module(text, "f.mlir")), [a, b])
    assert [result.tolist() for result in computed] == [b.tolist(), a.tolist(), b.tolist()]


ONES = "tensor<1xi64>, tensor<1xi64>, tensor<1xi64>"
SHAPES = [
    ("dynamic_reshape %a, %n : (T, tensor<2xi64>) -> R", (6,), "2x3x", "[2, 3]"),
    ("dynamic_broadcast_in_dim %a, %n, dims = [1] : (T, tensor<2xi64>) -> R", (6,), "4x6x", "[4, 6]"),
    (
        "dynamic_pad %a, %z, %n, %n, %n : (T, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> R",
        (6,),
        "13x",
        "[1]",
    ),
    ("real_dynamic_slice %a, %n, %m, %n : (T, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> R", (6,), "4x", "[1]"),
    ("set_dimension_size %a, %s, dim = 0 : (T, tensor<i32>) -> R", (6,), "6x", "[1]"),
]
CONSTANTS = """%n = stablehlo.constant dense<NUMBERS> : tensor<COUNTxi64>
%m = stablehlo.constant dense<5> : tensor<1xi64>
%s = stablehlo.constant dense<6> : tensor<i32>
%z = stablehlo.constant dense<0.5> : tensor<f32>
"""


@pytest.mark.parametrize(("operation", "shape", "result", "numbers"), SHAPES)
def test_shape_operands_equal_static_shapes(operation: str, shape: tuple[int, ...], result: str, numbers: str) -> None:
    a, type_ = values(*shape), f"tensor<{result}f32>"
    constants = CONSTANTS.replace("NUMBERS", numbers).replace("COUNT", str(numbers.count(",") + 1))
    line = operation.replace("(T", f"({tensor(a)}").replace("-> R", f"-> {type_}")
    check(f"{constants}%r = stablehlo.{line}\nreturn %r : {type_}", [a], type_)


def test_get_dimension_size_gives_the_extent() -> None:
    a = values(*TABLE)
    line = f"%r = stablehlo.get_dimension_size %a, dim = 1 : ({tensor(a)}) -> tensor<i32>"
    check(f"{line}\nreturn %r : tensor<i32>", [a], "tensor<i32>")


def test_dynamic_iota_counts_along_a_dimension() -> None:
    body = """%n = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
    %r = stablehlo.dynamic_iota %n, dim = 1 : (tensor<2xi64>) -> tensor<2x3xf32>
    return %r : tensor<2x3xf32>"""
    check(body, [], "tensor<2x3xf32>")


def test_dynamic_gather_reads_slice_sizes_from_an_operand() -> None:
    a, b = values(*TABLE), np.array([[3], [9], [0]], np.int32)
    body = """%n = stablehlo.constant dense<[1, 7]> : tensor<2xi64>
    %r = "stablehlo.dynamic_gather"(%a, %b, %n) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
        collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}>
        : (tensor<5x7xf32>, tensor<3x1xi32>, tensor<2xi64>) -> tensor<3x7xf32>
    return %r : tensor<3x7xf32>"""
    check(body, [a, b], "tensor<3x7xf32>")


def test_dynamic_conv_reads_padding_from_an_operand() -> None:
    image, kernel = values(1, 6, 6, 2), values(3, 3, 2, 4)
    numbers = "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
    types = f"({tensor(image)}, {tensor(kernel)}"
    dynamic = f"""%n = stablehlo.constant dense<[[1, 2], [0, 1]]> : tensor<2x2xi64>
    %r = "stablehlo.dynamic_conv"(%a, %b, %n) <{{batch_group_count = 1 : i64, feature_group_count = 1 : i64,
        window_strides = array<i64: 2, 1>, dimension_numbers = #stablehlo.conv<{numbers}>}}>
        : {types}, tensor<2x2xi64>) -> tensor<1x4x5x4xf32>
    return %r : tensor<1x4x5x4xf32>"""
    static = f"""%r = stablehlo.convolution(%a, %b) dim_numbers = {numbers},
        window = {{stride = [2, 1], pad = [[1, 2], [0, 1]]}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : {types}) -> tensor<1x4x5x4xf32>
    return %r : tensor<1x4x5x4xf32>"""
    texts = [program(body, [image, kernel], "tensor<1x4x5x4xf32>") for body in (dynamic, static)]
    results = [execute(function_named(parse_module(text, "f.mlir")), [image, kernel])[0] for text in texts]
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_allclose(results[1], run_by_xla(texts[1], [image, kernel])[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("operation", "numbers", "words"),
    [
        ("dynamic_reshape %a, %b : (T, tensor<1xi64>) -> tensor<6xf32>", [7], r"\[7\], but its result has shape \[6\]"),
        (
            "dynamic_broadcast_in_dim %a, %b, dims = [0] : (T, tensor<1xi64>) -> tensor<6xf32>",
            [5],
            r"\[5\], but its result has shape \[6\]",
        ),
        (
            "real_dynamic_slice %a, %b, %b, %b : (T, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<0xf32>",
            [7],
            "7:7:7 is not a valid slice of an extent of 6",
        ),
    ],
)
def test_shape_operand_must_match_the_result_type(operation: str, numbers: list[int], words: str) -> None:
    a, b = values(6), np.array(numbers, np.int64)
    result = operation.rpartition("-> ")[2]
    body = f"%r = stablehlo.{operation.replace('(T', '(tensor<6xf32>')}\nreturn %r : {result}"
    with pytest.raises(Refusal, match=words):
        execute(function_named(parse_module(program(body, [a, b], result), "f.mlir")), [a, b])


QUANTIZED = "!quant.uniform<i8:f32, 0.5:3>"
BY_ROW = "!quant.uniform<i8<-10:10>:f32:0, {0.5:1, 2.0:-1}>"


@pytest.mark.parametrize(
    ("type_", "stored", "real"),
    [
        (QUANTIZED, [[3, 4, 3, 127], [5, 2, -128, 5]], [[0, 0.5, 0, 62], [1, -0.5, -65.5, 1]]),
        (BY_ROW, [[1, 2, 1, 10], [-1, -1, -10, -1]], [[0, 0.5, 0, 4.5], [0, 0, -18, 0]]),
    ],
)
def test_quantization_rounds_to_even_and_clamps(type_: str, stored: list[list[int]], real: list[list[float]]) -> None:
    """Quantization rounds ties to even, and clamps values out of range."""
    values = np.array([[0, 0.5, 0.25, 100], [1, -0.6, -100, 0.75]], F)
    quantized = f"tensor<2x4x{type_}>"
    body = f"""%q = stablehlo.uniform_quantize %a : (tensor<2x4xf32>) -> {quantized}
    %r = stablehlo.uniform_dequantize %q : ({quantized}) -> tensor<2x4xf32>
    %s = stablehlo.uniform_quantize %q : ({quantized}) -> {quantized}
    return %r, %q, %s : tensor<2x4xf32>, {quantized}, {quantized}"""
    results = f"tensor<2x4xf32>, {quantized}, {quantized}"
    function = function_named(parse_module(program(body, [values], results), "f.mlir"))
    computed, integers, again = execute(function, [values])
    assert computed.tolist() == real and integers.tolist() == again.tolist() == stored and integers.dtype == np.int8


def test_quantized_arithmetic_uses_real_numbers() -> None:
    """Arithmetic uses the real numbers, and quantizes the result by its own scale."""
    left, right = np.array([1, 2], F), np.array([3, 40], F)
    fine, coarse = (f"tensor<2x!quant.uniform<i8:f32, {scale}>>" for scale in ("0.1:-30", "0.5:-20"))
    body = f"""%p = stablehlo.uniform_quantize %a : (tensor<2xf32>) -> {fine}
    %q = stablehlo.uniform_quantize %b : (tensor<2xf32>) -> {coarse}
    %sum = "stablehlo.add"(%p, %q) : ({fine}, {coarse}) -> {coarse}
    %product = "stablehlo.multiply"(%q, %q) : ({coarse}, {coarse}) -> {coarse}
    %bits = stablehlo.bitcast_convert %sum : ({coarse}) -> tensor<2xi8>
    %again = stablehlo.bitcast_convert %bits : (tensor<2xi8>) -> {coarse}
    %r = stablehlo.uniform_dequantize %again : ({coarse}) -> tensor<2xf32>
    return %bits, %product, %r : tensor<2xi8>, {coarse}, tensor<2xf32>"""
    results = f"tensor<2xi8>, {coarse}, tensor<2xf32>"
    function = function_named(parse_module(program(body, [left, right], results), "f.mlir"))
    bits, product, real = execute(function, [left, right])
    assert bits.tolist() == [-12, 64] and bits.dtype == np.int8
    assert product.tolist() == [-2, 127]
    assert real.tolist() == [4, 42]


def test_other_operations_on_quantized_numbers_are_refused() -> None:
    values, quantized = np.zeros((2, 4), F), f"tensor<2x4x{QUANTIZED}>"
    body = f"""%q = stablehlo.uniform_quantize %a : (tensor<2x4xf32>) -> {quantized}
    %r = stablehlo.clamp %q, %q, %q : {quantized}
    return %r : {quantized}"""
    with pytest.raises(Refusal, match=r"stablehlo.clamp cannot be executed: numpy has no type"):
        execute(function_named(parse_module(program(body, [values], quantized), "f.mlir")), [values])
