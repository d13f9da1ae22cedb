"""Attributes of loops, of their counting constants and of channels: the rules for loops do not drop them.

The proof once accepted each of these pairs.
"""

from __future__ import annotations

import pytest

from recompute.proof.prove import Proof, prove
from recompute.test.unit.proof.loop_rules.test_prove_loops import CUT, FIRST, PLAIN, SECOND, module_of

N, V, STACK = "tensor<i32>", "tensor<4xf32>", "tensor<6x4xf32>"
HINT = '{acme.hint = "x"}'
GROUPS = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"
ON_LOOP, ON_END = f"attributes {HINT} cond", f" {HINT} : "


def proof(before: str, after: str) -> Proof:
    return prove(module_of(before), module_of(after))


def rejected(before: str, after: str) -> bool:
    return before != after and not proof(before, after) and not proof(after, before)


@pytest.mark.parametrize(
    "old",
    ["%end = stablehlo.constant", "%one = stablehlo.constant", "%six = stablehlo.constant"],
    ids=lambda old: old[:4],
)
def test_attribute_on_a_counting_constant_is_not_dropped(old: str) -> None:
    for start, end in ((0, SECOND), (SECOND, len(CUT))):
        if old in CUT[start:end]:
            message = CUT[:start] + CUT[start:end].replace(old, f"{old} {HINT}") + CUT[end:]
            assert rejected(PLAIN, message)


@pytest.mark.parametrize("name", ["acme.hint", "value"])
def test_attribute_on_an_index_sum_is_not_dropped(name: str) -> None:
    """An attribute of any name on either sum that computes the stack index is not dropped."""
    message = f'{{{name} = "x"}}'
    for old in (f"%rest = stablehlo.subtract %six, %j : {N}", f"%at = stablehlo.subtract %rest, %one : {N}"):
        noted = CUT.replace(old, old.replace(f" : {N}", f" {message} : {N}"))
        assert rejected(PLAIN, noted) and proof(noted, noted)


def test_attribute_on_a_loop_that_fills_a_stack_is_not_dropped() -> None:
    """An attribute on a loop that only fills a stack is not dropped, although the reading loop needs none of the
    stack."""
    # `%t` is a function of the number and of the argument; the stack comes from a loop of its own.
    own = PLAIN.replace("%p = stablehlo.multiply %h, %wide", "%p = stablehlo.multiply %x, %wide")
    begins = own.index("  %n, %y, %s = "), own.index("  %m, %g = ")
    loop = own[begins[0] : begins[1]]
    again = loop.replace("%n, %y, %s", "%n2, %y2, %s2")
    both = own[: begins[1]] + again + own[begins[1] :].replace("dynamic_slice %s,", "dynamic_slice %s2,")
    message = both[: begins[1]] + both[begins[1] :].replace(f"{STACK}\n  cond", f"{STACK}\n  {ON_LOOP}", 1)
    assert proof(own, both)
    assert rejected(own, message)
    ended = both[: begins[1]] + both[begins[1] :].replace(f"%a1 : {N}", f"%a1{ON_END}{N}", 1)
    assert rejected(own, ended)


def test_attribute_on_a_loop_that_passes_its_carry_is_not_dropped() -> None:
    """An attribute is not dropped on a loop whose results are its initial carry and its trip count."""
    given = f"""func.func public @main(%x: {V}) -> ({V}, {N}) {{
  %zero = stablehlo.constant dense<0> : {N}
  %n, %y = stablehlo.while(%i = %zero, %h = %x) : {N}, {V}
  cond {{
    %end = stablehlo.constant dense<6> : {N}
    %c = stablehlo.compare LT, %i, %end, SIGNED : ({N}, {N}) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : {N}
    %i1 = stablehlo.add %i, %one : {N}
    stablehlo.return %i1, %h : {N}, {V}
  }}
  %six = stablehlo.constant dense<6> : {N}
  return %y, %n : {V}, {N}
}}"""
    assert proof(given, given.replace("return %y, %n", "return %x, %six")).tier == 2
    for old, output in ((f"{V}\n  cond", f"{V}\n  {ON_LOOP}"), (f"%h : {N}", f"%h{ON_END}{N}")):
        noted = given.replace(old, output, 1)
        assert rejected(given, noted) and proof(noted, noted)
        assert rejected(noted, noted.replace("return %y,", "return %x,"))
        assert rejected(noted, noted.replace("return %y, %n", "return %y, %six"))


def test_attribute_on_the_loop_of_a_carry_is_not_dropped() -> None:
    message = CUT.replace(f"{STACK}\n  cond", f"{STACK}\n  {ON_LOOP}")
    assert message.index(ON_LOOP) > FIRST and rejected(PLAIN, message)


def summed(result: str, channel: int) -> str:
    handle = f"channel_handle = #stablehlo.channel_handle<handle = {channel}, type = 1>"
    return f"""{result} = "stablehlo.all_reduce"(%x) <{{{handle}, {GROUPS}}}> ({{
    ^bb0(%l: tensor<f32>, %k: tensor<f32>):
      %u = stablehlo.add %l, %k : tensor<f32>
      stablehlo.return %u : tensor<f32>
    }}) : ({V}) -> {V}
"""


def exchanged(lines: str, others: str = "") -> str:
    ends = f"%r = stablehlo.multiply %a, %b : {V}\nreturn %r : {V}"
    return f"func.func public @main(%x: {V}) -> {V} {{\n{lines}{ends}\n}}\n{others}"


def test_channel_used_by_a_send_is_not_new() -> None:
    handle = "channel_handle = #stablehlo.channel_handle<handle = 2, type = 2>"
    types = f"({V}, !stablehlo.token) -> !stablehlo.token"
    sent = (
        '%t = "stablehlo.create_token"() : () -> !stablehlo.token\n'
        f'%s = "stablehlo.send"(%x, %t) <{{{handle}, is_host_transfer = true}}> : {types}\n'
    )
    before = exchanged(sent + summed("%a", 1)).replace("%a, %b", "%a, %a")
    assert proof(before, exchanged(sent + summed("%a", 1) + summed("%b", 3)))
    assert (
        "do not share a channel in the original"
        in proof(before, exchanged(sent + summed("%a", 1) + summed("%b", 2))).reason
    )


def test_channel_of_function_called_twice_is_shared() -> None:
    function = f"func.func private @f(%x: {V}) -> {V} {{\n{summed('%q', 1)}return %q : {V}\n}}"
    outer = f"func.func private @g(%x: {V}) -> {V} {{\n%q = func.call @f(%x) : ({V}) -> {V}\nreturn %q : {V}\n}}"
    once, twice = f"%a = func.call @f(%x) : ({V}) -> {V}\n", f"%b = func.call @g(%x) : ({V}) -> {V}\n"
    before = exchanged(once, f"{function}\n{outer}").replace("%a, %b", "%a, %a")
    after = exchanged(once + twice, f"{function}\n{outer}")
    assert "do not share a channel in the original" in proof(before, after).reason
    assert proof(after, before) and proof(after, after)
