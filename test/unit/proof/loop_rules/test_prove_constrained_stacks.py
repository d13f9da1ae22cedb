"""Proofs on sharding constraints of stacks: those that the constraints on slices imply may be dropped, no others."""

from __future__ import annotations

import pytest

from recompute.mlir_io.parser import parse_module
from recompute.proof.prove import prove

V, ROW, S, N = "tensor<4xf32>", "tensor<1x4xf32>", "tensor<8x4xf32>", "tensor<i32>"
SLICES = '[{}, {"d"}]'
FIRST = '[{"d"}, {}]'


def constraint(result: str, operand: str, type_: str, dimensions: str | None) -> str:
    """Return the text of a constraint; of a barrier, which is the identity, if there are no dimensions."""
    if dimensions is None:
        return f"%{result} = stablehlo.optimization_barrier %{operand} : {type_}"
    return f"%{result} = sdy.sharding_constraint %{operand} <@mesh, {dimensions}> : {type_}"


def program(
    *,
    counter: str | None = None,
    value: str | None = None,
    slice_: str | None = None,
    stack: str | None = None,
    after: str | None = None,
    read: str | None = None,
    read_value: str | None = None,
    factor: str | None = None,
    at: str = "%last, %j",
) -> str:
    """Return two loops that share a stack, with constraints of these dimensions.

    Args:
        counter: On the counter in the condition, and on its next value.
        value: On the value before it becomes a slice.
        slice_, stack: On the slice that is written, and on the stack that contains it.
        after: On the stack between the loops.
        read, read_value: On the slice that is read, with and without its first dimension.
        factor: On a scalar float that the second loop reads.
        at: The operands of the subtraction that computes the index of the read.
    """
    return f"""sdy.mesh @mesh = <["d"=2, "e"=2]>
func.func public @main(%x: {V}, %ct: {V}, %factor: tensor<f32>) -> ({V}, {V}) {{
  %zero = stablehlo.constant dense<0> : {N}
  %f = stablehlo.constant dense<0.0> : tensor<f32>
  %empty = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> {S}
  {constraint("k0", "factor", "tensor<f32>", factor)}
  %n, %y, %s = stablehlo.while(%i = %zero, %h = %x, %a = %empty) : {N}, {V}, {S}
  cond {{
    %end = stablehlo.constant dense<8> : {N}
    {constraint("i0", "i", N, counter)}
    %c = stablehlo.compare LT, %i0, %end, SIGNED : ({N}, {N}) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %o = stablehlo.constant dense<0> : {N}
    %one = stablehlo.constant dense<1> : {N}
    %t = stablehlo.tanh %h : {V}
    {constraint("t0", "t", V, value)}
    %t1 = stablehlo.broadcast_in_dim %t0, dims = [1] : ({V}) -> {ROW}
    {constraint("t2", "t1", ROW, slice_)}
    %a0 = stablehlo.dynamic_update_slice %a, %t2, %i, %o : ({S}, {ROW}, {N}, {N}) -> {S}
    {constraint("a1", "a0", S, stack)}
    %next = stablehlo.sine %t : {V}
    %i1 = stablehlo.add %i, %one : {N}
    {constraint("i2", "i1", N, counter)}
    stablehlo.return %i2, %next, %a1 : {N}, {V}, {S}
  }}
  {constraint("s0", "s", S, after)}
  %m, %g, %r = stablehlo.while(%j = %zero, %e = %ct, %k = %s0) : {N}, {V}, {S}
  cond {{
    %end = stablehlo.constant dense<8> : {N}
    %c = stablehlo.compare LT, %j, %end, SIGNED : ({N}, {N}) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %o = stablehlo.constant dense<0> : {N}
    %one = stablehlo.constant dense<1> : {N}
    %last = stablehlo.constant dense<7> : {N}
    %at = stablehlo.subtract {at} : {N}
    %t0 = stablehlo.dynamic_slice %k, %at, %o, sizes = [1, 4] : ({S}, {N}, {N}) -> {ROW}
    {constraint("t1", "t0", ROW, read)}
    %t2 = stablehlo.reshape %t1 : ({ROW}) -> {V}
    {constraint("t", "t2", V, read_value)}
    %w = stablehlo.broadcast_in_dim %k0, dims = [] : (tensor<f32>) -> {V}
    %p = stablehlo.multiply %e, %t : {V}
    %q = stablehlo.multiply %p, %w : {V}
    %j1 = stablehlo.add %j, %one : {N}
    stablehlo.return %j1, %q, %k : {N}, {V}, {S}
  }}
  return %y, %g : {V}, {V}
}}
"""


ALL = program(counter="[]", slice_=SLICES, stack=SLICES, after=SLICES, read=SLICES, read_value='[{"d"}]')
EQUAL = {
    "the constraints where slices are read": program(read=SLICES, read_value='[{"d"}]'),
    "the constraint on the value that is read": program(read_value='[{"d"}]'),
    "the constraint between the loops": program(after=SLICES),
    "the constraint on the stored value": program(value='[{"d"}]'),
    "all but those on the counter": program(slice_=SLICES, stack=SLICES, after=SLICES, read=SLICES),
}
UNEQUAL = {
    "no constraint": (ALL, program()),
    "only those on the counter": (ALL, program(counter="[]")),
    "another axis": (ALL, program(read=SLICES, read_value='[{"e"}]')),
    "another axis of the slices": (ALL, program(after='[{}, {"e"}]')),
    "an open dimension": (ALL, program(read_value='[{"d", ?}]')),
    "a sharded first dimension": (program(after=FIRST, read_value='[{"d"}]'), program(read_value='[{"d"}]')),
    "a sharded first dimension in the loop": (program(stack=FIRST, value="[{}]"), program(value="[{}]")),
    "an open first dimension": (program(after='[{?}, {"d"}]', read_value='[{"d"}]'), program(read_value='[{"d"}]')),
    "a replicated axis": (
        program(after=f'{SLICES}, replicated={{"e"}}', read_value='[{"d"}]'),
        program(read_value='[{"d"}]'),
    ),
    "slices in the same order": (ALL, program(read_value='[{"d"}]', at="%j, %zero")),
    "a scalar float": (program(factor="[]", read_value='[{"d"}]'), program(read_value='[{"d"}]')),
}


@pytest.mark.parametrize("name", EQUAL)
def test_constraints_that_those_on_slices_imply_may_be_dropped(name: str) -> None:
    assert is_proved(ALL, EQUAL[name])


@pytest.mark.parametrize("name", UNEQUAL)
def test_other_constraints_may_not_be_dropped(name: str) -> None:
    before, after = UNEQUAL[name]
    assert is_proved(before, before)
    assert not is_proved(before, after)


def is_proved(before: str, after: str) -> bool:
    first, second = parse_module(before, "before.mlir"), parse_module(after, "after.mlir")
    return bool(prove(first, second))
