"""Two values of a type with unknown extents may have different ones: what the rules say of shapes holds for known ones.

Each of these pairs was proved once.
"""

from __future__ import annotations

import pytest

from recompute.interpreters.prove import Proof, prove
from recompute.mlir_io.parser import parse_module

N = "tensor<i32>"


def proof(before: str, after: str) -> Proof:
    return prove(parse_module(before), parse_module(after))


def stacked(extent: str, size: str, again: bool) -> str:
    """A loop stores a vector in each iteration, and the next one adds the slices up, or the vectors `again`."""
    one, stack = f"tensor<1x{extent}xf32>", f"tensor<6x{extent}xf32>"
    until = f"""cond {{
    %end = stablehlo.constant dense<6> : {N}
    %c = stablehlo.compare LT, %i, %end, SIGNED : ({N}, {N}) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %o = stablehlo.constant dense<0> : {N}
    %one = stablehlo.constant dense<1> : {N}
    %i1 = stablehlo.add %i, %one : {N}"""
    read = (
        f"%t = stablehlo.cosine %x : {one}"
        if again
        else f"%t = stablehlo.dynamic_slice %s, %i, %o, sizes = [1, {size}] : ({stack}, {N}, {N}) -> {one}"
    )
    return f"""func.func public @main(%x: {one}, %ct: {one}, %empty: {stack}) -> {one} {{
  %zero = stablehlo.constant dense<0> : {N}
  %n, %s = stablehlo.while(%i = %zero, %a = %empty) : {N}, {stack} {until}
    %t = stablehlo.cosine %x : {one}
    %a1 = stablehlo.dynamic_update_slice %a, %t, %i, %o : ({stack}, {one}, {N}, {N}) -> {stack}
    stablehlo.return %i1, %a1 : {N}, {stack}
  }}
  %m, %g = stablehlo.while(%i = %zero, %d = %ct) : {N}, {one} {until}
    {read}
    %q = stablehlo.add %d, %t : {one}
    stablehlo.return %i1, %q : {N}, {one}
  }}
  return %g : {one}
}}"""


def test_slices_of_a_stack() -> None:
    """The slice that is read has eight columns, the one that was stored as many as there are."""
    assert proof(stacked("8", "8", False), stacked("8", "8", True))
    assert not proof(stacked("?", "8", False), stacked("?", "8", True))
    assert not proof(stacked("?", "8", True), stacked("?", "8", False))


@pytest.mark.parametrize("loop", ["", stacked("8", "8", True).replace("@main", "@other")])
def test_reshaped_and_back(loop: str) -> None:
    """In both tiers: the second one is asked where there is a loop."""

    def reshaped(type_: str, between: str, back: bool) -> str:
        there = f"  %y = stablehlo.reshape %x : ({type_}) -> {between}\n"
        again = f"  %z = stablehlo.reshape %y : ({between}) -> {type_}\n"
        lines = f"{there}{again}  return %z" if back else "  return %x"
        return f"func.func public @main(%x: {type_}) -> {type_} {{\n{lines} : {type_}\n}}\n{loop}"

    assert proof(*(reshaped("tensor<4x3xf32>", "tensor<12xf32>", back) for back in (True, False)))
    assert not proof(*(reshaped("tensor<?x?xf32>", "tensor<12xf32>", back) for back in (True, False)))
    assert not proof(*(reshaped("tensor<?x?xf32>", "tensor<?xf32>", back) for back in (False, True)))
