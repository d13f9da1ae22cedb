"""Arbitrary attributes and types in place of valid ones are either accepted or rejected with a message."""

from __future__ import annotations

import random
import re

import pytest
from xdsl.utils.exceptions import ParseError, VerifyException

from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.test.unit.dialects.stablehlo.constraints import Template
from recompute.test.unit.dialects.stablehlo.test_constraints_calls import CALL, CHOLESKY, EMPTY, FFT, ROW, layouts
from recompute.test.unit.dialects.stablehlo.test_constraints_contractions import BITCAST, DOT, REDUCE
from recompute.test.unit.dialects.stablehlo.test_constraints_indexing import GATHER, SCATTER
from recompute.test.unit.dialects.stablehlo.test_constraints_windows import (
    CONVOLUTION,
    REDUCE_WINDOW,
    SELECT_AND_SCATTER,
)

OTHERS = {
    "pad": ("%r = stablehlo.pad %0, %1, low = {a}, high = {b}, interior = {c} : ({x}, {y}) -> {z}", "[1, 0]"),
    "slice": (
        '%r = "stablehlo.slice"(%0) <{start_indices = array<i64: {a}>, limit_indices = array<i64: {b}>, '
        "strides = array<i64: {c}>}> : ({x}) -> {z}",
        "0, 1",
    ),
    "dynamic_slice": ("%r = stablehlo.dynamic_slice %0, %1, %1, sizes = {a} : ({x}, {y}, {y}) -> {z}", "[1, 1]"),
    "iota": ("%r = stablehlo.iota dim = {a} : {z}", "0"),
    "concatenate": ("%r = stablehlo.concatenate %0, %1, dim = {a} : ({x}, {y}) -> {z}", "0"),
    "transpose": ("%r = stablehlo.transpose %0, dims = {a} : ({x}) -> {z}", "[1, 0]"),
    "reverse": ("%r = stablehlo.reverse %0, dims = {a} : ({x}) -> {z}", "[1]"),
    "broadcast_in_dim": ("%r = stablehlo.broadcast_in_dim %0, dims = {a} : ({x}) -> {z}", "[0, 1]"),
    "reshape": ("%r = stablehlo.reshape %0 : ({x}) -> {z}", ""),
    "rng_bit_generator": ("%r, %s = stablehlo.rng_bit_generator %0, algorithm = PHILOX : ({x}) -> ({y}, {z})", ""),
    "reduce_precision": (
        '%r = "stablehlo.reduce_precision"(%0) <{exponent_bits = {a} : i32, mantissa_bits = {b} : i32}> : ({x}) -> {z}',
        "5",
    ),
    "sort": (
        '%r = "stablehlo.sort"(%0) <{dimension = {a} : i64}> ({\n^bb0(%p: tensor<f32>, %q: tensor<f32>):\n'
        "  %t = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        "  stablehlo.return %t : tensor<i1>\n}) : ({x}) -> {z}",
        "0",
    ),
    "top_k": ("%r:2 = chlo.top_k(%0, k = {a}) : {x} -> ({y}, {z})", "1"),
}
TEMPLATES = {
    "gather": GATHER,
    "scatter": SCATTER,
    "custom_call": CALL,
    "fft": FFT,
    "cholesky": CHOLESKY,
    "dot_general": DOT,
    "reduce": REDUCE,
    "bitcast_convert": BITCAST,
    "convolution": CONVOLUTION,
    "reduce_window": REDUCE_WINDOW,
    "select_and_scatter": SELECT_AND_SCATTER,
}
for _name, (_text, _value) in OTHERS.items():
    _types = {name: "tensor<2x3xf32>" for name in "xyz" if f"{{{name}}}" in _text}
    _lists = {name: _value for name in "abc" if f"{{{name}}}" in _text}
    TEMPLATES[_name] = Template(_text, _types | _lists, tuple(name for name in _types if name != "z"))

NUMBERS = ("0", "-1", "1", "2", str(2**31), str(2**62), str(2**63 - 1), str(-(2**63)), str(2**64))
TYPES = """
tensor<f32> tensor<?xf32> tensor<0xf32> tensor<1x0x3xf32> tensor<?x?x?xi32> tensor<*xf32> tensor<2xcomplex<f32>> f32
tensor<4611686018427387904x4611686018427387904xf32> tensor<3x4xi1> tensor<2x!quant.uniform<i8:f32,1.0:17>> index
!stablehlo.token memref<4xf32> vector<4xf32> tuple<tensor<f32>> tensor<2x2xbf16>
""".split()


def damaged(value: str, dice: random.Random) -> str:
    """Return the value with a number replaced, duplicated or removed, or another type instead of a type."""
    numbers = list(re.finditer(r"-?\d+", value))
    if "tensor" in value or not numbers:
        return dice.choice(TYPES)
    number, new = dice.choice(numbers), dice.choice(NUMBERS)
    before, after = value[: number.start()], value[number.end() :]
    return dice.choice([f"{before}{new}{after}", f"{before}{number[0]}, {new}{after}", re.sub(r"\d.*\d|\d", "", value)])


@pytest.mark.parametrize("name", TEMPLATES)
def test_damaged_input_raises_only_proper_errors(name: str) -> None:
    dice, template = random.Random(name), TEMPLATES[name]
    for _ in range(40):
        chosen = dice.sample(sorted(template.values), dice.choice([1, 1, 2]) if len(template.values) > 1 else 1)
        changed = {key: damaged(template.values[key], dice) for key in chosen}
        try:
            module = parse_module(template.program(**changed))
            module.verify()
            printed = print_module(module)
            assert print_module(parse_module(printed)) == printed, changed
        except (ParseError, VerifyException) as error:
            assert "malformed input" not in str(error), "the parser met something that it did not expect"


MANY = "4294967295"
LAYOUTS = layouts(f"dense<0> : tensor<{MANY}xindex>, {EMPTY}", f"{ROW}, {EMPTY}")
SPLATS: list[tuple[Template, dict[str, str]]] = [
    (REDUCE_WINDOW, {"pad": "0", "pads": f"tensor<{MANY}x2xi64>"}),
    (CALL, {"more": LAYOUTS}),
]


@pytest.mark.parametrize(("template", "changed"), SPLATS, ids=["reduce_window", "custom_call"])
def test_huge_splat_of_wrong_type_is_rejected_unexpanded(template: Template, changed: dict[str, str]):
    """A splat of the wrong type is rejected without expanding it."""
    with pytest.raises(VerifyException, match=rf"has {MANY} (pairs|entries)"):
        parse_module(template.program(**changed)).verify()
