"""Phases that follow from the primal results equal the phases in the locations; a contradiction is an error."""

from __future__ import annotations

import pytest

from recompute.analysis.step.module_steps import numbered_steps
from recompute.dialects.names import Names
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.options.recompute_options import RecomputeOptions
from recompute.options.selection import PhaseHint, Selection
from recompute.proof.prove import prove
from recompute.rewriting.rewrite import rewrite_in_place
from recompute.search.prepare import prepare
from recompute.support.diagnostics import Refusal
from recompute.test.examples import SMALL, inlined, original, peaks_of
from recompute.transforms.inline import inline
from recompute.transforms.phase import write_phases

LOSS = Selection(primal_results=(0,))
# This one returns only gradients, from a cotangent that is a constant: nothing says where they begin.
WITH_LOSS = [name for name in SMALL if name != "mindspore_attention.small.mlir"]
# What named segments save more than those by structure: docs/limits.md.
NAMES_HELP = {"branches", "mlp", "paddle_fc", "resnet", "tied", "unet"}
MAY_DIFFER = {("residual", "gradient"), ("gradient", "update")}

SILENT = """
func.func @f(%x: tensor<8xf32>, %t: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %y = stablehlo.tanh %x : tensor<8xf32>PRIMAL
  %l = stablehlo.subtract %y, %t : tensor<8xf32>
  %d = stablehlo.multiply %y, %y : tensor<8xf32>DERIVATIVE
  %g = stablehlo.multiply %l, %d : tensor<8xf32>GRADIENT
  %u = stablehlo.subtract %x, %g : tensor<8xf32>
  func.return %l, %u : tensor<8xf32>, tensor<8xf32>
}
"""


def phases_of(primal: str = "", derivative: str = "", gradient: str = "") -> tuple[str, ...]:
    text = SILENT
    for word, path in (("PRIMAL", primal), ("DERIVATIVE", derivative), ("GRADIENT", gradient)):
        text = text.replace(word, f' loc("{path}")' if path else "")
    module = parse_module(text)
    write_phases(module, PhaseHint((0,)))
    ((_, step),) = numbered_steps(module)
    return step.graph.phases


def test_gradient_begins_after_the_loss() -> None:
    assert phases_of() == ("primal", "primal", "gradient", "gradient", "update", "update")


def test_location_gives_phase_of_derivative_after_loss() -> None:
    assert phases_of(derivative="jit(f)/jvp()/mul")[2] == "residual"
    assert phases_of(derivative="jit(f)/transpose(jvp())/mul")[2] == "gradient"


@pytest.mark.parametrize("wrong", [{"primal": "jit(f)/transpose(jvp())/tanh"}, {"gradient": "jit(f)/jvp()/mul"}])
def test_contradictory_phases_are_rejected(wrong: dict[str, str]) -> None:
    with pytest.raises(Refusal, match=r"sources disagree: .* list every result"):
        phases_of(**wrong)


@pytest.mark.slow("branches")
@pytest.mark.parametrize("name", WITH_LOSS)
def test_phases_agree_with_those_of_the_locations(name: str) -> None:
    bare = parse_module(print_module(original(name)))
    ((_, messages),) = numbered_steps(prepare(original(name)).module)
    ((_, result),) = numbered_steps(prepare(bare, RecomputeOptions(LOSS)).module)
    pairs = set(zip(messages.graph.phases, result.graph.phases, strict=True))
    assert {pair for pair in pairs if pair[0] != pair[1]} <= MAY_DIFFER


@pytest.mark.slow("gpt_train", "unet", "resnet", "branches")
@pytest.mark.parametrize("name", WITH_LOSS)
def test_step_without_locations_saves_nearly_as_much(name: str) -> None:
    bare = parse_module(print_module(original(name)))
    before, without, named = bare.clone(), bare.clone(), original(name).clone()
    assert rewrite_in_place(without, RecomputeOptions(LOSS, calls=False)).copies > 0
    assert prove(bare, without)
    rewrite_in_place(named, RecomputeOptions(calls=False))
    inline(before)
    write_phases(before, PhaseHint((0,)))
    saved = peaks_of(before).xla - peaks_of(without).xla
    most = peaks_of(inlined(name)).xla - peaks_of(named).xla
    assert saved >= (0.7 if name.partition(".")[0] in NAMES_HELP else 1.0) * most


ONE_TUPLE = """
func.func @f(%x: tensor<8xf32>) -> tuple<tensor<f32>, tensor<8xf32>> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %y = stablehlo.tanh %x : tensor<8xf32>
  %l = stablehlo.reduce(%y init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.multiply %y, %y : tensor<8xf32>
  %u = stablehlo.subtract %x, %g : tensor<8xf32>
  %r = "stablehlo.tuple"(%l, %u) : (tensor<f32>, tensor<8xf32>) -> tuple<tensor<f32>, tensor<8xf32>>
  func.return %r : tuple<tensor<f32>, tensor<8xf32>>
}
"""  # noqa: E501


def test_elements_of_a_returned_tuple_count_as_results() -> None:
    module = parse_module(ONE_TUPLE)
    write_phases(module, PhaseHint((0,)))
    strips = [str(op.attributes[Names.PHASE]).strip('"') for op in module.walk() if Names.PHASE in op.attributes]
    assert strips == ["primal", "primal", "gradient", "update", "update"]
