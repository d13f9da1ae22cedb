"""`recompute.jax.paddle.RecomputeOptimizer`: steps of the inner optimizer, in parts and at once."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from recompute.test.unit.frontends.jax.paddle.paddle_cases import batch, jax, jnp, paddle, same_bits, wave, weights
from recompute.test.unit.frontends.jax.steps import tree

pytestmark = pytest.mark.slow

optax: Any = pytest.importorskip("optax", reason="the inner optimizers")
NAMES = ["0/down", "0/up", "1/down", "1/up", "2/down", "2/up"]


def loss(parameters: Any, x: Any) -> Any:
    for w in parameters:
        x = wave(w, x)
    return jnp.mean(x**2)


INNER = {
    "sgd": lambda: optax.sgd(0.01),
    "momentum": lambda: optax.sgd(0.01, momentum=0.9),
    "adam": lambda: optax.adam(0.01),
    "adamw": lambda: optax.adamw(0.01, weight_decay=0.1),
    "clipped": lambda: optax.chain(optax.clip_by_global_norm(0.1), optax.adam(optax.linear_schedule(0.1, 0.0, 10))),
}


def step_by_optax(inner: Any, parameters: Any, state: Any, x: Any) -> Any:
    value, gradients = jax.value_and_grad(loss)(parameters, x)
    updates, state = inner.update(gradients, state, parameters)
    return optax.apply_updates(parameters, updates), state, value


@pytest.mark.parametrize("name", INNER)
def test_minimize_equals_a_step_of_the_inner_optimizer(name: str):
    inner, x = INNER[name](), batch()
    optimizer = paddle.RecomputeOptimizer(inner)
    program, parameters, state = optimizer.startup(weights()), weights(), inner.init(weights())
    assert bool(jnp.isnan(program.loss))
    step = jax.jit(lambda program, x: optimizer.minimize(partial(loss, x=x), program)[0], donate_argnums=0)
    theirs = jax.jit(partial(step_by_optax, inner))
    for _ in range(3):
        program, (parameters, state, value) = step(program, x), theirs(parameters, state, x)
        assert same_bits((program.parameters, program.state, program.loss), (parameters, state, value))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_parameters_keep_their_type(dtype: str):
    """A float32 update is added in float32, and the sum is rounded once."""
    inner = optax.chain(
        optax.sgd(0.01), optax.stateless(lambda updates, _: tree.map(lambda u: u.astype("f4"), updates))
    )
    optimizer = paddle.RecomputeOptimizer(inner)
    program = optimizer.startup(weights(dtype=dtype))
    new, _ = optimizer.minimize(partial(loss, x=batch(dtype=dtype)), program)
    assert {str(leaf.dtype) for leaf in tree.leaves(new.parameters)} == {dtype}
    expected, _, _ = step_by_optax(inner, program.parameters, program.state, batch(dtype=dtype))
    assert same_bits(new.parameters, expected)


def steps_by_each_method(optimizer: Any, program: Any, x: Any) -> Any:
    of_x = partial(loss, x=x)
    whole, pairs = optimizer.minimize(of_x, program)
    split = optimizer.apply_gradients(optimizer.backward(of_x, program))
    given = optimizer.apply_optimize(of_x, program, optimizer.backward(of_x, startup_program=program))
    return whole, split, given, [gradient for _, gradient in pairs]


@pytest.mark.slow("lambda")
@pytest.mark.parametrize("jit", [lambda f: f, jax.jit])
def test_backward_and_apply_equal_minimize(jit: Any):
    optimizer = paddle.RecomputeOptimizer(optax.adam(0.01))
    program = optimizer.startup(weights())
    with jax.checking_leaks():
        whole, split, given, gradients = jit(partial(steps_by_each_method, optimizer))(program, batch())
    assert same_bits(whole, split) and same_bits(whole, given)
    assert same_bits(gradients, tree.leaves(jit(jax.grad(loss))(weights(), batch())))
    assert float(whole.loss) == float(jit(loss)(weights(), batch()))


def test_pairs_are_in_the_order_of_the_leaves():
    optimizer = paddle.RecomputeOptimizer(optax.sgd(0.01))
    program = optimizer.startup(weights())
    pairs = optimizer.backward(partial(loss, x=batch()), program)
    assert type(pairs) is list and all(type(pair) is tuple for pair in pairs)
    assert all(pair[0] is leaf for pair, leaf in zip(pairs, tree.leaves(program.parameters), strict=True))
    assert all(parameter.shape == gradient.shape for parameter, gradient in pairs)


def test_pairs_may_be_clipped_reordered_or_none():
    """Pairs are matched by identity after clipping, reordering, and replacing a gradient by None."""
    optimizer = paddle.RecomputeOptimizer(optax.sgd(1.0))
    program = optimizer.startup(weights())
    pairs = optimizer.backward(partial(loss, x=batch()), program)
    clipped = [(p, jnp.clip(g, -1e-3, 1e-3)) for p, g in reversed(pairs)]
    new = optimizer.apply_gradients([*clipped[:-1], (clipped[-1][0], None)])
    old, after = tree.leaves(program.parameters), tree.leaves(new.parameters)
    assert same_bits(after[0], old[0])
    for index, (_, gradient) in enumerate(pairs[1:], 1):
        assert same_bits(after[index], old[index] - jnp.clip(gradient, -1e-3, 1e-3))


@pytest.mark.parametrize("name", INNER)
def test_unpaired_parameters_are_unchanged(name: str):
    """Parameters, momentum and moments without a pair are unchanged bit for bit, despite weight decay; only the count
    advances."""
    optimizer, x = paddle.RecomputeOptimizer(INNER[name]()), batch()
    before, _ = optimizer.minimize(partial(loss, x=x), optimizer.startup(weights()))
    after, pairs = optimizer.minimize(partial(loss, x=x), before, parameter_list=["1/up", "0/down"])
    assert len(pairs) == 2
    with_name = tree.leaves_with_path((before.parameters, before.state))
    for (path, old), new in zip(with_name, tree.leaves((after.parameters, after.state)), strict=True):
        moved = jax.tree_util.keystr(path, simple=True, separator="/").endswith(("1/up", "0/down", "count"))
        assert bool((old == new).all()) != moved, path


def test_unpaired_parameters_do_not_affect_others():
    optimizer, x = paddle.RecomputeOptimizer(optax.adamw(0.01)), batch()
    program = optimizer.startup(weights())
    whole, _ = optimizer.minimize(partial(loss, x=x), program)
    part, _ = optimizer.minimize(partial(loss, x=x), program, no_grad_set={"0/up"})
    assert same_bits(part.parameters[1:], whole.parameters[1:]) and same_bits(part.state[0].mu[2], whole.state[0].mu[2])
    assert same_bits(part.parameters[0]["up"], program.parameters[0]["up"])


def test_integer_parameters_are_unchanged():
    optimizer = paddle.RecomputeOptimizer(optax.adam(0.01))
    program = optimizer.startup({"w": jnp.ones(3), "table": jnp.arange(3), "none": None})
    new, pairs = optimizer.minimize(lambda p: jnp.sum(p["w"][p["table"]] ** 2), program)
    assert len(pairs) == 1 and same_bits(new.parameters["table"], jnp.arange(3))
    assert new.parameters["table"].dtype == jnp.arange(3).dtype and new.parameters["none"] is None
    with pytest.raises(ValueError, match="parameter_list contains 'table', which is int32 and has no gradient"):
        optimizer.backward(lambda p: jnp.sum(p["w"]), program, ["table"])


def test_startup_converts_numbers_and_keeps_arrays():
    optimizer, w = paddle.RecomputeOptimizer(optax.sgd(0.1)), jnp.ones(3)
    program = optimizer.startup({"w": w, "number": 2.0})
    assert program.parameters["w"] is w and program.parameters["number"].shape == ()
    leaves, structure = tree.flatten(program)
    assert tree.unflatten(structure, leaves).parameters.keys() == {"w", "number"}
    new, _ = optimizer.minimize(lambda p: p["number"] * jnp.sum(p["w"]), program)
    assert float(new.loss) == 6.0


def test_step_compiles_once_and_runs_in_a_loop():
    optimizer = paddle.RecomputeOptimizer(optax.adam(0.01))
    step = jax.jit(lambda program, x: optimizer.minimize(partial(loss, x=x), program)[0])
    with jax.debug_nans(True):
        program = optimizer.startup(weights())
        once = step(program, batch())
        twice = step(once, batch())
    assert step._cache_size() == 1
    looped, _ = jax.lax.scan(lambda program, x: (step(program, x), None), program, jnp.stack([batch(), batch()]))
    assert list(map(jax.typeof, tree.leaves(looped))) == list(map(jax.typeof, tree.leaves(twice)))
    assert abs(float(looped.loss) - float(twice.loss)) < 1e-6


def test_hand_written_optimizer_is_accepted():
    class Descent:
        def init(self, parameters: Any) -> Any:
            return jnp.zeros((), int)

        def update(self, gradients: Any, state: Any, parameters: Any) -> Any:
            return tree.map(lambda g: -0.1 * g, gradients), state + 1

    optimizer = paddle.RecomputeOptimizer(Descent())
    new, _ = optimizer.minimize(lambda w: w**2, optimizer.startup(3.0))
    assert abs(float(new.parameters) - 2.4) < 1e-6 and int(new.state) == 1
    assert repr(optimizer) == "RecomputeOptimizer(Descent, checkpoints=[])"


def test_gradients_of_two_batches_may_be_summed():
    """The gradients of two backward passes may be summed; the program is that of the last one."""
    optimizer = paddle.RecomputeOptimizer(optax.sgd(0.01))
    program = optimizer.startup(weights())
    first, second = (optimizer.backward(partial(loss, x=x), program) for x in (batch(), 2 * batch()))
    both = [(parameter, actual + other) for (parameter, actual), (_, other) in zip(first, second, strict=True)]
    new = optimizer.apply_gradients(both)
    for parameter, (old, gradient) in zip(tree.leaves(new.parameters), both, strict=True):
        assert same_bits(parameter, old + -0.01 * gradient)


def test_repeated_array_is_two_parameters():
    optimizer, w = paddle.RecomputeOptimizer(optax.sgd(1.0)), jnp.full(3, 2.0)
    new, pairs = optimizer.minimize(lambda p: jnp.sum(p[0] ** 2) + jnp.sum(p[1]), optimizer.startup([w, w]), [w])
    assert len(pairs) == 2
    assert [parameter.tolist() for parameter in new.parameters] == [[-2.0] * 3, [1.0] * 3]


def test_names_are_paths():
    program = paddle.RecomputeOptimizer(optax.sgd(0.1)).startup(weights())
    with pytest.raises(ValueError, match=f"there are {', '.join(NAMES)}$"):
        paddle.RecomputeOptimizer(optax.sgd(0.1)).backward(loss, program, ["x"])
