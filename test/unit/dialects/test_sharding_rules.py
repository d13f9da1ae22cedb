"""Sharding rules and propagation edges on operations are read, printed, and verified as Shardy verifies them."""

from __future__ import annotations

import re

import pytest
from xdsl.utils.exceptions import ParseError

from recompute.driver.verified import verify_module
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.proof.prove import prove
from recompute.support.diagnostics import Refusal
from recompute.test.mlir_judge import Judge

EDGES = "sdy.propagation_edges = #sdy.propagation_edges"
ENTRY = '[{"x" = operand-0 -> [result-0]}]'
OPERANDS = "(tensor<2x4xf32>, tensor<2x4xf32>)"
SHARDING = 'sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>'


def _product(rule: str, result: str = "2x4") -> str:
    return f"""
#rule = #sdy.op_sharding_rule<{rule}>
func.func @f(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) -> tensor<{result}xf32> {{
  %0 = stablehlo.custom_call @g(%a, %b) {{sdy.sharding_rule = #rule}} : {OPERANDS} -> tensor<{result}xf32>
  return %0 : tensor<{result}xf32>
}}
"""


def _sum(attributes: str) -> str:
    return f"""
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @f(%a: tensor<2x4xf32>) -> tensor<2x4xf32> {{
  %0 = stablehlo.add %a, %a {{{attributes}}} : tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}}
"""


def _verify(text: str) -> str:
    module = parse_module(text)
    verify_module(module)
    return print_module(module)


@pytest.mark.parametrize(
    "text",
    [
        _product("([i, j], [i, j])->([i, j]) {i=2, j=4}, custom"),
        _product("([i, j], [i, k])->([i]) {i=2, j=4, k=4} reduction={j} need_replication={k}", "2"),
        _product("([i, j], [i, j])->([ij]) {i=2, j=4} permutation={i} blocked_propagation={j}", "8"),
        _sum(f'{EDGES}<[{{step-2 = [{{"y" = operand-1 -> [operand-0, result-0]}}]}}]>, {SHARDING}'),
    ],
)
def test_attributes_are_printed_as_jaxlib_prints_them(text: str, judge: Judge) -> None:
    assert judge.print(_verify(text), debuginfo=False) == judge.print(text, debuginfo=False)


def test_factors_after_z_are_numbered() -> None:
    names = [*"ijklmnopqrstuvwxyz", "z_1", "z_2"]
    rule = (
        f"([{', '.join(names)}])->([{', '.join(names[:17])}, zz_1z_2]) {{{', '.join(f'{name}=2' for name in names)}}}"
    )
    types = "x".join(["2"] * 20), "x".join(["2"] * 17 + ["8"])
    text = f"""
#rule = #sdy.op_sharding_rule<{rule}>
func.func @f(%a: tensor<{types[0]}xf32>) -> tensor<{types[1]}xf32> {{
  %0 = stablehlo.reshape %a {{sdy.sharding_rule = #rule}} : (tensor<{types[0]}xf32>) -> tensor<{types[1]}xf32>
  return %0 : tensor<{types[1]}xf32>
}}
"""
    assert f"<{rule}>" in _verify(text)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("([i, j], [i, j])->([i, j]) {i=2, j=4},", "Expected 'custom'"),
        ("([i, j], [i j])->([i, j]) {i=2, j=4}", "Expected ']'"),
        ("([i, j], [i, j])->([i, j]) {j=2, i=4}", "Expecting factor index symbol 'i', received: 'j'"),
        ("([i, k], [i, k])->([i, k]) {i=2, k=4}", "Expecting factor index symbol 'j', received: 'k'"),
        ("([i_1, j], [i, j])->([i, j]) {i=2, j=4}", "found 'i_1'"),
        ("([z_0, j], [i, j])->([i, j]) {i=2, j=4}", "found 'z_0'"),
        ("([a, j], [i, j])->([i, j]) {i=2, j=4}", "found 'a'"),
        ("([i, j], [i, j])->([i, j]) {i=2, j=4} reduction: {j}", "Expected '='"),
    ],
)
def test_rule_with_invalid_syntax_is_rejected(rule: str, words: str) -> None:
    with pytest.raises(ParseError, match=re.escape(words)):
        parse_module(_product(rule))


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("()->([i, j]) {i=2, j=4}", "number of operands and mappings must match: 2 != 0"),
        ("([i, j], [i, j])->([i, j], [i, j]) {i=2, j=4}", "number of results and mappings must match: 1 != 2"),
        ("([i, j], [i])->([i, j]) {i=2, j=4}", "operand 1 - mapping rank must match: 1 != 2"),
        ("([i,], [i, j])->([i, j]) {i=2, j=4}", "operand 0 - dim mapping must have at least one factor"),
        ("([i, u], [i, j])->([i, j]) {i=2, j=4}", "received: 12, num_factors: 2"),
        ("([i, i], [i, j])->([i, j]) {i=2, j=4}", "operand 0 - cannot reuse factors for the same tensor value"),
        ("([i, jk], [i, j])->([i, j]) {i=2, j=4, k=1}", "can't have a factor of size 1"),
        ("([i, j], [i, j])->([i, j]) {i=2, j=4, k=2}", "has factor k=2 that isn't used"),
        ("([i, j], [i, j])->([i, j]) {i=2, j=4} need_replication={j, i}", "must be sorted"),
        ("([i, j], [i, j])->([i, j]) {i=2, j=4} blocked_propagation={i, i}", "must be unique"),
        ("([i, j], [i, j])->([i, j]) {i=2, j=4} permutation={z}", "index must be less than 2, got: 17"),
        ("([i, j], [i, j])->([i, j]) {i=2, j=4} need_replication={j} permutation={j}", "a factor can only be in one"),
        ("([i, j], [i, j])->([i, j]) {i=2, j=4} reduction={j}", "reduction factor cannot be in result mappings"),
    ],
)
def test_rule_that_does_not_fit_the_operation_is_rejected(rule: str, words: str) -> None:
    with pytest.raises(Refusal, match=re.escape(words)):
        _verify(_product(rule))


def test_rules_and_edges_are_compared_by_the_proof() -> None:
    program = _product("([i, j], [i, j])->([i, j]) {i=2, j=4} need_replication={j}, custom")
    assert prove(parse_module(program), parse_module(program)).proved
    assert not prove(parse_module(program), parse_module(program.replace("{j}", "{i}"))).proved
    program = _sum(f"{EDGES}<[{{step-1 = {ENTRY}}}]>, {SHARDING}")
    assert prove(parse_module(program), parse_module(program)).proved


def test_rule_for_dynamic_shapes_is_rejected() -> None:
    text = _product("([i, j], [i, j])->([i, j]) {i=2, j=4}").replace("2x4", "?x4")
    with pytest.raises(Refusal, match=re.escape("operand 0 - expected a ranked tensor with a static shape")):
        _verify(text)


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        (f"[{{step-1 = {ENTRY}}}, {{step-1 = {ENTRY}}}]", "duplicate step index: 1"),
        (f"[{{step--3 = {ENTRY}}}]", "negative step index: -3"),
        ("[{step-1 = []}]", "'{' expected"),
        ('[{step-1 = [{"x" = operand-0 -> [operand-0]}]}]', "a source that is the same as a target"),
        (
            '[{step-1 = [{"x" = result-0 -> [operand-0, operand-0]}]}]',
            "duplicate targets for step index: 1",
        ),
    ],
)
def test_contradictory_edges_are_rejected(edges: str, words: str) -> None:
    with pytest.raises(ParseError, match=re.escape(words)):
        parse_module(_sum(f"{EDGES}<{edges}>, {SHARDING}"))


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        (f'{EDGES}<[{{step-1 = [{{"x" = result-0 -> [operand-3]}}]}}]>, {SHARDING}', "in range [0, 2), got: 3"),
        (
            f'{EDGES}<[{{step-1 = [{{"x" = operand-1 -> [result-0, result-1]}}]}}]>, {SHARDING}',
            "in range [0, 1), got: 1",
        ),
        (f'{EDGES}<[{{step-1 = [{{"z" = operand-1 -> [result-0]}}]}}]>, {SHARDING}', "axis 'z' of the propagation"),
        (f'{EDGES}<[{{step-1 = [{{"x" = operand-1 -> [result-0]}}]}}]>', "refer to no value with a sharding"),
        ("sdy.propagation_edges = 64", "expected the form #sdy.propagation_edges<…>"),
        ("sdy.result_propagation_edges = 64", "expected an array of #sdy.propagation_edges<…>"),
        ("sdy.block_arg_propagation_edges = [1]", "expected an array of #sdy.propagation_edges<…>"),
        ("sdy.sharding_rule = 1", "expected the form #sdy.op_sharding_rule<…>"),
    ],
)
def test_edges_that_do_not_fit_the_operation_are_rejected(attributes: str, words: str) -> None:
    with pytest.raises(Refusal, match=re.escape(words)):
        _verify(_sum(attributes))
