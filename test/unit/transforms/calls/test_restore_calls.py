"""Calls are restored after manual changes only if barriers, values and effects permit it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from recompute.dialects.stablehlo.control import OptimizationBarrierOp
from recompute.driver.verification.verified import verify_module
from recompute.mlir_io.parser import parse_module
from recompute.proof.prove import prove
from recompute.transforms.calls.origins import Origins
from recompute.transforms.calls.restore import Restored, restore_calls
from recompute.transforms.inline import inline

TEXT = """
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %p, %q = func.call @f(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  func.return %p, %q : tensor<4xf32>, tensor<4xf32>
}
func.func private @f(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.sine %x : tensor<4xf32>
  %1 = stablehlo.multiply %0, %x : tensor<4xf32>
  func.return %1, %x : tensor<4xf32>, tensor<4xf32>
}
"""


@dataclass(frozen=True)
class Inlined:
    original: ModuleOp
    module: ModuleOp
    origins: Origins

    @classmethod
    def of(cls, text: str) -> Inlined:
        original, origins = parse_module(text), Origins()
        module = original.clone()
        inline(module, origins)
        return cls(original, module, origins)

    def op(self, name: str) -> Operation:
        return next(op for op in self.module.walk() if op.name == name)

    def barrier(self, before: Operation, *values: SSAValue) -> Operation:
        barrier = OptimizationBarrierOp(list(values))
        Rewriter.insert_op(barrier, InsertPoint.before(before))
        return barrier

    def restored(self) -> Restored:
        """Restore calls, prove the result, and return what was restored."""
        result = restore_calls(self.module, self.original, self.origins)
        verify_module(self.module)
        assert prove(self.original, self.module)
        return result

    @property
    def calls(self) -> list[CallOp]:
        return [op for op in self.module.walk() if isinstance(op, CallOp)]


def test_unchanged_module_restores_original_text() -> None:
    result = Inlined.of(TEXT)
    assert result.restored() == Restored(1, 1, {})
    assert str(result.module) == str(result.original)


def test_argument_seen_behind_barrier_keeps_barrier() -> None:
    result = Inlined.of(TEXT)
    product = result.op("stablehlo.multiply")
    barrier = result.barrier(product, product.operands[1])
    product.operands[1] = barrier.results[0]
    assert result.restored().calls == 1
    assert result.calls[0].operands[0] is barrier.results[0]


def test_barrier_on_inner_value_leaves_call_inlined() -> None:
    """A function stays inlined if a barrier in front of its argument waits for a value inside it."""
    result = Inlined.of(TEXT)
    product = result.op("stablehlo.multiply")
    barrier = result.barrier(product, product.operands[1], product.operands[0])
    product.operands[1] = barrier.results[0]
    assert result.restored() == Restored(0, 0, {"its operands depend on its results": 1})


def test_barrier_inside_function_leaves_call_inlined() -> None:
    result = Inlined.of(TEXT)
    product = result.op("stablehlo.multiply")
    product.operands[0] = result.barrier(product, product.operands[0]).results[0]
    actual = result.restored()
    assert actual.calls == 0 and sum(actual.left.values()) == 1


def test_argument_with_two_values_leaves_call_inlined() -> None:
    result = Inlined.of(TEXT)
    other = parse_module(TEXT.replace("%0, %x :", "%0, %0 :"))
    product = result.op("stablehlo.multiply")
    product.operands[1] = result.module.body.block.first_op.regions[0].block.args[1]  # type: ignore[union-attr]
    actual = restore_calls(result.module, result.original, result.origins)
    assert actual == Restored(0, 0, {"an argument of the call would have two different values": 1})
    assert not prove(other, result.module)


@pytest.mark.parametrize("between", [True, False])
def test_effects_are_not_passed(between: bool) -> None:
    """A function stays inlined if another effect is between its own two: the call could be on neither side."""
    effect = '"somebody.effect"(%x) : (tensor<4xf32>) -> tensor<4xf32>'
    text = f"""
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {{
  %p = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %q = {effect}
  func.return %p, %q : tensor<4xf32>, tensor<4xf32>
}}
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = {effect}
  %1 = {effect.replace("%x", "%0")}
  func.return %1 : tensor<4xf32>
}}
"""
    result = Inlined.of(text)
    first, second, other = [op for op in result.module.walk() if "effect" in str(op.attributes.get("op_name__", ""))]
    assert first is not second
    if between:
        other.detach()
        Rewriter.insert_op(other, InsertPoint.before(second))
    actual = restore_calls(result.module, result.original, result.origins)
    assert actual.calls == (0 if between else 1)
    assert list(actual.left) == (["an operation with an effect stands between its operations"] if between else [])
