"""`backward`: parameters to differentiate, callbacks, and errors."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

import gc
import weakref
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from recompute.test.unit.frontends.jax.paddle.paddle_cases import batch, jax, jnp, paddle, same_bits, weights
from recompute.test.unit.frontends.jax.paddle.test_paddle_optimizer import NAMES, loss, optax
from recompute.test.unit.frontends.jax.steps import tree

pytestmark = pytest.mark.slow


@pytest.fixture
def optimizer() -> Any:
    return paddle.RecomputeOptimizer(optax.sgd(0.01))


@pytest.fixture
def program(optimizer: Any) -> Any:
    return optimizer.startup(weights())


def of_x(parameters: Any) -> Any:
    return loss(parameters, batch())


def names_of(pairs: Any, program: Any) -> list[str]:
    leaves = tree.leaves(program.parameters)
    return [next(name for name, leaf in zip(NAMES, leaves, strict=True) if leaf is first) for first, _ in pairs]


CHOICES: dict[str, tuple[Any, Any, list[str]]] = {
    "all": (None, None, NAMES),
    "by name": (["2/up", "0/down"], None, ["0/down", "2/up"]),
    "a set": ({"2/up"}, frozenset(), ["2/up"]),
    "without one": (None, {"0/up"}, [name for name in NAMES if name != "0/up"]),
    "both": (("0/up", "0/down"), ["0/up", "2/up"], ["0/down"]),
    "by identity": (lambda p: [p[2]["up"], "0/up"], None, ["0/up", "2/up"]),
    "without, by identity": (None, lambda p: (p[0]["up"], p[1]["up"]), ["0/down", "1/down", "2/down", "2/up"]),
}


@pytest.mark.parametrize("name", CHOICES)
def test_gradients_of_chosen_parameters_are_returned(name: str, optimizer: Any, program: Any):
    """The gradients of the chosen parameters equal JAX's bit for bit."""
    requested, unwanted, expected = CHOICES[name]
    requested, unwanted = (item(program.parameters) if callable(item) else item for item in (requested, unwanted))
    pairs = optimizer.backward(of_x, program, requested, unwanted)
    assert names_of(pairs, program) == expected
    whole = dict(zip(NAMES, tree.leaves(jax.grad(of_x)(program.parameters)), strict=True))
    assert all(same_bits(gradient, whole[name]) for name, (_, gradient) in zip(expected, pairs, strict=True))


def test_unrequested_gradients_are_not_computed(optimizer: Any, program: Any):
    """Only the requested gradients are computed; Paddle runs the whole backward pass."""

    def products(*chosen: str) -> int:
        step = jax.jit(lambda program: optimizer.backward(of_x, program, chosen or None))
        return step.lower(program).as_text().count("stablehlo.dot_general")

    assert products("2/down") == 6 + 1
    assert products("2/up") == 6 + 2
    assert products() == 6 + 6 + 5


@pytest.mark.parametrize("jit", [lambda f: f, jax.jit])
def test_callbacks_are_called_for_each_pair(jit: Any, optimizer: Any, program: Any):
    """The callbacks are called for each pair; Paddle never calls them."""
    seen: list[Any] = []

    def note(name: str, parameter: Any, gradient: Any) -> None:
        seen.append((name, parameter.shape, gradient.shape))

    def double(name: str, parameter: Any, gradient: Any) -> Any:
        return 2 * gradient if name.startswith("1") else None

    def again(name: str, parameter: Any, gradient: Any) -> Any:
        return gradient + parameter

    def gradients(program: Any, callbacks: Any) -> Any:
        return [first for _, first in optimizer.backward(of_x, program, ["1/up", "2/up"], callbacks=callbacks)]

    plain = jit(partial(gradients, callbacks=None))(program)
    step = jit(partial(gradients, callbacks=[note, double, again]))(program)
    assert seen == [("1/up", (16, 64), (16, 64)), ("2/up", (16, 64), (16, 64))]
    for ours, theirs, factor, w in zip(step, plain, (2, 1), program.parameters[1:], strict=True):
        assert jnp.allclose(ours, factor * theirs + w["up"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"startup_program": None}, ValueError, "backward: JAX has no default program: .*startup.parameters"),
        (
            {"startup_program": [jnp.ones(3)]},
            TypeError,
            r"must be the result of startup\(parameters\), not list",
        ),
        ({"startup_program": paddle.Program([1.0], ())}, TypeError, "the parameters of startup_program must be arrays"),
        ({"loss": jnp.ones(())}, TypeError, "the loss must be a function from the parameters to a scalar, not"),
        ({"loss": lambda p: p[0]["up"]}, TypeError, r"must be a floating-point scalar, not float32\[16, 64\]"),
        ({"loss": lambda p: (of_x(p), 1)}, TypeError, r"must be a floating-point scalar, not tuple"),
        ({"loss": lambda p: jnp.argmax(p[0]["up"])}, TypeError, r"must be a floating-point scalar, not int32\[\]"),
        ({"parameter_list": "0/up"}, TypeError, "parameter_list must be a collection of names and parameters, not str"),
        ({"parameter_list": 3}, TypeError, "parameter_list must be a collection of names and parameters, not int"),
        ({"no_grad_set": jnp.ones(3)}, TypeError, "no_grad_set must be a collection of names and parameters, not "),
        ({"no_grad_set": [0]}, TypeError, "no_grad_set must contain names or parameters, not int"),
        (
            {"parameter_list": ["0/upp"]},
            ValueError,
            "contains '0/upp', which is not a parameter; the most similar name is '0/up'; the",
        ),
        ({"no_grad_set": {"up"}}, ValueError, f"no_grad_set contains 'up', .*the parameters are {', '.join(NAMES)}$"),
        ({"parameter_list": [jnp.ones((2, 3))]}, ValueError, r"contains an array float32\[2, 3\], which is not a par"),
        ({"parameter_list": []}, ValueError, "leave no parameter to differentiate with respect to"),
        (
            {"parameter_list": ["0/up"], "no_grad_set": ["0/up"]},
            ValueError,
            "leave no parameter to differentiate with respect to",
        ),
        ({"callbacks": [print, 3]}, TypeError, r"callbacks\[1\] must be a function, not int"),
        ({"callbacks": print}, TypeError, "callbacks must be a list of functions, not builtin"),
        ({"checkpoints": "h0"}, TypeError, "_checkpoints should be a list of Variable or a list of String"),
    ],
)
def test_bad_backward_arguments_are_rejected(
    given: Any, error: type[Exception], words: str, optimizer: Any, program: Any
):
    with pytest.raises(error, match=words):
        optimizer.backward(**{"loss": of_x, "startup_program": program, **given})


def test_minimize_and_apply_optimize_need_a_program(optimizer: Any, program: Any):
    with pytest.raises(ValueError, match="minimize: JAX has no default program"):
        optimizer.minimize(of_x)
    with pytest.raises(ValueError, match="apply_optimize: JAX has no default program"):
        optimizer.apply_optimize(of_x, None, optimizer.backward(of_x, program))


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (
            lambda pairs: pairs[0],
            TypeError,
            r"params_grads must be a list of pairs "
            r"\(parameter, gradient\), but contains",
        ),
        (lambda pairs: dict.fromkeys("ab"), TypeError, "params_grads must be a list .* but contains dict"),
        (lambda pairs: [*pairs, (1, 2, 3)], TypeError, "params_grads must be a list .* but contains tuple"),
        (lambda pairs: [(p + 0, g) for p, g in pairs], ValueError, "first element is not a parameter of the program"),
        (lambda pairs: [*pairs, pairs[0]], ValueError, "params_grads has several pairs for '0/down'"),
        (
            lambda pairs: [(pairs[0][0], jnp.ones(3))],
            ValueError,
            r"gradient of '0/down' has shape \(3,\), but the parameter has shape",
        ),
    ],
)
def test_apply_gradients_rejects_bad_pairs(
    change: Any, error: type[Exception], words: str, optimizer: Any, program: Any
):
    with pytest.raises(error, match=words):
        optimizer.apply_gradients(change(optimizer.backward(of_x, program)))


def test_applying_no_pairs_keeps_the_parameters(optimizer: Any, program: Any):
    optimizer.backward(of_x, program)
    assert same_bits(optimizer.apply_gradients([]).parameters, program.parameters)


def test_apply_gradients_needs_one_backward_before(optimizer: Any, program: Any):
    with pytest.raises(ValueError, match="apply_gradients: no program from backward is available"):
        optimizer.apply_gradients([])
    pairs = optimizer.backward(of_x, program)
    optimizer.apply_gradients(pairs)
    with pytest.raises(ValueError, match="apply_gradients: no program from backward is available"):
        optimizer.apply_gradients(pairs)


@pytest.mark.parametrize("of_traced", [True, False])
def test_backward_alone_leaks_no_tracers(of_traced: bool, optimizer: Any, program: Any):
    """No tracers leak, whether the program is an argument or in the closure."""

    def step(given: Any, x: Any) -> Any:
        return optimizer.backward(partial(loss, x=x), given if of_traced else program)[0][1]

    with jax.checking_leaks():
        jax.jit(step)(program, batch())
    if of_traced:
        with pytest.raises(ValueError, match="no program from backward is available"):
            optimizer.apply_gradients([])


def test_finished_program_is_released(optimizer: Any):
    program = optimizer.startup(weights())
    optimizer.apply_gradients(optimizer.backward(of_x, program))
    gone = weakref.ref(program)
    del program
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("inner", [None, 3, SimpleNamespace(init=print), SimpleNamespace(init=print, update=3)])
def test_invalid_optimizer_is_rejected(inner: Any):
    with pytest.raises(TypeError, match=f"an optimizer must have init and update, but {type(inner).__name__} has no "):
        paddle.RecomputeOptimizer(inner)


def test_load_is_not_supported(optimizer: Any):
    with pytest.raises(
        NotImplementedError, match=r"^load function is not supported by Recompute Optimizer for now: .* Program"
    ):
        optimizer.load({})
    with pytest.raises(AttributeError):
        optimizer.init  # noqa: B018
