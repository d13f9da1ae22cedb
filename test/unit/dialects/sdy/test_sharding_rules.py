"""Sharding rules and propagation edges on operations are read, printed, and verified as Shardy verifies them."""

from __future__ import annotations

import re

import pytest
from xdsl.utils.exceptions import ParseError

from recompute.driver.verification.verified import verify_module
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
        ("([i, j], [i, j])->([i, j]) {j=2, i=4}", "expected the size of factor 'i', found 'j'"),
        ("([i, k], [i, k])->([i, k]) {i=2, k=4}", "expected the size of factor 'j', found 'k'"),
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
        ("()->([i, j]) {i=2, j=4}", "the rule has 0 operands, but the operation has 2"),
        ("([i, j], [i, j])->([i, j], [i, j]) {i=2, j=4}", "the rule has 2 results, but the operation has 1"),
        ("([i, j], [i])->([i, j]) {i=2, j=4}", "operand 1 has rank 1 in the rule, but the tensor has rank 2"),
        ("([i,], [i, j])->([i, j]) {i=2, j=4}", "operand 0: each dimension must have at least one factor"),
        ("([i, u], [i, j])->([i, j]) {i=2, j=4}", "operand 0: the rule gives no size for factor u"),
        ("([i, i], [i, j])->([i, j]) {i=2, j=4}", "operand 0: factor i occurs more than once"),
        ("([i, jk], [i, j])->([i, j]) {i=2, j=4, k=1}", "factor k has size 1, but its dimension has other factors"),
        ("([i, j], [i, j])->([i, j]) {i=2, j=4, k=2}", "factor k=2 occurs in no operand and no result"),
        (
            "([i, j], [i, j])->([i, j]) {i=2, j=4} need_replication={j, i}",
            "the factors of the group need_replication must be in ascending order",
        ),
        (
            "([i, j], [i, j])->([i, j]) {i=2, j=4} blocked_propagation={i, i}",
            "the factors of the group blocked_propagation must be distinct",
        ),
        (
            "([i, j], [i, j])->([i, j]) {i=2, j=4} permutation={z}",
            "the rule gives no size for factor z of the group permutation",
        ),
        (
            "([i, j], [i, j])->([i, j]) {i=2, j=4} need_replication={j} permutation={j}",
            "a factor must belong to at most one of the groups",
        ),
        (
            "([i, j], [i, j])->([i, j]) {i=2, j=4} reduction={j}",
            "a factor of the group reduction must not occur in a result",
        ),
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
    with pytest.raises(
        Refusal, match=re.escape("operand 0 has type tensor<?x4xf32>, expected a ranked tensor with a static shape")
    ):
        _verify(text)


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        (f"[{{step-1 = {ENTRY}}}, {{step-1 = {ENTRY}}}]", "the step index 1 occurs more than once"),
        (f"[{{step--3 = {ENTRY}}}]", "the step index -3 must not be negative"),
        ("[{step-1 = []}]", "'{' expected"),
        ('[{step-1 = [{"x" = operand-0 -> [operand-0]}]}]', "operand-0 is both the source and a target"),
        (
            '[{step-1 = [{"x" = result-0 -> [operand-0, operand-0]}]}]',
            "in step 1 must be distinct",
        ),
    ],
)
def test_contradictory_edges_are_rejected(edges: str, words: str) -> None:
    with pytest.raises(ParseError, match=re.escape(words)):
        parse_module(_sum(f"{EDGES}<{edges}>, {SHARDING}"))


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        (
            f'{EDGES}<[{{step-1 = [{{"x" = result-0 -> [operand-3]}}]}}]>, {SHARDING}',
            "refer to operand-3, but the operation has 2 operands",
        ),
        (
            f'{EDGES}<[{{step-1 = [{{"x" = operand-1 -> [result-0, result-1]}}]}}]>, {SHARDING}',
            "refer to result-1, but the operation has 1 result",
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
