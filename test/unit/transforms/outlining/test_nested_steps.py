"""Steps in loops are moved to functions for the passes, and moved back unchanged."""

from __future__ import annotations

import pytest

from recompute.dialects.names import Names
from recompute.interpreters.execute_check import PreparedPair
from recompute.interpreters.executor import function_named
from recompute.interpreters.inputs import random_inputs
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.proof.prove import prove
from recompute.rewriting.rewrite import rewrite_in_place
from recompute.test.examples import FOLDER
from recompute.transforms.inline import inline
from recompute.transforms.outlining.nested_steps import outline_nested_steps, outline_temporarily, put_back
from recompute.transforms.verify import verify_input

FILES = FOLDER.parents[1] / "test" / "filecheck" / "transforms"
ACCUMULATED = (FILES / "recompute-nested.mlir").read_text()
PER_DEVICE = """
sdy.mesh @mesh = <["data"=2]>
func.func @per_device(%x: tensor<2048xf32>) -> tensor<2048xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"data"}]>]
    out_shardings=[<@mesh, [{"data"}]>] manual_axes={"data"} (%y: tensor<1024xf32>) {
    %a = stablehlo.sine %y : tensor<1024xf32> loc("jit(f)/jvp(block0)/sin")
    %b = stablehlo.exponential %a : tensor<1024xf32> loc("jit(f)/jvp(block0)/exp")
    %c = stablehlo.tanh %b : tensor<1024xf32> loc("jit(f)/jvp(block0)/tanh")
    %d = stablehlo.sine %c : tensor<1024xf32> loc("jit(f)/jvp(block1)/sin")
    %e = stablehlo.exponential %d : tensor<1024xf32> loc("jit(f)/jvp(block1)/exp")
    %g = stablehlo.multiply %e, %d : tensor<1024xf32> loc("jit(f)/transpose(jvp(block1))/mul")
    %h = stablehlo.multiply %g, %b : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
    %i = stablehlo.multiply %h, %a : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
    sdy.return %i : tensor<1024xf32>
  } : (tensor<2048xf32>) -> tensor<2048xf32>
  func.return %0 : tensor<2048xf32>
}
"""
STEPS = {"a loop": ACCUMULATED, "a body per device": PER_DEVICE}


@pytest.mark.parametrize("name", STEPS)
def test_outlining_nested_steps_is_reversible(name: str) -> None:
    module = parse_module(STEPS[name])
    before = print_module(module, debuginfo=True)
    nested = outline_nested_steps(module)
    assert len(nested) == 1
    verify_input(module)
    put_back(nested)
    assert print_module(module, debuginfo=True) == before


@pytest.mark.parametrize("name", STEPS)
def test_nested_step_is_recomputed_and_proved(name: str) -> None:
    before = parse_module(STEPS[name])
    after = before.clone()
    result = rewrite_in_place(after)
    assert result.copies > 0
    assert prove(before, after)
    # Once more: the copies are seen where they stand.
    text = print_module(after, debuginfo=True)
    assert rewrite_in_place(after).copies == 0 and print_module(after, debuginfo=True) == text


def test_loop_copies_are_in_body_and_results_are_equal() -> None:
    before = parse_module(ACCUMULATED)
    after = before.clone()
    rewrite_in_place(after)
    copies = [op for op in after.walk() if Names.COPY in op.attributes]
    assert copies and all(op.parent_op() is not None for op in copies)
    assert {op.parent_op().name for op in copies if op.parent_op()} == {"stablehlo.while"}  # pyright: ignore[reportOptionalMemberAccess]
    inputs = random_inputs(function_named(before))
    assert PreparedPair.of(before, after).compare(inputs).difference is None


def test_constant_read_only_by_body_is_kept() -> None:
    """A constant outside the loop is kept while its only reader, the body, is moved away."""
    module = parse_module(ACCUMULATED)
    inline(module)
    with outline_temporarily(module):
        constants = [op for op in module.walk() if op.name == "stablehlo.constant"]
        assert all(op.results[0].first_use is not None for op in constants)
