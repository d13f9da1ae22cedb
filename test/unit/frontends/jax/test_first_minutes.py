"""All entry points share one rewrite; explanations print as tables; flax nnx and a missing numba are handled."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from logging import getLogger
from typing import Any

import pytest

import recompute
from recompute.frontends.jax.messages.lost_updates import LostUpdate
from recompute.planning.solvers import effort
from recompute.search.candidate_plans.pool_cache import forget_pools

from .steps import batch, jax, jnp, mlp, weights


def test_step_is_rewritten_once_for_all_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """The methods `report` and `lower`, calls, and calls for shapes share one rewrite."""
    module: Any = import_module("recompute.frontends.jax.lowering.step_tracer")
    rewritten, result = module.lower_and_rewrite, list[str]()

    def counted(name: str, *rest: Any) -> Any:
        result.append(name)
        return rewritten(name, *rest)

    monkeypatch.setattr(module, "lower_and_rewrite", counted)
    step, given = recompute.jax.jit(mlp().step), (weights(), batch())
    report = step.report(*given)
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), given)
    assert str(step.report(*shapes)) == str(report)
    step(*given)
    step.lower(*given)
    assert len(result) == 1
    step.report(weights(), batch(rows=128))
    step.clear_cache()
    step(*given)
    assert len(result) == 3


def test_explanation_prints_as_a_table() -> None:
    report = recompute.jax.jit(mlp().step).explain(weights(), batch())
    message = str(report)
    assert message.startswith("step: ") and "block0" in message and len(message) < 5000
    assert len(repr(report[0])) < 1000


def nnx_step() -> tuple[Any, Any, Any]:
    nnx: Any = pytest.importorskip("flax.nnx", reason="steps of flax nnx")
    model = nnx.Linear(8, 8, rngs=nnx.Rngs(0))

    def step(model, x):
        loss, gradient = nnx.value_and_grad(lambda model: jnp.mean(model(x) ** 2))(model)
        nnx.update(model, jax.tree.map(lambda p, g: p - 0.1 * g, nnx.state(model), gradient))
        return loss

    return nnx, model, step


@pytest.mark.parametrize("options", [{}, {"budget": 0.6}, {"measure": True}, {"measure": False}])
def test_report_and_call_share_their_work(options: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Report and call rewrite once and compile each program once, in either order, also after a donating call."""
    forget_pools()
    module: Any = import_module("recompute.frontends.jax.lowering.step_tracer")
    rewritten, result = module.lower_and_rewrite, list[str]()
    monkeypatch.setattr(module, "lower_and_rewrite", lambda *given: result.append(given[0]) or rewritten(*given))

    def train_step(w: Any, x: Any) -> Any:
        value, w = mlp().step(w, x)
        return w, value

    step = recompute.jax.jit(train_step, donate_argnums=0, **options)
    old, x = weights(), batch()
    with compilations() as compiled:
        new, _ = jax.block_until_ready(step(old, x))
        of_call = len(compiled)
        texts = {str(step.report(state, x)) for state in (old, new, old)}
    assert old[0]["up"].is_deleted() and len(texts) == len(result) == 1
    assert len(compiled) - of_call == (0 if options.get("budget") or options.get("measure") is True else 1)
    other = recompute.jax.jit(train_step, donate_argnums=0, **options)
    with compilations() as compiled:
        other.report(new, x)
        before = len(compiled)
        other(new, x)
    assert len(compiled) == before


@contextmanager
def compilations() -> Generator[list[str], None, None]:
    """Collect an entry for each program that XLA compiles within the context."""
    names, is_on = list[str](), [True]

    def listen(event: str, _: float, **__: Any) -> None:
        if is_on and event.endswith("backend_compile_duration"):
            names.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield names
    finally:
        is_on.clear()


def test_step_that_updates_its_module_is_rejected() -> None:
    """A step that updates its module is refused, since `jax.jit` would lose the update."""
    _, model, step = nnx_step()
    with pytest.raises(LostUpdate, match=r"step changes Linear(.|\n)*step = recompute\.nnx\.jit\(step\)"):
        recompute.jax.jit(step)(model, jnp.ones((4, 8)))


def test_step_that_returns_its_module_is_accepted() -> None:
    nnx, model, step = nnx_step()

    def returned(model, x):
        loss = step(model, x)
        return nnx.state(model), loss

    with pytest.warns(recompute.jax.NothingSaved):
        state, _ = recompute.jax.jit(returned)(model, jnp.ones((4, 8)))
    assert not jnp.array_equal(jax.tree.leaves(state)[0], jax.tree.leaves(nnx.state(model))[0])


def test_step_advised_by_message_trains() -> None:
    _, model, step = nnx_step()
    with pytest.warns(recompute.jax.NothingSaved):
        losses = [float(recompute.nnx.jit(step)(model, jnp.ones((4, 8)))) for _ in range(3)]
    assert losses[0] > losses[1] > losses[2]


@pytest.mark.parametrize("wrap", [lambda nnx, jit, f: nnx.jit(jit(f)), lambda nnx, jit, f: jit(nnx.jit(f))])
def test_both_jits_on_one_step_are_rejected(wrap: Any) -> None:
    nnx, model, step = nnx_step()
    with pytest.raises(LostUpdate, match=r"recompute\.nnx\.jit"):
        wrap(nnx, recompute.jax.jit, step)(model, jnp.ones((4, 8)))


def test_split_modules_train() -> None:
    nnx, model, step = nnx_step()
    graph, state = nnx.split(model)

    @recompute.jax.jit
    def split(state, x):
        model = nnx.merge(graph, state)
        loss = step(model, x)
        return nnx.state(model), loss

    losses = list[float]()
    with pytest.warns(recompute.jax.NothingSaved):
        for _ in range(3):
            state, loss = split(state, jnp.ones((4, 8)))
            losses.append(float(loss))
    assert losses[0] > losses[1] > losses[2]


def test_search_without_numba_has_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOMPUTE_PLAN_PATH", "plain")
    assert not effort.is_compiled() and effort.default_seconds(getLogger("recompute.jax")) == effort.PYTHON_SECONDS
    monkeypatch.delenv("RECOMPUTE_PLAN_PATH")
    assert effort.default_seconds(getLogger("recompute.jax")) is None or not effort.is_compiled()
