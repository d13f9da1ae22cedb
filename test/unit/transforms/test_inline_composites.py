"""Inlining of composites through their decompositions, by which the proof compares them as well."""

from __future__ import annotations

import pytest

import recompute
from recompute.interpreters.execute_check import compare
from recompute.interpreters.executor import function_named
from recompute.interpreters.inputs import random_inputs
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.options.recompute_options import RecomputeOptions
from recompute.proof.prove import prove
from recompute.support.diagnostics import Refusal

STEP = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.composite "acme.square" %x {decomposition = @square, version = 1 : i32}
    : (tensor<4xf32>) -> tensor<4xf32>
  %b = stablehlo.sine %a : tensor<4xf32>
  return %b : tensor<4xf32>
}
func.func private @square(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = stablehlo.multiply %x, %x : tensor<4xf32>
  return %r : tensor<4xf32>
}
"""
OTHER = """func.func private @other(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = stablehlo.add %x, %x : tensor<4xf32>
  return %r : tensor<4xf32>
}
"""
PASS = RecomputeOptions(pipeline="recompute-inline-composites")


def test_composite_is_inlined_and_proved() -> None:
    result = recompute.rewrite(STEP, PASS)
    assert (
        "composite" not in result.text and "stablehlo.multiply %x, %x" in result.text and "@square" not in result.text
    )
    assert result.proof is not None and result.proof.proved and result.proof.composites == ("acme.square",)
    assert "these composites compute their decompositions: acme.square" in " ".join(result.proof.assumptions)
    before = parse_module(STEP)
    assert compare(before, result.module, random_inputs(function_named(before), 0, "random")).equal


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("stablehlo.multiply", "stablehlo.add"),
        ("decomposition = @square", "decomposition = @other"),
        ('"acme.square" %x {', '"acme.square" %x {acme.note, '),
        ("%b = stablehlo.sine %a", "%b = stablehlo.cosine %a"),
    ],
)
def test_different_decompositions_are_not_proved(old: str, new: str) -> None:
    assert old in STEP
    before, after = parse_module(STEP + OTHER), parse_module(STEP.replace(old, new, 1) + OTHER)
    assert not prove(before, after).proved
    assert prove(after, after.clone()).proved


def test_composite_of_other_name_is_reported() -> None:
    before, after = parse_module(STEP), parse_module(STEP.replace("acme.square", "acme.cube"))
    proof = prove(before, after)
    assert proof.proved and proof.composites == ("acme.cube", "acme.square")
    assert prove(before, before.clone()).composites == ()


def test_recursive_decomposition_is_not_compared() -> None:
    text = STEP.replace(
        "stablehlo.multiply %x, %x : tensor<4xf32>",
        'stablehlo.composite "a.b" %x {decomposition = @square} : (tensor<4xf32>) -> tensor<4xf32>',
    )
    proof = prove(parse_module(text), parse_module(text))
    assert not proof.proved and "calls itself" in proof.reason


def test_composite_with_regions_is_refused() -> None:
    text = STEP.replace(
        '%a = stablehlo.composite "acme.square" %x {', '%a = stablehlo.composite "acme.square" %x ({\n}) {'
    )
    module = parse_module(text, "f.mlir")
    assert print_module(parse_module(print_module(module))) == print_module(module)
    with pytest.raises(
        Refusal, match=r"f.mlir:2:\d+: error: composite 'acme.square' cannot be inlined: it has regions"
    ):
        recompute.rewrite(module, PASS)
    assert "has regions" in prove(module, module.clone()).reason


def test_effects_of_a_decomposition_count() -> None:
    printing = STEP.replace(
        "%r = stablehlo.multiply",
        "stablehlo.custom_call @print(%x) {has_side_effect = true} : (tensor<4xf32>) -> ()\n  %r = stablehlo.multiply",
    )
    assert not prove(parse_module(printing), parse_module(STEP)).proved
    assert recompute.rewrite(printing, PASS).text.count("custom_call @print") == 1
