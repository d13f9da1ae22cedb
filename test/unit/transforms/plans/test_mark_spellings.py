"""The spellings of a mark have the same effect, and a decision of a pass copies only the decided values."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import ModuleOp

from recompute.analysis.step.module_steps import numbered_steps
from recompute.dialects.discardable import verify_marks
from recompute.dialects.names import Names
from recompute.mlir_io.parser import parse_module
from recompute.options.recompute_options import RecomputeOptions
from recompute.options.selection import Selection
from recompute.rewriting.mark import mark
from recompute.rewriting.rewrite import rewrite_in_place
from recompute.support.diagnostics import Refusal
from recompute.support.operations import name_of
from recompute.support.remarks import Topic, without_effect
from recompute.transforms.clone import clone
from recompute.transforms.plans.kept_dependents import keep_dependents

T = "tensor<4xf32>"
PRIMAL, RESIDUAL, GRADIENT = (f'recompute.phase = "{phase}"' for phase in ("primal", "residual", "gradient"))
RECOMPUTED = ["true", '"must_recompute"', "[true]", '["must_recompute"]']


def step(mark: str, segment: str = "", read: str = "%r") -> ModuleOp:
    """Return a step in which `%r` is a residual of the marked value, with a gradient that reads `read`."""
    marks = f"recompute.recompute = {mark}, {segment}"
    return parse_module(f"""
func.func @f(%x: {T}, %ct: {T}) -> ({T}, {T}, {T}) {{
  %a = stablehlo.sine %x {{{marks}{PRIMAL}}} : {T}
  %r = stablehlo.multiply %a, %a {{{RESIDUAL}}} : {T}
  %y = stablehlo.negate %a {{{PRIMAL}}} : {T}
  %g = stablehlo.multiply %ct, %y {{{GRADIENT}}} : {T}
  %h = stablehlo.multiply %g, {read} {{{GRADIENT}}} : {T}
  func.return %y, %h, %h : {T}, {T}, {T}
}}
""")


def copied(module: ModuleOp) -> list[str]:
    return [name_of(op) for op in module.walk() if Names.COPY in op.attributes]


def marked_then_cloned(module: ModuleOp) -> None:
    mark(module, Selection(segments="none"))
    clone(module)


def rewritten(module: ModuleOp) -> None:
    rewrite_in_place(module, RecomputeOptions(Selection(segments="none")))


@pytest.mark.parametrize("path", [clone, marked_then_cloned, rewritten])
@pytest.mark.parametrize("segment", ["", 'recompute.segment = "block", '])
@pytest.mark.parametrize("spelling", RECOMPUTED)
def test_every_spelling_also_recomputes_residuals(
    path: Callable[[ModuleOp], object], segment: str, spelling: str
) -> None:
    module = step(spelling, segment)
    path(module)
    assert copied(module) == ["stablehlo.sine", "stablehlo.multiply"]


@pytest.mark.parametrize("spelling", RECOMPUTED)
def test_every_spelling_without_effect_is_reported(spelling: str) -> None:
    module = parse_module(f"""
func.func @f(%x: {T}, %ct: {T}) -> ({T}, {T}) {{
  %a = stablehlo.sine %x {{recompute.recompute = {spelling}, {PRIMAL}}} : {T}
  %y = stablehlo.negate %a {{{PRIMAL}}} : {T}
  %h = stablehlo.multiply %a, %ct {{{GRADIENT}}} : {T}
  func.return %y, %h : {T}, {T}
}}
""")
    remarks = clone(module).remarks
    assert [remark.topic for remark in without_effect(remarks)] == [Topic.NO_EFFECT]


@pytest.mark.parametrize("spelling", RECOMPUTED)
def test_every_spelling_contradicts_a_checkpoint(spelling: str) -> None:
    with pytest.raises(Refusal, match="marked both to be recomputed"):
        verify_marks(step(spelling, "recompute.checkpoint, ").walk())


def test_decision_does_not_include_kept_residuals() -> None:
    """If a pass writes the mark of `%a`, and its decision keeps `%r`, then `%r` is not copied."""
    module = step("true", read="%a")
    ((_, numbered),) = numbered_steps(module)
    keep_dependents(numbered, requested=())
    noted = [name_of(op) for op in module.walk() if Names.CHECKPOINT in op.attributes]
    assert noted == ["stablehlo.multiply"]
    clone(module)
    assert copied(module) == ["stablehlo.sine"]


def test_request_includes_residuals_beside_a_decision() -> None:
    module = step('"must_recompute"')
    ((_, numbered),) = numbered_steps(module)
    keep_dependents(
        numbered, requested=frozenset(op.results[0] for op in module.walk() if Names.RECOMPUTE in op.attributes)
    )
    assert not any(Names.CHECKPOINT in op.attributes for op in module.walk())
