"""The user's `jax.checkpoint` copies are merged if this needs the least memory; other code of the user is kept."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

import recompute
from recompute.dialects.stablehlo.control import OptimizationBarrierOp
from recompute.frontends.jax.compilation.compiler_options import keeping_barriers
from recompute.frontends.jax.compilation.variants import Variant
from recompute.frontends.jax.lowering import variant_choice
from recompute.support.operations import every_operation
from recompute.test.unit.frontends.jax.steps import batch, descent, jax, jnp, temporaries, weights
from recompute.transforms.merge_remat import merge_remat

pytestmark = pytest.mark.slow

DOTS = jax.checkpoint_policies.dots_saveable


def arguments() -> tuple[Any, Any]:
    return weights(8, 32, 128), batch(512, 32)


def gelu(w: Any, x: Any) -> Any:
    return x + jax.nn.gelu(x @ w["up"]) @ w["down"]


def step(every: int = 2, layer: Any = gelu, **options: Any) -> Any:
    """Return a step with one of every `every` layers under `jax.checkpoint`, including the first."""
    again = jax.checkpoint(layer, **options)

    def loss(parameters: Any, x: Any) -> Any:
        for index, w in enumerate(parameters):
            x = (layer if index % every else again)(w, x)
        return jnp.mean(x**2)

    return descent(loss)


@cache
def lowered(**options: Any) -> recompute.jax.Lowered:
    return recompute.jax.jit(step(**options)).lower(*arguments())


def equal(ours: Any, theirs: Any) -> bool:
    pairs = zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True)
    return all(bool((np.asarray(first) == np.asarray(other)).all()) for first, other in pairs)


def is_proved(actual: recompute.jax.Lowered) -> bool:
    """Return whether the merged module is proved equal to the user's module."""
    assert actual.module is not None and actual.merged is not None
    return recompute.prove(actual.module, actual.merged.module).proved


def test_merged_variant_is_chosen_if_smallest():
    """The merged variant is chosen for a checkpoint of every fourth layer, with a policy that saves products."""
    actual = lowered(every=4, policy=DOTS)
    assert is_proved(actual)
    chosen = variant_choice.choose_variant(actual)
    assert chosen.variant is Variant.MERGED and chosen.why is None and chosen.rewritten is actual.merged
    others = actual.compile_rewritten(), actual.compile_plain(keeps_barriers=True), actual.compile_plain()
    assert all(temporaries(chosen.compiled) < 0.98 * temporaries(other) for other in others)
    plain = jax.jit(step(every=4, policy=DOTS)).lower(*arguments()).compile()
    assert equal(chosen.compiled(*arguments()), plain(*arguments()))


def test_merged_step_runs_without_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error", recompute.jax.NothingSaved)
        actual = recompute.jax.jit(step(every=4, policy=DOTS))(*arguments())
    assert equal(actual, jax.jit(step(every=4, policy=DOTS))(*arguments()))


@pytest.mark.slow
def test_rewritten_step_is_chosen_if_smaller_than_merged():
    chosen = variant_choice.choose_variant(lowered(every=2))
    assert chosen.variant is Variant.RECOMPUTED and chosen.rewritten is lowered(every=2).rewritten
    merged, less = chosen.sizes[Variant.MERGED], chosen.sizes[Variant.RECOMPUTED]
    assert merged is not None and less is not None and less < 0.95 * merged


def test_ahead_of_time_compilation_chooses_the_variant_of_a_call():
    actual = lowered(every=4, policy=DOTS)
    chosen = temporaries(variant_choice.choose_variant(actual).compiled)
    assert temporaries(actual.compile()) == chosen
    assert temporaries(actual.compile({"xla_cpu_enable_fast_math": False})) == chosen
    assert temporaries(actual.optimized.compile(keeping_barriers(("cpu",)))) > chosen


@pytest.mark.parametrize("tied", [Variant.RECOMPUTED, Variant.KEEPING, Variant.PLAIN])
def test_merged_variant_loses_ties(tied: Variant, monkeypatch: pytest.MonkeyPatch):
    actual, variants = lowered(every=2), list[Variant]()
    if tied is Variant.PLAIN and not actual.drops_barriers:
        pytest.skip("XLA keeps the barriers of the plain step, so that it is the variant KEEPING")
    compiled_variant = variant_choice._compile  # pyright: ignore[reportPrivateUsage]

    def compiled(lowered: Any, way: Variant, options: Any = None) -> Any:
        variants.append(way)
        return compiled_variant(lowered, way, options)

    monkeypatch.setattr(variant_choice, "_compile", compiled)
    monkeypatch.setattr(
        variant_choice, "temporary_bytes", lambda _: 100 if variants[-1] in (Variant.MERGED, tied) else 200
    )
    monkeypatch.setattr(variant_choice, "rank_variants", lambda lowered, variants: variants)
    assert variant_choice.choose_variant(actual).variant is tied


def test_missing_measurement_chooses_recomputed_variant(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(variant_choice, "temporary_bytes", lambda compiled: None)
    assert variant_choice.choose_variant(lowered(every=2)).variant is Variant.RECOMPUTED


def test_report_names_chosen_variant_and_sizes():
    report = recompute.jax.explain(step(every=4, policy=DOTS), *arguments())
    chosen = variant_choice.choose_variant(lowered(every=4, policy=DOTS))
    assert report.variant is Variant.MERGED and report.measured == tuple(chosen.sizes.items())
    assert report.chosen.temporaries == temporaries(chosen.compiled)
    text = report.details()
    assert f"runs: {Variant.MERGED.value}\n" in text and "recomputed: " in text
    assert all(f"  {way.value}\n" in text for way in chosen.sizes)
    assert "next: the model's own jax.checkpoint can be removed" in str(report)
    assert [name for name, _ in report.timelines] == ["plain", "recomputed"]


def test_report_without_measurement_names_the_variant():
    report = recompute.jax.jit(step(every=2), measure=False).report(*arguments())
    assert report.variant is Variant.RECOMPUTED and report.measured == ()
    assert f"runs: {Variant.RECOMPUTED.value}\nrecomputed: " in report.details()


def is_barrier(op: Any) -> bool:
    return isinstance(op, OptimizationBarrierOp)


def test_user_barriers_are_kept():
    def layer(w: Any, x: Any) -> Any:
        return x + jax.lax.optimization_barrier(jnp.tanh(x @ w["up"])) @ w["down"]

    actual = recompute.jax.jit(step(2, layer)).lower(*arguments())
    assert is_proved(actual) and actual.module is not None
    work = actual.module.clone()
    assert merge_remat(work) > 4
    before, after = ([op for op in every_operation(item) if is_barrier(op)] for item in (actual.module, work))
    again = [op for op in before if "rematted_computation" in str(op.location)]
    assert len(again) == 4 and len(before) == 20 + 4 and len(after) == 20 - 4


def test_barriers_without_copies_are_not_merged():
    """Barriers that enclose no copies are not merged."""

    def loss(parameters: Any, x: Any) -> Any:
        for w in parameters:
            x = jax.lax.optimization_barrier(gelu(w, x))
        return jnp.mean(x**2)

    actual = recompute.jax.jit(descent(loss)).lower(*arguments())
    assert actual.own_barriers and actual.merged is None


@pytest.mark.slow
def test_masks_drawn_again_are_merged():
    """Masks that are drawn again from the same key are merged."""

    def dropped(w: Any, x: Any) -> Any:
        mask = jax.random.bernoulli(jax.random.fold_in(jax.random.key(0), 7), 0.8, (512, 128))
        return x + jnp.where(mask, jnp.tanh(x @ w["up"]) / 0.8, 0) @ w["down"]

    actual = recompute.jax.jit(step(2, dropped)).lower(*arguments())
    assert is_proved(actual)
    assert equal(actual.compile_merged()(*arguments()), jax.jit(step(2, dropped))(*arguments()))


@pytest.mark.slow
def test_merging_keeps_the_number_of_effects():
    message = list[float]()

    def layer_with_callback(w: Any, x: Any) -> Any:
        jax.debug.callback(lambda value: message.append(float(value)), x[0, 0])
        return gelu(w, x)

    def values_seen(run: Any) -> list[float]:
        message.clear()
        jax.block_until_ready(run(*arguments()))
        jax.effects_barrier()
        return sorted(message)

    actual = recompute.jax.jit(step(2, layer_with_callback)).lower(*arguments())
    plain = values_seen(jax.jit(step(2, layer_with_callback)))
    assert len(plain) > 8 and is_proved(actual) and values_seen(actual.compile_merged()) == plain


@pytest.mark.slow
def test_merging_keeps_the_number_of_loops():
    """The number of loops is kept: a loop that runs again to return more values is not merged."""

    def looped(w: Any, x: Any) -> Any:
        return jax.lax.scan(lambda x, _: (gelu(w, x), None), x, length=2)[0]

    actual = recompute.jax.jit(step(2, looped)).lower(*arguments())
    assert is_proved(actual)
    assert equal(actual.compile_merged()(*arguments()), jax.jit(step(2, looped))(*arguments()))


@pytest.mark.parametrize("options", [{"segments": "block*"}, {"checkpoints": ["hidden"]}, {"planner": "asked"}])
def test_recomputation_options_disable_merging(options: dict[str, Any]):
    from recompute.frontends.jax.lowering.merged import merged

    module = lowered(every=2).module
    selection = recompute.Selection(**{name: first for name, first in options.items() if name != "planner"})
    planner = (lambda graph: recompute.Plan()) if "planner" in options else None
    assert merged(module, recompute.RecomputeOptions(selection, planner=planner)) is None
    assert merged(module, recompute.RecomputeOptions()) is not None


@pytest.mark.parametrize("mark", ["save", "called"])
def test_marks_in_step_disable_merging(mark: str):
    def marked(w: Any, x: Any) -> Any:
        if mark == "save":
            return recompute.jax.save(gelu(w, x))
        return recompute.jax.paddle.recompute(gelu, w, x)

    def loss(parameters: Any, x: Any) -> Any:
        x = marked(parameters[0], jax.checkpoint(gelu)(parameters[1], x))
        return jnp.mean(gelu(parameters[2], x) ** 2)

    actual = recompute.jax.jit(descent(loss)).lower(*arguments())
    assert actual.own_barriers and actual.merged is None


def test_checkpoint_names_do_not_disable_merging():
    def named(w: Any, x: Any) -> Any:
        return x + jax.ad_checkpoint.checkpoint_name(jnp.tanh(x @ w["up"]), "hidden") @ w["down"]

    policy = jax.checkpoint_policies.save_only_these_names("hidden")
    actual = recompute.jax.jit(step(2, named, policy=policy)).lower(*arguments())
    assert is_proved(actual)
    assert equal(actual.compile_merged()(*arguments()), jax.jit(step(2, named))(*arguments()))


def test_nothing_is_merged_without_measuring():
    actual = recompute.jax.jit(step(every=2), measure=False).lower(*arguments())
    assert (
        Variant.MERGED not in variant_choice.choose_variant(actual).sizes
        and variant_choice.choose_variant(actual).variant is Variant.RECOMPUTED
    )


def test_unproved_merge_is_dropped(monkeypatch: pytest.MonkeyPatch):
    actual = recompute.jax.jit(step(every=2)).lower(*arguments())
    monkeypatch.setattr("recompute.frontends.jax.lowering.merged.rewrite", lambda module, request: _refuse(module))
    assert actual.merged is None


def _refuse(module: Any) -> None:
    raise recompute.Refusal(module, "sizes that are unknown")
