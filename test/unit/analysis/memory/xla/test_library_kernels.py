"""Operations that XLA:CPU delegates to its kernel library, as observed in its optimized HLO."""

from __future__ import annotations

import pytest

from .fused import Fused, fused, in_library, last_steps, reads, stored

# A matrix has 4096 elements, as many as a reduction of the library has at least.
TYPES = """
!m = tensor<64x64xf32>
!v = tensor<64xf32>
!s = tensor<f32>
"""
INITS = """
  %zero = stablehlo.constant dense<0.0> : !s
  %least = stablehlo.constant dense<0xFF800000> : !s
"""
ROWS = "stablehlo.reduce(%{} init: %{}) applies stablehlo.{} across dimensions = [1] : (!m, !s) -> !v"


def step(body: str, result: str = "!v") -> Fused:
    """Return a function of matrices %x and %y, a vector %v and a mask %p."""
    return fused("%x: !m, %y: !m, %v: !v, %p: tensor<64x64xi1>", INITS + body, result, TYPES)


def total(result: str, operand: str) -> str:
    """Return the row sums of a matrix."""
    return f"\n  %{result} = {ROWS.format(operand, 'zero', 'add')}"


def greatest(result: str, operand: str) -> str:
    return f"\n  %{result} = {ROWS.format(operand, 'least', 'maximum')}"


def wide(result: str, operand: str) -> str:
    """Return a matrix with a vector in each column."""
    return f"\n  %{result} = stablehlo.broadcast_in_dim %{operand}, dims = [0] : (!v) -> !m"


def test_large_sum_fuses_its_operand() -> None:
    results = step("%n = stablehlo.negate %x : !m  %e = stablehlo.exponential %n : !m" + total("z", "e"))
    assert (stored(results), in_library(results), reads(results, "z")) == (["z"], ["n", "e", "z"], {"x"})


def test_elementwise_operations_alone_stay_out_of_the_library() -> None:
    results = step("%n = stablehlo.negate %x : !m  %z = stablehlo.exponential %n : !m", "!m")
    assert (stored(results), in_library(results)) == (["z"], [])


def test_shared_operand_is_stored() -> None:
    lines = "%e = stablehlo.exponential %x : !m" + total("r", "e") + wide("w", "r")
    results = step(lines + "%z = stablehlo.select %p, %e, %w : tensor<64x64xi1>, !m", "!m")
    assert (stored(results), in_library(results)) == (["e", "w", "z"], ["r", "w"])


def test_sole_reader_of_result_is_fused() -> None:
    lines = total("r", "x") + wide("w", "r") + "\n  %d = stablehlo.subtract %y, %w : !m"
    alone = step(lines + "\n  %z = stablehlo.sine %d : !m", "!m")
    assert (stored(alone), in_library(alone)) == (["d", "z"], ["r", "w", "d"])
    shared = step(lines + "\n  %u = stablehlo.negate %w : !m\n  %z = stablehlo.multiply %d, %u : !m", "!m")
    assert (stored(shared)[0], in_library(shared)) == ("w", ["r", "w"])


@pytest.mark.parametrize(
    "kind",
    [
        "%a = stablehlo.sine %x : !m",
        "%a = stablehlo.select %p, %x, %y : tensor<64x64xi1>, !m",
        "%a = stablehlo.transpose %x, dims = [1, 0] : (!m) -> !m",
        "%l = stablehlo.concatenate %x, %y, dim = 0 : (!m, !m) -> tensor<128x64xf32>\n"
        "%a = stablehlo.slice %l [0:64, 0:64] : (tensor<128x64xf32>) -> !m",
    ],
    ids=["sine", "select", "transpose", "slice"],
)
def test_unsupported_operand_is_stored(kind: str) -> None:
    results = step(kind + total("z", "a"))
    assert (stored(results), in_library(results)) == (["a", "z"], ["z"])


def test_comparison_and_converted_mask_are_not_fused() -> None:
    compared = "%c = stablehlo.compare LT, %x, %y, FLOAT : (!m, !m) -> tensor<64x64xi1>"
    results = step(compared + "%a = stablehlo.convert %c : (tensor<64x64xi1>) -> !m" + total("z", "a"))
    assert (stored(results), in_library(results)) == (["a", "z"], ["z"])


def test_product_with_a_mask_is_not_taken_as_it_is_a_select() -> None:
    mask = "%a = stablehlo.convert %p : (tensor<64x64xi1>) -> !m  %b = stablehlo.multiply %x, %a : !m"
    results = step(mask + total("z", "b"))
    assert (stored(results), in_library(results)) == (["b", "z"], ["z"])
    # The mask itself is read.
    assert reads(results, "b") == {"x", "p"}


def sums(shape: str, kind: str = "f32", combiner: str = "add") -> list[str]:
    """Return the values that the library computes for a reduction of negated numbers."""
    rows = shape.partition("x")[0]
    of, to = f"tensor<{shape}x{kind}>", f"tensor<{rows}x{kind}>"
    lines = f"""
      %a = stablehlo.add %x, %x : {of}
      %z = stablehlo.reduce(%a init: %i) applies stablehlo.{combiner} across dimensions = [1] :
        ({of}, tensor<{kind}>) -> {to}"""
    return in_library(fused(f"%x: {of}, %i: tensor<{kind}>", lines, to))


@pytest.mark.parametrize("kind", ["f64", "f32", "bf16", "i8"])
@pytest.mark.parametrize("combiner", ["add", "maximum", "minimum"])
def test_sums_and_extremes_of_supported_types_are_taken(kind: str, combiner: str) -> None:
    assert sums("64x64", kind, combiner) == ["a", "z"]


@pytest.mark.parametrize(
    ("kind", "combiner"), [("i32", "add"), ("i1", "or"), ("f16", "add"), ("i1", "add"), ("f32", "multiply")]
)
def test_unsupported_reductions_are_not_taken(kind: str, combiner: str) -> None:
    assert sums("64x64", kind, combiner) == []


def test_reduction_of_fewer_than_4096_elements_is_not_taken() -> None:
    assert sums("64x64") == ["a", "z"]
    assert sums("64x63") == []


def test_reduction_with_two_operands_is_not_taken() -> None:
    lines = """
      %n = stablehlo.negate %x : !m
      %z, %k = "stablehlo.reduce"(%n, %y, %zero, %zero) <{dimensions = array<i64: 1>}> ({
      ^bb0(%a: !s, %b: !s, %c: !s, %d: !s):
        %e = stablehlo.add %a, %c : !s
        stablehlo.return %e, %e : !s, !s
      }) : (!m, !m, !s, !s) -> (!v, !v)"""
    assert in_library(step(lines)) == []


def dot(left: str, right: str, result: str, numbers: str = "contracting_dims = [1] x [0]") -> list[str]:
    """Return the values that the library computes for maxima of a matrix product."""
    of, by, to = (f"tensor<{shape}xf32>" for shape in (left, right, result))
    columns = f"tensor<{result.partition('x')[2]}xf32>"
    lines = f"""
      %d = stablehlo.dot_general %x, %y, {numbers} : ({of}, {by}) -> {to}
      %z = stablehlo.reduce(%d init: %i) applies stablehlo.maximum across dimensions = [0] :
        ({to}, tensor<f32>) -> {columns}"""
    return in_library(fused(f"%x: {of}, %y: {by}, %i: tensor<f32>", lines, columns))


BATCHED = "batching_dims = [0] x [0], contracting_dims = [2] x [1]"


def test_matrix_product_is_fused_into_library_kernel() -> None:
    assert dot("64x2", "2x64", "64x64") == ["d", "z"]
    assert dot("256x4x8", "256x8x4", "256x4x4", BATCHED) == ["d", "z"]


def test_product_without_a_side_of_eight_is_not_taken() -> None:
    assert dot("256x4x7", "256x7x4", "256x4x4", BATCHED) == ["z"]


def test_product_with_a_row_or_column_is_not_taken() -> None:
    assert dot("1x64", "64x4096", "1x4096") == ["z"]
    assert dot("4096x64", "64x1", "4096x1") == ["z"]


def test_product_with_column_read_matrix_is_not_fused() -> None:
    assert dot("2x64", "2x64", "64x64", "contracting_dims = [0] x [0]") == ["z"]


def test_matrix_product_alone_starts_no_library_kernel() -> None:
    results = step("%z = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (!m, !m) -> !m", "!m")
    assert (stored(results), in_library(results)) == (["z"], [])


def softmax(result: str, operand: str) -> str:
    shifted = greatest("r", operand) + wide("w", "r") + f"  %d = stablehlo.subtract %{operand}, %w : !m"
    weights = "  %e = stablehlo.exponential %d : !m" + total("t", "e") + wide("u", "t")
    return f"{shifted}{weights}  %{result} = stablehlo.divide %e, %u : !m\n"


def test_a_softmax_is_one_kernel() -> None:
    results = step(softmax("z", "x"), "!m")
    assert (stored(results), reads(results, "z")) == (["z"], {"x"})
    assert in_library(results) == ["r", "w", "d", "e", "t", "u", "z"]


def test_softmax_with_shared_exponentials_is_two_kernels() -> None:
    results = step(softmax("q", "x") + "%z = stablehlo.select %p, %q, %e : tensor<64x64xi1>, !m", "!m")
    assert stored(results) == ["e", "q", "z"]
    assert (reads(results, "e"), reads(results, "q")) == ({"x"}, {"e"})


def test_kernels_merge_if_result_has_no_other_reader() -> None:
    below = total("a", "x") + wide("b", "a") + greatest("r", "y") + wide("u", "r")
    readers = "%e = stablehlo.exponential %u : !m  %d = stablehlo.divide %e, %b : !m  %m = stablehlo.negate %e : !m"
    results = step(f"{below}{readers}  %z = stablehlo.add %d, %m : !m", "!m")
    assert (stored(results), reads(results, "z")) == (["z"], {"x", "y"})


def test_kernel_has_at_most_100_operations_and_values() -> None:
    names = [f"n{index}" for index in range(120)]
    chain = "".join(
        f"%{value} = stablehlo.negate %{of} : !m\n" for of, value in zip(["x", *names], names, strict=False)
    )
    results = step(chain + total("z", names[-1]))
    # The kernel reads the number that its sum begins with, and the rest of the chain.
    assert in_library(results) == [*names[-97:], "z"]
    assert stored(results) == [names[-98], "z"]


def slice_of_expensive_value(lines: str) -> Fused:
    """Return a function of %p, a slice of an expensive value, which only a reduction can absorb."""
    wide, result = "tensor<256x32xf32>", "tensor<128xf32>"
    body = f"""
      %t = stablehlo.tanh %x : {wide}
      %p = stablehlo.dynamic_slice %t, %k, %k, sizes = [128, 32] : ({wide}, tensor<i32>, tensor<i32>) -> !m
      {lines}"""
    types = f"!m = tensor<128x32xf32>\n!v = {result}\n!s = tensor<f32>"
    return fused(f"%x: {wide}, %y: !m, %k: tensor<i32>, %zero: !s", body, result, types)


def multiplied(result: str, operand: str) -> str:
    """Return a reduction by products, which the library does not support."""
    return f"\n  %{result} = {ROWS.format(operand, 'zero', 'multiply')}"


def test_library_kernel_operand_is_not_fused_into_reduction() -> None:
    assert stored(slice_of_expensive_value(multiplied("z", "p"))) == ["z"]
    assert stored(slice_of_expensive_value(total("z", "p"))) == ["t", "p", "z"]


def test_library_kernel_operand_is_stored_for_a_later_reduction() -> None:
    added = "  %a = stablehlo.add %p, %w : !m"
    result = slice_of_expensive_value(total("r", "y") + wide("w", "r") + added + multiplied("z", "a"))
    assert (stored(result), in_library(result)) == (["t", "p", "a", "z"], ["r", "w", "a"])


def windows(step: str, size: str = "1, 2", dilation: str = "1, 1") -> list[str]:
    """Return the values that the library computes for maxima over windows of a negated matrix, without padding."""
    lines = f"""
      %n = stablehlo.negate %x : !m
      %z = "stablehlo.reduce_window"(%n, %i) <{{window_dimensions = array<i64: {size}>,
        window_strides = array<i64: {step}>, window_dilations = array<i64: {dilation}>}}> ({{
      ^bb0(%a: !s, %b: !s):
        %g = stablehlo.maximum %a, %b : !s
        stablehlo.return %g : !s
      }}) : (!m, !s) -> !w"""
    sizes = zip(size.split(","), step.split(","), dilation.split(","), strict=True)
    result = "x".join(str((64 - (int(first) - 1) * int(apart) - 1) // int(by) + 1) for first, by, apart in sizes)
    return in_library(fused("%x: !m, %i: !s", lines, "!w", f"{TYPES}\n!w = tensor<{result}xf32>"))


def test_maxima_over_adjacent_windows_are_fused() -> None:
    assert windows("1, 2") == ["n", "z"]
    assert windows("1, 1") == []
    assert windows("1, 3") == []
    assert windows("2, 2") == []
    assert windows("1, 2", dilation="1, 2") == []
    assert windows("1, 1", size="1, 1") == []


def test_order_preserving_broadcast_is_fused() -> None:
    def library_values(dims: str) -> list[str]:
        lines = f"%b = stablehlo.broadcast_in_dim %x, dims = [{dims}] : (!m) -> tensor<64x64x2xf32>\n"
        across = "applies stablehlo.add across dimensions = [2] : (tensor<64x64x2xf32>, !s) -> !m"
        return in_library(step(f"{lines}%z = stablehlo.reduce(%b init: %zero) {across}", "!m"))

    assert (library_values("0, 1"), library_values("1, 0")) == (["b", "z"], ["z"])


def test_padding_is_taken_unless_it_is_between_elements() -> None:
    def library_values(low: int, between: int) -> list[str]:
        numbers = f"low = [0, {low}], high = [0, 1], interior = [0, {between}]"
        lines = f"%b = stablehlo.pad %y, %zero, {numbers} : (tensor<64x32xf32>, !s) -> !m"
        return in_library(fused("%y: tensor<64x32xf32>", INITS + lines + total("z", "b"), "!v", TYPES))

    assert (library_values(31, 0), library_values(0, 1)) == (["b", "z"], ["z"])


def test_library_kernel_overwrites_no_operand() -> None:
    # Not a product that the library takes in.
    lines = "%a = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (!m, !m) -> !m\n"
    elementwise, library = step(lines + "%z = stablehlo.sine %a : !m", "!m"), step(lines + softmax("z", "a"), "!m")
    assert stored(elementwise) == stored(library) == ["a", "z"]
    assert (last_steps(elementwise), last_steps(library)) == ({"a": 0}, {"a": 1})
