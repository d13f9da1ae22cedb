"""Attributes in the custom forms of MLIR's operations, where MLIR prints them: they are kept, or refused with a
remedy. xDSL has no syntax for some of them (docs/upstream.md)."""

from __future__ import annotations

import inspect

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import ParseError

from recompute.dialects.context import make_context
from recompute.mlir_io.custom_forms import WITHOUT_ATTRIBUTES
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.support.operations import every_operation

TAG = "other.tag"
FUNCTION = """
func.func private @g()
func.func @f(%t: tensor<2x3xf32>, %u: tensor<3x2xf32>, %v: tensor<3xf32>, %w: tensor<2x2xf32>, %f: f32, %c: index,
             %b: i1) {
  OPERATION
  func.return
}
"""
OPERATIONS = {
    "tensor.empty": "%r = tensor.empty() {other.tag} : tensor<4xf32>",
    "tensor.empty2": """
        %n = arith.constant 4 : index
         %r = tensor.empty(%n) {other.tag} : tensor<?xf32>
    """,
    "linalg.transpose": """
        %r = linalg.transpose ins(%t : tensor<2x3xf32>) outs(%u : tensor<3x2xf32>) permutation = [1, 0]
        {other.tag}
    """,
    "linalg.broadcast": """
        %r = linalg.broadcast ins(%v : tensor<3xf32>) outs(%t : tensor<2x3xf32>) dimensions = [0]
        {other.tag}
    """,
    "scf.for": """
        %r = scf.for %i = %c to %c step %c iter_args(%s = %f) -> (f32) {
         scf.yield %s : f32 } {other.tag}
    """,
    "scf.if": """
        %r = scf.if %b -> (f32) {
         scf.yield %f : f32 } else {
         scf.yield %f : f32 } {other.tag}
    """,
    "scf.while": """
        %r = scf.while (%s = %f) : (f32) -> f32 {
         scf.condition(%b) %s : f32 } do {
         ^bb0(%q: f32):
         scf.yield %q : f32 } attributes {other.tag}
    """,
    "linalg.matmul": """
        %r = linalg.matmul {other.tag} ins(%t, %u : tensor<2x3xf32>, tensor<3x2xf32>) outs(%w :
        tensor<2x2xf32>) -> tensor<2x2xf32>
    """,
    "linalg.fill": "%r = linalg.fill {other.tag} ins(%f : f32) outs(%w : tensor<2x2xf32>) -> tensor<2x2xf32>",
    "linalg.generic": """
        %r = linalg.generic {indexing_maps = [affine_map<(d0)->(d0)>, affine_map<(d0)->(d0)>],
        iterator_types = ["parallel"]} ins(%v : tensor<3xf32>) outs(%v : tensor<3xf32>) attrs = {other.tag}
        {
         ^bb0(%x: f32, %y: f32):
         linalg.yield %x : f32 } -> tensor<3xf32>
    """,
    "arith.constant": "%r = arith.constant {other.tag} 1.0 : f32",
    "arith.cmpf": "%r = arith.cmpf olt, %f, %f {other.tag} : f32",
    "arith.cmpi": "%r = arith.cmpi slt, %c, %c {other.tag} : index",
    "arith.select": "%r = arith.select %b, %f, %f {other.tag} : f32",
    "arith.mulf": "%r = arith.mulf %f, %f {other.tag} : f32",
    "arith.negf": "%r = arith.negf %f {other.tag} : f32",
    "math.tanh": "%r = math.tanh %f {other.tag} : f32",
    "math.fma": "%r = math.fma %f, %f, %f {other.tag} : f32",
    "math.fpowi": """
        %n = arith.constant 1 : i32
        %r = math.fpowi %f, %n {other.tag} : f32, i32
    """,
    "tensor.cast": "%r = tensor.cast %v {other.tag} : tensor<3xf32> to tensor<?xf32>",
    "tensor.dim": "%r = tensor.dim %v, %c {other.tag} : tensor<3xf32>",
    "tensor.extract": "%r = tensor.extract %v[%c] {other.tag} : tensor<3xf32>",
    "tensor.insert": "%r = tensor.insert %f into %v[%c] {other.tag} : tensor<3xf32>",
    "tensor.from_elements": "%r = tensor.from_elements %f, %f {other.tag} : tensor<2xf32>",
    "tensor.splat": "%r = tensor.splat %f {other.tag} : tensor<2xf32>",
    "tensor.collapse_shape": "%r = tensor.collapse_shape %t [[0, 1]] {other.tag} : tensor<2x3xf32> into tensor<6xf32>",
    "tensor.expand_shape": """
        %r = tensor.expand_shape %v [[0, 1]] output_shape [1, 3] {other.tag} : tensor<3xf32> into
        tensor<1x3xf32>
    """,
    "tensor.extract_slice": "%r = tensor.extract_slice %v[0][2][1] {other.tag} : tensor<3xf32> to tensor<2xf32>",
    "tensor.insert_slice": "%r = tensor.insert_slice %v into %v[0][3][1] {other.tag}: tensor<3xf32> into tensor<3xf32>",
    "tensor.reshape": """
        %s = arith.constant dense<[3, 1]> : tensor<2xindex>
        %r = tensor.reshape %v(%s) {other.tag} : (tensor<3xf32>, tensor<2xindex>) -> tensor<3x1xf32>
    """,
    "tensor.pad": """
        %r = tensor.pad %v low[1] high[1] {
         ^bb0(%i : index):
         tensor.yield %f : f32 } {other.tag} : tensor<3xf32> to tensor<5xf32>
    """,
    "memref.alloc": "%r = memref.alloc() {other.tag} : memref<3xf32>",
    "memref.alloca": "%r = memref.alloca() {other.tag} : memref<3xf32>",
    "memref.load": """
        %m = memref.alloc() : memref<3xf32>
        %r = memref.load %m[%c] {other.tag} : memref<3xf32>
    """,
    "memref.store": """
        %m = memref.alloc() : memref<3xf32>
        memref.store %f, %m[%c] {other.tag} : memref<3xf32>
    """,
    "memref.dim": """
        %m = memref.alloc() : memref<3xf32>
        %r = memref.dim %m, %c {other.tag} : memref<3xf32>
    """,
    "memref.dealloc": """
        %m = memref.alloc() : memref<3xf32>
        memref.dealloc %m {other.tag} : memref<3xf32>
    """,
    "func.call": "func.call @g() {other.tag} : () -> ()",
}
"""For each operation, with a number if it has several forms, its custom form with an attribute."""
REFUSED = {
    "linalg.reduce": """
        %r = linalg.reduce ins(%t : tensor<2x3xf32>) outs(%v : tensor<3xf32>) dimensions = [0] {other.tag}
        (%x: f32, %y: f32) {
         %z = arith.addf %x, %y : f32
         linalg.yield %z : f32 }
    """,
    "scf.execute_region": """
        %r = scf.execute_region -> f32 {
         scf.yield %f : f32 } {other.tag}
    """,
}


TRIED = {name.rstrip("2") for name in OPERATIONS}


def hand_written(name: str) -> bool:
    """Return whether the class of the operation defines its own parser, rather than a format."""
    parse = make_context().get_op(name).parse
    return parse.__func__ is not Operation.parse.__func__ and parse.__name__ != "parse_with_format"


def tagged(module: ModuleOp) -> list[str]:
    return [op.name for op in every_operation(module) if TAG in op.attributes]


@pytest.mark.parametrize("name", OPERATIONS)
def test_attribute_is_kept(name: str) -> None:
    module = parse_module(FUNCTION.replace("OPERATION", OPERATIONS[name]), "step.mlir")
    assert tagged(module) == [name.rstrip("2")]
    assert tagged(parse_module(print_module(module), "again.mlir")) == tagged(module)


@pytest.mark.parametrize("name", REFUSED)
def test_attribute_is_refused_with_a_remedy(name: str) -> None:
    with pytest.raises(ParseError, match=f"write {name} in generic form"):
        parse_module(FUNCTION.replace("OPERATION", REFUSED[name]), "step.mlir")


def test_operations_without_a_syntax_for_attributes_are_tried() -> None:
    assert {name for name in WITHOUT_ATTRIBUTES if hand_written(name)} <= {*TRIED, *REFUSED}


def test_hand_written_parsers_of_xdsl_are_tried() -> None:
    """A new version of xDSL may add a parser that has no syntax for attributes."""
    operations = [op for dialect in make_context().loaded_dialects for op in dialect.operations]
    untried = {
        op.name
        for op in operations
        if op.__module__.startswith("xdsl.dialects.")
        and hand_written(op.name)
        and "attr" not in inspect.getsource(op.parse)
    }
    assert untried <= {*TRIED, *REFUSED}
