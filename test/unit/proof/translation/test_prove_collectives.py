"""A repeated collective equals the first if all devices reach both together; otherwise it is an effect."""

from __future__ import annotations

import pytest

from recompute.mlir_io.parser import parse_module
from recompute.proof.prove import Proof, ProofOptions, prove

T = "tensor<4xf32>"
BODY = """({
  ^bb0(%l: tensor<f32>, %m: tensor<f32>):
    %t = stablehlo.OP %l, %m : tensor<f32>
    stablehlo.return %t : tensor<f32>
  })"""


def reduced(name: str, value: str, channel: int | None = 1, groups: str = "[[0, 1]]", by: str = "add") -> str:
    handle = "" if channel is None else f", channel_handle = #stablehlo.channel_handle<handle = {channel}, type = 1>"
    message = f"<{{replica_groups = dense<{groups}> : tensor<1x2xi64>{handle}}}>"
    return f'{name} = "stablehlo.all_reduce"({value}) {message} {BODY.replace("OP", by)} : ({T}) -> {T}\n'


def module(body: str, result: str = "%r") -> str:
    return f"func.func public @main(%x: {T}, %y: {T}, %p: tensor<i1>) -> {T} {{\n{body}  func.return {result} : {T}\n}}"


def compared(before: str, after: str) -> Proof:
    return prove(parse_module(module(before)), parse_module(module(after)))


def twice(second: str) -> str:
    return f"{reduced('%a', '%x')}{second}  %r = stablehlo.subtract %a, %b : {T}\n"


ONCE = f"{reduced('%a', '%x')}  %r = stablehlo.subtract %a, %a : {T}\n"


@pytest.mark.parametrize("channel", [2, 77])
def test_repeated_collective_on_new_channel_is_proved(channel: int):
    assert compared(ONCE, twice(reduced("%b", "%x", channel))).proved


def test_unread_collective_may_be_dropped():
    assert compared(twice(reduced("%b", "%y", 2)).replace("%a, %b", "%a, %a"), ONCE).proved


@pytest.mark.parametrize(
    "second",
    [
        reduced("%b", "%y", 2),
        reduced("%b", "%x", 2, groups="[[1, 0]]"),
        reduced("%b", "%x", 2, by="maximum"),
        reduced("%b", "%x", 2).replace("type = 1", "type = 0"),
        f'%b = "stablehlo.all_to_all"(%x) {{concat_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : '
        f"tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 0 : i64}} : ({T}) -> {T}\n",
    ],
    ids=["operand", "groups", "combiner", "channel", "kind"],
)
def test_unequal_collective_is_not_proved(second: str):
    result = compared(ONCE, twice(second))
    assert not result.proved and "result #0 of @main differs" in result.reason


def test_repeated_channel_is_not_proved():
    result = compared(ONCE, twice(reduced("%b", "%x", 1)))
    assert (
        not result.proved
        and "operations that share channel 1 in the rewritten program do not share a channel" in result.reason
    )
    # What was shared before is not our doing.
    shared = twice(reduced("%b", "%x", 1))
    assert compared(
        shared,
        shared.replace("%r = stablehlo.subtract", "%n = stablehlo.negate %a : " + T + "\n  %r = stablehlo.subtract"),
    ).proved


@pytest.mark.parametrize("channel", [None, 0, -1])
def test_repetition_without_a_new_channel_is_not_proved(channel: int | None):
    result = compared(ONCE, twice(reduced("%b", "%x", channel)))
    assert not result.proved and "result #0 of @main differs" in result.reason


def inside(body: str) -> str:
    branch = f"{body}    stablehlo.return %r : {T}\n"
    return (
        f'  %r = "stablehlo.if"(%p) ({{\n{branch}  }}, {{\n    stablehlo.return %x : {T}\n  }}) : (tensor<i1>) -> {T}\n'
    )


def test_collective_in_branch_is_an_effect():
    """A collective in a branch is an effect: one device may take the branch while another does not."""
    assert compared(inside(ONCE), inside(ONCE)).proved
    assert not compared(inside(ONCE), inside(twice(reduced("%b", "%x", 2)))).proved
    assert not compared(inside(twice(reduced("%b", "%y", 2)).replace("%a, %b", "%a, %a")), inside(ONCE)).proved


def per_device(body: str) -> str:
    at = '[<@mesh, [{"a"}]>]'
    message = f'in_shardings={at} out_shardings={at} manual_axes={{"a"}}'
    return (
        f"  %r = sdy.manual_computation(%x) {message} (%z: {T}) {{\n"
        f"{body.replace('%x', '%z')}    sdy.return %r : {T}\n  }} : ({T}) -> {T}\n"
    )


def test_collective_in_per_device_body_may_be_repeated():
    assert compared(per_device(ONCE), per_device(twice(reduced("%b", "%x", 2)))).proved
    for other in (reduced("%b", "%x", 2, groups="[[1, 0]]"), reduced("%b", "%x", 2, by="maximum")):
        assert not compared(per_device(ONCE), per_device(twice(other))).proved


PLAIN = f"  %r = stablehlo.negate %x : {T}\n"
MESH = 'sdy.mesh @mesh = <["a"=2]>\n'


def constrained(sharding: str = '{"a"}', attributes: str = "") -> str:
    constraint = f"sdy.sharding_constraint %x <@mesh, [{sharding}]> {attributes} : {T}"
    return f"  %k = {constraint}\n  %r = stablehlo.negate %k : {T}\n"


def with_added_constraints(before: str, after: str) -> Proof:
    first, second = (parse_module(MESH + module(body)) for body in (before, after))
    return prove(first, second, ProofOptions(added_constraints=True))


def test_added_constraint_is_an_assumption() -> None:
    added = with_added_constraints(PLAIN, constrained())
    assert added.proved and added.added_constraints == 1
    assert with_added_constraints(constrained(), constrained()).added_constraints == 0
    assert not with_added_constraints(constrained(), PLAIN).proved
    assert not with_added_constraints(constrained(), constrained("{}")).proved


@pytest.mark.parametrize("attributes", ["", "{recompute.shards_kept}"])
def test_added_sharding_constraint_is_not_proved(attributes: str) -> None:
    """An added sharding constraint is rejected, whether or not it has an attribute of the passes."""
    plain, laid_out = (parse_module(MESH + module(body)) for body in (PLAIN, constrained(attributes=attributes)))
    assert not prove(plain, laid_out).proved and not prove(laid_out, plain).proved
