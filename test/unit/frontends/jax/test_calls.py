"""Similar calls share a compilation, unlike calls do not, and transformations of JAX run the plain step."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import recompute
from recompute.frontends.jax.internals import private
from recompute.test.unit.frontends.jax.steps import batch, descent, far_apart, forward, jax, jnp, mlp, tree, weights


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Record what JAX compiles from here on, rewritten or not."""
    seen: list[Any] = []
    compile = jax.stages.Lowered.compile

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(self)
        return compile(self, *args, **kwargs)

    monkeypatch.setattr(jax.stages.Lowered, "compile", counted)
    return seen


def scaled(parameters: Any, x: Any, scale: Any, times: Any = 1) -> Any:
    return descent(lambda p, x: forward()(p, x) * scale * times)(parameters, x)


def test_equal_calls_compile_once(compiled: list[Any]):
    step = recompute.jax.jit(mlp().step)
    results = [step(weights(), batch()) for _ in range(2)]
    step(results[0][1], batch())
    step(tree.map(jax.device_get, weights()), batch())
    assert len(compiled) == 1


@pytest.mark.parametrize("names", [{"static_argnums": (2, 3)}, {"static_argnames": ("scale", "times")}])
def test_each_static_value_is_compiled_once(names: dict[str, Any], compiled: list[Any]):
    step = recompute.jax.jit(scaled, measure=False, **names)
    values = [step(weights(), batch(), *rest)[0] for rest in ((1,), (1,), (2,), (1, 3), (1.0,))]
    assert len(compiled) == 4
    assert [float(value / values[0]) for value in values] == pytest.approx([1, 1, 2, 3, 1])
    step(weights(), batch(), scale=2)
    assert len(compiled) == 5


def test_unhashable_static_argument_is_rejected():
    with pytest.raises(ValueError, match="Non-hashable static arguments"):
        recompute.jax.jit(scaled, static_argnums=2)(weights(), batch(), [])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda: (weights(), batch(), 1.0), lambda: (weights(), batch(), jnp.float32(1.0))),
        (lambda: (weights(), batch(), 1), lambda: (weights(), batch(), 1.0)),
        (lambda: (weights(), batch(), 1), lambda: (tuple(weights()), batch(), 1)),
        (lambda: (weights(), batch(), 1), lambda: (weights(), batch(128), 1)),
        (lambda: (weights(), batch(), 1), lambda: (weights(), jax.device_put(batch(), jax.devices()[0]), 1)),
    ],
    ids=["weak type", "type", "tree", "shape", "committed"],
)
def test_unlike_calls_are_compiled_separately(first: Any, second: Any, compiled: list[Any]):
    step = recompute.jax.jit(scaled, measure=False)
    for _ in range(2):
        step(*first())
        assert far_apart(step(*second()), jax.jit(scaled)(*second())) == []
    assert len(compiled) == 2


def test_jax_settings_and_cleared_cache_recompile(compiled: list[Any]):
    step = recompute.jax.jit(mlp().step, measure=False)
    step(weights(), batch())
    with jax.default_matmul_precision("bfloat16"):
        step(weights(), batch())
        step(weights(), batch())
    assert len(compiled) == 2
    step.clear_cache()
    step(weights(), batch())
    assert len(compiled) == 3


def test_jax_errors_pass_through():
    step = recompute.jax.jit(mlp().step, in_shardings=None)
    for call in (lambda: step(weights(), "x"), lambda: step(weights()), lambda: step(weights(), batch(width=3))):
        with pytest.raises(TypeError) as error:
            call()
        assert not str(error.value).startswith("recompute")
    with pytest.raises(TypeError, match="Expected a callable"):
        recompute.jax.jit(3)  # pyright: ignore[reportArgumentType, reportCallIssue]


def test_transformations_around_the_step_warn_and_run_it_plain():
    loss = recompute.jax.jit(forward())
    with pytest.warns(recompute.jax.NothingSaved) as caught:
        result = jax.grad(loss)(weights(), batch())
        jax.vmap(loss, in_axes=(None, 0))(weights(), batch().reshape(2, 128, 16))
        jax.jit(loss)(weights(), batch())
    of_each = [message for message in caught if message.category is recompute.jax.NothingSaved]
    assert len(of_each) == 3
    remedies = "jax.value_and_grad(loss)), as the outermost", "jax.vmap(loss, ...))", "jax.value_and_grad(loss))"
    assert all(
        f"recompute.jax.jit({remedy}" in str(item.message) for remedy, item in zip(remedies, of_each, strict=True)
    )
    assert {item.filename for item in of_each} == {__file__}
    assert far_apart(result, jax.grad(jax.jit(forward()))(weights(), batch())) == []


def test_traced_value_in_the_closure_runs_the_plain_step():
    """A call that captures a traced value belongs to the enclosing program, although no argument is traced."""

    def outer(scale: Any) -> Any:
        return recompute.jax.jit(lambda x: scale * x)(np.ones(3, np.float32))

    with pytest.warns(recompute.jax.NothingSaved, match="pass the values as arguments"):
        assert far_apart(jax.jit(outer)(2.0), jax.jit(lambda scale: scale * jnp.ones(3))(2.0)) == []


def test_disable_jit_runs_the_python_function():
    """Under `jax.disable_jit` the Python function runs operation by operation."""
    ran: list[bool] = []

    def step(x: Any) -> Any:
        ran.append(isinstance(x, jax.core.Tracer))
        return x * 2

    with jax.disable_jit(), warnings.catch_warnings():
        warnings.simplefilter("error")
        recompute.jax.jit(step)(jnp.ones(3))
    assert ran == [False]


def test_jitted_step_keeps_function_metadata():
    @recompute.jax.jit(segments="block*")
    def step(parameters: Any, x: Any) -> Any:
        """Run one step."""
        return descent(forward())(parameters, x)

    @recompute.jax.jit
    def other(x: Any) -> Any:
        return x

    assert (step.__name__, step.__doc__, other.__name__) == ("step", "Run one step.", "other")
    assert far_apart(step.__wrapped__(weights(), batch())[0], forward()(weights(), batch())) == []
    assert step.eval_shape(weights(), batch())[0].shape == ()
    assert step.trace(weights(), batch()).fun_name == "step"


@pytest.mark.parametrize(
    ("debug", "invalid"), [(jax.debug_nans, float("nan")), (jax.debug_infs, 1e30)], ids=["nans", "infs"]
)
@pytest.mark.parametrize("has_dispatch", [True, False])
def test_invalid_value_raises_the_error_of_jax(
    debug: Any, invalid: float, has_dispatch: bool, monkeypatch: pytest.MonkeyPatch
):
    """The error is the same in the first call and in a call of JAX's dispatch."""
    if not has_dispatch:
        monkeypatch.setattr(private, "dispatcher", lambda *_: None)
    ours, theirs = recompute.jax.jit(mlp().step), jax.jit(mlp().step)
    messages, invalid_batch = list[str](), jnp.full_like(batch(), invalid)
    with debug(True):
        ours(weights(), batch())
        for step in (theirs, recompute.jax.jit(mlp().step), ours):
            with pytest.raises(FloatingPointError, match="invalid value") as error:
                step(weights(), invalid_batch)
            messages.append(str(error.value))
    assert len(set(messages)) == 1
