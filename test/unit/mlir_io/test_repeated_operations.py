"""Operations are verified only once if they are equal, and separately if they differ."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, i64
from xdsl.ir import Operation
from xdsl.utils.exceptions import DiagnosticException

from recompute.dialects.cloning import clone_of
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.repeated_operations import VerifiedOperations

REDUCTIONS = """
func.func @f(%x: tensor<8x4xf32>, %y: tensor<8x4xf32>, %i: tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %a = "stablehlo.reduce"(%x, %i) ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) {dimensions = array<i64: 1>} : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
  %b = "stablehlo.reduce"(%y, %i) ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) {dimensions = array<i64: 1>} : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
  return %a, %b : tensor<8xf32>, tensor<8xf32>
}
"""


@pytest.fixture
def verified_names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the operations that xDSL verifies, in order."""
    names, verify = list[str](), Operation.verify

    def recorded(self: Operation, verify_nested_ops: bool = True) -> None:
        names.append(self.name)
        verify(self, verify_nested_ops)

    monkeypatch.setattr(Operation, "verify", recorded)
    return names


def reductions(module: ModuleOp) -> list[Operation]:
    return [op for op in module.walk() if op.name == "stablehlo.reduce"]


def test_equal_reductions_are_verified_once(verified_names: list[str]):
    VerifiedOperations().verify(parse_module(REDUCTIONS))
    assert verified_names.count("stablehlo.reduce") == 1
    assert verified_names.count("stablehlo.return") == 1


def test_a_second_module_verifies_only_new_operations(verified_names: list[str]):
    module, verified = parse_module(REDUCTIONS), VerifiedOperations()
    verified.verify(module)
    verified_names.clear()
    verified.verify(clone_of(module))
    assert verified_names == ["builtin.module", "func.func", "func.return"]


def test_a_reduction_whose_region_returns_another_type_is_verified():
    module = parse_module(REDUCTIONS)
    inner = reductions(module)[1].regions[0].block
    assert inner.last_op is not None
    inner.last_op.operands[0] = next(iter(module.ops)).regions[0].block.args[0]
    with pytest.raises(DiagnosticException, match="C6"):
        VerifiedOperations().verify(module)


def test_a_reduction_along_another_dimension_is_verified():
    module = parse_module(REDUCTIONS)
    second = reductions(module)[1]
    second.properties["dimensions"] = DenseArrayBase.from_list(i64, [0])
    with pytest.raises(DiagnosticException):
        VerifiedOperations().verify(module)


def test_pointers_inside_a_known_reduction_are_verified():
    module = parse_module(REDUCTIONS)
    first, second = reductions(module)
    add = second.regions[0].block.first_op
    assert add is not None
    add.parent = first.regions[0].block
    with pytest.raises(ValueError, match="does not refer to the block"):
        VerifiedOperations().verify(module)


def test_the_ids_in_keys_stay_valid():
    """A type of a freed module is not confused with a later type at the same address."""
    verified = VerifiedOperations()
    for size in range(2, 200):
        verified.verify(parse_module(REDUCTIONS.replace("8x4", f"8x{size}")))
        wrong = parse_module(REDUCTIONS.replace("8x4", f"{size + 200}x4"))
        with pytest.raises(DiagnosticException):
            verified.verify(wrong)
