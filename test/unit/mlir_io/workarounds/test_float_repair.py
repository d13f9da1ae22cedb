"""Stock `xdsl-opt` preserves the exact floats in attributes with our plugin, but not without it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import (
    BFloat16Type,
    Builtin,
    Float8E4M3FNType,
    Float16Type,
    Float32Type,
    ReducedPrecisionFloatType,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer

from recompute.mlir_io.workarounds import floats as float_repair
from recompute.mlir_io.workarounds.floats import (
    converts_exactly,
    prints_wide_floats,
    reads_bits_in_arrays,
    repair_floats,
    tells_nans_apart,
)
from recompute.universe import UNIVERSE

STOCK = Path(sys.executable).with_name("xdsl-opt")
BROKEN = """
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser
context = Context()
context.load_dialect(Builtin)
for text in ("0x7F800001 : f32", "0xFF : f8E4M3FN", "1.0e40 : f32", "array<f32: 0x7F800000>"):
    try:
        print(Parser(context, text).parse_attribute())
    except Exception as error:
        print(type(error).__name__)
"""

# text -> how stock prints it
FLOATS = {
    "0x7F800001 : f32": "0x7f800001 : f32",
    "0xFFC12345 : f32": "0xffc12345 : f32",
    "0x7C01 : f16": "0x7c01 : f16",
    "0x7F81 : bf16": "0x7f81 : bf16",
    "0x7FF0000000000001 : f64": "0x7ff0000000000001 : f64",
    "0x3FC01 : tf32": "0x03fc01 : tf32",
    "0xFF : f8E4M3FN": "0xff : f8E4M3FN",
    "0x7D : f8E5M2": "0x7d : f8E5M2",
    "0x80 : f8E5M2FNUZ": "0x80 : f8E5M2FNUZ",
    "-0.0 : f32": "-0.000000e+00 : f32",
    "1.0e40 : f32": "0x7f800000 : f32",
    "-1.0e40 : bf16": "0xff80 : bf16",
    "65536.0 : f16": "0x7c00 : f16",
    "1.0039062509313226 : bf16": "1.007810e+00 : bf16",
    "1.5 : f80": "1.5000000000000000e+00 : f80",
    "0.1 : f128": "1.0000000000000001e-01 : f128",
    "array<f32: 0x7F800001, -0.0>": "array<f32: 0x7f800001, -0.000000e+00>",
    "array<bf16>": "array<bf16>",
    "array<i32: 1, -2>": "array<i32: 1, -2>",
    "[0x7F800001 : f32, {b = 0x7F81 : bf16}]": "[0x7f800001 : f32, {b = 0x7f81 : bf16}]",
    "dense<[0x7F800001, 1.0]> : tensor<2xf32>": "dense<[0x7F800001, 1.000000e+00]> : tensor<2xf32>",
}


@pytest.fixture(scope="module")
def printed_by_stock() -> list[str]:
    lines = [f'"test.op"() {{value = {text}}} : () -> ()' for text in FLOATS]
    command = [STOCK, "--allow-unregistered-dialect"]
    once = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True).stdout
    twice = subprocess.run(command, input=once, capture_output=True, text=True, check=True).stdout
    assert once == twice
    return [line.partition("value = ")[2].rpartition("} : ")[0] for line in once.splitlines() if "value" in line]


def test_oldest_xdsl_needs_the_repair() -> None:
    """The oldest supported xDSL still has the bug. When this test fails, the repair can be removed."""
    completed = subprocess.run([sys.executable, "-c", BROKEN], capture_output=True, text=True, check=True)
    assert completed.stdout.split("\n")[:4] == ["0x7fc00001 : f32", "0x7f : f8E4M3FN", "OverflowError", "ParseError"]


@pytest.mark.parametrize("text", FLOATS)
def test_stock_xdsl_opt_keeps_every_bit(text: str, printed_by_stock: list[str]) -> None:
    assert printed_by_stock[list(FLOATS).index(text)] == FLOATS[text]


def test_stock_xdsl_distinguishes_nans() -> None:
    assert UNIVERSE.all_dialects
    context = Context()
    context.load_dialect(Builtin)
    first, same, other = (
        Parser(context, text).parse_attribute() for text in ("0x7F800001 : f32", "0x7F800001 : f32", "0x7F800002 : f32")
    )
    assert first == same and hash(first) == hash(same) and first != other


def test_repair_is_applied_only_once() -> None:
    kinds = (Float32Type, Float16Type, BFloat16Type)
    before = [kind.pack for kind in kinds], ReducedPrecisionFloatType.decode_bits, Printer.print_float
    assert all(converts_exactly(kind()) for kind in (*kinds, Float8E4M3FNType))
    assert tells_nans_apart() and prints_wide_floats() and reads_bits_in_arrays()
    arrays = AttrParser._parse_builtin_densearray_attr  # pyright: ignore[reportPrivateUsage]
    repair_floats()
    assert ([kind.pack for kind in kinds], ReducedPrecisionFloatType.decode_bits, Printer.print_float) == before
    assert AttrParser._parse_builtin_densearray_attr is arrays  # pyright: ignore[reportPrivateUsage]


def test_failed_repair_is_reported_and_harmless(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> bool:
        raise AttributeError("no such method")

    monkeypatch.setattr(float_repair, "tells_nans_apart", fails)
    repair_floats()
    assert capsys.readouterr().err == "recompute: workaround for xDSL's floats not applied: no such method\n"
