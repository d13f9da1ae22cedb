"""Readers that wait for a token in the clone pass; other cases are in test/filecheck/transforms/clone*.mlir."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from recompute.analysis.step.order import functions_of, single_block
from recompute.mlir_io.parser import parse_module
from recompute.proof.prove import prove
from recompute.rewriting.rewrite import rewrite_in_place
from recompute.support.diagnostics import Refusal
from recompute.support.operations import name_of
from recompute.transforms.clone import clone
from recompute.transforms.verify import verify

T = "tensor<256xf32>"
MARK = "recompute.recompute = true"
STEP = f"""
func.func @f(%x: {T}, %w: {T}, %ct: {T}) -> ({T}, {T}) {{
  %a = stablehlo.multiply %x, %w {{{MARK}, recompute.segment = "a"}} : {T} loc("jit(f)/jvp(a)/mul")
  %b = stablehlo.sine %a : {T} loc("jit(f)/jvp()/sin")
  %c = stablehlo.add %b, %w {{{MARK}, recompute.segment = "c"}} : {T} loc("jit(f)/jvp(c)/add")
  %e = stablehlo.tanh %c : {T} loc("jit(f)/jvp()/tanh")
  %g0 = stablehlo.multiply %ct, %w : {T} loc("jit(f)/transpose(jvp())/mul")
  %g1 = stablehlo.multiply %g0, %c : {T} loc("jit(f)/transpose(jvp())/mul")
  %g2 = stablehlo.multiply %g1, %w : {T} loc("jit(f)/transpose(jvp())/mul")
  %g3 = stablehlo.multiply %g2, %a : {T} loc("jit(f)/transpose(jvp())/mul")
  %g4 = stablehlo.multiply %g3, %w : {T} loc("jit(f)/transpose(jvp())/mul")
  func.return %e, %g4 : {T}, {T}
}}
"""


def test_gradient_reads_value_behind_latest_token() -> None:
    module = parse_module(STEP)
    assert len(clone(module).groups) == 2
    listed = list(single_block(functions_of(module)[0]).ops)
    by_name = {op.results[0].name_hint: op for op in listed if op.results and name_of(op) == "stablehlo.multiply"}
    first, second = (op for op in listed if name_of(op) == "recompute.depend")
    read = [by_name[f"g{index}"].operands[1].owner for index in (0, 2, 4)]
    assert not isinstance(read[0], Operation)
    assert read[1:] == [first, second]


def of_two_results(first: str = "%ct", returned: str = "%z", outside: str = "%w") -> ModuleOp:
    """Return a step whose segment `p` makes %v and %u in one operation.

    The backward pass reads `first` before anything else; `outside` is read after `p`.
    """
    reading = f'%r1 = stablehlo.negate {first} : {T} loc("jit(f)/transpose(jvp(p))/neg")'
    squared = f'%g0 = stablehlo.multiply %ct, %ct : {T} loc("jit(f)/transpose(jvp(q))/mul")'
    begin, then = (reading, squared) if outside == "%w" else (squared, reading)
    return parse_module(
        f"""
func.func @f(%x: {T}, %ct: {T}) -> ({T}, {T}) {{
  %i = stablehlo.constant dense<0> : tensor<i32>
  %a = stablehlo.sine %x {{{MARK}, recompute.segment = "p"}} : {T} loc("jit(f)/jvp(p)/sin")
  %v, %u = "stablehlo.case"(%i) ({{
    %s = stablehlo.sine %a : {T}
    %t = stablehlo.tanh %a : {T}
    stablehlo.return %s, %t : {T}, {T}
  }}) {{{MARK}, recompute.segment = "p"}} : (tensor<i32>) -> ({T}, {T}) loc("jit(f)/jvp(p)/cond")
  %w = stablehlo.multiply %v, %u {{recompute.segment = "p", recompute.checkpoint}} : {T} loc("jit(f)/jvp(p)/mul")
  %o = stablehlo.add {outside}, %x : {T} loc("jit(f)/jvp()/add")
  %b = stablehlo.sine %o {{{MARK}, recompute.segment = "q"}} : {T} loc("jit(f)/jvp(q)/sin")
  %z = stablehlo.tanh %b {{recompute.segment = "q", recompute.checkpoint}} : {T} loc("jit(f)/jvp(q)/tanh")
  {begin}
  {then}
  %g1 = stablehlo.multiply %g0, %z : {T} loc("jit(f)/transpose(jvp(q))/mul")
  %q = stablehlo.multiply %g1, %b : {T} loc("jit(f)/transpose(jvp(q))/mul")
  %r2 = stablehlo.multiply %q, %u : {T} loc("jit(f)/transpose(jvp(p))/mul")
  %r3 = stablehlo.multiply %r2, %v : {T} loc("jit(f)/transpose(jvp(p))/mul")
  %s = stablehlo.add %r3, %r1 : {T} loc("jit(f)/transpose(jvp(p))/add")
  func.return {returned}, %s : {T}, {T}
}}
""",
        "f.mlir",
    )


def marks_of_case(module: ModuleOp) -> str:
    (original,) = (
        op for op in module.walk() if name_of(op) == "stablehlo.case" and "recompute.copy" not in op.attributes
    )
    return str(original.attributes["recompute.recompute"])


@pytest.mark.parametrize(
    ("returned", "marks", "reason"),
    [
        ("%v", "[false, true]", "result 0 of stablehlo.case is kept: the function returns it"),
        ("%u", "[true, false]", "result 1 of stablehlo.case is kept: the function returns it"),
        ("%z", "true", None),
    ],
)
def test_returned_result_of_two_is_kept(returned: str, marks: str, reason: str | None) -> None:
    module = of_two_results(returned=returned)
    result = clone(module)
    verify(module)
    assert len(result.groups) == 2 and marks_of_case(module) == marks
    messages = [remark.reason for remark in result.remarks if "result" in remark.reason]
    assert len(messages) == (reason is not None) and all(str(reason) in message for message in messages)
    assert prove(of_two_results(returned=returned), module)


@pytest.mark.parametrize(("first", "marks"), [("%v", "[false, true]"), ("%u", "[true, false]")])
def test_early_read_result_of_two_is_kept(first: str, marks: str) -> None:
    """A result that is read before any gradient value exists is saved, whether or not its segment outputs it."""
    for outside in ("%w", first):
        module = of_two_results(first=first, outside=outside)
        result = clone(module)
        verify(module)
        assert result.groups and marks_of_case(module) == marks
        assert any("is kept: the backward pass begins with these values" in remark.reason for remark in result.remarks)
        assert prove(of_two_results(first=first, outside=outside), module)


def test_early_read_output_is_kept_and_region_named() -> None:
    """The operations %a and %b are copied; %v, which %b reads, is kept, since no token could delay its copy until
    %g0."""
    module = parse_module(f"""
func.func @f(%x: {T}, %ct: {T}) -> ({T}, {T}) {{
  %a = stablehlo.sine %x {{{MARK}, recompute.segment = "p"}} : {T} loc("jit(f)/jvp(p)/sin")
  %v = stablehlo.tanh %a {{{MARK}, recompute.segment = "p"}} : {T} loc("jit(f)/jvp(p)/tanh")
  %b = stablehlo.sine %v {{{MARK}, recompute.segment = "q"}} : {T} loc("jit(f)/jvp(q)/sin")
  %z = stablehlo.tanh %b {{recompute.segment = "q", recompute.checkpoint}} : {T} loc("jit(f)/jvp(q)/tanh")
  %h = stablehlo.multiply %ct, %ct : {T} loc("jit(f)/transpose(jvp(q))/mul")
  %g0 = stablehlo.negate %v : {T} loc("jit(f)/transpose(jvp(p))/neg")
  %g1 = stablehlo.multiply %h, %z : {T} loc("jit(f)/transpose(jvp(q))/mul")
  %g2 = stablehlo.multiply %g1, %b : {T} loc("jit(f)/transpose(jvp(q))/mul")
  %g3 = stablehlo.multiply %g2, %a : {T} loc("jit(f)/transpose(jvp(p))/mul")
  %s = stablehlo.add %g3, %g0 : {T} loc("jit(f)/transpose(jvp(p))/add")
  func.return %z, %s : {T}, {T}
}}
""")
    result = clone(module)
    verify(module)
    assert [group.segment for group in result.groups] == ["q", "p"]
    (output,) = result.remarks
    assert output.reason.startswith("segment 'p' is not recomputed: the backward pass begins with these values")
    assert output.frees_nothing


@pytest.mark.parametrize("mark", ['"yes"', "3", "[true]"])
def test_pass_rejects_invalid_marks_without_the_driver(mark: str) -> None:
    text = str(of_two_results()).replace("recompute.recompute = true", f"recompute.recompute = {mark}")
    with pytest.raises(Refusal, match=r"attribute 'recompute.recompute' (must be true, false|has 1 entry, expected)"):
        rewrite_in_place(parse_module(text))
