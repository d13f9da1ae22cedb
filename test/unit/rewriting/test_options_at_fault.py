"""The option that is named if nothing is recomputed."""

from __future__ import annotations

import pytest

from recompute.analysis.step.module_steps import numbered_steps
from recompute.analysis.step.step import Steps
from recompute.mlir_io.parser import parse_module
from recompute.options.selection import Selection
from recompute.rewriting.options_at_fault import option_at_fault
from recompute.support.interface import command_line
from recompute.test.sine_chain import sine_chain

POLICY = "policy=everything_saveable saves every value: choose another policy"
MARKS_ALONE = "segments=none selects only marked operations: mark operations, or choose segments"
ONE_SEGMENT = (
    "segment_count=1 makes a single segment, whose values the backward pass reads first: use segment_count=2 or more"
)


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (Selection(), None),
        (Selection(policy="everything_saveable"), POLICY),
        (Selection(policy="everything_saveable", segments="none", segment_count=1), POLICY),
        (Selection(policy="dots_saveable"), None),
        (Selection(segments="none"), MARKS_ALONE),
        (Selection(segments="none", segment_count=1), MARKS_ALONE),
        (Selection(segments="none", checkpoints=("a",)), None),
        (Selection(segment_count=1), ONE_SEGMENT),
        (Selection(segment_count=2), None),
    ],
)
def test_first_option_that_prevents_recomputation_is_named(selection: Selection, message: str | None) -> None:
    assert option_at_fault(numbered_steps(sine_chain(2)), selection) == message


def test_options_are_spelled_as_in_the_interface() -> None:
    with command_line():
        message = option_at_fault(numbered_steps(sine_chain(2)), Selection(segment_count=1))
    assert message == ONE_SEGMENT.replace("_", "-")


def losses(*kinds: str) -> Steps:
    """Return a step whose results are a constant of each type, and a gradient."""
    constants = "\n".join(
        f"%r{number} = stablehlo.constant dense<{'1' if 'i32' in kind else '1.0'}> : {kind}"
        for number, kind in enumerate(kinds)
    )
    results = ", ".join([*(f"%r{number}" for number in range(len(kinds))), "%g"])
    types = ", ".join([*kinds, "tensor<4xf32>"])
    module = parse_module(f"""
func.func public @step(%x: tensor<4xf32>) -> ({types}) {{
  {constants}
  %a = stablehlo.sine %x {{recompute.phase = "primal"}} : tensor<4xf32>
  %b = stablehlo.cosine %a {{recompute.phase = "primal"}} : tensor<4xf32>
  %g = stablehlo.multiply %b, %x {{recompute.phase = "gradient"}} : tensor<4xf32>
  func.return {results} : {types}
}}""")
    return numbered_steps(module)


@pytest.mark.parametrize(
    ("kinds", "results", "suggestion"),
    [
        (("tensor<f32>", "tensor<4xf32>"), (1,), "; result 1 is a tensor<4xf32>, {scalars}: try primal_results=0"),
        (
            ("tensor<f32>", "tensor<bf16>", "tensor<f64>", "tensor<f32>", "tensor<4xf32>"),
            (4,),
            "; result 4 is a tensor<4xf32>, {scalars}: try primal_results=0 or primal_results=1 or primal_results=2",
        ),
        (("tensor<f32>", "tensor<4xf32>"), (0,), ""),
        (("tensor<f32>", "tensor<4xf32>"), (1, 0), ""),
        (("tensor<i32>", "tensor<4xf32>"), (1,), ""),
        (("tensor<4xf32>", "tensor<4xf32>"), (1,), ""),
    ],
    ids=["another scalar", "three of four scalars", "a scalar", "a scalar beside", "an integer", "no scalar"],
)
def test_hint_that_names_no_scalar_result_is_corrected(
    kinds: tuple[str, ...], results: tuple[int, ...], suggestion: str
) -> None:
    message = option_at_fault(losses(*kinds), Selection(primal_results=results))
    named = ",".join(map(str, results))
    assert message == (
        f"with primal_results={named} the forward pass has 2 operations and the backward pass 1: name the loss"
        + suggestion.format(scalars="and most losses are scalars")
    )


def test_hint_by_value_names_no_other_result() -> None:
    message = option_at_fault(losses("tensor<f32>"), Selection(primal_values=("loss",)))
    assert message == "with primal_values=loss the forward pass has 2 operations and the backward pass 1: name the loss"
