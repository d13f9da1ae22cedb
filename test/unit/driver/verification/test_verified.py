"""A rewrite pauses the garbage collector, and proves the output against the original input."""

from __future__ import annotations

import gc

import pytest
from xdsl.dialects.builtin import ModuleOp

import recompute
from recompute.driver.verification.verified import NotProved, change_in_place
from recompute.mlir_io.parser import parse_module
from recompute.planning.graph import Graph
from recompute.planning.plan import Plan
from recompute.test.examples import FOLDER, original

PROGRAM = """
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %y = stablehlo.{} %x : tensor<4xf32>
  func.return %y : tensor<4xf32>
}}
"""


@pytest.mark.parametrize("was", [True, False])
def test_garbage_collector_is_paused_and_restored(was: bool) -> None:
    seen, enabled = list[bool](), gc.isenabled()

    def planner(graph: Graph) -> Plan:
        seen.append(gc.isenabled())
        return Plan()

    try:
        (gc.enable if was else gc.disable)()
        recompute.rewrite(original("chain.small.mlir"), recompute.RecomputeOptions(planner=planner))
        assert seen == [False] and gc.isenabled() == was
        with pytest.raises(recompute.Refusal):
            text = (FOLDER / "chain.small.mlir").read_text()
            recompute.rewrite(text, recompute.RecomputeOptions(selection=recompute.Selection(segments="nothing*")))
        assert gc.isenabled() == was
    finally:
        (gc.enable if enabled else gc.disable)()


def test_proof_compares_with_original_input() -> None:
    def nothing(module: ModuleOp) -> None:
        """Leave the module unchanged."""

    first, other = parse_module(PROGRAM.format("tanh")), parse_module(PROGRAM.format("sine"))
    assert change_in_place(first, [nothing], original=first.clone())
    with pytest.raises(NotProved):
        change_in_place(first, [nothing], original=other)
