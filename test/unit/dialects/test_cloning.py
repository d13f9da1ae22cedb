"""Clones equal the clones that xDSL makes: they have the same text, the same order of uses, and the same names."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.cf import BranchOp, ConditionalBranchOp
from xdsl.ir import Operation
from xdsl.parser import Parser

from recompute.dialects import cloning, making
from recompute.dialects.cloning import Cloner, clone_of
from recompute.dialects.context import make_context
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.support.operations import every_operation
from recompute.test.imports import ROOT

FILES = [
    *sorted((ROOT / "test" / "filecheck" / "transforms").glob("loops*.mlir")),
    *sorted((ROOT / "test" / "filecheck" / "transforms").glob("inline*.mlir")),
]

BLOCKS = """
func.func @main(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  cf.cond_br %c, ^bb1(%x : tensor<4xf32>), ^bb2
^bb1(%y_1: tensor<4xf32>):
  %z_1_2 = stablehlo.add %y_1, %x : tensor<4xf32>
  return %z_1_2 : tensor<4xf32>
^bb2:
  %w = "any.thing"(%x) ({
  ^bb0(%inner: tensor<4xf32>):
    %v = stablehlo.multiply %inner, %x : tensor<4xf32>
    "any.yield"(%v) : (tensor<4xf32>) -> ()
  }) {kind = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  cf.br ^bb1(%w : tensor<4xf32>)
}
"""


def several_blocks() -> ModuleOp:
    """Parse by xDSL's parser: ours reads functions of one block only."""
    context = make_context()
    context.allow_unregistered = True
    context.load_op(ConditionalBranchOp)
    context.load_op(BranchOp)
    return Parser(context, BLOCKS).parse_module()


def uses_of(module: ModuleOp) -> list[list[tuple[int, int]]]:
    """Return for each value the numbers of the operations that use it, with the operand, in the order of its uses."""
    operations = every_operation(module)
    number: dict[Operation, int] = {op: index for index, op in enumerate(operations)}
    values = [value for op in operations for value in op.results]
    values += [arg for op in operations for region in op.regions for block in region.blocks for arg in block.args]
    return [[(number[use.operation], use.index) for use in value.uses] for value in values]


def names_of(module: ModuleOp) -> list[str | None]:
    return [result.name_hint for op in every_operation(module) for result in op.results]


def assert_cloned_alike(module: ModuleOp) -> None:
    ours, theirs = clone_of(module), module.clone()
    ours.verify()
    assert print_module(ours, debuginfo=True) == print_module(theirs, debuginfo=True)
    assert uses_of(ours) == uses_of(theirs)
    assert names_of(ours) == names_of(theirs)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_clones_of_file_contents_equal_those_of_xdsl(path: Path):
    for text in path.read_text().split("// -----"):
        assert_cloned_alike(parse_module(text))


def test_several_blocks_and_unregistered_operations_are_cloned():
    assert_cloned_alike(several_blocks())


def test_value_read_before_its_definition_is_cloned():
    module = parse_module(
        "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %a = stablehlo.sine %x : tensor<4xf32>\n"
        "  %b = stablehlo.cosine %a : tensor<4xf32>\n  return %b : tensor<4xf32>\n}"
    )
    sine, cosine, _ = next(iter(module.ops)).regions[0].block.ops
    sine.operands[0] = cosine.results[0]
    copy_sine, copy_cosine, _ = next(iter(clone_of(module).ops)).regions[0].block.ops
    assert copy_sine.operands[0] is copy_cosine.results[0]


def test_clone_replaces_operands_and_records_results():
    module = parse_module(
        "func.func @f(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %a = stablehlo.sine %x : tensor<4xf32>\n  %b = stablehlo.add %a, %x : tensor<4xf32>\n"
        "  return %b : tensor<4xf32>\n}"
    )
    block = next(iter(module.ops)).regions[0].block
    sine, add, _ = block.ops
    x, y = block.args
    cloner = Cloner({id(x): y})
    copies = [cloner.clone(sine), cloner.clone(add)]
    assert tuple(copies[0].operands) == (y,)
    assert tuple(copies[1].operands) == (copies[0].results[0], y)


def test_changed_xdsl_fields_fall_back_to_constructors(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(making, "HAS_EXPECTED_FIELDS", False)
    monkeypatch.setattr(cloning, "_can_be_made", making.can_be_made)
    assert_cloned_alike(several_blocks())
