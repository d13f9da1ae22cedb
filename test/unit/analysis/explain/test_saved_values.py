"""The report states a reason for each saved value, and counts operations by purpose."""

from __future__ import annotations

import pytest

from recompute.analysis.copies.copying import why_stays
from recompute.analysis.explain.explanation import Explanation
from recompute.analysis.explain.operation_counts import OperationCounts, count_operations
from recompute.analysis.explain.saved_values import CHOSEN, MARKED, OUTPUT, OUTSIDE
from recompute.analysis.step.order import functions_of
from recompute.analysis.step.phases import phases
from recompute.analysis.step.step import Step
from recompute.driver.inspection.explain_function import explain
from recompute.mlir_io.parser import parse_module
from recompute.options.selection import Selection
from recompute.planning.skip_reason import SkipReason

STEP = """
func.func @step(%x: tensor<64xf32>, %ct: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %o = stablehlo.sine %x : tensor<64xf32> loc("jit(f)/jvp()/sin"("net.py":1:1))
  %a = stablehlo.exponential %o : tensor<64xf32> loc("jit(f)/jvp(block0)/exp"("net.py":2:1))
  %m = stablehlo.cosine %a {recompute.recompute = false} : tensor<64xf32> loc("jit(f)/jvp(block0)/cos"("net.py":3:1))
  %u = "test.draw"(%m) : (tensor<64xf32>) -> tensor<64xf32> loc("jit(f)/jvp(block0)/draw"("net.py":4:1))
  %b = stablehlo.tanh %u : tensor<64xf32> loc("jit(f)/jvp(block0)/tanh"("net.py":5:1))
  %c = stablehlo.sine %b : tensor<64xf32> loc("jit(f)/jvp(block1)/sin"("net.py":6:1))
  %d = stablehlo.cosine %c : tensor<64xf32> loc("jit(f)/jvp(block1)/cos"("net.py":7:1))
  %y = stablehlo.tanh %d : tensor<64xf32> loc("jit(f)/jvp(block1)/tanh"("net.py":8:1))
  %e = stablehlo.multiply %ct, %y : tensor<64xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %f = stablehlo.multiply %e, %d : tensor<64xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %g = stablehlo.multiply %f, %c : tensor<64xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %h = stablehlo.multiply %g, %b : tensor<64xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  %i = stablehlo.multiply %h, %u : tensor<64xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  %j = stablehlo.multiply %i, %m : tensor<64xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  %k = stablehlo.multiply %j, %a : tensor<64xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  %l = stablehlo.multiply %k, %o : tensor<64xf32> loc("jit(f)/transpose(jvp())/mul")
  func.return %y, %l : tensor<64xf32>, tensor<64xf32>
}
"""


def explained(selection: Selection) -> Explanation:
    (function,) = functions_of(parse_module(STEP, "step.mlir"))
    classified = phases(function)
    assert classified is not None
    return explain(function, classified, selection)


def reasons(selection: Selection) -> dict[str, str | None]:
    return {value.value: value.reason for value in explained(selection).values}


def test_each_saved_value_has_its_reason() -> None:
    result = reasons(Selection("block*"))
    assert result["%a"] is None
    assert result["%o"] == OUTSIDE and result["%m"] == MARKED and result["%b"] == OUTPUT
    assert str(result["%u"]).startswith("test.draw is not recomputed: the effects of test.draw are unknown")
    assert result["%y"] == "stablehlo.tanh is not recomputed: the function returns it, so it lives to the end anyway"


UPDATED = STEP.replace(
    "  func.return %y, %l",
    """  %n = stablehlo.negate %c : tensor<64xf32> loc("upd"("net.py":9:1))
  func.return %n, %l""",
)


def test_value_that_the_update_reads_names_the_reader() -> None:
    (function,) = functions_of(parse_module(UPDATED, "step.mlir"))
    classified = phases(function)
    assert classified is not None
    result = {value.value: value.reason for value in explain(function, classified, Selection("block*")).values}
    assert result["%c"] == (
        "stablehlo.sine is not recomputed: stablehlo.negate at net.py:9:1 in the update reads it, so it is live "
        "through the whole backward pass anyway; to free it, do this computation before the backward pass, such as in "
        "the differentiated function"
    )


@pytest.mark.parametrize(
    ("selection", "value", "reason"),
    [
        (Selection("block*", save=("stablehlo.exponential",)), "%a", CHOSEN),
        (Selection("block*", exclude=("main:stablehlo.exponential",)), "%a", CHOSEN),
        (Selection(checkpoints=("b",)), "%b", CHOSEN),
        (Selection("block*", skip=(0,)), "%a", SkipReason.SKIPPED),
    ],
)
def test_selection_determines_the_reason(selection: Selection, value: str, reason: str) -> None:
    assert reasons(selection)[value] == reason


def test_saved_value_states_position_bytes_and_segments() -> None:
    first = next(value for value in explained(Selection("block*")).values if value.value == "%b")
    assert (first.operation, first.position, first.segment, first.bytes) == (
        "stablehlo.tanh",
        "net.py:5:1",
        "block0",
        256,
    )
    assert first.crosses == ("block1",)


def test_operations_are_counted_by_purpose() -> None:
    counted = explained(Selection()).operations
    assert (counted.forward, counted.gradient, counted.copies, counted.tokens, counted.update) == (8, 8, 0, 0, 0)


BARRIERS = """
func.func @step(%x: tensor<64xf32>, %ct: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %a = stablehlo.sine %x {recompute.segment = "p", recompute.id = 0, recompute.phase = "primal"} : tensor<64xf32>
  %p = stablehlo.optimization_barrier {recompute.phase = "primal"} %a : tensor<64xf32>
  %b = stablehlo.tanh %p {recompute.phase = "primal"} : tensor<64xf32>
  %f = stablehlo.multiply %ct, %b {recompute.phase = "gradient"} : tensor<64xf32>
  %g = stablehlo.optimization_barrier {recompute.phase = "gradient"} %f : tensor<64xf32>
  %d:2 = stablehlo.optimization_barrier {recompute.phase = "gradient"} %g, %x : tensor<64xf32>, tensor<64xf32>
  %c = stablehlo.sine %d#1 {recompute.segment = "p", recompute.id = 0, recompute.copy = 1, recompute.duplicated,
                            recompute.phase = "gradient"} : tensor<64xf32>
  %h = stablehlo.multiply %d#0, %c {recompute.phase = "gradient"} : tensor<64xf32>
  func.return %b, %h : tensor<64xf32>, tensor<64xf32>
}
"""


def test_barrier_counts_as_token_if_copies_wait() -> None:
    (function,) = functions_of(parse_module(BARRIERS, "step.mlir"))
    classified = phases(function)
    assert classified is not None
    assert count_operations(classified) == OperationCounts(forward=2, gradient=2, copies=1, tokens=1, update=0)


HAND_MARKED = """func.func @main(%x: tensor<64xf32>, %w: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %a = stablehlo.multiply %x, %w : tensor<64xf32>
  %b = stablehlo.tanh %a {recompute.recompute = true} : tensor<64xf32>
  %c = stablehlo.exponential %b {recompute.recompute = true} : tensor<64xf32>
  %y = stablehlo.sine %c : tensor<64xf32>
  %d = stablehlo.cosine %y {recompute.phase = "gradient"} : tensor<64xf32>
  %e = stablehlo.multiply %w, %b : tensor<64xf32>
  return %d, %e : tensor<64xf32>, tensor<64xf32>
}
"""


@pytest.mark.parametrize("stated", [None, "update", "gradient"])
def test_inferred_update_is_named_with_its_remedy(stated: str | None) -> None:
    attribute = f' {{recompute.phase = "{stated}"}} :' if stated else " :"
    text = HAND_MARKED.replace("%w, %b :", f"%w, %b{attribute}")
    (function,) = functions_of(parse_module(text, "marks.mlir"))
    classified = phases(function)
    assert classified is not None
    step = Step.of(classified)
    reason = why_stays(step, next(op for op in step.phases.order.operations if op.name == "stablehlo.tanh").results[0])
    if stated == "gradient":
        assert reason is None
        return
    assert reason is not None and "stablehlo.multiply at marks.mlir:7:8 in the update reads it" in reason
    inferred = 'the phase "update" of this stablehlo.multiply was inferred'
    assert (inferred in reason and 'write recompute.phase = "gradient" on it' in reason) == (stated is None)
