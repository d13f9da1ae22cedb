"""Checkpoints of `recompute.jax.paddle.RecomputeOptimizer`: the operations between them are recomputed."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

import recompute
from recompute.frontends.jax.compilation.allocation import temporary_bytes
from recompute.test.unit.frontends.jax.paddle.paddle_cases import (
    batch,
    jax,
    jnp,
    paddle,
    same_bits,
    sines,
    wave,
    weights,
)
from recompute.test.unit.frontends.jax.steps import far_apart

pytestmark = pytest.mark.slow

optax: Any = pytest.importorskip("optax", reason="the inner optimizers")
checkpoint_name = jax.ad_checkpoint.checkpoint_name
LAYERS = 4


def optimizer_with(*checkpoints: Any) -> Any:
    optimizer = paddle.RecomputeOptimizer(optax.adam(0.01))
    optimizer._set_checkpoints(list(checkpoints))
    return optimizer


def loss(parameters: Any, x: Any, name_checkpoints: Callable[[Sequence[Any]], None] = lambda hidden: None) -> Any:
    """Compute layers whose results are named `h0`, `h1`, ... and passed to `name_checkpoints`."""
    hidden: list[Any] = []
    for index, w in enumerate(parameters):
        x = checkpoint_name(wave(w, x), f"h{index}")
        hidden.append(x)
    name_checkpoints(hidden)
    return jnp.mean(x**2)


def lowered(optimizer: Any, loss: Any = loss, x: Any = None, **how: Any) -> Any:
    """Lower the step that minimizes the loss of LAYERS layers."""
    program = optimizer.startup(weights(LAYERS))
    step = recompute.jax.jit(
        lambda program, x: optimizer.minimize(partial(loss, x=x), program, **how)[0], measure=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", recompute.jax.NothingSaved)
        return step.lower(program, batch() if x is None else x)


def body(first: Any) -> list[str]:
    """Return the compiled operations without the names of checkpoints."""
    return re.sub(r'recompute\.name = (\[[^]]*\]|"[^"]*")', "", first.as_text()).splitlines()[2:]


def test_only_work_before_checkpoints_is_recomputed():
    for names, layers in ((["h0", "h2"], 3), (["h0", "h1"], 2), (["h0"], 1), (["h3"], 4)):
        actual = lowered(optimizer_with(*names))
        assert actual.why is None
        assert sines(actual) == LAYERS + layers


@pytest.mark.parametrize("names", [["h2", "h0"], ["h0", "h2", "h0", "h2"]])
def test_order_and_repetition_do_not_matter(names: list[str]):
    assert body(lowered(optimizer_with(*names))) == body(lowered(optimizer_with("h0", "h2")))


def test_checkpoint_values_equal_checkpoint_names():
    def by_value(optimizer: Any, *indices: int) -> Any:
        def name_checkpoints(hidden: Any) -> None:
            optimizer._set_checkpoints([hidden[index] for index in indices])

        return lowered(optimizer, partial(loss, name_checkpoints=name_checkpoints))

    assert body(by_value(optimizer_with(), 0, 2)) == body(lowered(optimizer_with("h0", "h2")))
    assert body(by_value(optimizer_with("h1"), 0, 2)) == body(
        lowered(optimizer_with("h0", "h2"))
    )  # in place of what was set before


def test_checkpoint_values_and_names_may_be_mixed():
    optimizer = optimizer_with()

    def name_checkpoints(hidden: Any) -> None:
        optimizer.set_checkpoints([hidden[0], "h2"])

    assert body(lowered(optimizer, partial(loss, name_checkpoints=name_checkpoints))) == body(
        lowered(optimizer_with("h0", "h2"))
    )


def test_checkpoint_values_apply_to_one_run():
    optimizer = optimizer_with("h1")
    with_values = partial(loss, name_checkpoints=lambda hidden: optimizer._set_checkpoints([hidden[0], hidden[2]]))
    with jax.checking_leaks():
        assert sines(lowered(optimizer, with_values)) == LAYERS + 3
    assert repr(optimizer) == "RecomputeOptimizer(GradientTransformationExtraArgs, checkpoints=['h1'])"
    assert body(lowered(optimizer)) == body(lowered(optimizer_with("h1")))


def test_failing_loss_leaves_no_state():
    optimizer = optimizer_with("h1")

    def fails(parameters: Any, x: Any) -> Any:
        optimizer._set_checkpoints([x * 2])
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        lowered(optimizer, fails)
    assert body(lowered(optimizer)) == body(lowered(optimizer_with("h1")))


def test_loss_runs_outside_a_step():
    """A loss that runs outside a step neither sets nor removes checkpoints."""
    optimizer = optimizer_with("h1")
    with_values = partial(loss, name_checkpoints=lambda hidden: optimizer._set_checkpoints([hidden[0], hidden[2]]))
    with jax.checking_leaks():
        jax.jit(with_values)(weights(LAYERS), batch())
    assert sines(lowered(optimizer, with_values)) == LAYERS + 3
    assert body(lowered(optimizer)) == body(lowered(optimizer_with("h1")))


def test_checkpoint_values_set_outside_loss_warn():
    """Values from outside the loss cause a warning, as in Paddle's order of network, checkpoints, step."""
    optimizer = optimizer_with()
    optimizer._set_checkpoints([jnp.ones(3)])
    with pytest.warns(UserWarning, match="values outside the loss, .*: call it inside") as caught:
        optimizer.minimize(partial(loss, x=batch()), optimizer.startup(weights(2)))
    assert caught[0].filename == __file__
    optimizer._set_checkpoints([])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.minimize(partial(loss, x=batch()), optimizer.startup(weights(2)))


def test_value_of_an_inner_function_is_rejected():
    optimizer = optimizer_with()

    def of_inner(parameters: Any) -> Any:
        @jax.jit
        def inner(x: Any) -> Any:
            hidden = wave(parameters[0], x)
            optimizer._set_checkpoints([hidden])
            return jnp.mean(hidden)

        return inner(batch())

    program = optimizer.startup(weights(1))
    with pytest.raises(ValueError, match=r"a value belongs to a function that is jitted, .*checkpoint_name, and give"):
        optimizer.minimize(of_inner, program)
    with pytest.raises(jax.errors.UnexpectedTracerError, match="inner"):
        jax.jit(partial(optimizer.minimize, of_inner))(program)


def test_no_checkpoints_leave_the_choice_to_jit():
    optimizer = paddle.RecomputeOptimizer(optax.adam(0.01))
    assert body(lowered(optimizer_with())) == body(lowered(optimizer))


STEPS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "minimize": lambda optimizer, loss, program: optimizer.minimize(loss, program),
    "without the loss": lambda optimizer, loss, program: optimizer.minimize(loss, program)[0].parameters,
    "backward": lambda optimizer, loss, program: optimizer.backward(loss, program),
    "one gradient": lambda optimizer, loss, program: optimizer.backward(loss, program)[0][1],
    "in two": lambda optimizer, loss, program: optimizer.apply_gradients(optimizer.backward(loss, program)),
}


@pytest.mark.parametrize("name", STEPS)
def test_checkpoints_apply_to_any_requested_result(name: str):
    """Checkpoints apply even if JAX drops the loss because no result needs it."""
    optimizer = optimizer_with("h1")
    step = recompute.jax.jit(lambda p, x: STEPS[name](optimizer, partial(loss, x=x), p), measure=False)
    assert sines(step.lower(optimizer.startup(weights(LAYERS)), batch())) == LAYERS + 2


def test_checkpoints_argument_applies_to_one_call():
    optimizer = optimizer_with("h1")
    program = optimizer.startup(weights(LAYERS))

    def step(program: Any, x: Any) -> Any:
        return optimizer.backward(partial(loss, x=x), program, checkpoints=["h0", "h2"])

    assert sines(recompute.jax.jit(step, measure=False).lower(program, batch())) == LAYERS + 3
    assert body(lowered(optimizer)) == body(lowered(optimizer_with("h1")))


def test_parameter_list_limits_copies():
    """There are no copies for parameters outside the list; Paddle recomputes everything."""
    assert sines(lowered(optimizer_with("h0", "h2"), parameter_list=["3/down"])) == LAYERS
    assert sines(lowered(optimizer_with("h0", "h2"), parameter_list=["3/up", "3/down", "2/up"])) == LAYERS + 2


def test_values_without_gradient_are_not_recomputed():
    assert sines(lowered(optimizer_with("h0", "h2"), no_grad_set={"0/up", "0/down"})) == LAYERS + 2


def test_step_saves_memory_with_equal_results():
    optimizer, x = optimizer_with("h1", "h3"), batch(2048)
    program = optimizer.startup(weights(LAYERS))
    actual = lowered(optimizer, x=x)
    plain = jax.jit(lambda program, x: optimizer.minimize(partial(loss, x=x), program)[0])
    assert far_apart(actual.compile()(program, x).loss, plain(program, x).loss) == []
    assert far_apart(actual.compile()(program, x).state[0].mu, plain(program, x).state[0].mu) == []
    ours, theirs = (temporary_bytes(item) for item in (actual.compile(), actual.compile_plain()))
    assert ours is not None and theirs is not None and ours < theirs


def test_checkpoints_have_no_effect_in_jax():
    def step(optimizer: Any) -> Any:
        return jax.jit(lambda program, x: optimizer.minimize(partial(loss, x=x), program)[0])

    program = optimizer_with().startup(weights(LAYERS))
    marked, unmarked = step(optimizer_with("h0", "h2")), step(optimizer_with())
    assert marked.lower(program, batch()).as_text() == unmarked.lower(program, batch()).as_text()
    assert same_bits(marked(program, batch()), unmarked(program, batch()))


def test_unknown_checkpoint_name_is_rejected():
    with pytest.raises(ValueError, match="checkpoint 'nope' names no operation of the forward pass"):
        lowered(optimizer_with("h0", "nope"))


@pytest.mark.parametrize("checkpoints", [("h0",), {"h0"}, "h0", None, 3, [3], [None], ["h0", 3], [["h0"]]])
def test_invalid_checkpoint_list_is_rejected(checkpoints: Any):
    with pytest.raises(TypeError, match="_checkpoints should be a list of Variable or a list of String, "):
        optimizer_with()._set_checkpoints(checkpoints)


@pytest.mark.parametrize("name", ["", "a,b"])
def test_invalid_checkpoint_name_is_rejected(name: str):
    with pytest.raises(ValueError, match=f"'{name}' is no name: it is empty, or has a comma"):
        optimizer_with().set_checkpoints([name])
