"""The loop passes on programs that JAX does not write: slices read out of order or twice, unsigned counters, and
attributes on loops. Each result is valid, proved, and computes the same."""

from __future__ import annotations

import re

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from recompute.analysis.copies.loop_cuts import NOT_COUNTED, WRITTEN_ON
from recompute.dialects.channels import free_channels, take_channels
from recompute.dialects.context import make_context
from recompute.interpreters.execute_check import compare
from recompute.mlir_io.parser import parse_module
from recompute.options.loop_schedule import Loops
from recompute.proof.prove import prove
from recompute.search.local_choices.carries_to_save import WRITTEN_ON_THE_READER
from recompute.search.local_choices.recompute_loops import recompute_loops
from recompute.support.operations import every_operation, name_of
from recompute.transforms.rolled.rewrite_loops import LoopRecomputation

V, S, ONE = "tensor<4xf32>", "tensor<5x4xf32>", "tensor<1x4xf32>"


def step(number: str = "i32", loop_attributes: str = "") -> str:
    """Return a step with two stacks per iteration, the second of which is read first; both are read twice."""
    n, sign = f"tensor<{number}>", "UNSIGNED" if number.startswith("u") else "SIGNED"

    def until(counter: str) -> str:
        return f"""{loop_attributes} cond {{
    %end = stablehlo.constant dense<5> : {n}
    %c = stablehlo.compare LT, {counter}, %end, {sign} : ({n}, {n}) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %o = stablehlo.constant dense<0> : {n}
    %one = stablehlo.constant dense<1> : {n}
    %next = stablehlo.add {counter}, %one : {n}"""

    def write(name: str, stack: str, value: str) -> str:
        return f"""    {name}0 = stablehlo.reshape {value} : ({V}) -> {ONE}
    {name} = stablehlo.dynamic_update_slice {stack}, {name}0, %i, %o : ({S}, {ONE}, {n}, {n}) -> {S}"""

    def read(name: str, stack: str) -> str:
        return f"""    {name}0 = stablehlo.dynamic_slice {stack}, %at, %o, sizes = [1, 4] : ({S}, {n}, {n}) -> {ONE}
    {name} = stablehlo.reshape {name}0 : ({ONE}) -> {V}"""

    return f"""func.func public @main(%x: {V}, %ct: {V}) -> ({V}, {V}) {{
  %zero = stablehlo.constant dense<0> : {n}
  %f = stablehlo.constant dense<0.0> : {S}
  %n, %y, %s, %t = stablehlo.while(%i = %zero, %h = %x, %a = %f, %b = %f) : {n}, {V}, {S}, {S} {until("%i")}
    %p = stablehlo.sine %h : {V}
    %q = stablehlo.tanh %p : {V}
    %r = stablehlo.cosine %q : {V}
{write("%a1", "%a", "%p")}
{write("%b1", "%b", "%q")}
    stablehlo.return %next, %r, %a1, %b1 : {n}, {V}, {S}, {S}
  }}
  %m, %g = stablehlo.while(%j = %zero, %d = %ct) : {n}, {V} {until("%j")}
    %last = stablehlo.constant dense<4> : {n}
    %at = stablehlo.subtract %last, %j : {n}
{read("%u", "%t")}
    %d1 = stablehlo.multiply %d, %u : {V}
{read("%v", "%s")}
    %d2 = stablehlo.add %d1, %v : {V}
{read("%w", "%t")}
    %d3 = stablehlo.multiply %d2, %w : {V}
{read("%z", "%s")}
    %d4 = stablehlo.subtract %d3, %z : {V}
    stablehlo.return %next, %d4 : {n}, {V}
  }}
  return %y, %g : {V}, {V}
}}"""


def rolled(text: str, loops: Loops) -> tuple[ModuleOp, ModuleOp, LoopRecomputation]:
    before = parse_module(text, "step.mlir", make_context())
    before.verify()
    after = before.clone()
    result = recompute_loops(after, loops=loops)
    after.verify()
    return before, after, result


INPUTS = [np.array([0.5, -1.25, 2.0, -0.0], np.float32), np.array([1.5, 0.25, -3.0, 1.0], np.float32)]
WAYS: list[Loops] = [True, "periodic(1)", "periodic(2)", "periodic(3)", "binomial(2)"]


@pytest.mark.parametrize("loops", WAYS)
@pytest.mark.parametrize("number", ["i32", "ui32", "i64"])
def test_slices_read_out_of_order_and_twice_are_proved(loops: Loops, number: str) -> None:
    before, after, result = rolled(step(number), loops)
    assert result.copies and compare(before, after, INPUTS).equal
    proof = prove(before, after)
    assert loops == "binomial(2)" or proof, proof.reason


@pytest.mark.parametrize("loops", WAYS[1:])
def test_written_loops_keep_counter_signedness(loops: Loops) -> None:
    _, after, _ = rolled(step("ui32"), loops)
    assert "UNSIGNED" in str(after) and not re.search(r"compare .*, SIGNED", str(after))


@pytest.mark.parametrize("through", ["ui32", "i64"])
def test_index_that_loses_its_sign_leaves_the_loop_unchanged(through: str) -> None:
    """A loop is unchanged if its negative index becomes 2**32 - 5 when converted: 4 - j then lies beyond the stack."""
    n, m = "tensor<i32>", f"tensor<{through}>"
    chain = f"""    %five = stablehlo.constant dense<-1> : {n}
    %low = stablehlo.subtract %five, %j : {n}
    %turned = stablehlo.convert %low : ({n}) -> {m}
    %long = stablehlo.convert %turned : ({m}) -> tensor<i64>
    %back = stablehlo.constant dense<5> : tensor<i64>
    %at = stablehlo.add %long, %back : tensor<i64>
    %oo = stablehlo.constant dense<0> : tensor<i64>"""
    text = step().replace(f"    %at = stablehlo.subtract %last, %j : {n}", chain)
    text = text.replace(
        f"%at, %o, sizes = [1, 4] : ({S}, {n}, {n})", f"%at, %oo, sizes = [1, 4] : ({S}, tensor<i64>, tensor<i64>)"
    )
    before, after, result = rolled(text, True)
    assert compare(before, after, INPUTS).equal
    assert bool(result.copies) == (through == "i64")


SAID = 'attributes {acme.hint = "x"}'


@pytest.mark.parametrize("loops", WAYS)
def test_loop_with_attributes_is_unchanged(loops: Loops) -> None:
    before, after, result = rolled(step(loop_attributes=SAID), loops)
    assert not result.copies and str(before) == str(after)
    assert f"the loop is left as it is: {WRITTEN_ON}" in [remark.reason for remark in result.remarks]


@pytest.mark.parametrize("loops", WAYS)
@pytest.mark.parametrize("old", ["%end = stablehlo.constant", "%one = stablehlo.constant"])
def test_loop_with_attributes_on_counter_is_unchanged(old: str, loops: Loops) -> None:
    text = step().replace(old, f'{old} {{acme.hint = "x"}}')
    before, after, result = rolled(text, loops)
    assert not result.copies and str(before) == str(after)
    assert f"the loop is left as it is: {NOT_COUNTED}" in [remark.reason for remark in result.remarks]


def test_attributes_on_the_terminator_leave_the_loop_unchanged() -> None:
    text = re.sub(r"(return %next, %r, %a1, %b1) :", r'\1 {acme.hint = "x"} :', step())
    assert text != step() and not rolled(text, True)[2].copies


@pytest.mark.parametrize(("handle", "taken"), [(1, 2), (7, 8), (0, 0)])
def test_copy_gets_channel_only_if_original_has_one(handle: int, taken: int) -> None:
    """A copied collective gets a new channel if the original has one; handle zero means no channel and stays."""
    message = f"channel_handle = #stablehlo.channel_handle<handle = {handle}, type = 1>"
    module = parse_module(
        f"""func.func @main(%x: {V}) -> {V} {{
  %y = "stablehlo.all_gather"(%x) <{{all_gather_dim = 0 : i64, {message}, replica_groups = dense<[[0]]> : tensor<1x1xi64>}}> : ({V}) -> {V}
  return %y : {V}
}}"""
    )
    op = next(op for op in every_operation(module) if name_of(op) == "stablehlo.all_gather")
    take_channels([op], free_channels(module))
    assert f"handle = {taken}," in str(op)


def carried(loop_attributes: str) -> str:
    """Return a loop that stacks 24 carries, and one, with attributes, that reads them from the last one on."""
    n, stack = "tensor<i32>", "tensor<24x4xf32>"

    def until(counter: str, loop_attributes: str = "") -> str:
        return f"""{loop_attributes} cond {{
    %end = stablehlo.constant dense<24> : {n}
    %c = stablehlo.compare LT, {counter}, %end, SIGNED : ({n}, {n}) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %o = stablehlo.constant dense<0> : {n}
    %one = stablehlo.constant dense<1> : {n}
    %next = stablehlo.add {counter}, %one : {n}"""

    return f"""func.func public @main(%x: {V}, %ct: {V}) -> ({V}, {V}) {{
  %zero = stablehlo.constant dense<0> : {n}
  %f = stablehlo.constant dense<0.0> : {stack}
  %n, %y, %s = stablehlo.while(%i = %zero, %h = %x, %a = %f) : {n}, {V}, {stack} {until("%i")}
    %p = stablehlo.sine %h : {V}
    %h1 = stablehlo.reshape %h : ({V}) -> {ONE}
    %a1 = stablehlo.dynamic_update_slice %a, %h1, %i, %o : ({stack}, {ONE}, {n}, {n}) -> {stack}
    stablehlo.return %next, %p, %a1 : {n}, {V}, {stack}
  }}
  %m, %g = stablehlo.while(%j = %zero, %d = %ct) : {n}, {V} {until("%j", loop_attributes)}
    %last = stablehlo.constant dense<23> : {n}
    %at = stablehlo.subtract %last, %j : {n}
    %u1 = stablehlo.dynamic_slice %s, %at, %o, sizes = [1, 4] : ({stack}, {n}, {n}) -> {ONE}
    %u = stablehlo.reshape %u1 : ({ONE}) -> {V}
    %d1 = stablehlo.multiply %d, %u : {V}
    stablehlo.return %next, %d1 : {n}, {V}
  }}
  return %y, %g : {V}, {V}
}}"""


@pytest.mark.parametrize("loops", ["periodic(4)", "periodic(5)", "binomial(3)"])
def test_reading_loop_with_attributes_is_unchanged(loops: Loops) -> None:
    before, after, result = rolled(carried(""), loops)
    assert result.copies and compare(before, after, INPUTS).equal
    assert loops == "binomial(3)" or prove(before, after)
    before, after, result = rolled(carried(SAID), loops)
    assert not result.copies and str(before) == str(after)
    assert f"the loop is left as it is: {WRITTEN_ON_THE_READER}" in [remark.reason for remark in result.remarks]
