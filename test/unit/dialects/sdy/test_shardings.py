"""Shardy's computations, to which JAX lowers `shard_map`, are read, verified, preserved, and printed byte for byte."""

# JAX's types say little about lambdas.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import pytest
from xdsl.transforms.canonicalize import CanonicalizePass
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination
from xdsl.transforms.dead_code_elimination import DeadCodeElimination
from xdsl.utils.exceptions import ParseError, VerifyException

from recompute.dialects.context import make_context
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.rules.effects import why_impure
from recompute.test.mlir_judge import Judge

MESH = 'sdy.mesh @mesh = <["a"=2, "b"=4]>\n'
SHARDING = '<@mesh, [{"a"}, {}]>'


def manual(
    arguments: str = "%y: tensor<2x8xf32>",
    body: str = "sdy.return %y : tensor<2x8xf32>",
    shardings: str = f"[{SHARDING}]",
    results: str = f"[{SHARDING}]",
    axes: str = '{"a"}',
    types: str = "(tensor<4x8xf32>) -> tensor<4x8xf32>",
) -> str:
    return (
        f"{MESH}func.func @f(%x: tensor<4x8xf32>) {{\n"
        f"  %0 = sdy.manual_computation(%x) in_shardings={shardings} out_shardings={results} manual_axes={axes}"
        f" ({arguments}) {{\n    {body}\n  }} : {types}\n  return\n}}"
    )


def test_manual_computation_round_trips(judge: Judge) -> None:
    module = parse_module(manual())
    module.verify()
    assert judge.print(print_module(module), debuginfo=False) == judge.print(manual(), debuginfo=False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (manual(shardings="[]"), "there are 0 in_shardings, expected 1"),
        (manual(results=f"[{SHARDING}, {SHARDING}]"), "there are 2 out_shardings, expected 1"),
        (manual(arguments="", body="sdy.return"), "there are 0 arguments of the region, expected 1"),
        (manual(body="sdy.return %x : tensor<4x8xf32>"), "value defined out of its IsolatedFromAbove parent"),
        (
            manual(arguments="%y: tensor<8xf32>", body="sdy.return %y : tensor<8xf32>"),
            r"region has type tensor<8xf32>, expected the element type and rank of tensor<4x8xf32>",
        ),
        (
            manual(arguments="%y: tensor<2x8xf64>", body="sdy.return %y : tensor<2x8xf64>"),
            "type tensor<2x8xf64>, expected the element type and rank of tensor<4x8xf32>",
        ),
        (manual(body="sdy.return"), "there are 0 values that the region returns, expected 1"),
        (manual(types="(tensor<4x8xf32>) -> i32"), "type tensor<2x8xf32>, expected the element type and rank of i32"),
        (manual(body="stablehlo.return %y : tensor<2x8xf32>"), "expected the region to end with sdy.return"),
    ],
)
def test_invalid_manual_computations_are_rejected(text: str, words: str) -> None:
    with pytest.raises(VerifyException, match=words):
        parse_module(text).verify()


NAMED = (
    "func.func @f(%x: tensor<4xf32>) {\n"
    '  %0 = sdy.named_computation<"g">(%x) (%y: tensor<4xf32>) {\n    sdy.return %y : tensor<4xf32>\n  }'
    " : (tensor<4xf32>) -> tensor<4xf32>\n  return\n}"
)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "(%y: tensor<4xf32>)",
            "(%y: tensor<4xf32>, %z: i32)",
            "the number of arguments of the region is 2, expected 1",
        ),
        ("-> tensor<4xf32>", "-> tensor<2xf32>", "one of the values that the region returns has type tensor<4xf32>"),
        ("(%x) (", "(%x) in_shardings=[] (", "there are 0 in_shardings, expected 1"),
    ],
)
def test_invalid_named_computations_are_rejected(old: str, new: str, words: str) -> None:
    parse_module(NAMED).verify()
    with pytest.raises((VerifyException, ParseError), match=words):
        parse_module(NAMED.replace(old, new)).verify()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (manual(axes="{a}"), "string literal"),
        (manual(shardings=SHARDING), r"'\[' expected"),
        (manual().replace(" manual_axes", " {} manual_axes"), "Expected 'manual_axes'"),
        (manual().replace("} : ", "} {manual_axes = 1} : "), "'manual_axes' belongs in the format"),
        ("sdy.return {a = 1} %0", "Expected ':'"),
        ('"test.op"() {a = #sdy.sharding_per_value<<@mesh, []>>} : () -> ()', r"'\[' expected"),
    ],
)
def test_malformed_shardings_are_rejected(text: str, words: str) -> None:
    with pytest.raises(ParseError, match=words):
        parse_module(text)


def test_comments_inside_shardings_are_rejected() -> None:
    commented = '[<@mesh, // }\n[{"a"}, {}]>]'
    with pytest.raises(ParseError, match="comments inside a sharding"):
        parse_module(manual(shardings=commented))


def test_sharding_over_several_lines_is_printed_on_one() -> None:
    broken = '[<@mesh,\n  [{"a"},\t{}]>]'
    assert print_module(parse_module(manual(shardings=broken))) == print_module(parse_module(manual()))


def test_empty_mesh_round_trips() -> None:
    printed = print_module(parse_module("sdy.mesh @mesh = <>"))
    assert "sdy.mesh @mesh = <>" in printed
    assert print_module(parse_module(print_module(parse_module(printed), generic=True))) == printed


def test_xdsl_passes_keep_computations_and_constants() -> None:
    """Passes preserve unused computations and equal constants, since their removal may matter to Shardy."""
    pair = "sdy.constant dense<1.0> : tensor<4xf32>"
    text = NAMED.replace("  return", f"  %1 = {pair}\n  %2 = {pair}\n  return")
    for source in (manual(), text):
        module = parse_module(source)
        before = print_module(module)
        for step in (CanonicalizePass(), CommonSubexpressionElimination(), DeadCodeElimination()):
            step.apply(make_context(), module)
        assert print_module(module) == before


def test_purity_follows_body_effects() -> None:
    """A per-device body is pure if and only if its operations are pure."""
    effect = '  "acme.print"(%y) : (tensor<2x8xf32>) -> ()\n    sdy.return'
    printing = manual().replace("sdy.return", effect)
    assert printing != manual()
    printing_named = NAMED.replace("sdy.return", '"acme.print"() : () -> ()\n    sdy.return')
    assert printing_named != NAMED
    for source, name, is_pure in (
        (manual(), "sdy.manual_computation", True),
        (printing, "sdy.manual_computation", False),
        (NAMED, "sdy.named_computation", True),
        (printing_named, "sdy.named_computation", False),
    ):
        (op,) = (op for op in parse_module(source).walk() if op.name == name)
        assert (why_impure(op) is None) == is_pure


def test_shard_map_lowered_by_jax_is_read(judge: Judge) -> None:
    """A `shard_map` with a nested jit, whose function is called from inside the computation, is read."""
    jax = pytest.importorskip("jax")
    spec: Any = jax.sharding.PartitionSpec
    mesh = jax.sharding.AbstractMesh((2, 4), ("a", "b"))

    def local(x: Any) -> Any:
        return jax.lax.psum(jax.jit(jax.numpy.tanh)(x), "b")

    function = jax.shard_map(local, mesh=mesh, in_specs=spec("a", "b"), out_specs=spec("a"))
    lowered = jax.jit(jax.grad(lambda x: function(x).sum())).trace(jax.numpy.ones((4, 8)))
    text = lowered.lower(lowering_platforms=("cpu",)).as_text(debug_info=True)
    assert "sdy.manual_computation" in text and "call @" in text
    module = parse_module(text)
    module.verify()
    assert judge.print(print_module(module, debuginfo=True)) == judge.print(text)
    assert judge.print(print_module(module, generic=True, debuginfo=True)) == judge.print(text)
    generic = parse_module(judge.print(text, generic=True))
    assert judge.print(print_module(generic, debuginfo=True)) == judge.print(text)
