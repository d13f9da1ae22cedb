"""`recompute.nnx.jit`: training equal to `nnx.jit` bit for bit, with no more memory than `nnx.remat`."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

import re
import warnings
from functools import partial
from typing import Any

import pytest

import recompute
from recompute.frontends.jax.annotations.module_scopes import module_scopes
from recompute.support import progress as progress_lines
from recompute.support.diagnostics import Refusal

from .nnx_models import MODELS, SCANNED, Dense, jax, jnp, nnx, optax, train_step


@pytest.fixture(autouse=True)
def _nothing_saved_is_an_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error", recompute.jax.NothingSaved)
        yield


@pytest.fixture(scope="module")
def step() -> Any:
    """The rewritten training step, which the tests share: it is rewritten and compiled once for `built()`."""
    return recompute.nnx.jit(train_step)


@pytest.mark.slow("transformer", "cnn")
@pytest.mark.parametrize("name", MODELS)
def test_models_train_with_at_most_remat_memory(name: str, step: Any):
    losses, bytes = MODELS[name].trained(lambda _: step)
    expected_losses, plain_bytes = MODELS[name].trained(nnx.jit)
    assert losses == expected_losses and len(set(losses)) == len(losses)
    assert bytes <= 1.02 * MODELS[name].temporaries_of_remat() and bytes < 0.8 * plain_bytes


@pytest.mark.slow
def test_scanned_blocks_train_in_less_memory():
    losses, bytes = SCANNED.trained(recompute.nnx.jit)
    expected_losses, plain_bytes = SCANNED.trained(nnx.jit)
    assert losses == expected_losses and bytes < 0.6 * plain_bytes


@pytest.mark.slow
def test_gradients_agree_where_adam_amplifies_rounding():
    """Gradients agree over several steps where parameters differ. The gradient of a bias before a BatchNorm is rounding
    noise, which Adam scales to a step of the learning rate."""
    (gradients, norms), (expected, expected_norms) = (_gradients_of_steps(jit) for jit in (recompute.nnx.jit, nnx.jit))
    largest = max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(expected))
    differences = jax.tree.map(lambda a, b: float(jnp.abs(a - b).max()), gradients, expected)
    assert max(jax.tree.leaves(differences)) <= 1e-6 * largest
    noise = [float(jnp.abs(step["blocks"][n]["convolution"]["bias"]).max()) for step in expected for n in range(3)]
    assert 0 < max(noise) <= 1e-6 * largest
    assert jax.tree.all(jax.tree.map(lambda a, b: jnp.allclose(a, b, rtol=1e-5, atol=1e-7), norms, expected_norms))


def _gradients_of_steps(jit: Any) -> tuple[list[Any], Any]:
    """Return the gradients of three steps of a network with BatchNorm and dropout, and its statistics after them."""

    class Block(nnx.Module):
        def __init__(self, rngs: Any):
            self.convolution = nnx.Conv(8, 8, (3, 3), rngs=rngs)
            self.norm = nnx.BatchNorm(8, rngs=rngs)
            self.dropout = nnx.Dropout(0.2, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            return x + self.dropout(nnx.relu(self.norm(self.convolution(x))))

    class Network(nnx.Module):
        def __init__(self, rngs: Any):
            self.blocks = nnx.List([Block(rngs) for _ in range(3)])

        def __call__(self, x: Any) -> Any:
            for block in self.blocks:
                x = block(x)
            return x

    def step(model: Any, optimizer: Any, x: Any) -> Any:
        gradients = nnx.grad(lambda model: jnp.mean(model(x) ** 2))(model)
        optimizer.update(model, gradients)
        return gradients

    model, run = Network(nnx.Rngs(0)), jit(step)
    optimizer = nnx.Optimizer(model, optax.sgd(1e-2), wrt=nnx.Param)
    x = jax.random.normal(jax.random.key(1), (8, 16, 16, 8))
    gradients = [nnx.to_pure_dict(run(model, optimizer, x)) for _ in range(3)]
    return gradients, nnx.to_pure_dict(nnx.state(model, nnx.BatchStat))


@pytest.mark.slow
def test_tree_mode_trains_equally():
    jit: Any = nnx.jit
    ours_jit: Any = recompute.nnx.jit
    ours, theirs = partial(ours_jit, graph=False), partial(jit, graph=False)
    model = MODELS["mlp with dropout"]
    assert model.trained(ours)[0] == model.trained(theirs)[0] == model.trained(nnx.jit)[0]


def built(width: int = 16) -> tuple[Any, Any, Any]:
    model = MODELS["mlp with dropout"].build(False)
    return model, nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param), jnp.ones((128, width))


def arrays_of(node: Any) -> list[Any]:
    return [jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf
            for leaf in jax.tree.leaves(nnx.state(node))]  # fmt: skip


def test_all_state_is_updated_in_place(step: Any):
    """Weights, the optimizer's moments and counter, and the counters of random streams are updated in place."""
    after = dict[str, list[Any]]()
    for name, jitted in (("ours", step), ("theirs", nnx.jit(train_step))):
        model, optimizer, x = built()
        weights = model.blocks[0].up.kernel
        jitted(model, optimizer, x)
        assert model.blocks[0].up.kernel is weights
        assert int(optimizer.step[...]) == 1 and int(model.blocks[0].dropout.rngs.count[...]) == 1
        after[name] = arrays_of((model, optimizer))
    assert all(map(jnp.array_equal, after["ours"], after["theirs"]))


@pytest.mark.slow
def test_donated_modules_are_deleted():
    model, optimizer, x = built()
    step = recompute.nnx.jit(train_step, donate_argnames=("model", "optimizer"))
    assert step.report(model, optimizer, x).chosen.aliased > 0
    before = model.blocks[0].up.kernel[...]
    step(model, optimizer, x)
    assert before.is_deleted() and not model.blocks[0].up.kernel[...].is_deleted()


def test_shared_modules_and_new_variables_are_kept():
    """A shared block stays shared, and a variable that the step creates is returned."""

    class Shared(nnx.Module):
        def __init__(self, rngs: Any):
            block = Dense(16, rngs)
            self.blocks = nnx.List([block, Dense(16, rngs), block])

        def __call__(self, x: Any) -> Any:
            for block in self.blocks:
                x = block(x)
            return x

    def step(model, x):
        gradients = nnx.grad(lambda model: jnp.mean(model(x) ** 2))(model)
        nnx.update(model, jax.tree.map(lambda w, g: w - 0.1 * g, nnx.state(model, nnx.Param), gradients))
        model.mean = nnx.BatchStat(jnp.mean(x))

    ours, theirs = Shared(nnx.Rngs(0)), Shared(nnx.Rngs(0))
    recompute.nnx.jit(step)(ours, jnp.ones((256, 16)))
    nnx.jit(step)(theirs, jnp.ones((256, 16)))
    assert ours.blocks[0] is ours.blocks[2] and float(ours.mean[...]) == 1.0
    assert all(map(jnp.array_equal, arrays_of(ours), arrays_of(theirs)))


@pytest.mark.slow
def test_reports_leave_modules_unchanged():
    model, optimizer, x = built()
    before = arrays_of((model, optimizer))
    step = recompute.nnx.jit(train_step)
    report, (explanation,) = step.report(model, optimizer, x), step.explain(model, optimizer, x)
    assert report.copies > 0 and explanation.saved_bytes > 0
    assert all(map(jnp.array_equal, before, arrays_of((model, optimizer))))
    assert repr(step).startswith("<recompute.nnx.jit(train_step), lowered for 1 call: ")
    step(model, optimizer, x)
    assert repr(step).startswith("<recompute.nnx.jit(train_step), lowered for 1 call: ")
    lowered = step.lower(model, optimizer, x)
    assert lowered.lowered.why is None and lowered.lowered.remarks
    step.clear_cache()
    assert repr(step) == "<recompute.nnx.jit(train_step), lowered for no calls>"


@pytest.mark.slow
def test_step_is_lowered_and_compiled_by_hand():
    model, optimizer, x = built()
    other, its_optimizer, _ = built()
    compiled = recompute.nnx.jit(train_step).lower(model, optimizer, x).compile()
    assert float(compiled(model, optimizer, x)) == float(nnx.jit(train_step)(other, its_optimizer, x))
    assert all(map(jnp.array_equal, arrays_of(model), arrays_of(other)))


def losses_of_method(decorator: Any) -> list[float]:
    """Return the losses of a step that is a method and reads an attribute of its object."""

    class Trainer:
        rate = 0.01

        @decorator
        def step(self, model, x):
            loss, gradients = nnx.value_and_grad(lambda model: jnp.mean(model(x) ** 2))(model)
            nnx.update(model, jax.tree.map(lambda w, g: w - self.rate * g, nnx.state(model, nnx.Param), gradients))
            return loss

    model, _, x = built()
    return [float(Trainer().step(model, x)) for _ in range(2)]


@pytest.mark.slow
def test_decorator_with_options_works_on_methods():
    ours = losses_of_method(recompute.nnx.jit(budget="60%", static_argnums=0))
    assert ours == losses_of_method(nnx.jit(static_argnums=0)) and ours[0] != ours[1]


def test_unknown_keywords_are_rejected():
    with pytest.raises(TypeError, match="one function, not 2"):
        recompute.nnx.jit(train_step, train_step)  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match=r"nnx\.jit does not accept the option compiler_options"):
        recompute.nnx.jit(train_step, compiler_options={})
    with pytest.raises(TypeError, match=r"recompute\.nnx\.jit got an .* 'budgett'; did you mean 'budget'\?"):
        recompute.nnx.jit(train_step, budgett="8GiB")  # pyright: ignore[reportCallIssue]
    with pytest.raises(ValueError, match="invalid budget"):
        recompute.nnx.jit(train_step, budget="much")
    with pytest.raises(ValueError, match="does not support bound methods"):
        recompute.nnx.jit(built()[0].__call__)


@pytest.mark.slow
def test_modules_are_scopes_only_while_traced():
    call = vars(Dense)["__call__"]
    model, optimizer, x = built()
    report = recompute.nnx.jit(train_step).report(model, optimizer, x)
    assert {row.module for row in report.modules} >= {"Chain/blocks0", "Chain/blocks1"}
    assert vars(Dense)["__call__"] is call


def test_derived_modules_have_names_of_their_own():
    class Leaf(nnx.Module):
        def __call__(self, x: Any) -> Any:
            return jnp.sin(x)

    class Derived(Leaf):
        def __call__(self, x: Any) -> Any:
            return super().__call__(x)

    class Tree(nnx.Module):
        def __init__(self) -> None:
            self.first, self.many = Derived(), nnx.List([Leaf(), Leaf()])
            self.table = nnx.Dict({"a": Leaf()})

        def __call__(self, x: Any) -> Any:
            return Leaf()(self.many[1](self.first(x)))

    with module_scopes(nnx.Module):
        text = jax.jit(lambda x: Tree()(x)).lower(1.0).as_text(debug_info=True)
    scopes = set(re.findall(r'"jit\(<lambda>\)/(.*?)/sin"', text))
    assert scopes == {"Tree/first", "Tree/many1", "Tree/Leaf"}
    with module_scopes(nnx.Module):
        text = jax.jit(lambda x: recompute.jax.named(Tree())(x)).lower(1.0).as_text(debug_info=True)
    assert "/first/sin" in text and "first/first" not in text


def test_explain_reports_budget_fit(step: Any):
    plain = recompute.jax.explain(step, *built(), budget="1GiB")
    assert plain.fit is not None and plain.fit.fits and plain.copies == 0
    rewritten = recompute.jax.explain(step, *built(), budget=0.8)
    assert rewritten.fit is not None and rewritten.fit.fits and rewritten.copies > 0


def test_report_advises_to_donate_modules(step: Any):
    report = step.report(*built())
    assert report.donation is not None and report.donation.option == "donate_argnums=(0, 1)"
    donated = recompute.nnx.jit(train_step, donate_argnames=("model", "optimizer")).report(*built())
    assert donated.donation is None


def test_explain_refuses_nnx_jit_with_the_remedy():
    with pytest.raises(TypeError, match=r"result of nnx\.jit; .*explain\(recompute\.nnx\.jit\(train_step"):
        recompute.jax.explain(nnx.jit(train_step), *built())


@pytest.mark.parametrize(("option", "value"), [("budget", "8"), ("time_limit", "3"), ("measure", "no")])
def test_messages_name_the_caller(option: str, value: str):
    with pytest.raises((TypeError, ValueError), match=r"^recompute\.nnx\.jit: "):
        recompute.nnx.jit(lambda model: model, **{option: value})  # pyright: ignore[reportArgumentType]


def test_misspelt_keyword_of_a_call_gets_a_suggestion():
    step: Any = recompute.nnx.jit(train_step)
    for call in (step, step.lower, step.report, step.explain, partial(recompute.nnx.explain, step)):
        with pytest.raises(TypeError, match=r"'budgt'; did you mean 'budget', an option of recompute\.jax\.jit"):
            call(*built(), budgt="1GiB")


@pytest.mark.parametrize("jit", [recompute.jax.jit, recompute.nnx.jit])
def test_step_without_gradient_names_the_jit_of_nnx(jit: Any):
    model, x = nnx.Linear(16, 16, rngs=nnx.Rngs(0)), jnp.ones((128, 16))
    remedy = r"take the gradient inside: recompute\.nnx\.jit\(nnx\.value_and_grad\(loss\)\)"
    with pytest.warns(recompute.jax.NothingSaved, match=remedy):
        jit(lambda model, x: model(x))(model, x)
    for method in (jit(lambda model, x: model(x), strict=True), jit(lambda model, x: model(x)).explain):
        with pytest.raises(Refusal, match=remedy):
            method(model, x)


def test_progress_of_every_entry_point_names_the_package(monkeypatch: pytest.MonkeyPatch):
    tasks = list[str]()
    monkeypatch.setattr(progress_lines, "_end", lambda line, _: tasks.append(line.task))
    model, optimizer, x = built()
    step = recompute.nnx.jit(train_step)
    step.lower(model, optimizer, x)
    recompute.jax.explain(step, model, optimizer, x)
    assert set(tasks) == {"recompute.nnx: train_step"}


def test_explain_is_that_of_jax() -> None:
    assert recompute.nnx.explain is recompute.jax.explain
