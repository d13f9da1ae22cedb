"""The fast path for lines that resemble earlier ones gives the result of reading each line separately."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError

from recompute.mlir_io import parser
from recompute.mlir_io.printer import print_module
from recompute.test.imports import ROOT

FILES = sorted(path for folder in ("test", "examples") for path in (ROOT / folder).rglob("*.mlir"))
LARGEST = 150_000


def outcome(text: str) -> str:
    """Return the module with all locations, or the error with its position."""
    try:
        return print_module(parser.parse_module(text, "a.mlir"), debuginfo=True)
    except ParseError as error:
        return f"{error.span.start}..{error.span.end}: {error.msg}"


def line_by_line(text: str, monkeypatch: pytest.MonkeyPatch) -> str:
    def none(self: object, start: int) -> None:
        return None

    with monkeypatch.context() as patch:
        patch.setattr(parser.ModuleParser, "line_at", none)
        return outcome(text)


@pytest.mark.slow("transforms", "stablehlo", "nets")
@pytest.mark.parametrize("folder", sorted({path.parent for path in FILES}), ids=lambda path: path.name)
def test_files_parse_as_without_fast_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in FILES:
        if path.parent == folder and path.stat().st_size < LARGEST:
            for text in path.read_text().split("// -----"):
                # A second reading gives resources other names, for their names live as long as the process.
                if "dense_resource" not in text:
                    assert outcome(text) == line_by_line(text, monkeypatch), path


START = """func.func @f(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf64>) -> tensor<4xf32> {
  %0 = stablehlo.subtract %a, %b : tensor<4xf32> loc(#loc1)
"""
END = """  func.return %0 : tensor<4xf32>
}
#loc1 = loc("x")
#loc2 = loc("y")
"""
LINES = [
    "%1 = stablehlo.subtract %b, %a : tensor<4xf32> loc(#loc2)",
    "%1 = stablehlo.subtract %b, %a : tensor<4xf32>",
    "%1 = stablehlo.subtract %a, %a : tensor<4xf32> loc(#loc2)",
    "%1 = stablehlo.subtract %b, %a : tensor<4xf32>  ",
    "%1 = stablehlo.subtract %b, %a : tensor<4xf32>\n loc(#loc2)",
    "%1 = stablehlo.subtract %b, %a : tensor<4xf32>\n // nothing\n loc(#loc2)",
    "%1 = stablehlo.subtract %b, %a : tensor<4xf32> loc(unknown)",
    '%1 = stablehlo.subtract %b, %a : tensor<4xf32> loc("here")',
    "%1 = stablehlo.subtract %b, %a : tensor<4xf32> // a comment",
    "%1 = stablehlo.subtract %b, %a {x = 1 : i32} : tensor<4xf32>",
    "%1 = stablehlo.subtract %b, %c : tensor<4xf32> loc(#loc2)",
    "%1 = stablehlo.subtract %b, %later : tensor<4xf32> loc(#loc2)\n%later = stablehlo.abs %b : tensor<4xf32>",
    "%1 = stablehlo.subtract %b, %nowhere : tensor<4xf32> loc(#loc2)",
    "%1 = stablehlo.subtract %b, %a : tensor<4xf32> loc(#loc3)",
    "%0 = stablehlo.subtract %b, %a : tensor<4xf32> loc(#loc2)",
    "%0a = stablehlo.subtract %b, %a : tensor<4xf32> loc(#loc2)",
    "%1:1 = stablehlo.subtract %b, %a : tensor<4xf32> loc(#loc2)",
    "%1 = stablehlo.subtract %b#0, %a : tensor<4xf32> loc(#loc2)",
    "%1 = stablehlo.subtract %b#1, %a : tensor<4xf32> loc(#loc2)",
    "%1, %2 = stablehlo.subtract %b, %a : tensor<4xf32> loc(#loc2)",
    "%1 = stablehlo.subtract %b, %a : tensor<4xf32> loc(#loc2) %2 = stablehlo.abs %b : tensor<4xf32>",
]


GENERIC_START = """func.func @f(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf64>) -> tensor<4xf32> {
  %0 = "stablehlo.broadcast_in_dim"(%a) <{broadcast_dimensions = array<i64: 0>}> : (tensor<4xf32>) -> tensor<4xf32> loc(#loc1)
  %d = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  "stablehlo.custom_call"(%a) <{call_target_name = "print", has_side_effect = true}> : (tensor<4xf32>) -> ()
  %t = "stablehlo.optimization_barrier"(%a) : (tensor<4xf32>) -> tensor<4xf32>
"""  # noqa: E501
_BROADCAST = '"stablehlo.broadcast_in_dim"(%b)'
_DOT = '"stablehlo.dot_general"(%b, %a)'
GENERIC_LINES = [
    f"%1 = {_BROADCAST} <{{broadcast_dimensions = array<i64: 0>}}> : (tensor<4xf32>) -> tensor<4xf32> loc(#loc2)",
    f"%1 = {_BROADCAST} <{{broadcast_dimensions = array<i64: 0>}}> : (tensor<4xf32>) -> tensor<4xf32>",
    f"%1 = {_BROADCAST} {{broadcast_dimensions = array<i64: 0>}} : (tensor<4xf32>) -> tensor<4xf32>",
    f"%1 = {_BROADCAST} <{{broadcast_dimensions = array<i64: 0>}}> {{x = 1 : i32}} : (tensor<4xf32>) -> tensor<4xf32>",
    f"%1 = {_BROADCAST} <{{broadcast_dimensions = array<i64: 1>}}> : (tensor<4xf32>) -> tensor<4xf32>",
    f"%1 = {_BROADCAST} <{{broadcast_dimensions = array<i64: 0>}}> : (tensor<4xf64>) -> tensor<4xf64>",
    f"%1 = {_BROADCAST} <{{broadcast_dimensions = array<i64: 0>}}> : (tensor<4xf32>) -> tensor<4xf32> // comment",
    f"{_BROADCAST} <{{broadcast_dimensions = array<i64: 0>}}> : (tensor<4xf32>) -> tensor<4xf32>",
    '%1 = "stablehlo.optimization_barrier"(%t) : (tensor<4xf32>) -> tensor<4xf32>',
    '%1:1 = "stablehlo.optimization_barrier"(%t) : (tensor<4xf32>) -> tensor<4xf32>',
    '"stablehlo.optimization_barrier"(%t) : (tensor<4xf32>) -> tensor<4xf32>',
    '"stablehlo.custom_call"(%b) <{call_target_name = "print", has_side_effect = true}> : (tensor<4xf32>) -> ()',
    f"%1 = {_DOT} <{{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], "
    "rhs_contracting_dimensions = [0]>}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>",
    f"%1 = {_DOT} <{{dot_dimension_numbers = #numbers}}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>",
]


@pytest.mark.parametrize("line", GENERIC_LINES)
def test_generic_line_after_similar_line(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"{GENERIC_START}  {line}\n{END}"
    assert outcome(text) == line_by_line(text, monkeypatch)


def test_generic_example_parses_as_without_fast_path(monkeypatch: pytest.MonkeyPatch) -> None:
    module = parser.parse_module((ROOT / "examples/stablehlo/gpt.small.mlir").read_text(), "a.mlir")
    stream = StringIO()
    Printer(stream, print_generic_format=True).print_op(module)
    text = stream.getvalue()
    assert text.count('"stablehlo.') > 2_000
    assert outcome(text) == line_by_line(text, monkeypatch)


@pytest.mark.parametrize("line", LINES)
def test_line_after_similar_line(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"{START}  {line}\n{END}"
    assert outcome(text) == line_by_line(text, monkeypatch)


def test_forward_references_are_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operand that a later line defines is resolved if the fast path reads its use."""
    text = START + "%1 = stablehlo.abs %2 : tensor<4xf32>\n%2 = stablehlo.subtract %b, %a : tensor<4xf32>\n" + END
    assert outcome(text) == line_by_line(text, monkeypatch)
    assert "%2" in outcome(text)


def test_a_permuted_format_is_learned_in_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>"
    reduce = "\n".join(f"%{name} = stablehlo.reduce(%a init: %z) {body} loc(#loc1)" for name in "pq")
    text = START + f"%z = stablehlo.constant dense<0.0> : tensor<f32>\n{reduce}\n" + END
    assert outcome(text) == line_by_line(text, monkeypatch)


REDUCE = """{result} = "stablehlo.reduce"({operand}, %z) <{{dimensions = array<i64: 0>}}> ({{
  ^bb0({x}: tensor<f32>{x_location}, {y}: tensor<f32>{y_location}):
    {sum} = "stablehlo.add"({left}, {y}) : (tensor<f32>, tensor<f32>) -> tensor<f32>{sum_location}
    "stablehlo.return"({sum}) : (tensor<f32>) -> (){return_location}
  }}) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>{location}
"""
NO_LOCATIONS = dict.fromkeys(("location", "x_location", "y_location", "sum_location", "return_location"), "")
LOCATED = {name: " loc(#loc1)" for name in NO_LOCATIONS} | {"x_location": ' loc("x"(#loc2))'}
NAMES = {"result": "%p", "operand": "%a", "x": "%x", "y": "%y", "sum": "%s"}
SECOND = [
    {"result": "%q", "operand": "%b", "x": "%u", "y": "%v", "sum": "%7"},
    {"result": "%q", "x": "%arg8", "y": "%arg9"},
    {"result": "%q", "left": "%y"},
    {"result": "%q", "left": "%z"},
    {"result": "%q", "left": "%nowhere"},
    {"result": "%q", "left": "%x#0"},
    {"result": "%q", "x": "%y"},
    {"result": "%q", "x": "%a"},
    {"result": "%q", "sum": "%q"},
    {"result": "%q", "sum": "%z"},
    {"result": "%p"},
    {"result": "%q:1"},
    {"result": "%q", "operand": "%c"},
    {"result": "%q", "sum_location": " loc(#loc2)"},
    {"result": "%q", "sum_location": ""},
    {"result": "%q", "location": ""},
    {"result": "%q", "location": " loc(#loc2)", "y_location": ' loc("y"(#loc1))'},
    {"result": "%q", "y_location": ' loc("%y"(#loc1))'},
    {"result": "%q", "y_location": ' loc("y")'},
    {"result": "%q", "y_location": " loc(#loc3)"},
    {"result": "%q", "y_location": ' loc("y"(#loc3))'},
    {"result": "%q", "sum_location": " // loc(#loc2)"},
]


@pytest.mark.parametrize("locations", [NO_LOCATIONS, LOCATED], ids=["positions", "located"])
@pytest.mark.parametrize("second", SECOND, ids=str)
def test_reduction_after_similar_reduction(
    second: dict[str, str], locations: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The region of a reduction is part of its line: only the third reduction repeats an earlier one."""
    words = NAMES | locations
    last = {"result": "%r", "x": "%i", "y": "%j", "sum": "%k"}
    reductions = [{"left": each["x"]} | each for each in (words, words | second, words | second | last)]
    text = START + "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
    text += "".join(REDUCE.format_map(each) for each in reductions) + END
    assert outcome(text) == line_by_line(text, monkeypatch)


@pytest.mark.parametrize("locations", [NO_LOCATIONS, LOCATED], ids=["positions", "located"])
def test_a_region_is_parsed_once(locations: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    names = [{"result": f"%r{n}", "x": f"%x{n}", "y": f"%y{n}", "sum": f"%s{n}"} for n in range(9)]
    reductions = [REDUCE.format_map(NAMES | locations | each | {"left": each["x"]}) for each in names]
    text = START + "%z = stablehlo.constant dense<0.0> : tensor<f32>\n" + "".join(reductions) + END
    parsed = list[str]()
    by_tokens = parser.ModuleParser._parse_by_tokens  # pyright: ignore[reportPrivateUsage]

    def counted(self: parser.ModuleParser) -> object:
        op = by_tokens(self)
        parsed.append(op.name)
        return op

    monkeypatch.setattr(parser.ModuleParser, "_parse_by_tokens", counted)
    parser.parse_module(text)
    assert parsed.count("stablehlo.reduce") == 1
