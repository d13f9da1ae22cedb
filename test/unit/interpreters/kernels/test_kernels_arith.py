"""Kernels of arith, against Python and numpy, bit for bit."""

# JAX's types say little about lambdas, numpy's about ufuncs.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from recompute.interpreters.executor import execute, function_named
from recompute.mlir_io.parser import parse_module
from recompute.support.diagnostics import Refusal
from recompute.test.unit.interpreters.evaluate import array
from recompute.test.unit.interpreters.kernels.arith_evaluation import apply, scalars, wrap

EDGES = [0, 1, 2, 3, 7, 100, -1, -2, -7, -100, 127, -128]


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


SIGNED: dict[str, Callable[[int, int], int]] = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b,
    "xori": lambda a, b: a ^ b,
    "minsi": min,
    "maxsi": max,
    "divsi": truncated,
    "remsi": lambda a, b: a - b * truncated(a, b),
    "floordivsi": lambda a, b: a // b,
    "ceildivsi": lambda a, b: -(-a // b),
}

UNSIGNED: dict[str, Callable[[int, int], int]] = {
    "minui": min,
    "maxui": max,
    "divui": lambda a, b: a // b,
    "remui": lambda a, b: a % b,
    "ceildivui": lambda a, b: -(-a // b),
}

DIVISIONS = frozenset("divsi remsi floordivsi ceildivsi divui remui ceildivui".split())


@pytest.mark.parametrize("element", ["i8", "i4", "i32", "i64", "i1"])
@pytest.mark.parametrize("name", [*SIGNED, *UNSIGNED])
def test_integer_operations_wrap_to_the_width(name: str, element: str) -> None:
    """Results equal those of Python's unbounded integers, wrapped to the width of the type."""
    width = int(element[1:])
    numbers = sorted({wrap(edge, width) for edge in EDGES})
    pairs = [(a, b) for a in numbers for b in numbers if name not in DIVISIONS or b != 0]
    # The lowest number by -1 has no quotient.
    pairs = [(a, b) for a, b in pairs if name not in DIVISIONS or (a, b) != (-(1 << width - 1), -1)]
    compute = SIGNED.get(name) or UNSIGNED[name]
    read = [tuple(wrap(item, width, name in SIGNED) for item in pair) for pair in pairs]
    expected = [wrap(compute(a, b), width) for a, b in read]
    left, right = (array([pair[side] for pair in pairs], element) for side in (0, 1))
    result = apply(f"arith.{name}", left, right)
    sign = -1 if element == "i1" else 1
    assert [sign * int(value) for value in result] == expected


@pytest.mark.parametrize("name", ["shli", "shrsi", "shrui"])
def test_shifts_wrap_to_the_width(name: str) -> None:
    a = array(EDGES, "i8")
    by = array([n % 8 for n, _ in enumerate(EDGES)], "i8")
    shifts: dict[str, Callable[[int, int], int]] = {
        "shli": lambda a, b: a << b,
        "shrsi": lambda a, b: a >> b,
        "shrui": lambda a, b: (a & 0xFF) >> b,
    }
    expected = [wrap(shifts[name](int(x), int(n)), 8) for x, n in zip(a, by, strict=True)]
    assert apply(f"arith.{name}", a, by).tolist() == expected


@pytest.mark.parametrize("name", sorted(DIVISIONS))
def test_division_by_zero_is_refused(name: str) -> None:
    with pytest.raises(Refusal, match="a divisor is 0"):
        apply(f"arith.{name}", array([1], "i32"), array([0], "i32"))


@pytest.mark.parametrize("element", ["i8", "i64"])
@pytest.mark.parametrize(("name", "signed"), [("mului_extended", False), ("mulsi_extended", True)])
def test_extended_products_give_both_halves(name: str, signed: bool, element: str) -> None:
    width = int(element[1:])
    numbers = [wrap(n, width) for n in (0, 1, -1, 5, -100, 1 << width - 1, (1 << width - 1) - 1)]
    pairs = [(a, b) for a in numbers for b in numbers]
    a, b = (array([pair[side] for pair in pairs], element) for side in (0, 1))
    t = f"tensor<{len(pairs)}x{element}>"
    text = f"""func.func @main(%a: {t}, %b: {t}) -> ({t}, {t}) {{
      %l, %h = arith.{name} %a, %b : {t}
      return %l, %h : {t}, {t}
    }}"""
    low, high = execute(function_named(parse_module(text, "f.mlir")), [a, b])
    products = [wrap(x, width, signed) * wrap(y, width, signed) for x, y in pairs]
    assert low.tolist() == [wrap(product, width) for product in products]
    assert high.tolist() == [wrap(product >> width, width) for product in products]


def test_extended_sum_gives_sum_and_carry() -> None:
    text = """func.func @main(%a: tensor<3xi8>, %b: tensor<3xi8>) -> (tensor<3xi8>, tensor<3xi1>) {
      %s, %o = arith.addui_extended %a, %b : tensor<3xi8>, tensor<3xi1>
      return %s, %o : tensor<3xi8>, tensor<3xi1>
    }"""
    total, over = execute(
        function_named(parse_module(text, "f.mlir")), [array([1, -1, 127], "i8"), array([2, 1, 1], "i8")]
    )
    assert total.tolist() == [3, 0, -128] and over.tolist() == [False, True, False]


INTEGER_PREDICATES: list[Callable[[int, int], bool]] = [
    lambda a, b: a == b,
    lambda a, b: a != b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
] * 2


@pytest.mark.parametrize("element", ["i8", "i1"])
@pytest.mark.parametrize("predicate", range(10))
def test_integer_comparisons_respect_sign(predicate: int, element: str) -> None:
    width, signed = int(element[1:]), predicate < 6
    compare = INTEGER_PREDICATES[predicate if signed else predicate - 4]
    numbers = sorted({wrap(edge, width) for edge in EDGES})
    pairs = [(a, b) for a in numbers for b in numbers]
    a, b = (array([pair[side] for pair in pairs], element) for side in (0, 1))
    result = apply(
        "arith.cmpi", a, b, result=f"tensor<{len(pairs)}xi1>", attributes=f"{{predicate = {predicate} : i64}}"
    )
    assert result.tolist() == [compare(wrap(x, width, signed), wrap(y, width, signed)) for x, y in pairs]


FLOAT_PREDICATES: Sequence[str] = "false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true".split()


@pytest.mark.parametrize("predicate", FLOAT_PREDICATES)
def test_float_comparisons_respect_nan(predicate: str) -> None:
    values = [0.0, -0.0, 1.0, -2.0, math.inf, math.nan]
    pairs = [(a, b) for a in values for b in values]
    a, b = (array([pair[side] for pair in pairs], "f32") for side in (0, 1))
    relations: dict[str, Callable[[float, float], bool]] = {
        "eq": lambda a, b: a == b,
        "ne": lambda a, b: a < b or a > b,
        "gt": lambda a, b: a > b,
        "ge": lambda a, b: a >= b,
        "lt": lambda a, b: a < b,
        "le": lambda a, b: a <= b,
    }

    def expected(x: float, y: float) -> bool:
        unordered = math.isnan(x) or math.isnan(y)
        known = {"false": False, "true": True, "ord": not unordered, "uno": unordered}
        if predicate in known:
            return known[predicate]
        return (unordered and predicate[0] == "u") or relations[predicate[1:]](x, y)

    number = f"{{predicate = {FLOAT_PREDICATES.index(predicate)} : i64}}"
    result = apply("arith.cmpf", a, b, result=f"tensor<{len(pairs)}xi1>", attributes=number)
    assert result.tolist() == [expected(*pair) for pair in pairs]


@pytest.mark.parametrize("element", ["f32", "bf16", "f64"])
@pytest.mark.parametrize(
    ("name", "compute"), [("addf", np.add), ("subf", np.subtract), ("mulf", np.multiply), ("divf", np.divide)]
)
def test_float_operations_equal_numpy(name: str, compute: Any, element: str) -> None:
    a, b = (array(np.random.default_rng(seed).normal(size=50), element) for seed in (1, 2))
    np.testing.assert_array_equal(apply(f"arith.{name}", a, b), compute(a, b))


def test_maxnum_ignores_nan_and_maximum_returns_it() -> None:
    a, b = array([math.nan, 1.0, -0.0], "f32"), array([2.0, math.nan, 0.0], "f32")
    assert apply("arith.maxnumf", a, b)[:2].tolist() == [2.0, 1.0]
    assert apply("arith.minnumf", a, b)[:2].tolist() == [2.0, 1.0]
    assert np.isnan(apply("arith.maximumf", a, b)[:2]).all()
    assert not np.signbit(apply("arith.maximumf", a, b)[2]) and np.signbit(apply("arith.minimumf", a, b)[2])


@pytest.mark.parametrize(
    ("name", "values", "source", "result", "expected"),
    [
        ("extsi", [1, -1, -128], "i8", "i32", [1, -1, -128]),
        ("extsi", [True, False], "i1", "i8", [-1, 0]),
        ("extui", [1, -1, -128], "i8", "i32", [1, 255, 128]),
        ("extui", [True, False], "i1", "i8", [1, 0]),
        ("sitofp", [1, -1, -128], "i8", "f32", [1.0, -1.0, -128.0]),
        ("uitofp", [1, -1, -128], "i8", "f32", [1.0, 255.0, 128.0]),
        ("uitofp", [-1], "i64", "f32", [2.0**64]),
        ("fptosi", [1.9, -1.9, 100.0], "f32", "i8", [1, -1, 100]),
        ("fptoui", [1.9, 200.0, 0.0], "f32", "i8", [1, -56, 0]),
        ("extf", [1.5, -0.1], "bf16", "f32", [1.5, float(ml_dtypes.bfloat16(-0.1))]),
        ("truncf", [1.5, -0.1], "f32", "bf16", [1.5, float(ml_dtypes.bfloat16(-0.1))]),
        ("bitcast", [1.0, -0.0], "f32", "i32", [0x3F800000, -(1 << 31)]),
    ],
)
def test_casts_equal_numpy(name: str, values: list[Any], source: str, result: str, expected: list[Any]) -> None:
    actual = apply(f"arith.{name}", array(values, source), result=f"tensor<{len(values)}x{result}>")
    assert [float(value) for value in actual] == [float(value) for value in expected]


@pytest.mark.parametrize(
    ("text", "type_", "expected"),
    [("-7 : i8", "i8", -7), ("true", "i1", True), ("5 : index", "index", 5), ("0.1 : f32", "f32", np.float32(0.1))],
)
def test_scalar_constants_have_the_width_of_their_type(text: str, type_: str, expected: Any) -> None:
    result = scalars(f"%r = arith.constant {text}", type_)
    assert result.shape == () and result[()] == expected


def test_scalar_casts_wrap_to_the_width() -> None:
    assert scalars("%r = arith.trunci %a : i32 to i8", "i8", "%a: i32", np.int32(300)) == 44
    assert scalars("%r = arith.index_cast %a : index to i8", "i8", "%a: index", np.int64(200)) == -56
    assert scalars("%r = arith.index_cast %a : i1 to index", "index", "%a: i1", np.bool_(True)) == -1
