"""Constants are exact in stock `xdsl-opt` with the plugin, which changes only what xDSL reads incorrectly."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, DenseIntOrFPElementsAttr
from xdsl.parser import AttrParser, Parser
from xdsl.utils.exceptions import ParseError

from recompute.mlir_io.workarounds import dense_constants as dense_repair
from recompute.mlir_io.workarounds.dense_constants import reads_exactly, repair_dense, writes_exactly
from recompute.universe import UNIVERSE

STOCK = Path(sys.executable).with_name("xdsl-opt")

# literal and type -> the bits of all elements, as hexadecimal in the order of the bytes
CONSTANTS: dict[str, str] = {
    "dense<0xFF800000> : tensor<f32>": "000080ff",
    "dense<0x7F800000> : tensor<2xf32>": "0000807f" * 2,
    "dense<0x7F800001> : tensor<f32>": "0100807f",
    "dense<0xFFC12345> : tensor<f32>": "4523c1ff",
    "dense<[0x7FC00001, 1.0]> : tensor<2xf32>": "0100c07f0000803f",
    "dense<[[0xFF800000, 0x00000001], [-0.0, 0.0]]> : tensor<2x2xf32>": "000080ff010000000000008000000000",
    "dense<[0.0, -0.0]> : tensor<2xf32>": "0000000000000080",
    "dense<-0.0> : tensor<2xf32>": "00000080" * 2,
    "dense<0xFFF0000000000000> : tensor<f64>": "000000000000f0ff",
    "dense<0x7FF0000000000001> : tensor<f64>": "010000000000f07f",
    "dense<0xFF80> : tensor<bf16>": "80ff",
    "dense<0x7F81> : tensor<2xbf16>": "817f" * 2,
    "dense<0xFC00> : tensor<f16>": "00fc",
    "dense<[0x7C01, 0xFFFF]> : tensor<2xf16>": "017cffff",
    'dense<"0x0100807F000080FF"> : tensor<2xf32>': "0100807f000080ff",
    'dense<"0x817F"> : tensor<bf16>': "817f",
    "dense<0xFF800000> : vector<2xf32>": "000080ff" * 2,
    "dense<0xFF> : tensor<2xi32>": "ff000000" * 2,
    "dense<[0x7F, -1]> : tensor<2xi8>": "7fff",
    "dense<[0x7F, 0x10000]> : tensor<2xi24>": "7f00000000000100",
    "dense<1.5> : tensor<f32>": "0000c03f",
    "dense<> : tensor<0xf32>": "",
}


def bits(text: str) -> str:
    context = Context()
    context.load_dialect(Builtin)
    result = Parser(context, text).parse_attribute()
    assert isinstance(result, DenseIntOrFPElementsAttr)
    return result.data.data.hex()


@pytest.fixture(scope="module")
def printed_by_stock() -> list[str]:
    lines = [f'"test.op"() {{value = {text}}} : () -> ()' for text in CONSTANTS]
    command = [STOCK, "--allow-unregistered-dialect"]
    once = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True).stdout
    twice = subprocess.run(command, input=once, capture_output=True, text=True, check=True).stdout
    assert once == twice
    return [line.partition("value = ")[2].rpartition("}")[0] for line in once.splitlines() if "value" in line]


def test_oldest_xdsl_needs_the_repair() -> None:
    """The oldest supported xDSL still has the bug. When this test fails, the repair can be removed."""
    script = (
        "from xdsl.parser import Parser; from xdsl.context import Context; from xdsl.dialects.builtin import Builtin;"
        "c = Context(); c.load_dialect(Builtin);"
        "print(Parser(c, 'dense<0xFF800000> : tensor<f32>').parse_attribute().data.data.hex())"
    )
    completed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert completed.stdout.strip() == "00807f4f"


@pytest.mark.parametrize("text", CONSTANTS)
def test_stock_xdsl_opt_keeps_every_bit(text: str, printed_by_stock: list[str]) -> None:
    index = list(CONSTANTS).index(text)
    # Read here by our parser, whose own tests compare it with MLIR's.
    assert bits(printed_by_stock[index]) == CONSTANTS[text]


@pytest.mark.parametrize("text", CONSTANTS)
def test_repaired_parser_reads_exact_bits(text: str) -> None:
    assert UNIVERSE.all_dialects
    assert bits(text) == CONSTANTS[text]


def test_repair_is_applied_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reads_exactly() and writes_exactly()

    def unexpected(*_: object) -> None:
        raise AssertionError("it was repaired already")

    monkeypatch.setattr(dense_repair, "_parse_dense", unexpected)
    repair_dense()
    assert AttrParser.parse_dense_int_or_fp_elements_attr is not unexpected


def test_failed_repair_is_reported_and_harmless(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> bool:
        raise AttributeError("no such method")

    monkeypatch.setattr(dense_repair, "reads_exactly", fails)
    repair_dense()
    assert capsys.readouterr().err == "recompute: workaround for xDSL's dense constants not applied: no such method\n"


@pytest.mark.parametrize(
    "text", ["dense<0xFF8000001> : tensor<f32>", "dense<[0xFF800000]> : tensor<2xf32>", "dense<0x3FFF> : tensor<f80>"]
)
def test_oversized_hexadecimal_floats_are_rejected(text: str) -> None:
    with pytest.raises(ParseError):
        bits(text)


def test_correct_constants_are_printed_by_xdsl(printed_by_stock: list[str]) -> None:
    index = list(CONSTANTS).index("dense<1.5> : tensor<f32>")
    assert printed_by_stock[index] == "dense<1.500000e+00> : tensor<f32>"
