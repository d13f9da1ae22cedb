"""Random numbers and state: recomputed operations draw the same numbers, and state is updated once."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import recompute
from recompute.test.unit.frontends.jax.paddle.paddle_cases import (
    batch,
    check,
    jax,
    jnp,
    paddle,
    plainly,
    same_bits,
    weights,
)
from recompute.test.unit.frontends.jax.steps import far_apart

pytestmark = pytest.mark.slow

LAYERS = 3
Noise = Callable[[Any, Any], Any]


def dropout(key: Any, x: Any) -> Any:
    return jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x / 0.5, 0.0)


def uniform(key: Any, x: Any) -> Any:
    return x * jax.random.uniform(key, x.shape)


def gumbel(key: Any, x: Any) -> Any:
    """Apply `gumbel_softmax`."""
    return jax.nn.softmax(x + jax.random.gumbel(key, x.shape))


def rrelu(key: Any, x: Any) -> Any:
    return jnp.where(x >= 0, x, x * jax.random.uniform(key, x.shape, minval=1 / 8, maxval=1 / 3))


def loss_with(noise: Noise, call: Any, **switches: Any) -> Any:
    def block(w: Any, x: Any, key: Any) -> Any:
        return x + noise(key, jnp.sin(x @ w["up"])) @ w["down"]

    def loss(parameters: Any, x: Any, key: Any) -> Any:
        for index, w in enumerate(parameters):
            x = call(block, w, x, jax.random.fold_in(key, index), **switches)
        return jnp.mean(x**2)

    return loss


KEYS = {"key": jax.random.key, "PRNGKey": jax.random.PRNGKey, "rbg": lambda seed: jax.random.key(seed, impl="rbg")}


@pytest.mark.slow("PRNGKey", "rbg", "gumbel", "rrelu", "uniform")
@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("noise", [dropout, uniform, gumbel, rrelu])
def test_recomputed_noise_equals_the_first_draw(noise: Noise, kind: str):
    """Recomputed noise equals the first draw; in Paddle `gumbel_softmax` and `rrelu` change the parameters after one
    step."""
    check(lambda call: loss_with(noise, call), weights(LAYERS), batch(), KEYS[kind](3))


def test_preserve_rng_state_has_no_effect_on_keys():
    """The option is ignored, since a key is a value; in Paddle the losses differ."""
    check(lambda call: loss_with(dropout, call, preserve_rng_state=False), weights(LAYERS), batch(), jax.random.key(3))


def test_backward_mask_equals_forward_mask():
    """The gradient is zero exactly where the forward mask is; Paddle's PIR pass draws another mask."""

    def step(call: Any) -> Any:
        def block(x: Any, key: Any) -> Any:
            return dropout(key, jnp.sin(jnp.exp(jnp.tanh(x))))

        def loss(x: Any, key: Any) -> Any:
            y = call(block, x, key)
            return jnp.sum(y * y), y == 0

        return jax.value_and_grad(loss, has_aux=True)

    actual = recompute.jax.jit(step(paddle.recompute), measure=False)
    x, key = batch(256), jax.random.key(0)
    lowered = actual.lower(x, key)
    assert lowered.why is None and lowered.rewritten is not None and lowered.rewritten.copies > 0
    (_, dropped), gradient = actual(x, key)
    assert bool((dropped == (gradient == 0)).all()) and 0.4 < float(dropped.mean()) < 0.6


def test_later_random_draws_are_unaffected():
    """The draw after the segment is the same with and without recomputation, which takes no key from the stream."""

    def step(call: Any) -> Any:
        def of(parameters: Any, x: Any, key: Any) -> Any:
            now, later = jax.random.split(key)
            return jax.grad(loss_with(dropout, call))(parameters, x, now), jax.random.normal(later, (4,))

        return of

    ours = recompute.jax.jit(step(paddle.recompute), measure=False)(weights(LAYERS), batch(), jax.random.key(1))
    theirs = jax.jit(step(plainly))(weights(LAYERS), batch(), jax.random.key(1))
    assert same_bits(ours[1], theirs[1])


@pytest.mark.parametrize(("preserve", "proof", "draws"), [(True, True, LAYERS), (False, False, 2 * LAYERS)])
def test_hidden_state_draw_is_repeated_only_on_request(preserve: bool, proof: bool, draws: int):
    """The draw of `lax.rng_uniform`, which has a hidden state, is kept, and repeated without proof only on request of
    the call."""

    def noise(key: Any, x: Any) -> Any:
        return x * jax.lax.rng_uniform(0.0, 1.0, x.shape)

    step = jax.value_and_grad(loss_with(noise, paddle.recompute, preserve_rng_state=preserve))
    arguments = weights(LAYERS), batch(), jax.random.key(0)
    lowered = recompute.jax.jit(step, measure=False, proof=proof).lower(*arguments)
    assert lowered.why is None
    assert lowered.as_text().count("stablehlo.rng ") == draws
    assert lowered.as_text().count("stablehlo.sine") == 2 * LAYERS
    proved = recompute.jax.jit(step, measure=False).lower_quietly(*arguments)
    assert (proved.why is None) == preserve and (preserve or "not proved equal" in str(proved.why))


def of_linen(call: Any) -> Callable[..., Any]:
    nn: Any = pytest.importorskip("flax.linen", reason="modules as functions")

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x: Any, *, train: bool) -> Any:
            h = nn.BatchNorm(use_running_average=not train)(nn.Dense(64)(x))
            return x + nn.Dense(16)(nn.Dropout(0.5, deterministic=not train)(jnp.sin(jnp.tanh(h))))

    class Network(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            for _ in range(LAYERS):
                x = call(Block(), x, train=True)
            return x

    keys = {"params": jax.random.key(0), "dropout": jax.random.key(1)}
    variables = jax.jit(Network().init)(keys, batch())

    def step(x: Any, key: Any) -> Any:
        def loss(parameters: Any) -> Any:
            given = {"params": parameters, "batch_stats": variables["batch_stats"]}
            y, new = Network().apply(given, x, mutable=["batch_stats"], rngs={"dropout": key})
            return jnp.mean(y**2), new

        return jax.value_and_grad(loss, has_aux=True)(variables["params"])

    return step


def of_nnx(call: Any) -> Callable[..., Any]:
    nnx: Any = pytest.importorskip("flax.nnx", reason="modules as functions")

    class Block(nnx.Module):
        def __init__(self, rngs: Any):
            self.up, self.down = nnx.Linear(16, 64, rngs=rngs), nnx.Linear(64, 16, rngs=rngs)
            self.norm, self.dropout = nnx.BatchNorm(64, rngs=rngs), nnx.Dropout(0.5, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            return x + self.down(self.dropout(jnp.sin(jnp.tanh(self.norm(self.up(x))))))

    model = nnx.List([Block(nnx.Rngs(index, dropout=index)) for index in range(LAYERS)])
    graph, trained, others = nnx.split(model, nnx.Param, ...)

    def step(x: Any, key: Any) -> Any:
        del key  # the modules have their own

        def loss(parameters: Any) -> Any:
            model = nnx.merge(graph, parameters, others, copy=True)
            y = x
            for block in model:
                y = call(block, y)
            return jnp.mean(y**2), nnx.state(model, nnx.Not(nnx.Param))

        return jax.value_and_grad(loss, has_aux=True)(trained)

    return step


def of_equinox(call: Any) -> Callable[..., Any]:
    eqx: Any = pytest.importorskip("equinox", reason="modules as functions")

    class Block(eqx.Module):
        up: Any
        down: Any
        dropout: Any

        def __call__(self, x: Any, key: Any) -> Any:
            hidden = jnp.sin(jnp.tanh(jax.vmap(self.up)(x)))
            return x + jax.vmap(self.down)(self.dropout(hidden, key=key))

    keys = jax.random.split(jax.random.key(0), LAYERS)
    linear, drop = eqx.nn.Linear, eqx.nn.Dropout(0.5)
    blocks = [Block(linear(16, 64, key=key), linear(64, 16, key=key), drop) for key in keys]

    def step(x: Any, key: Any) -> Any:
        def loss(blocks: Any) -> Any:
            y = x
            for index, block in enumerate(blocks):
                y = call(block, y, jax.random.fold_in(key, index))
            return jnp.mean(y**2), None

        result, gradients = eqx.filter_value_and_grad(loss, has_aux=True)(blocks)
        return result, jax.tree.leaves(gradients)

    return step


@pytest.mark.slow("of_equinox", "of_linen", "of_nnx")
@pytest.mark.parametrize("framework", [of_linen, of_nnx, of_equinox])
def test_module_statistics_are_updated_once(framework: Callable[[Any], Any]):
    """Running statistics are updated once per step; Paddle silently updates them twice."""
    x, key = batch(), jax.random.key(5)
    expected = jax.jit(framework(plainly))(x, key)
    assert same_bits(jax.jit(framework(paddle.recompute))(x, key), expected)
    lowered = recompute.jax.jit(framework(paddle.recompute), measure=False).lower(x, key)
    assert lowered.why is None and lowered.rewritten is not None
    assert lowered.rewritten.copies >= LAYERS
    (value, state), gradients = lowered.compile()(x, key)
    assert far_apart((value, gradients), (expected[0][0], expected[1])) == []
    assert state is None or far_apart(state, expected[0][1]) == []
