"""Kernels of arith, math, tensor, linalg and scf, against numpy, and bit for bit where the operation is exact."""

# JAX's types say little about lambdas, numpy's about ufuncs.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.linalg import Linalg
from xdsl.dialects.math import Math
from xdsl.dialects.scf import Scf
from xdsl.dialects.tensor import Tensor

from recompute.dialects.arith import ARITH
from recompute.interpreters.block_compiler import is_known
from recompute.interpreters.combiners import CONSTANTS
from recompute.interpreters.executor import execute, function_named
from recompute.interpreters.kernels.arrays import Array
from recompute.mlir_io.parser import parse_module
from recompute.rules.effects import TERMINATORS
from recompute.support.diagnostics import Refusal

from .evaluate import array, evaluate

# Known to the rules and to the proof, and not executed.
NOT_EXECUTED = frozenset("linalg.index scf.parallel scf.reduce".split())

EDGES = [0, 1, 2, 3, 7, 100, -1, -2, -7, -100, 127, -128]


def test_every_operation_has_a_kernel_or_is_listed() -> None:
    kinds = [kind for dialect in (ARITH, Math, Tensor, Linalg, Scf) for kind in dialect.operations]
    assert {kind.name for kind in kinds if not is_known(kind)} - TERMINATORS == NOT_EXECUTED
    assert {"arith.constant", "stablehlo.constant"} == CONSTANTS


def apply(name: str, *operands: Array, result: str = "T", attributes: str = "") -> Array:
    """Evaluate an operation in generic form."""
    names = ", ".join(f"%{letter}" for letter, _ in zip("abc", operands, strict=False))
    types = ", ".join("T" for _ in operands)
    return evaluate(f'%r = "{name}"({names}) {attributes} : ({types}) -> {result}', _typed(result, operands), *operands)


def _typed(result: str, operands: tuple[Array, ...]) -> str:
    from .evaluate import tensor

    return tensor(operands[0]) if result == "T" else result


def wrap(value: int, width: int, signed: bool = True) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if signed and value >> (width - 1) else value


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


def scalars(body: str, result: str, arguments: str = "", *inputs: Any) -> Array:
    text = f"func.func @main({arguments}) -> {result} {{\n{body}\nreturn %r : {result}\n}}"
    (actual,) = execute(function_named(parse_module(text, "f.mlir")), inputs)
    assert isinstance(actual, np.ndarray)
    return actual


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


MATH: dict[str, Any] = {
    "absf": np.abs,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "floor": np.floor,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "roundeven": np.rint,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "trunc": np.trunc,
}


@pytest.mark.parametrize("name", sorted(MATH))
def test_math_functions_equal_numpy(name: str) -> None:
    x = array(np.linspace(0.1, 3, 40), "f32")
    np.testing.assert_array_equal(apply(f"math.{name}", x), MATH[name](x))


def test_math_functions_missing_in_numpy_are_exact() -> None:
    x = array([-1.5, -0.5, 0.5, 2.5], "f32")
    np.testing.assert_array_equal(apply("math.erf", x), np.array([math.erf(v) for v in x], np.float32))
    assert apply("math.round", x).tolist() == [-2.0, -1.0, 1.0, 3.0]
    np.testing.assert_allclose(apply("math.rsqrt", abs(x)), 1 / np.sqrt(abs(x)), rtol=1e-6)
    for name, compute in (("acos", np.arccos), ("asin", np.arcsin), ("atanh", np.arctanh)):
        np.testing.assert_array_equal(apply(f"math.{name}", x / 4), compute(x / 4))
    np.testing.assert_array_equal(apply("math.acosh", abs(x) + 1), np.arccosh(abs(x) + 1))
    np.testing.assert_array_equal(apply("math.powf", abs(x), x), np.power(abs(x), x))
    y = x[::-1].copy()
    np.testing.assert_array_equal(apply("math.atan2", x, y), np.arctan2(x, y))
    np.testing.assert_array_equal(apply("math.copysign", abs(x), x), x)


def test_integer_math_equals_python() -> None:
    x = array([0, 1, 8, -1, -128, 96], "i8")
    assert apply("math.ctlz", x).tolist() == [8, 7, 4, 0, 0, 1]
    assert apply("math.cttz", x).tolist() == [8, 0, 3, 0, 7, 5]
    assert apply("math.ctpop", x).tolist() == [0, 1, 1, 8, 1, 2]
    assert apply("math.absi", x).tolist() == [0, 1, 8, 1, -128, 96]
    assert apply("math.ipowi", x, array([3] * 6, "i8")).tolist() == [wrap(int(v) ** 3, 8) for v in x]
    result = scalars("%r = math.fpowi %a, %n : f32, i32", "f32", "%a: f32, %n: i32", np.float32(1.5), np.int32(3))
    assert result == np.float32(1.5**3)


def test_a_fused_multiply_add_is_rounded_once() -> None:
    """The result equals the exact fraction, rounded once, also for sums where rounding twice is wrong."""
    from fractions import Fraction

    generator = np.random.default_rng(0)
    a, b, c = (generator.normal(size=2000).astype(np.float32) for _ in range(3))
    c[::2] *= np.float32(2.0**-30)
    c[1::4] = -(a[1::4] * b[1::4])
    exact = [Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)) for x, y, z in zip(a, b, c, strict=True)]
    result = apply("math.fma", a, b, c)
    for value, wanted in zip(result, exact, strict=True):
        near = [value, np.nextafter(value, np.float32(np.inf)), np.nextafter(value, np.float32(-np.inf))]
        assert min(near, key=lambda item: abs(Fraction(float(item)) - wanted)) == value
    assert np.any(result != a * b + c)


X = np.arange(24, dtype=np.float32).reshape(4, 6)


@pytest.mark.parametrize(
    ("body", "result", "expected"),
    [
        ("%r = tensor.extract_slice %a[1, 2] [2, 3] [2, 1] : T to tensor<2x3xf32>", "tensor<2x3xf32>", X[1:4:2, 2:5]),
        ("%r = tensor.extract_slice %a[1, 0] [1, 6] [1, 1] : T to tensor<6xf32>", "tensor<6xf32>", X[1]),
        ("%r = tensor.collapse_shape %a [[0, 1]] : T into tensor<24xf32>", "tensor<24xf32>", X.reshape(24)),
        (
            "%r = tensor.expand_shape %a [[0, 1], [2]] output_shape [2, 2, 6] : T into tensor<2x2x6xf32>",
            "tensor<2x2x6xf32>",
            X.reshape(2, 2, 6),
        ),
        ("%r = tensor.cast %a : T to T", "tensor<4x6xf32>", X),
        (
            '%r = "tensor.concat"(%a, %a) {dim = 1 : i64} : (T, T) -> tensor<4x12xf32>',
            "tensor<4x12xf32>",
            np.concatenate([X, X], 1),
        ),
        (
            "%c = arith.constant 2 : index\n%v = tensor.extract %a[%c, %c] : T\n%r = tensor.splat %v : tensor<3xf32>",
            "tensor<3xf32>",
            np.full(3, X[2, 2]),
        ),
        (
            "%c = arith.constant 2 : index\n%v = tensor.extract %a[%c, %c] : T\n"
            "%r = tensor.from_elements %v, %v : tensor<2x1xf32>",
            "tensor<2x1xf32>",
            np.full((2, 1), X[2, 2]),
        ),
        (
            "%c = arith.constant 1 : index\n%d = tensor.dim %a, %c : T\n%r = tensor.from_elements %d : tensor<1xindex>",
            "tensor<1xindex>",
            np.array([6]),
        ),
        (
            "%s = arith.constant dense<[3, 8]> : tensor<2xindex>\n"
            "%r = tensor.reshape %a(%s) : (T, tensor<2xindex>) -> tensor<3x8xf32>",
            "tensor<3x8xf32>",
            X.reshape(3, 8),
        ),
    ],
)
def test_tensor_operations_equal_numpy(body: str, result: str, expected: Array) -> None:
    np.testing.assert_array_equal(evaluate(body, result, X), expected)


def test_insert_does_not_modify_operand() -> None:
    body = """%c = arith.constant 1 : index
      %v = arith.constant 9.0 : f32
      %b = tensor.insert %v into %a[%c, %c] : T
      %p = tensor.extract_slice %b[0, 0] [2, 2] [1, 1] : T to tensor<2x2xf32>
      %q = tensor.insert_slice %p into %a[%c, 2] [2, 2] [1, 3] : tensor<2x2xf32> into T
      %r = arith.addf %q, %b : T"""
    inserted, second = X.copy(), X.copy()
    inserted[1, 1] = 9
    second[1:3, 2:6:3] = inserted[:2, :2]
    np.testing.assert_array_equal(evaluate(body, "tensor<4x6xf32>", X), inserted + second)


@pytest.mark.parametrize("yielded", ["%v", "%k"])
def test_padding_equals_numpy(yielded: str) -> None:
    body = f"""%v = arith.constant 9 : index
      %r = "tensor.pad"(%a) <{{operandSegmentSizes = array<i32: 1, 0, 0>, static_low = array<i64: 1>,
        static_high = array<i64: 2>}}> ({{
      ^bb0(%i: index):
        %k = arith.muli %i, %v : index
        tensor.yield {yielded} : index
      }}) : (tensor<2xindex>) -> tensor<5xindex>"""
    text = f"func.func @main(%a: tensor<2xindex>) -> tensor<5xindex> {{\n{body}\nreturn %r : tensor<5xindex>\n}}"
    (result,) = execute(function_named(parse_module(text, "f.mlir")), [np.array([5, 6])])
    assert result.tolist() == ([9, 5, 6, 9, 9] if yielded == "%v" else [0, 5, 6, 27, 36])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "%c = arith.constant 4 : index\n%v = tensor.extract %a[%c, %c] : T\n%r = tensor.splat %v : T",
            "index 4 is out",
        ),
        ("%c = arith.constant -1 : index\n%v = tensor.extract %a[%c, %c] : T\n%r = tensor.splat %v : T", "index -1 is"),
        (
            "%c = arith.constant 3 : index\n%r = tensor.extract_slice %a[%c, 0] [4, 6] [1, 1] : T to T",
            "the slice from 3 to 6 is out of bounds for the extent 4",
        ),
    ],
)
def test_out_of_range_access_is_refused(body: str, message: str) -> None:
    with pytest.raises(Refusal, match=message):
        evaluate(body, "tensor<4x6xf32>", X)


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
