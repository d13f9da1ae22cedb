"""Types with unknown extents: two values of one such type may differ in shape, so rules on shapes apply to known ones
only.

The proof once accepted each of these pairs.
"""

from __future__ import annotations

import pytest

from recompute.mlir_io.parser import parse_module
from recompute.proof.prove import Proof, prove

N = "tensor<i32>"


def proof(before: str, after: str) -> Proof:
    return prove(parse_module(before), parse_module(after))


def stacked(extent: str, size: str, again: bool) -> str:
    """Return a loop that stores a vector per iteration, and a second one that sums the slices, or with `again` the
    vectors."""
    first, stack = f"tensor<1x{extent}xf32>", f"tensor<6x{extent}xf32>"
    until = f"""cond {{
    %end = stablehlo.constant dense<6> : {N}
    %c = stablehlo.compare LT, %i, %end, SIGNED : ({N}, {N}) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %o = stablehlo.constant dense<0> : {N}
    %one = stablehlo.constant dense<1> : {N}
    %i1 = stablehlo.add %i, %one : {N}"""
    read = (
        f"%t = stablehlo.cosine %x : {first}"
        if again
        else f"%t = stablehlo.dynamic_slice %s, %i, %o, sizes = [1, {size}] : ({stack}, {N}, {N}) -> {first}"
    )
    return f"""func.func public @main(%x: {first}, %ct: {first}, %empty: {stack}) -> {first} {{
  %zero = stablehlo.constant dense<0> : {N}
  %n, %s = stablehlo.while(%i = %zero, %a = %empty) : {N}, {stack} {until}
    %t = stablehlo.cosine %x : {first}
    %a1 = stablehlo.dynamic_update_slice %a, %t, %i, %o : ({stack}, {first}, {N}, {N}) -> {stack}
    stablehlo.return %i1, %a1 : {N}, {stack}
  }}
  %m, %g = stablehlo.while(%i = %zero, %d = %ct) : {N}, {first} {until}
    {read}
    %q = stablehlo.add %d, %t : {first}
    stablehlo.return %i1, %q : {N}, {first}
  }}
  return %g : {first}
}}"""


def test_slices_of_unknown_extent_are_not_proved() -> None:
    """A slice of eight columns of a stack with an unknown number of columns is not the stored vector."""
    assert proof(stacked("8", "8", False), stacked("8", "8", True))
    assert not proof(stacked("?", "8", False), stacked("?", "8", True))
    assert not proof(stacked("?", "8", True), stacked("?", "8", False))


@pytest.mark.parametrize("loop", ["", stacked("8", "8", True).replace("@main", "@other")])
def test_reshapes_of_unknown_extent_are_not_proved(loop: str) -> None:
    """A reshape and its inverse with unknown extents are rejected in both tiers, of which the second handles loops."""

    def reshaped(type_: str, between: str, back: bool) -> str:
        there = f"  %y = stablehlo.reshape %x : ({type_}) -> {between}\n"
        again = f"  %z = stablehlo.reshape %y : ({between}) -> {type_}\n"
        lines = f"{there}{again}  return %z" if back else "  return %x"
        return f"func.func public @main(%x: {type_}) -> {type_} {{\n{lines} : {type_}\n}}\n{loop}"

    assert proof(*(reshaped("tensor<4x3xf32>", "tensor<12xf32>", back) for back in (True, False)))
    assert not proof(*(reshaped("tensor<?x?xf32>", "tensor<12xf32>", back) for back in (True, False)))
    assert not proof(*(reshaped("tensor<?x?xf32>", "tensor<?xf32>", back) for back in (False, True)))
