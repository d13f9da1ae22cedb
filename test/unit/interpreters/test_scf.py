"""Loops and branches of scf: their results, and the bytes that they hold, as the static timeline states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recompute.analysis.memory.timeline import timeline
from recompute.interpreters.executor import execute, function_named
from recompute.interpreters.kernels.arrays import Array
from recompute.interpreters.meter import meter
from recompute.mlir_io.parser import parse_module
from recompute.support.diagnostics import Refusal

T = "tensor<256xf32>"
KB = 1024
X = np.linspace(0.1, 1, 256, dtype=np.float32)
HEAD = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
"""

FOR = f"""
  %u, %v = scf.for %i = %c0 to %c3 step %c1 iter_args(%p = %x, %q = %x) -> ({T}, {T}) {{
    %a = math.sin %p : {T}
    %b = math.cos %a : {T}
    scf.yield %b, %a : {T}, {T}
  }}
  %r = arith.addf %u, %v : {T}"""
# It swaps its carry: both are copied.
SWAP = f"""
  %u, %v = scf.for %i = %c0 to %c3 step %c1 iter_args(%p = %x, %q = %x) -> ({T}, {T}) {{
    scf.yield %q, %p : {T}, {T}
  }}
  %r = arith.addf %u, %v : {T}"""
# The regions pass on two values of other types than they take.
WHILE = f"""
  %n, %w = scf.while (%i = %c0, %p = %x) : (index, {T}) -> (index, {T}) {{
    %go = arith.cmpi slt, %i, %c3 : index
    %a = math.sin %p : {T}
    %j = arith.addi %i, %c1 : index
    scf.condition(%go) %j, %a : index, {T}
  }} do {{
  ^bb0(%k: index, %q: {T}):
    %b = math.cos %q : {T}
    %c = math.exp %b : {T}
    scf.yield %k, %c : index, {T}
  }}
  %r = math.sin %w : {T}"""
NARROWING = f"""
  %w = scf.while (%p = %x) : ({T}) -> tensor<128xf32> {{
    %h = tensor.extract_slice %p[0] [128] [1] : {T} to tensor<128xf32>
    %e = tensor.extract %p[%c0] : {T}
    %half = arith.constant 0.5 : f32
    %go = arith.cmpf olt, %e, %half : f32
    scf.condition(%go) %h : tensor<128xf32>
  }} do {{
  ^bb0(%q: tensor<128xf32>):
    %s = arith.addf %q, %q : tensor<128xf32>
    %d = "tensor.concat"(%s, %q) {{dim = 0 : i64}} : (tensor<128xf32>, tensor<128xf32>) -> {T}
    scf.yield %d : {T}
  }}
  %r = "tensor.concat"(%w, %w) {{dim = 0 : i64}} : (tensor<128xf32>, tensor<128xf32>) -> {T}"""
IF = f"""
  %u = scf.if %flag -> ({T}) {{
    %a = math.sin %x : {T}
    %b = math.cos %a : {T}
    scf.yield %b : {T}
  }} else {{
    scf.yield %x : {T}
  }}
  %r = math.sin %u : {T}"""
SWITCH = f"""
  %u = scf.index_switch %which -> {T}
  case 2 {{
    %a = math.sin %x : {T}
    scf.yield %a : {T}
  }}
  case 5 {{
    %a = math.cos %x : {T}
    %b = math.exp %a : {T}
    scf.yield %b : {T}
  }}
  default {{
    scf.yield %x : {T}
  }}
  %r = math.sin %u : {T}"""
REGION = f"""
  %u = "scf.execute_region"() ({{
    %a = math.sin %x : {T}
    scf.yield %a : {T}
  }}) : () -> {T}
  %r = math.sin %u : {T}"""


def function(body: str) -> Any:
    text = f"func.func @main(%x: {T}, %flag: i1, %which: index) -> {T} {{{HEAD}{body}\n  func.return %r : {T}\n}}"
    return function_named(parse_module(text, "f.mlir"))


def run(body: str, flag: bool = True, which: int = 0) -> Array:
    (result,) = execute(function(body), [X, np.asarray(flag), np.asarray(which)])
    return result


def test_for_computes_its_iterations() -> None:
    u, v = X, X
    for _ in range(3):
        v = np.sin(u)
        u = np.cos(v)
    np.testing.assert_array_equal(run(FOR), u + v)
    np.testing.assert_array_equal(run(FOR.replace("%c0 to %c3", "%c3 to %c0")), X + X)


def test_while_computes_until_its_condition_fails() -> None:
    p = X
    for _ in range(3):
        p = np.exp(np.cos(np.sin(p)))
    np.testing.assert_array_equal(run(WHILE), np.sin(np.sin(p)))


def test_while_regions_may_have_different_types() -> None:
    half = X[:128]
    while half[0] < 0.5:
        half = half + half
    np.testing.assert_array_equal(run(NARROWING), np.concatenate([half, half]))


def test_branches_compute_the_selected_region() -> None:
    np.testing.assert_array_equal(run(IF), np.sin(np.cos(np.sin(X))))
    np.testing.assert_array_equal(run(IF, flag=False), np.sin(X))
    np.testing.assert_array_equal(run(SWITCH, which=2), np.sin(np.sin(X)))
    np.testing.assert_array_equal(run(SWITCH, which=5), np.sin(np.exp(np.cos(X))))
    np.testing.assert_array_equal(run(SWITCH, which=7), np.sin(X))
    np.testing.assert_array_equal(run(REGION), np.sin(np.sin(X)))


def test_missing_else_branch_does_nothing() -> None:
    body = f"scf.if %flag {{\n%q = arith.divsi %c1, %c0 : index\n}}\n%r = math.sin %x : {T}"
    np.testing.assert_array_equal(run(body, flag=False), np.sin(X))
    with pytest.raises(Refusal, match=r"arith.divsi cannot be executed: a divisor is 0"):
        run(body)


def test_zero_step_is_refused() -> None:
    with pytest.raises(Refusal, match=r"scf.for cannot be executed: its step is 0, expected a positive number"):
        run(FOR.replace("step %c1", "step %c0"))


@pytest.mark.parametrize(
    ("body", "flag", "which", "name", "live"),
    [
        # The carry, and beside it the sine and the cosine, which become the next one.
        (FOR, True, 0, "scf.for", 4 * KB),
        (SWAP, True, 0, "scf.for", 4 * KB),
        # The second region: what it was passed, and what it makes.
        (WHILE, True, 0, "scf.while", 3 * KB + 2 * 8 - 8),
        # The first region: its carry of 1 KB, what it passes, and three scalars.
        (NARROWING, True, 0, "scf.while", 2 * KB + KB // 2 - KB // 2),
        (IF, True, 0, "scf.if", 2 * KB),
        (SWITCH, True, 5, "scf.index_switch", 2 * KB),
        (REGION, True, 0, "scf.execute_region", KB),
    ],
    ids=["for", "swap", "while", "narrowing", "if", "index_switch", "execute_region"],
)
def test_loop_and_branch_memory_matches_timeline(body: str, flag: bool, which: int, name: str, live: int) -> None:
    result = function(body)
    stated = timeline(result)
    _, metered = meter(result, [X, np.asarray(flag), np.asarray(which)])
    assert metered.live_bytes == stated.live_bytes
    assert stated.live_bytes[stated.operations.index(name)] == live


def test_linalg_regions_hold_no_memory() -> None:
    body = f"""
  %r = linalg.generic {{indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
      iterator_types = ["parallel"]}} ins(%x : {T}) outs(%x : {T}) {{
  ^bb0(%a: f32, %o: f32):
    %b = math.sin %a : f32
    %c = math.exp %b : f32
    linalg.yield %c : f32
  }} -> {T}"""
    assert timeline(function(body)).peak_bytes == 0
    np.testing.assert_array_equal(run(body), np.exp(np.sin(X)))
