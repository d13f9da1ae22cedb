"""Invalid operations are rejected with messages that state the mismatch."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import VerifyException

from recompute.mlir_io.parser import parse_module

F, N, B, S, ROW = "tensor<2x3xf32>", "tensor<2x3xi32>", "tensor<2x3xi1>", "tensor<f32>", "tensor<2xf32>"
IMAGE, INDEX, I1 = "tensor<2x8x8x3xf32>", "tensor<i32>", "tensor<i1>"
C, HALF, STATE = "tensor<2xcomplex<f32>>", "tensor<2x?xf32>", "tensor<2xui64>"
BY_DIMENSION = "tensor<2x!quant.uniform<i8:f32:0, {1.0:0, 2.0:0}>>"
CONVOLUTION = "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
GROUPS = "{batch_group_count = 1 : i64, feature_group_count = 1 : i64}"
DOT = "stablehlo.dot_general %0, %0, contracting_dims ="
SPREAD = "stablehlo.broadcast_in_dim %0, dims ="
REDUCE = "stablehlo.reduce(%0 init: %1) applies stablehlo.add across dimensions ="


def module_with(operation: str, types: tuple[str, ...]) -> ModuleOp:
    """Return a module whose operation reads %0, %1, … of these types."""
    arguments = ", ".join(f"%{index}: {type}" for index, type in enumerate(types))
    return parse_module(f"func.func @f({arguments}) {{\n  {operation}\n  return\n}}")


CASES: list[tuple[str, tuple[str, ...], str]] = [
    (f"%r = stablehlo.tanh %0 : {N}", (N,), "stablehlo.tanh is not defined for elements of type i32"),
    (f"%r = stablehlo.tanh %0 : ({F}) -> tensor<3x2xf32>", (F,), "the result has type tensor<3x2xf32>, expected"),
    (f"%r = stablehlo.and %0, %0 : {F}", (F,), "not defined for elements of type f32"),
    (f"%r = stablehlo.shift_left %0, %0 : {B}", (B,), "not defined for elements of type i1"),
    (f"%r = stablehlo.add %0, %1 : ({F}, {N}) -> {F}", (F, N), f"the right operand has type {N}, expected {F}"),
    (f"%r = stablehlo.add %0, %0 : ({F}, {F}) -> {N}", (F,), f"the result has type {N}, expected {F}"),
    (f"%r = stablehlo.convert %0 : ({F}) -> tensor<6xi32>", (F,), r"the result has shape \[6\], expected \[2, 3\]"),
    (f"%r = stablehlo.is_finite %0 : ({F}) -> {F}", (F,), "elements of type f32, expected i1"),
    (f"%r = stablehlo.compare LT, %0, %0 : ({F}, {F}) -> {F}", (F,), "elements of type f32, expected i1"),
    (f"%r = stablehlo.compare LT, %0, %1 : ({F}, {N}) -> {B}", (F, N), "the right operand has type"),
    (f"%r = stablehlo.select %0, %1, %1 : {F}, {F}", (F, F), "the predicate has elements of type f32, expected i1"),
    (f"%r = stablehlo.select %0, %1, %1 : tensor<2xi1>, {F}", ("tensor<2xi1>", F), r"the predicate has shape \[2\]"),
    (f"%r = stablehlo.clamp %0, %1, %0 : ({ROW}, {F}, {ROW}) -> {F}", (ROW, F), "a bound"),
    (f"%r = stablehlo.reshape %0 : ({F}) -> tensor<5xf32>", (F,), "the result has 5 elements, but the operand has 6"),
    (f"%r = stablehlo.reshape %0 : ({F}) -> tensor<6xi32>", (F,), "elements of type i32, expected f32"),
    (f"%r = stablehlo.bitcast_convert %0 : ({F}) -> tensor<3x2xi32>", (F,), r"shape \[3, 2\], expected \[2, 3\]"),
    (f"%r = stablehlo.bitcast_convert %0 : ({F}) -> tensor<2x3x1x2xi16>", (F,), "more than one dimension"),
    (f"%r = {SPREAD} [0] : ({F}) -> {F}", (F,), "the number of broadcast_dimensions is 1, but the operand has rank 2"),
    (f"%r = {SPREAD} [0, 2] : ({F}) -> {F}", (F,), r"\[0, 2\] must be non-negative and less than rank 2"),
    (f"%r = {SPREAD} [1, 1] : ({F}) -> {F}", (F,), "must be distinct"),
    (
        f"%r = {SPREAD} [0, 1] : ({F}) -> tensor<2x4xf32>",
        (F,),
        "an extent of 3 cannot be broadcast to an extent of 4",
    ),
    (f"%r = stablehlo.transpose %0, dims = [0, 0] : ({F}) -> {F}", (F,), r"\[0, 0\] is not a permutation"),
    (f"%r = stablehlo.transpose %0, dims = [1, 0] : ({F}) -> {F}", (F,), r"shape \[2, 3\], expected \[3, 2\]"),
    (
        f"%r = stablehlo.slice %0 [0:2] : ({F}) -> {ROW}",
        (F,),
        "expected a start, a limit and a stride for each dimension",
    ),
    (
        f"%r = stablehlo.slice %0 [0:2, 0:4] : ({F}) -> tensor<2x4xf32>",
        (F,),
        "0:4:1 is not a valid slice of .* 3",
    ),
    (f"%r = stablehlo.slice %0 [0:2, 0:3:2] : ({F}) -> {F}", (F,), r"shape \[2, 3\], expected \[2, 2\]"),
    (
        f"%r = stablehlo.concatenate %0, %0, dim = 0 : ({F}, {F}) -> {F}",
        (F,),
        "along dimension 0 add up to 4, but the result has extent 2",
    ),
    (
        f"%r = stablehlo.concatenate %0, %0, dim = 2 : ({F}, {F}) -> {F}",
        (F,),
        "must be non-negative and less than rank 2",
    ),
    (f"%r = stablehlo.concatenate %0, %1, dim = 0 : ({F}, {N}) -> tensor<4x3xf32>", (F, N), "an operand has elements"),
    ("%r = stablehlo.concatenate dim = 0 : () -> tensor<4x3xf32>", (), "there are no operands, expected at least one"),
    (f"%r = stablehlo.iota dim = 2 : {N}", (), r"\[2\] must be non-negative and less than rank 2"),
    ("%r = stablehlo.iota dim = 0 : tensor<?xi32>", (), r"the result has type tensor<\?xi32>, expected a static shape"),
    ("%r = stablehlo.iota dim = 0 : tensor<2xi1>", (), "the result has elements of type i1, expected a numeric type"),
    (
        f"%r = stablehlo.concatenate %0, %0, dim = 0 : ({S}, {S}) -> {ROW}",
        (S,),
        "must be non-negative and less than rank 0",
    ),
    (f"%r = stablehlo.is_finite %0 : ({N}) -> {B}", (N,), "not defined for elements of type i32"),
    (f"%r = stablehlo.reduce_precision %0, format = e5m10 : {N}", (N,), "not defined for elements of type i32"),
    ("%r = stablehlo.abs %0 : tensor<2xui32>", ("tensor<2xui32>",), "not defined for elements of type ui32"),
    (f"%r = stablehlo.abs %0 : ({C}) -> {C}", (C,), r"elements of type complex<f32>, expected f32"),
    (f"%r = stablehlo.real %0 : ({C}) -> tensor<2xf64>", (C,), "elements of type f64, expected f32"),
    (f"%r = stablehlo.imag %0 : ({F}) -> {N}", (F,), "elements of type i32, expected f32"),
    (f"%r = stablehlo.real %0 : ({N}) -> {N}", (N,), "not defined for elements of type i32"),
    (f"%r = chlo.broadcast_add %0, %1 : ({F}, {ROW}) -> {F}", (F, ROW), "extents 3 and 2 cannot be broadcast"),
    (f"%r = chlo.broadcast_add %0, %0 : ({F}, {F}) -> {ROW}", (F,), r"the result has shape \[2\], expected \[2, 3\]"),
    (f"%r = chlo.broadcast_add %0, %1 : ({F}, {N}) -> {F}", (F, N), "the right operand has elements of type i32"),
    (f"%r = chlo.broadcast_add %0, %0 : ({F}, {F}) -> {N}", (F,), "the result has elements of type i32, expected f32"),
    (
        f"%r = chlo.broadcast_add %0, %1 {{broadcast_dimensions = array<i64: 2>}} : ({F}, {ROW}) -> {F}",
        (F, ROW),
        r"broadcast_dimensions \[2\] must be non-negative and less than rank 2",
    ),
    (
        f"%r = chlo.broadcast_add %0, %1 {{broadcast_dimensions = array<i64: 0, 1>}} : ({F}, {ROW}) -> {F}",
        (F, ROW),
        "there are 2 broadcast_dimensions, expected 1",
    ),
    (
        f"%r = chlo.broadcast_add %0, %1 {{broadcast_dimensions = array<i64: 1, 0>}} : (tensor<4x2x3xf32>, {F})"
        " -> tensor<4x2x3xf32>",
        ("tensor<4x2x3xf32>", F),
        r"broadcast_dimensions \[1, 0\] must be in ascending order",
    ),
    (f"%r = chlo.broadcast_and %0, %0 : ({F}, {F}) -> {F}", (F,), "not defined for elements of type f32"),
    (f"%r = chlo.broadcast_zeta %0, %0 : ({N}, {N}) -> {N}", (N,), "not defined for elements of type i32"),
    (f"%r = chlo.broadcast_complex %0, %0 : ({F}, {F}) -> {F}", (F,), "type f32, expected complex<f32>"),
    (
        "%r = chlo.broadcast_compare %0, %0 {comparison_direction = #chlo<comparison_direction LT>,"
        f" compare_type = #chlo<comparison_type UNSIGNED>}} : ({N}, {N}) -> {B}",
        (N,),
        "C4: compare_type is UNSIGNED, expected SIGNED",
    ),
    (
        "%r = chlo.broadcast_compare %0, %0 {comparison_direction = #chlo<comparison_direction LT>}"
        f" : ({F}, {F}) -> {F}",
        (F,),
        "elements of type f32, expected i1",
    ),
    (f"%r = chlo.broadcast_select %0, %0, %0 : ({F}, {F}, {F}) -> {F}", (F,), "the predicate has elements of type f32"),
    (f"%r = chlo.broadcast_select %0, %1, %2 : ({B}, {F}, {N}) -> {F}", (B, F, N), "on_false has elements"),
    (f"%r = chlo.broadcast_select %0, %1, %1 : ({B}, {ROW}, {ROW}) -> {F}", (B, ROW), "extents 3 and 2 cannot"),
    (f'%r = "chlo.constant_like"(%0) {{value = 3.0 : f32}} : ({F}) -> {N}', (F,), "type i32, expected f32"),
    (f'%r = "chlo.constant_like"(%0) {{value = 3.0 : f32}} : ({F}) -> {ROW}', (F,), "the result has shape"),
    ("%r = chlo.conj %0 : tensor<2xi32> -> tensor<2xi32>", ("tensor<2xi32>",), "not defined for elements of type i32"),
    (
        "%r:2 = chlo.top_k(%0, k = -1) : tensor<?xf32> -> (tensor<?xf32>, tensor<?xi32>)",
        ("tensor<?xf32>",),
        "k is -1, but must be from 0 to the last extent",
    ),
    (f'%r = "stablehlo.constant"() <{{value = dense<1> : {N}}}> : () -> {F}', (), f"the result has type {F}"),
    (
        f"%r = {DOT} [1] x [0] : ({F}, {F}) -> {F}",
        (F,),
        r"C10: the part along rhs_contracting.* \[2\], expected \[3\]",
    ),
    (
        f"%r = {DOT} [1] x [1] : ({F}, {F}) -> {F}",
        (F,),
        r"expected \[2, 2\]",
    ),
    (f"%r = {DOT} [1] x [] : ({F}, {F}) -> {F}", (F,), "C2: there are 0 rhs_contracting_dimensions, expected 1"),
    (
        f"%r = {DOT} [2] x [0] : ({F}, {F}) -> {F}",
        (F,),
        r"C6: lhs_contracting_dimensions \[2\] must be non-negative and less than rank 2",
    ),
    (
        f"%r = {DOT} [1] x [1], precision = [HIGH, HIGH, HIGH] : ({F}, {F}) -> tensor<2x2xf32>",
        (F,),
        "C11: there are 3 precisions, expected at most two",
    ),
    (
        '%r = "stablehlo.gather"(%0, %1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],'
        " collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}>"
        f" : ({F}, tensor<8x1xi32>) -> tensor<8x4xf32>",
        (F, "tensor<8x1xi32>"),
        "a slice has size 4, more than the extent 3",
    ),
    (
        '%r = "stablehlo.gather"(%0, %1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],'
        " collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}>"
        f" : ({F}, tensor<8x1xi32>) -> tensor<3x8xf32>",
        (F, "tensor<8x1xi32>"),
        r"the result has shape \[3, 8\], expected \[8, 3\]",
    ),
    (
        '%r = "stablehlo.scatter"(%0, %1, %0) <{scatter_dimension_numbers = #stablehlo.scatter<'
        "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],"
        " index_vector_dim = 1>}> ({\n"
        f"^bb0(%a: {S}, %b: {S}):\n  stablehlo.return %a : {S}\n}}) : ({F}, tensor<8x1xi32>, {F}) -> {F}",
        (F, "tensor<8x1xi32>"),
        r"C4: an update has shape \[2, 3\], expected \[8, 3\]",
    ),
    (
        f"%r = {REDUCE} [1] : ({F}, {S}) -> {F}",
        (F, S),
        r"a result has shape \[2, 3\], expected \[2\]",
    ),
    (
        f"%r = stablehlo.reduce(%0 init: %0) applies stablehlo.add across dimensions = [1] : ({F}, {F}) -> {ROW}",
        (F,),
        r"an initial value has shape \[2, 3\], expected \[\]",
    ),
    (
        f"%r = {REDUCE} [2] : ({F}, {S}) -> {ROW}",
        (F, S),
        "must be non-negative and less than rank 2",
    ),
    (
        f"%r = stablehlo.reduce(%0 init: %1) across dimensions = [0, 1] : ({N}, tensor<i32>) -> tensor<i32>\n"
        f" reducer(%a: {S}, %b: {S}) {{\n  stablehlo.return %a : {S}\n}}",
        (N, "tensor<i32>"),
        "an input has elements of type i32, but they cannot be promoted to f32",
    ),
    (
        f"%r = stablehlo.reduce(%0 init: %1) across dimensions = [0, 1] : ({F}, {S}) -> {S}\n"
        f" reducer(%a: {S}, %b: {S}) {{\n  stablehlo.return %a, %b : {S}, {S}\n}}",
        (F, S),
        "C6: there are 2 values that the region returns, expected 1",
    ),
    (f"%r = stablehlo.reduce_precision %0, format = e0m3 : {F}", (F,), "exponent_bits is 0, expected at least 1"),
    (f'%r = "stablehlo.complex"(%0, %0) : ({F}, {F}) -> {F}', (F,), "expected a tensor of complex numbers"),
    (f"%r = stablehlo.complex %0, %0 : ({N}, {N}) -> tensor<2x3xcomplex<f32>>", (N,), "the real part has type"),
    (
        f"%r = stablehlo.dynamic_slice %0, %1, sizes = [1, 1] : ({F}, {INDEX}) -> {F}",
        (F, INDEX),
        "1 start index and 2 slice sizes, expected 2 of each",
    ),
    (
        f"%r = stablehlo.dynamic_slice %0, %1, %1, sizes = [1, 4] : ({F}, {INDEX}, {INDEX}) -> {F}",
        (F, INDEX),
        "size 4, more than the extent 3",
    ),
    (
        f"%r = stablehlo.dynamic_slice %0, %1, %1, sizes = [1, 1] : ({F}, {INDEX}, {INDEX}) -> {F}",
        (F, INDEX),
        "the result has shape",
    ),
    (
        f"%r = stablehlo.dynamic_update_slice %0, %1, %2, %2 : ({F}, {N}, {INDEX}, {INDEX}) -> {F}",
        (F, N, INDEX),
        "the update has",
    ),
    (f"%r = stablehlo.dynamic_update_slice %0, %0, %0, %0 : ({F}, {F}, {F}, {F}) -> {F}", (F,), "an index has shape"),
    (f"%r = stablehlo.pad %0, %1, low = [1], high = [0], interior = [0] : ({F}, {S}) -> {F}", (F, S), "low, high and"),
    (
        f"%r = stablehlo.pad %0, %1, low = [1, 0], high = [0, 0], interior = [0, 1] : ({F}, {S}) -> {F}",
        (F, S),
        r"\[3, 5\]",
    ),
    (
        f"%r = stablehlo.pad %0, %1, low = [0, 0], high = [0, 0], interior = [0, -1] : ({F}, {S}) -> {F}",
        (F, S),
        r"interior \[0, -1\] must not be negative",
    ),
    (
        f"%r = stablehlo.pad %0, %1, low = [0, 0], high = [0, 0], interior = [0, 0] : ({HALF}, {S}) -> tensor<3x?xf32>",
        (HALF, S),
        r"has shape \[3, \?\], expected \[2, \?\]",
    ),
    (f"%r = stablehlo.reverse %0, dims = [2] : {F}", (F,), "must be non-negative and less than rank 2"),
    (
        f"%r = stablehlo.dynamic_slice %0, %1, %2, sizes = [1, 1] : ({F}, {INDEX}, tensor<i64>) -> tensor<1x1xf32>",
        (F, INDEX, "tensor<i64>"),
        "an index has elements of type i64, expected i32",
    ),
    (
        f"%r = stablehlo.dynamic_slice %0, %1, %1, sizes = [1, 1] : ({F}, {S}, {S}) -> tensor<1x1xf32>",
        (F, S),
        "an index has elements of type f32, expected integers",
    ),
    (
        f"%r = stablehlo.dynamic_slice %0, %1, %1, sizes = [1, -1] : ({F}, {INDEX}, {INDEX}) -> {F}",
        (F, INDEX),
        "a slice has size -1, but sizes must not be negative",
    ),
    (
        f"%r = stablehlo.dynamic_update_slice %0, %1, %2, %2 : ({F}, tensor<3x3xf32>, {INDEX}, {INDEX}) -> {F}",
        (F, "tensor<3x3xf32>", INDEX),
        "an update has size 3, more than the extent 2",
    ),
    (f"%r = stablehlo.tanh %0 : {BY_DIMENSION}", (BY_DIMENSION,), "is quantized along a dimension"),
    (f"%r = stablehlo.optimization_barrier %0 : {BY_DIMENSION}", (BY_DIMENSION,), "is quantized along a dimension"),
    (
        f"%r, %s = stablehlo.rng_bit_generator %0, algorithm = PHILOX : ({STATE}) -> ({STATE}, {C})",
        (STATE,),
        "the result has elements of type complex<f32>, expected integers or floats",
    ),
    (
        f'%r = "stablehlo.sort"(%0) <{{is_stable = 1 : i64}}> ({{\n^bb0(%a: {S}, %b: {S}):\n'
        f"  %c = stablehlo.compare LT, %a, %b : ({S}, {S}) -> {I1}\n  stablehlo.return %c : {I1}\n}}) : ({F}) -> {F}",
        (F,),
        "Expected attribute i1 but got i64",
    ),
    (
        f'%r = "stablehlo.iota"() <{{iota_dimension = 0 : i32}}> : () -> {F}',
        (),
        "Expected attribute i64 but got i32",
    ),
    (
        f"%r, %s = stablehlo.rng_bit_generator %0, algorithm = PHILOX : ({STATE}) -> ({STATE}, tensor<?xui32>)",
        (STATE,),
        "expected a static shape",
    ),
    (f"%r, %s = stablehlo.rng_bit_generator %0, algorithm = PHILOX : ({F}) -> ({N}, {N})", (F,), "the next state"),
    (
        f"%r = stablehlo.convolution(%0, %1) dim_numbers = {CONVOLUTION}, window = {{}} {GROUPS}"
        f" : ({IMAGE}, tensor<3x3x3x4xf32>) -> tensor<2x6x5x4xf32>",
        (IMAGE, "tensor<3x3x3x4xf32>"),
        r"the result has shape \[2, 6, 5, 4\], expected \[2, 6, 6, 4\]",
    ),
    (
        f"%r = stablehlo.convolution(%0, %1) dim_numbers = {CONVOLUTION}, window = {{}} {GROUPS}"
        f" : ({IMAGE}, tensor<3x3x2x4xf32>) -> tensor<2x6x6x4xf32>",
        (IMAGE, "tensor<3x3x2x4xf32>"),
        "C14: the kernel has 2 input features, expected 3/1",
    ),
    (
        f"%r = stablehlo.convolution(%0, %1) dim_numbers = {CONVOLUTION}, window = {{stride = [2]}} {GROUPS}"
        f" : ({IMAGE}, tensor<3x3x3x4xf32>) -> tensor<2x6x6x4xf32>",
        (IMAGE, "tensor<3x3x3x4xf32>"),
        "C2: there are 1 window_strides, expected 2",
    ),
    (
        '%r = "stablehlo.reduce_window"(%0, %1) <{window_dimensions = array<i64: 1, 2>}> ({\n'
        f"^bb0(%a: {S}, %b: {S}):\n  stablehlo.return %a : {S}\n}}) : ({F}, {S}) -> {F}",
        (F, S),
        r"a result has shape \[2, 3\], expected \[2, 2\]",
    ),
    (
        f'%r = "stablehlo.if"(%0) ({{\n  stablehlo.return %0 : {I1}\n}}, {{\n'
        f"  stablehlo.return %0, %0 : {I1}, {I1}\n}})"
        f" : ({I1}) -> {I1}",
        (I1,),
        "the number of values that a branch returns is 2, expected 1",
    ),
    (
        f'%r = "stablehlo.sort"(%0) ({{\n^bb0(%a: {S}, %b: {S}):\n  stablehlo.return %a : {S}\n}}) : ({F}) -> {F}',
        (F,),
        f"one of the values that the comparator returns has type {S}, expected {I1}",
    ),
    (
        f'"stablehlo.optimization_barrier"(%0) : ({F}) -> ()',
        (F,),
        "C1: the number of results is",
    ),
    (
        f'%r = "stablehlo.optimization_barrier"(%0) : ({F}) -> {N}',
        (F,),
        f"a result has type {N}, expected {F}",
    ),
]


@pytest.mark.parametrize(
    ("operation", "types", "words"), CASES, ids=[f"{i}-{case[0][:32]}" for i, case in enumerate(CASES)]
)
def test_invalid_operations_are_rejected(operation: str, types: tuple[str, ...], words: str):
    with pytest.raises(VerifyException, match=words):
        module_with(operation, types).verify()


def loop(condition: str, body: str) -> str:
    return f"%r = stablehlo.while(%i = %0) : {S}\ncond {{\n  {condition}\n}} do {{\n  {body}\n}}"


KEEP, GO_ON = f"stablehlo.return %i : {S}", "stablehlo.return %1 : tensor<i1>"


@pytest.mark.parametrize(
    ("condition", "body", "words"),
    [
        (KEEP, KEEP, f"one of the values that cond returns has type {S}, expected tensor<i1>"),
        (GO_ON, GO_ON, f"one of the values that do returns has type tensor<i1>, expected {S}"),
        (GO_ON, "stablehlo.return", "the number of values that do returns is 0, expected 1"),
        (GO_ON, f"%x = stablehlo.tanh %i : {S}", "terminates block .* but is not a terminator"),
        (GO_ON, '"test.end"() : () -> ()', "expected the region to end with stablehlo.return"),
    ],
)
def test_invalid_loops_are_rejected(condition: str, body: str, words: str):
    module_with(loop(GO_ON, KEEP), (S, "tensor<i1>")).verify()
    with pytest.raises(VerifyException, match=words):
        module_with(loop(condition, body), (S, "tensor<i1>")).verify()


@pytest.mark.parametrize(
    ("operation", "type_"),
    [
        (f"%r = stablehlo.add %0, %0 : {BY_DIMENSION}", BY_DIMENSION),
        (f"%r = stablehlo.reshape %0 : ({BY_DIMENSION}) -> {BY_DIMENSION}", BY_DIMENSION),
        (f"%r = stablehlo.cbrt %0 : {C}", C),
        (f"%r = chlo.bessel_i1e %0 : {C} -> {C}", C),
        (f"%r = stablehlo.abs %0 : ({C}) -> {ROW}", C),
        ("%v, %i = chlo.top_k(%0, k = 2) : tensor<?xf32> -> (tensor<2xf32>, tensor<2xi32>)", "tensor<?xf32>"),
    ],
)
def test_unusual_valid_operations_are_accepted(operation: str, type_: str):
    module_with(operation, (type_,)).verify()


def test_dynamic_extents_fit_static_ones():
    module_with(
        "%r = stablehlo.add %0, %1 : (tensor<?x3xf32>, tensor<2x?xf32>) -> tensor<2x3xf32>",
        ("tensor<?x3xf32>", "tensor<2x?xf32>"),
    ).verify()
