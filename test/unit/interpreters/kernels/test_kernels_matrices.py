"""Kernels of transforms, factorizations, operations without a class in xDSL, and collectives of a single process."""

# JAX's types say little about lambdas.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import re
from itertools import product
from typing import Any

import jax
import numpy as np
import pytest

from recompute.interpreters.executor import execute, function_named
from recompute.interpreters.kernels.arrays import Array
from recompute.mlir_io.parser import parse_module
from recompute.support.diagnostics import Refusal
from recompute.test.unit.interpreters.evaluate import array, evaluate, tensor


def normal(*shape: int, element: str = "f32") -> Array:
    generator = np.random.default_rng(sum(shape))
    imaginary = 1j * generator.normal(size=shape) if element.startswith("complex") else 0
    return array(generator.normal(size=shape) + imaginary, element)


@pytest.mark.parametrize(
    ("kind", "element", "shape", "lengths"),
    [
        ("FFT", "complex<f32>", (2, 8), (8,)),
        ("FFT", "complex<f32>", (2, 3, 5), (2, 3, 5)),
        ("FFT", "complex<f32>", (0, 8), (8,)),
        ("IFFT", "complex<f32>", (2, 3, 8), (3, 8)),
        ("RFFT", "f32", (2, 7), (7,)),
        ("RFFT", "f32", (3, 4, 8), (4, 8)),
        ("IRFFT", "complex<f32>", (2, 5), (8,)),
        ("IRFFT", "complex<f32>", (3, 5), (3, 9)),
        ("IRFFT", "complex<f32>", (2, 1), (1,)),
    ],
)
def test_fourier_transforms_equal_numpy(
    kind: str, element: str, shape: tuple[int, ...], lengths: tuple[int, ...]
) -> None:
    values = normal(*shape, element=element)
    jitted = jax.jit(lambda x: jax.lax.fft(x, kind, lengths))
    text = jitted.lower(values).as_text()
    assert "stablehlo.fft" in text
    (result,) = execute(function_named(parse_module(text)), [values])
    expected: np.ndarray[Any, Any] = np.asarray(jitted(values))
    assert result.dtype == expected.dtype and result.shape == expected.shape and result.flags.owndata
    np.testing.assert_allclose(result, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("element", ["f32", "bf16", "complex<f32>"])
@pytest.mark.parametrize("lower", [True, False])
def test_cholesky_reads_one_triangle(element: str, lower: bool) -> None:
    factor = normal(2, 3, 4, 4, element=element)
    wide = factor.astype(np.complex128)
    matrices = wide @ _adjoint(wide) + 4 * np.eye(4)
    other = np.triu(np.ones((4, 4), np.bool_), 1) if lower else np.tril(np.ones((4, 4), np.bool_), -1)
    operand = array(np.where(other, np.nan, matrices) if element.startswith("c") else _real(other, matrices), element)
    word = str(lower).lower()
    results = evaluate(f"%r = stablehlo.cholesky %a, lower = {word} : T", tensor(operand), operand)
    assert not np.any(results.astype(np.complex128)[..., other])
    known = results.astype(np.complex128)
    back = known @ _adjoint(known) if lower else _adjoint(known) @ known
    np.testing.assert_allclose(back, matrices, rtol=0.05 if element == "bf16" else 1e-5)


def _real(other: Array, matrices: Array) -> Array:
    return np.where(other, np.nan, np.real(matrices))


def _adjoint(matrices: Array) -> Array:
    return np.conjugate(np.swapaxes(matrices, -1, -2))


def test_cholesky_of_non_positive_definite_is_nan() -> None:
    good, bad = np.eye(2, dtype=np.float32) * 4, np.array([[1, 2], [2, 1]], np.float32)
    operand = np.stack([good, bad])
    results = evaluate("%r = stablehlo.cholesky %a, lower = true : T", tensor(operand), operand)
    assert results[0].tolist() == [[2, 0], [0, 2]]
    assert np.isnan(results[1]).all()


@pytest.mark.parametrize("element", ["f32", "complex<f32>"])
@pytest.mark.parametrize("transpose", ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
@pytest.mark.parametrize(("left", "lower", "ones"), list(product([True, False], repeat=3)))
def test_triangular_solve_reads_one_triangle(element: str, transpose: str, left: bool, lower: bool, ones: bool) -> None:
    """The result solves the equation, and the other triangle is not read."""
    a = array(normal(2, 4, 4, element=element) / 4 + np.eye(4), element)
    b = normal(2, 4, 3, element=element) if left else normal(2, 3, 4, element=element)
    triangle = np.tril(a) if lower else np.triu(a)
    matrix = triangle - triangle * np.eye(4) + np.eye(4) if ones else triangle
    given = np.where(np.tril(np.ones((4, 4)), 0 if lower else -1) == (1 if lower else 0), a, array(np.nan, element))
    if ones:
        given = np.where(np.eye(4) == 1, array(np.nan, element), given)
    flags = {"left_side": left, "lower": lower, "unit_diagonal": ones}
    spelled = ", ".join(f"{name} = {str(value).lower()}" for name, value in flags.items())
    body = f"""%r = "stablehlo.triangular_solve"(%a, %b) <{{{spelled},
        transpose_a = #stablehlo<transpose {transpose}>}}> : (T, {tensor(b)}) -> {tensor(b)}"""
    results = evaluate(body, tensor(b), given.astype(a.dtype), b)
    matrix = {"NO_TRANSPOSE": matrix, "TRANSPOSE": np.swapaxes(matrix, -1, -2), "ADJOINT": _adjoint(matrix)}[transpose]
    np.testing.assert_allclose(matrix @ results if left else results @ matrix, b, atol=1e-5)


SOLVE = """%r = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, unit_diagonal = false,
    transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (T, B) -> B"""
MAP = """%r = "stablehlo.map"(%a, %b) <{dimensions = array<i64: 0>}> ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    stablehlo.return %x : tensor<f32> }) : (T, B) -> T"""


@pytest.mark.parametrize(
    ("body", "a", "b", "message"),
    [
        (SOLVE.replace("left_side", "l"), (2, 2), (2, 2), "it has no attribute 'left_side'"),
        (SOLVE, (3,), (3,), r"match 'b', but 'a' has shape \[3\] and 'b' has shape \[3\]"),
        (SOLVE, (3, 4), (4, 2), r"square matrices that match 'b', but 'a' has shape \[3, 4\]"),
        (SOLVE, (2, 3, 3), (3, 3), r"and 'b' has shape \[3, 3\]"),
        (MAP, (2,), (3,), "stablehlo.map cannot be executed: its region must take one element of each operand"),
        (MAP.replace(", %y: tensor<f32>", ""), (2,), (2,), "its region must take one element of each operand"),
        (MAP.replace("%y: tensor<f32>", "%y: tensor<i32>"), (2,), (2,), "its region must take one element"),
    ],
)
def test_mismatched_shapes_are_refused(body: str, a: tuple[int, ...], b: tuple[int, ...], message: str) -> None:
    """Operands of the wrong shape are refused, since no verifier checks these operations."""
    first, other = normal(*a), normal(*b)
    result = tensor(other) if body.startswith(SOLVE[:20]) else tensor(first)
    with pytest.raises(Refusal, match=message):
        evaluate(re.sub(r"\bB\b", tensor(other), body), result, first, other)


def test_map_applies_its_region_to_each_element() -> None:
    body = """%r = "stablehlo.map"(%a, %b) <{dimensions = array<i64: 0, 1>}> ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = stablehlo.multiply %x, %y : tensor<f32>
        %z = stablehlo.subtract %s, %c : tensor<f32>
        stablehlo.return %z : tensor<f32> }) : (T, T) -> T"""
    a, b = normal(2, 3), normal(2, 3)[::-1].copy()
    results = evaluate(body, tensor(a), a, b, array(0.5, "f32"))
    np.testing.assert_array_equal(results, a * b - np.float32(0.5))


COMPOSITE = """func.func private @twice.impl(%x: tensor<2xf32>) -> tensor<2xf32> {
  %r = stablehlo.add %x, %x : tensor<2xf32>
  return %r : tensor<2xf32>
}
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %r = "stablehlo.composite"(%x) <{name = "acme.twice", decomposition = @twice.impl, version = 1 : i32}>
    : (tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}"""


def test_composite_executes_its_decomposition() -> None:
    (result,) = execute(function_named(parse_module(COMPOSITE, "f.mlir")), [array([1, 2], "f32")])
    assert result.tolist() == [2.0, 4.0]


def test_composite_without_decomposition_is_refused() -> None:
    module = parse_module(COMPOSITE.replace("decomposition = @twice.impl", "decomposition = @other"), "f.mlir")
    with pytest.raises(
        Refusal, match=r"^f.mlir:6:8: error: function 'other' cannot be executed: it has no body in this module"
    ):
        execute(function_named(module), [array([1, 2], "f32")])


def test_composite_of_wrong_type_is_refused() -> None:
    text = COMPOSITE.replace("@twice.impl(%x: tensor<2xf32>)", "@twice.impl(%x: tensor<2xf32>, %y: tensor<f32>)")
    with pytest.raises(Refusal, match=r"6:8: error: stablehlo.composite cannot be executed: it has type "):
        execute(function_named(parse_module(text, "f.mlir")), [array([1, 2], "f32")])


def test_call_inside_unregistered_operation_is_resolved() -> None:
    text = """func.func private @twice(%x: tensor<f32>) -> tensor<f32> {
      %r = stablehlo.add %x, %x : tensor<f32>
      return %r : tensor<f32>
    }
    func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
      %r = "stablehlo.map"(%x) <{dimensions = array<i64: 0>}> ({ ^bb0(%y: tensor<f32>):
        %z = func.call @twice(%y) : (tensor<f32>) -> tensor<f32>
        stablehlo.return %z : tensor<f32> }) : (tensor<3xf32>) -> tensor<3xf32>
      return %r : tensor<3xf32>
    }"""
    (result,) = execute(function_named(parse_module(text)), [array([1, 2, 3], "f32")])
    assert result.tolist() == [2.0, 4.0, 6.0]


REDUCER = """({ ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %z = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %z : tensor<f32> })"""


def collective(name: str, groups: str, region: str = "", more: str = "") -> str:
    return f'%r = "stablehlo.{name}"(%a) <{{{groups}{more}}}> {region} : (T) -> T'


@pytest.mark.parametrize("groups", ["dense<0> : tensor<1x1xi64>", "dense<> : tensor<0x0xi64>"])
@pytest.mark.parametrize(
    ("name", "region", "more"),
    [
        ("all_reduce", REDUCER, ""),
        ("reduce_scatter", REDUCER, ", scatter_dimension = 0 : i64"),
        ("all_gather", "", ", all_gather_dim = 0 : i64"),
        ("all_to_all", "", ", split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 1 : i64"),
        ("collective_broadcast", "", ""),
    ],
)
def test_collective_of_one_process_copies_operand(name: str, region: str, more: str, groups: str) -> None:
    a = normal(3, 2)
    results = evaluate(collective(name, f"replica_groups = {groups}", region, more), tensor(a), a)
    assert results.tolist() == a.tolist() and results is not a


@pytest.mark.parametrize(
    ("pairs", "receives"), [("dense<0> : tensor<1x2xi64>", True), ("dense<> : tensor<0x2xi64>", False)]
)
def test_collective_permute_of_one_process_copies_or_zeros(pairs: str, receives: bool) -> None:
    a = normal(3, 2)
    results = evaluate(collective("collective_permute", f"source_target_pairs = {pairs}"), tensor(a), a)
    assert results.tolist() == (a if receives else 0 * a).tolist()


@pytest.mark.parametrize("name", ["partition_id", "replica_id"])
def test_ids_of_the_only_process_are_zero(name: str) -> None:
    results = evaluate(f'%r = "stablehlo.{name}"() : () -> tensor<ui32>', "tensor<ui32>")
    assert results.dtype == np.uint32 and int(results) == 0


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            collective("all_reduce", "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>", REDUCER),
            "stablehlo.all_reduce cannot be executed: its 'replica_groups' contains "
            "other processes, but the interpreter supports only process 0",
        ),
        (
            collective("collective_permute", "source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>"),
            "stablehlo.collective_permute cannot be executed: its 'source_target_pairs' contains other processes",
        ),
        (
            collective("all_gather", "replica_groups = dense<0> : tensor<1xi64>"),
            "stablehlo.all_gather cannot be executed: its 'replica_groups' must be a constant matrix of integers",
        ),
        (
            """%q = "stablehlo.all_gather"(%a) <{replica_groups = dense<0> : tensor<1x1xi64>}> : (T) -> tensor<4xf32>
            %r = stablehlo.slice %q [0:2] : (tensor<4xf32>) -> T""",
            "stablehlo.all_gather cannot be executed: its results and operands differ in shape",
        ),
        (
            collective("all_gather", "replica_groups = #stablehlo.groups<a>"),
            "stablehlo.all_gather cannot be executed: its 'replica_groups' must be a constant matrix of integers",
        ),
    ],
)
def test_collectives_of_several_processes_are_refused(body: str, message: str) -> None:
    with pytest.raises(Refusal, match=message):
        evaluate(body, "tensor<2xf32>", normal(2))


@pytest.mark.parametrize("name", ["mhlo.num_replicas", "mhlo.num_partitions"])
@pytest.mark.parametrize("count", [1, 8])
def test_partition_id_of_several_processes_is_refused(name: str, count: int) -> None:
    text = f"""module attributes {{{name} = {count} : i32}} {{
      func.func @main() -> tensor<ui32> {{
        %r = "stablehlo.partition_id"() : () -> tensor<ui32>
        return %r : tensor<ui32>
      }}
    }}"""
    function = function_named(parse_module(text, "f.mlir"))
    if count == 1:
        assert [int(item) for item in execute(function, [])] == [0]
        return
    with pytest.raises(
        Refusal, match=rf"3:14: error: .*: the module has {name} = 8, but the interpreter supports only one process"
    ):
        execute(function, [])
