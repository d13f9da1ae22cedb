"""Equal pairs that frameworks write, each with its closest unequal pairs."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from recompute.mlir_io.parser import parse_module
from recompute.proof.prove import Proof, prove

M, T, W = "tensor<2x3xf32>", "tensor<6xf32>", "tensor<3x2xf32>"


def function(body: str, arguments: str = f"%x: {M}, %y: {M}", result: str = M) -> str:
    return f"func.func public @main({arguments}) -> {result} {{\n{body}\nreturn %r : {result}\n}}"


def proof(before: str, after: str) -> Proof:
    return prove(parse_module(before), parse_module(after))


def reshape(result: str, operand: str, before: str, after: str) -> str:
    return f"{result} = stablehlo.reshape {operand} : ({before}) -> {after}\n"


def transpose(result: str, operand: str, order: str, before: str, after: str) -> str:
    return f"{result} = stablehlo.transpose {operand}, dims = {order} : ({before}) -> {after}\n"


def rounded(bits: str, type_: str = M) -> str:
    return f"%r = stablehlo.reduce_precision %x, format = {bits} : {type_}"


def splat(value: str, type_: str = "tensor<f32>", dims: str = "[]", into: str = M) -> str:
    constant = f"%c = stablehlo.constant dense<{value}> : {type_}\n"
    return f"{constant}%r = stablehlo.broadcast_in_dim %c, dims = {dims} : ({type_}) -> {into}"


def broadcast(result: str, operand: str, dims: str, before: str, after: str) -> str:
    return f"{result} = stablehlo.broadcast_in_dim {operand}, dims = {dims} : ({before}) -> {after}\n"


NOTHING = "%r = stablehlo.optimization_barrier %x : " + M
C, S = "tensor<2x3x4xf32>", "tensor<2x2x2xf32>"
ROW, COLUMN, Q = "tensor<1x6xf32>", "tensor<6x1xf32>", "tensor<2x2xf32>"
VECTORS = f"%x: {T}, %y: {T}"
EQUAL: dict[str, tuple[str, str]] = {
    "reduce_precision to the format that it is": (function(NOTHING), function(rounded("e8m23"))),
    "reduce_precision of bf16": (
        function("%r = stablehlo.optimization_barrier %x : tensor<2xbf16>", "%x: tensor<2xbf16>", "tensor<2xbf16>"),
        function(rounded("e8m7", "tensor<2xbf16>"), "%x: tensor<2xbf16>", "tensor<2xbf16>"),
    ),
    "two reshapes": (
        function(reshape("%r", "%x", M, W), result=W),
        function(reshape("%a", "%x", M, T) + reshape("%r", "%a", T, W), result=W),
    ),
    "two transposes that cancel": (
        function(NOTHING),
        function(transpose("%a", "%x", "[1, 0]", M, W) + transpose("%r", "%a", "[1, 0]", W, M)),
    ),
    "two transposes in one": (
        function(transpose("%r", "%x", "[2, 0, 1]", C, "tensor<4x2x3xf32>"), f"%x: {C}", "tensor<4x2x3xf32>"),
        function(
            transpose("%a", "%x", "[1, 2, 0]", C, "tensor<3x4x2xf32>")
            + transpose("%r", "%a", "[1, 2, 0]", "tensor<3x4x2xf32>", "tensor<4x2x3xf32>"),
            f"%x: {C}",
            "tensor<4x2x3xf32>",
        ),
    ),
    "a broadcast that adds dimensions of extent 1": (
        function(reshape("%r", "%x", T, ROW), VECTORS, ROW),
        function(broadcast("%r", "%x", "[1]", T, ROW), VECTORS, ROW),
    ),
    "a broadcast that restores a removed dimension": (
        function("%r = stablehlo.optimization_barrier %x : " + ROW, f"%x: {ROW}", ROW),
        function(reshape("%a", "%x", ROW, T) + broadcast("%r", "%a", "[1]", T, ROW), f"%x: {ROW}", ROW),
    ),
    "a broadcast to the type that it is": (function(NOTHING), function(broadcast("%r", "%x", "[0, 1]", M, M))),
    "two broadcasts that add dimensions": (
        function(broadcast("%r", "%x", "[1]", T, "tensor<1x6x1xf32>"), VECTORS, "tensor<1x6x1xf32>"),
        function(
            broadcast("%a", "%x", "[0]", T, COLUMN) + broadcast("%r", "%a", "[1, 2]", COLUMN, "tensor<1x6x1xf32>"),
            VECTORS,
            "tensor<1x6x1xf32>",
        ),
    ),
    "a constant spread out": (function(f"%r = stablehlo.constant dense<0.5> : {M}"), function(splat("0.5"))),
    "a constant spread along a dimension": (
        function(f"%r = stablehlo.constant dense<0.5> : {M}"),
        function(splat("0.5", "tensor<3xf32>", "[1]")),
    ),
    "a convert to the type that it is": (
        function(NOTHING),
        function(f"%r = stablehlo.convert %x : ({M}) -> {M}"),
    ),
    "a mesh that nothing refers to": (function(NOTHING), f'sdy.mesh @unused = <["a"=2]>\n{function(NOTHING)}'),
}


@pytest.mark.parametrize("name", EQUAL)
def test_identities_are_proved(name: str) -> None:
    before, after = EQUAL[name]
    for verdict in (proof(before, after), proof(after, before)):
        assert verdict.proved, verdict.reason


SHARDED = f'%x: {M} {{sdy.sharding = #sdy.sharding<@used, [{{"a"}}, {{}}]>}}'
D = "tensor<?xf32>"
UNEQUAL: dict[str, tuple[str, str]] = {
    "reduce_precision to fewer bits of the mantissa": (function(NOTHING), function(rounded("e8m22"))),
    "reduce_precision to fewer bits of the exponent": (function(NOTHING), function(rounded("e7m23"))),
    "reduce_precision to a larger format": (function(NOTHING), function(rounded("e11m52"))),
    "reduce_precision with an attribute": (
        function(NOTHING),
        function(rounded("e8m23").replace(" : ", ' {acme.hint = "x"} : ')),
    ),
    "reshapes of another value": (
        function(reshape("%r", "%y", M, W), result=W),
        function(reshape("%a", "%x", M, T) + reshape("%r", "%a", T, W), result=W),
    ),
    "a reshape with an attribute": (
        function(reshape("%r", "%x", M, W), result=W),
        function(reshape("%a", "%x", M, T).replace(" : ", " {acme.hint} : ") + reshape("%r", "%a", T, W), result=W),
    ),
    "a reshape for a transpose": (
        function(reshape("%r", "%x", M, W), result=W),
        function(transpose("%r", "%x", "[1, 0]", M, W), result=W),
    ),
    "a broadcast of another operand": (
        function(reshape("%r", "%x", T, ROW), VECTORS, ROW),
        function(broadcast("%r", "%y", "[1]", T, ROW), VECTORS, ROW),
    ),
    "a broadcast with an attribute": (
        function(reshape("%r", "%x", T, ROW), VECTORS, ROW),
        function(broadcast("%r", "%x", "[1]", T, ROW).replace(" : ", " {acme.hint} : "), VECTORS, ROW),
    ),
    "a broadcast that transposes": (
        function("%r = stablehlo.optimization_barrier %x : " + Q, f"%x: {Q}", Q),
        function(broadcast("%r", "%x", "[1, 0]", Q, Q), f"%x: {Q}", Q),
    ),
    "a broadcast that transposes, for a reshape": (
        function(reshape("%r", "%x", M, W), result=W),
        function(broadcast("%r", "%x", "[1, 0]", M, W), result=W),
    ),
    "broadcasts along different dimensions": (
        function(broadcast("%r", "%x", "[0]", "tensor<2xf32>", Q), "%x: tensor<2xf32>", Q),
        function(broadcast("%r", "%x", "[1]", "tensor<2xf32>", Q), "%x: tensor<2xf32>", Q),
    ),
    "a row and a column": (
        function(
            broadcast("%a", "%x", "[1]", T, ROW) + broadcast("%r", "%a", "[0, 1]", ROW, "tensor<6x6xf32>"),
            VECTORS,
            "tensor<6x6xf32>",
        ),
        function(
            broadcast("%a", "%x", "[0]", T, COLUMN) + broadcast("%r", "%a", "[0, 1]", COLUMN, "tensor<6x6xf32>"),
            VECTORS,
            "tensor<6x6xf32>",
        ),
    ),
    "reshapes with unknown extents": (
        function(f"%r = stablehlo.optimization_barrier %x : {D}", f"%x: {D}", D),
        function(
            f'%a = "stablehlo.reshape"(%x) : ({D}) -> {M}\n%r = "stablehlo.reshape"(%a) : ({M}) -> {D}', f"%x: {D}", D
        ),
    ),
    "one transpose more": (
        function(NOTHING.replace(M, "tensor<2x2xf32>"), "%x: tensor<2x2xf32>", "tensor<2x2xf32>"),
        function(
            transpose("%r", "%x", "[1, 0]", "tensor<2x2xf32>", "tensor<2x2xf32>"),
            "%x: tensor<2x2xf32>",
            "tensor<2x2xf32>",
        ),
    ),
    "two transposes in the other order": (
        function(transpose("%r", "%x", "[1, 2, 0]", S, S), f"%x: {S}", S),
        function(transpose("%a", "%x", "[1, 2, 0]", S, S) + transpose("%r", "%a", "[1, 2, 0]", S, S), f"%x: {S}", S),
    ),
    "another constant": (function(f"%r = stablehlo.constant dense<0.25> : {M}"), function(splat("0.5"))),
    "zero with another sign": (function(f"%r = stablehlo.constant dense<0.0> : {M}"), function(splat("-0.0"))),
    "a constant whose elements differ": (
        function(f"%r = stablehlo.constant dense<0.5> : {M}"),
        function(splat("[0.5, 0.5, 0.25]", "tensor<3xf32>", "[1]")),
    ),
    "a mesh that a sharding refers to": (
        f'sdy.mesh @used = <["a"=2]>\n{function(NOTHING, SHARDED)}',
        f'sdy.mesh @used = <["a"=4]>\n{function(NOTHING, SHARDED)}',
    ),
}


@pytest.mark.parametrize("name", UNEQUAL)
def test_near_identities_are_not_proved(name: str) -> None:
    before, after = UNEQUAL[name]
    assert before != after
    assert proof(before, before).proved and proof(after, after).proved
    assert not proof(before, after).proved and not proof(after, before).proved


def branches(decides: str, *results: str, types: str) -> str:
    regions = ", ".join(f"{{\n{result}\n}}" for result in results)
    return f'"stablehlo.case"({decides}) ({regions}) : (tensor<i32>) -> {types}'


def sine(result: str, operand: str, name: str = "sine") -> str:
    return f"{result} = stablehlo.{name} {operand} : {M}\n"


def residual_between_conditionals(first: str = "%a", second: str = "%b", decides: str = "%i") -> str:
    """Return two conditionals, the second of which reads what the first yields."""
    item = sine("%a", "%x") + f"stablehlo.return {first} : {M}"
    other = sine("%b", "%x", "cosine") + f"stablehlo.return {second} : {M}"
    reads = [sine("%c", "%k", name) + f"stablehlo.return %c : {M}" for name in ("tanh", "logistic")]
    body = f"%k = {branches('%i', item, other, types=M)}\n%r = {branches(decides, *reads, types=M)}"
    return function(body, f"%x: {M}, %y: {M}, %i: tensor<i32>, %j: tensor<i32>")


def residual_recomputed_in_branch(first: str = "sine", second: str = "cosine", decides: str = "%i") -> str:
    item = sine("%a", "%x", first) + sine("%c", "%a", "tanh") + f"stablehlo.return %c : {M}"
    other = sine("%a", "%x", second) + sine("%c", "%a", "logistic") + f"stablehlo.return %c : {M}"
    return function(
        f"%r = {branches(decides, item, other, types=M)}", f"%x: {M}, %y: {M}, %i: tensor<i32>, %j: tensor<i32>"
    )


def test_branch_residuals_may_be_recomputed() -> None:
    assert (
        proof(residual_between_conditionals(), residual_recomputed_in_branch()).proved
        and proof(residual_recomputed_in_branch(), residual_between_conditionals()).proved
    )


@pytest.mark.parametrize(
    "other",
    [
        residual_recomputed_in_branch("cosine", "sine"),
        residual_recomputed_in_branch("sine", "sine"),
        residual_recomputed_in_branch(decides="%j"),
        residual_between_conditionals(decides="%j"),
        residual_between_conditionals("%x"),
        residual_between_conditionals(second="%x"),
    ],
    ids=["branches swapped", "one branch for both", "decided otherwise", "read otherwise", "first", "second"],
)
def test_residuals_of_another_branch_are_not_proved(other: str) -> None:
    before = residual_between_conditionals()
    assert other != before and proof(other, other).proved
    assert not proof(before, other).proved and not proof(other, before).proved


def test_last_branch_runs_for_too_large_index() -> None:
    """The branch indices 2 and 1 are equal if there are two regions, but not if there are three."""
    two = residual_between_conditionals()
    read = sine("%c", "%x", "exponential") + f"stablehlo.return %c : {M}"
    three = two.replace(f"}}) : (tensor<i32>) -> {M}\n%r", f"}}, {{\n{read}\n}}) : (tensor<i32>) -> {M}\n%r")
    assert three != two and proof(three, three).proved
    assert (
        not proof(three, residual_recomputed_in_branch()).proved
        and not proof(residual_recomputed_in_branch(), three).proved
    )


def test_effect_in_branch_is_kept() -> None:
    call = f'%e = "stablehlo.custom_call"(%x) {{call_target_name = "log", has_side_effect = true}} : ({M}) -> {M}\n'
    printing = residual_between_conditionals().replace(sine("%a", "%x"), call + sine("%a", "%x"))
    assert proof(printing, printing).proved
    assert (
        not proof(printing, residual_between_conditionals()).proved
        and not proof(printing, residual_recomputed_in_branch()).proved
    )


Function = Callable[..., Any]


def plain(function: Function, **_: Any) -> Function:
    return function


def block(x: Any, w: Any, decides: Any) -> Any:
    return jax.lax.cond(decides, lambda x: jnp.sin(x @ w) * jnp.cos(x), lambda x: jnp.tanh(x * 2) + jnp.exp(x), x)


def one_of_three(x: Any, w: Any, decides: Any) -> Any:
    functions = [lambda x: jnp.sin(x @ w), lambda x: jnp.tanh(x) * jnp.exp(x), lambda x: x * x * x]
    return jax.lax.switch(decides, functions, x)


def conditionals(chosen: Function, decides: Any) -> Function:
    def step(again: Function) -> Any:
        def loss(w: Any, x: Any) -> Any:
            return again(chosen)(again(chosen)(x, w[0], decides(x)), w[1], decides(x)).sum()

        return jax.value_and_grad(loss, (0, 1))

    return step


def in_a_scan(again: Function) -> Any:
    def body(h: Any, w: Any) -> Any:
        return block(h, w, h.sum() > 0), None

    def loss(w: Any, x: Any) -> Any:
        return jax.lax.scan(again(body, prevent_cse=False), x, w)[0].sum()

    return jax.value_and_grad(loss, (0, 1))


def saving_products(again: Function) -> Any:
    def layer(x: Any, first: Any, other: Any) -> Any:
        return jnp.sin(jnp.tanh(x @ first) @ other)

    def loss(w: Any, x: Any) -> Any:
        policy = jax.checkpoint_policies.dots_saveable
        return again(layer, policy=policy)(again(layer, policy=policy)(x, w[0], w[1]), w[2], w[3]).sum()

    return jax.value_and_grad(loss, (0, 1))


def lowered(step: Any, *arguments: Any) -> str:
    return jax.jit(step).lower(*arguments).as_text()


STEPS: dict[str, Function] = {
    "cond": conditionals(block, lambda x: x.sum() > 0),
    "switch": conditionals(one_of_three, lambda x: (x.sum() > 0).astype(int)),
    "a cond in a scan": in_a_scan,
    "dots_saveable": saving_products,
}


@pytest.mark.parametrize("name", STEPS)
def test_checkpointed_branches_are_proved(name: str) -> None:
    arguments = jnp.ones((4, 3, 3)), jnp.ones(3)
    before, after = (lowered(STEPS[name](again), *arguments) for again in (plain, jax.checkpoint))
    verdict = proof(before, after)
    assert before != after and verdict.proved, verdict.reason
    for old, new in (("stablehlo.cosine", "stablehlo.sine"), ("stablehlo.exponential", "stablehlo.tanh")):
        if old in after:
            assert not proof(before, after[::-1].replace(old[::-1], new[::-1], 1)[::-1]).proved


def loop(first: int = 0, step: int = 1) -> Function:
    """Return a loop that reads `w[i]` by its own counter."""

    def run(w: Any, x: Any) -> Any:
        def body(_: Any, carry: Any) -> Any:
            i, h = carry
            return i + step, jnp.sin(h @ w[i])

        return jax.lax.fori_loop(0, 4, body, (first, x))[1]

    return run


def scan(w: Any, x: Any) -> Any:
    return jax.lax.scan(lambda h, w: (jnp.sin(h @ w), None), x, w)[0]


def test_indexing_loop_is_proved_equal_to_a_scan() -> None:
    arguments = jnp.ones((4, 3, 3)), jnp.ones(3)
    indexed = jax.jit(lambda w, x: jax.lax.fori_loop(0, 4, lambda i, h: jnp.sin(h @ w[i]), x))
    texts = [indexed.lower(*arguments).as_text(), lowered(loop(), *arguments), lowered(scan, *arguments)]
    texts = [text.replace("@jit__lambda", "@jit").replace("@jit_run", "@jit") for text in texts]
    for before in texts:
        for after in texts:
            assert proof(before, after).proved
    for other in (loop(1), loop(step=2), loop(3, -1), loop(-1)):
        assert not proof(texts[2], lowered(other, *arguments)).proved


def in_two_levels(
    order: Callable[[Any], Any] = lambda w: w, reverse: bool = False, inner_reverse: bool = False
) -> Function:
    """Return the gradient of a scan of scans, checkpointed at both levels."""

    def loss(w: Any, x: Any) -> Any:
        def inner(h: Any, w: Any) -> Any:
            return jnp.sin(h @ w), None

        @jax.checkpoint
        def outer(h: Any, part: Any) -> Any:
            return jax.lax.scan(jax.checkpoint(inner), h, part, reverse=inner_reverse)[0], None

        return jax.lax.scan(outer, x, order(w.reshape(2, 4, 3, 3)), reverse=reverse)[0].sum()

    return jax.value_and_grad(loss, (0, 1))


def test_two_level_scan_is_proved() -> None:
    arguments = jnp.ones((8, 3, 3)), jnp.ones(3)
    before = lowered(jax.value_and_grad(lambda w, x: scan(w, x).sum(), (0, 1)), *arguments)
    before = before.replace("@jit__lambda", "@jit_loss")
    after = lowered(in_two_levels(), *arguments)
    assert proof(before, after).proved and proof(after, before).proved
    others = [
        in_two_levels(reverse=True),
        in_two_levels(inner_reverse=True),
        in_two_levels(lambda w: w[::-1]),
        in_two_levels(lambda w: w.reshape(4, 2, 3, 3).swapaxes(0, 1)),
    ]
    for other in others:
        text = lowered(other, *arguments)
        assert proof(text, text).proved
        assert not proof(before, text).proved and not proof(text, before).proved
    for old, new in (("stablehlo.cosine", "stablehlo.sine"), ("dense<1>", "dense<2>"), ("dense<4>", "dense<3>")):
        assert old in after
        assert not proof(before, after[::-1].replace(old[::-1], new[::-1], 1)[::-1]).proved


def test_stack_rows_may_be_written_in_any_order() -> None:
    """Stacks are equal if their rows are written in another order, but not with another value or position, or a row
    missing."""

    def stack(place: Function, value: Function = jnp.sin, trips: int = 6) -> str:
        def step(x: Any) -> Any:
            def body(i: Any, rows: Any) -> Any:
                at = place(i)
                return jax.lax.dynamic_update_index_in_dim(rows, value(x * at.astype(x.dtype)), at, 0)

            return jax.lax.fori_loop(0, trips, body, jnp.zeros((6, 3)))

        return lowered(step, jnp.ones(3))

    before = stack(lambda i: i)
    assert proof(before, stack(lambda i: 5 - i)).proved
    for other in (
        stack(lambda i: 4 - i),
        stack(lambda i: i + 1),
        stack(lambda i: i, jnp.cos),
        stack(lambda i: i, trips=5),
        stack(lambda i: 5 - i, trips=5),
    ):
        assert not proof(before, other).proved and not proof(other, before).proved


def counted(type_: str, body: str) -> str:
    """Return a loop of four iterations whose counter of this type starts at 0."""
    n, v = f"tensor<{type_}>", "tensor<f32>"
    constants = "".join(
        f"%{name} = stablehlo.constant dense<{value}> : {n}\n"
        for name, value in (("zero", 0), ("one", 1), ("four", 4), ("five", 5))
    )
    return (
        f"func.func public @main(%x: {v}) -> {v} {{\n{constants}"
        f"%r:2 = stablehlo.while(%i = %zero, %a = %x) : {n}, {v}\ncond {{\n"
        f"%p = stablehlo.compare LT, %i, %four : ({n}, {n}) -> tensor<i1>\nstablehlo.return %p : tensor<i1>\n}} do {{\n"
        f"{body.replace('N', n).replace('V', v)}\n%k = stablehlo.add %i, %one : {n}\n"
        f"stablehlo.return %k, %n : {n}, {v}\n}}\nreturn %r#1 : {v}\n}}"
    )


@pytest.mark.parametrize(
    ("type_", "chosen"), [("i32", "sine"), ("i64", "sine"), ("ui32", "neither"), ("i16", "neither")]
)
def test_comparison_is_decided_by_value_ranges(type_: str, chosen: str) -> None:
    """Ranges decide `i - 5 < 5` for signed counters, but not for unsigned ones, which wrap, nor for short ones."""
    body = "%d = stablehlo.subtract %i, %five : N\n%c = stablehlo.compare LT, %d, %five : (N, N) -> tensor<i1>\n"
    body += "%s = stablehlo.sine %a : V\n%t = stablehlo.cosine %a : V\n%n = stablehlo.select %c, %s, %t : tensor<i1>, V"
    compared = counted(type_, body)
    assert proof(compared, compared).proved
    for name in ("sine", "cosine"):
        assert proof(compared, counted(type_, f"%n = stablehlo.{name} %a : V")).proved == (name == chosen)
