"""The step that runs needs less memory than the plain step, or a warning gives the reason."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import warnings
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp

import recompute
from recompute.frontends.jax.compilation.compiler_options import (
    DISABLED,
    DROPS_BARRIERS,
    MEASURING,
    merges_copies,
)
from recompute.frontends.jax.compilation.variants import Variant
from recompute.frontends.jax.lowering import variant_choice
from recompute.support.progress import ProgressLine
from recompute.test.unit.frontends.jax.steps import (
    batch,
    descent,
    far_apart,
    forward,
    jax,
    jnp,
    mlp,
    temporaries,
    weights,
)


def eight_layers() -> tuple[Any, Any]:
    return weights(8, 32, 128), batch(512, 32)


def test_step_needs_half_the_memory_of_the_plain_step():
    step = recompute.jax.jit(mlp().step, segments="block*")
    compiled = step.lower(*eight_layers()).compile()
    plain = jax.jit(mlp().step).lower(*eight_layers()).compile({DISABLED: DROPS_BARRIERS})
    assert isinstance(compiled, jax.stages.Compiled)
    assert temporaries(compiled) < 0.5 * temporaries(plain)
    assert far_apart(compiled(*eight_layers()), plain(*eight_layers())) == []


@pytest.mark.parametrize("options", [{}, {"donate_argnums": 1}])
def test_lowered_step_compiles_to_the_variant_of_a_call(options: dict[str, Any]):
    """With all layers under `jax.checkpoint`, a call runs the plain step with compile options that keep its
    barriers, and does not warn."""

    @jax.checkpoint
    def layer(w: Any, x: Any) -> Any:
        return x + jnp.tanh(jnp.sin(x @ w["up"])) @ w["down"]

    def loss(parameters: Any, x: Any) -> Any:
        for w in parameters:
            x = layer(w, x)
        return jnp.mean(x**2)

    def step(layers: Any, parameters: Any, x: Any) -> Any:
        return jax.value_and_grad(loss)(parameters[:layers], x)

    ours, arguments = recompute.jax.jit(step, static_argnums=0, **options), (8, *eight_layers())
    with warnings.catch_warnings():
        warnings.simplefilter("error", recompute.jax.NothingSaved)
        compiled = ours.lower(*arguments).compile()
    report = ours.report(*arguments)
    assert report.variant is Variant.KEEPING
    assert temporaries(compiled) == report.chosen.temporaries


def test_lowered_step_warns_once_as_a_call_does():
    arrays = [jnp.full((4, 4), float(index)) for index in range(60)]
    doubtful = recompute.jax.jit(jax.value_and_grad(lambda arrays: sum(jnp.sin(array).sum() for array in arrays)))
    without_gradient = recompute.jax.jit(lambda arrays: arrays[0] + 1)
    for step, match in ((doubtful, "as compiled, it needs"), (without_gradient, "computes no gradient")):
        with pytest.warns(recompute.jax.NothingSaved, match=match) as caught:
            step.lower(arrays).compile()
        assert [warning.filename for warning in caught] == [__file__]


def test_lowered_step_shows_both_forms():
    lowered = recompute.jax.jit(mlp().step).lower(weights(), batch())
    assert isinstance(lowered.plain, jax.stages.Lowered)
    assert "optimization_barrier" in lowered.as_text()
    assert "optimization_barrier" not in lowered.plain.as_text()
    assert "loc(" in lowered.as_text(debug_info=True)
    assert lowered.rewritten is not None and lowered.remarks == lowered.rewritten.remarks
    shapes = jax.tree.map(lambda item: jax.ShapeDtypeStruct(item.shape, item.dtype), (weights(), batch()))
    assert recompute.jax.jit(mlp().step).lower(*shapes).as_text() == lowered.as_text()


def test_locations_point_to_user_code():
    step = recompute.jax.jit(mlp().step)
    text = step.lower(weights(), batch()).plain.as_text(debug_info=True)
    assert "steps.py" in text and __file__ in text
    assert "frontends/jax/jitted.py" not in text and "lowering/step_tracer.py" not in text


def test_plain_and_rewritten_executables_stay_distinct():
    """Executables stay distinct, although JAX shares lowerings and caches what it compiles from them."""
    step = mlp().step
    plain = jax.jit(step).lower(weights(), batch())
    plain.compile()
    lowered = recompute.jax.jit(step).lower(weights(), batch())
    less = lowered.optimized.compile()
    assert less.as_text() != plain.compile().as_text()
    assert "opt-barrier" not in str(plain.compile().as_text())


@pytest.mark.parametrize(
    ("measure", "sure", "expected"),
    [
        ("auto", 0.0, [True]),
        ("auto", 1.0, [True, False]),
        (True, 0.0, [True, False]),
        (False, 1.0, [True]),
    ],
)
def test_plain_step_is_measured_if_the_prediction_is_uncertain(
    measure: bool | str, sure: float, expected: list[bool], compiled: list[bool], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(variant_choice, "LARGE_SAVING", sure)
    with warnings.catch_warnings():
        warnings.simplefilter("error", recompute.jax.NothingSaved)
        recompute.jax.jit(mlp().step, measure=measure)(weights(), batch())
    assert compiled == expected


def test_small_step_runs_plain_if_its_compiled_size_does_not_confirm_the_saving():
    """XLA aligns buffers, which the model does not count: copies of tiny arrays need more than they save."""

    def loss(arrays: Any) -> Any:
        return sum(jnp.sin(array).sum() for array in arrays)

    arrays = [jnp.full((4, 4), float(index)) for index in range(60)]
    step = recompute.jax.jit(jax.value_and_grad(loss))
    with pytest.warns(recompute.jax.NothingSaved, match="the plain step runs: as compiled, it needs"):
        step(arrays)
    assert step.report(arrays).variant is Variant.PLAIN


def test_predicted_saving_is_that_of_the_peaks():
    result = recompute.jax.jit(mlp().step).lower(weights(), batch()).rewritten
    assert result is not None
    ((before, after),) = result.memory("xla").values()
    assert result.predicted_saving == pytest.approx(1 - after.peak_bytes / before.peak_bytes, abs=0.05)
    assert result.predicted_saving > variant_choice.LARGE_SAVING


def useless(graph: recompute.Graph) -> recompute.Plan:
    """Return a plan that recomputes only small values: the sines of one row."""
    pairs = [
        (min(readers), op)
        for op, name in enumerate(graph.names)
        if graph.forward[op] and "cosine" in name
        for value in graph.makes[op]
        if (readers := graph.gradient_readers[value])
    ]
    return recompute.plan_of_pairs(graph, pairs)


def test_plain_step_runs_if_measured_smaller(monkeypatch: pytest.MonkeyPatch):
    """The plain step runs if the compiler measures more for the rewritten step, whatever the model predicts."""
    lowered = recompute.jax.jit(mlp().step, measure=True).lower(weights(), batch())
    sizes = iter([200, 100, 100])  # of the rewritten step, of the plain one, and of that as it runs
    monkeypatch.setattr(variant_choice, "temporary_bytes", lambda compiled: next(sizes))
    chosen = variant_choice.choose_variant(lowered)
    assert "opt-barrier" not in str(chosen.compiled.as_text())
    assert chosen.why is not None
    assert (
        "the plain step runs: as compiled, it needs 100 B of temporaries, and the rewritten step needs 200 B"
        in chosen.why
    )
    assert "segments='block*'" in chosen.why


def test_useless_copies_fall_back_to_plain_step():
    """The plain step runs if the copies of a planner save nothing when measured."""
    step = recompute.jax.jit(mlp().step, planner=useless, measure=True)
    with pytest.warns(recompute.jax.NothingSaved, match="the plain step runs: as compiled, it needs"):
        results = step(weights(), batch())
    assert far_apart(results, jax.jit(mlp().step)(weights(), batch())) == []


def test_strict_rejects_a_step_without_measured_saving(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(variant_choice, "temporary_bytes", lambda compiled: 100)
    with pytest.raises(recompute.Refusal, match=r"rewritten step needs 100 B; .*\(strict\)"):
        recompute.jax.jit(mlp().step, measure=True, strict=True)(weights(), batch())


def test_step_without_gradient_warns():
    step = recompute.jax.jit(forward())
    with pytest.warns(
        recompute.jax.NothingSaved, match=r"recompute\.jax\.jit\(jax\.value_and_grad\(loss\)\)"
    ) as caught:
        results = step(weights(), batch())
    assert far_apart(results, jax.jit(forward())(weights(), batch())) == []
    assert [message.filename for message in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step(weights(), batch())
    with pytest.warns(recompute.jax.NothingSaved, match="computes no gradient"):
        lowered = step.lower(weights(), batch())
    assert "no gradient found" in str(lowered.remarks[-1])
    assert lowered.as_text() == lowered.plain.as_text()


def test_refusal_falls_back_to_plain_step(monkeypatch: pytest.MonkeyPatch):
    """After a refusal the plain step runs with the reason as a warning; in strict mode the refusal is an error."""

    def refuse(module: ModuleOp, *args: Any, **kwargs: Any) -> None:
        raise recompute.Refusal(module, "sizes that are unknown")

    monkeypatch.setattr("recompute.frontends.jax.lowering.rewrite_lowered.rewrite", refuse)
    with pytest.warns(recompute.jax.NothingSaved, match="the plain step runs: sizes that are unknown$"):
        step = recompute.jax.jit(mlp().step)(weights(), batch())
    assert far_apart(step, jax.jit(mlp().step)(weights(), batch())) == []
    with pytest.raises(recompute.Refusal, match="sizes that are unknown"):
        recompute.jax.jit(mlp().step, strict=True)(weights(), batch())


def test_step_without_recomputation_warns():
    def small(parameters: Any, x: Any) -> Any:
        return jax.value_and_grad(lambda p: jnp.sum(p * x))(parameters)

    with pytest.warns(recompute.jax.NothingSaved, match=r"step runs: .*; in a model of one layer .*jax\.named_scope"):
        step = recompute.jax.jit(small)(jnp.ones(3), jnp.ones(3))
    assert far_apart(step, jax.jit(small)(jnp.ones(3), jnp.ones(3))) == []


def test_most_specific_remark_is_reported():
    """The warning gives the most specific remark, here that no gradient reads the values of the block."""

    def step(w: Any, x: Any) -> Any:
        with recompute.jax.block("block0"):
            fixed = jnp.sin(x)
        return jax.value_and_grad(lambda w: jnp.mean(jnp.sin(x @ w) @ w.T + fixed))(w)

    with pytest.warns(recompute.jax.NothingSaved) as caught:
        lowered = recompute.jax.jit(step, segments="block0").lower(jnp.ones((16, 64)), jnp.ones((256, 16)))
    reasons = [remark.reason for remark in lowered.remarks if not isinstance(remark, str)]
    assert len(reasons) > 1 and reasons[-1].startswith("nothing is recomputed"), reasons
    assert reasons[-2] in str(caught[0].message)


def test_gradient_of_a_gradient_gives_equal_results():
    def step(parameters: Any, x: Any) -> Any:
        inner = lambda p: sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(jax.grad(forward())(p, x)))  # noqa: E731
        return descent(inner)(parameters)

    ours = recompute.jax.jit(step)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = ours(weights(2), batch())
    assert far_apart(result, jax.jit(step)(weights(2), batch())) == []
    assert all(message.category is recompute.jax.NothingSaved for message in caught)


def checkpointed() -> Any:
    """Return a step with barriers of the user's own that leaves nothing to recompute."""

    @jax.checkpoint
    def layer(w: Any, x: Any) -> Any:
        return x + jnp.tanh(jnp.sin(x @ w["up"]) ** 2) @ w["down"]

    def loss(parameters: Any, x: Any) -> Any:
        for w in parameters:
            x = layer(w, x)
        return jnp.mean(x**2)

    return descent(loss)


needs_merging = pytest.mark.skipif(
    not merges_copies(("cpu",)),
    reason="from jax 0.11 on XLA:CPU does not undo jax.checkpoint",
)


@needs_merging
@pytest.mark.parametrize("measure", ["auto", True, False])
def test_step_with_own_barriers_needs_no_more_memory(measure: bool | str):
    """A step with its own barriers needs no more memory than under `jax.jit`, nor than with the barriers kept."""
    arguments = eight_layers()
    plain = jax.jit(checkpointed()).lower(*arguments)
    dropped, kept = (temporaries(plain.compile(options)) for options in (None, {DISABLED: DROPS_BARRIERS}))
    lowered = recompute.jax.jit(checkpointed(), measure=measure).lower(*arguments)
    assert lowered.own_barriers and kept < dropped
    if measure is not False:
        assert temporaries(variant_choice.choose_variant(lowered).compiled) <= kept


ALL = [Variant.MERGED, Variant.RECOMPUTED, Variant.KEEPING, Variant.PLAIN]


@pytest.mark.parametrize(
    ("predicted", "expected"),
    [
        ((100, 200, 300), [Variant.MERGED]),
        ((200, 100, 300), [Variant.RECOMPUTED]),
        ((110, 100, 300), [Variant.RECOMPUTED, Variant.MERGED]),
        ((110, 100, 115), [Variant.RECOMPUTED, Variant.KEEPING]),  # the user's own before a second rewrite
        ((100, 100, 100), [Variant.KEEPING, Variant.MERGED]),
        ((300, 200, 100), [Variant.KEEPING, Variant.RECOMPUTED]),  # never unmeasured
    ],
)
def test_at_most_two_variants_are_compiled(
    predicted: tuple[int, ...], expected: list[Variant], monkeypatch: pytest.MonkeyPatch
):
    """The variant with the lowest prediction is compiled, and a second one if the predictions are close."""
    table = dict(zip(ALL, (*predicted, None), strict=True))
    monkeypatch.setattr(variant_choice, "_predicted_bytes", lambda lowered, way: table[way])
    lowered: Any = None
    assert variant_choice.rank_variants(lowered, ALL) == expected
    without_barriers = [Variant.RECOMPUTED, Variant.PLAIN]
    assert variant_choice.rank_variants(lowered, without_barriers) == without_barriers


def variants_compiled(monkeypatch: pytest.MonkeyPatch, sizes: list[int]) -> list[tuple[Variant, bool]]:
    """Record each compilation of a step with the user's own barriers: the variant, and whether it is only measured.

    `sizes`: the bytes of each variant in the order of `ALL`.
    """
    seen, compile = list[tuple[Variant, bool]](), variant_choice._compile  # pyright: ignore[reportPrivateUsage]

    def counted(lowered: Any, way: Variant, options: Any = None) -> Any:
        seen.append((way, options is not None))
        return compile(lowered, way, options)

    monkeypatch.setattr(variant_choice, "_compile", counted)
    monkeypatch.setattr(variant_choice, "temporary_bytes", lambda compiled: sizes[ALL.index(seen[-1][0])])
    return seen


@needs_merging
@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([200, 0, 100, 0], [(Variant.KEEPING, False), (Variant.MERGED, True)]),
        ([99_900, 0, 100_000, 0], [(Variant.KEEPING, False), (Variant.MERGED, True)]),  # as good
        ([100, 0, 200, 0], [(Variant.KEEPING, False), (Variant.MERGED, True), (Variant.MERGED, False)]),
    ],
)
def test_variant_that_is_only_measured_is_unoptimized(
    sizes: list[int], expected: list[tuple[Variant, bool]], monkeypatch: pytest.MonkeyPatch
):
    lowered = recompute.jax.jit(checkpointed(), measure=True).lower(*eight_layers())
    seen = variants_compiled(monkeypatch, sizes)
    chosen = variant_choice.choose_variant(lowered)
    assert seen == expected and chosen.variant is expected[-1 if len(expected) == 3 else 0][0]
    assert "opt-barrier" in str(chosen.compiled.as_text())


def test_unoptimized_compilation_measures_the_same_bytes():
    """The temporaries and FLOPs of XLA:CPU do not depend on the optimization level."""
    lowered = recompute.jax.jit(mlp().step).lower(*eight_layers())
    for way in (Variant.RECOMPUTED, Variant.PLAIN):
        full, measured = (variant_choice._compile(lowered, way, options) for options in (None, MEASURING))  # pyright: ignore[reportPrivateUsage]
        assert temporaries(full) == temporaries(measured)
        analyses: list[Any] = [compiled.cost_analysis() for compiled in (full, measured)]
        assert analyses[0]["flops"] == analyses[1]["flops"]


def test_without_measurement_the_barriers_of_the_step_stay() -> None:
    def gradient(block: Any) -> Any:
        def loss(parameters: Any, x: Any) -> Any:
            for w in parameters:
                x = block(x, w)
            return (x**2).mean()

        return jax.value_and_grad(loss)

    def block(x: Any, w: Any) -> Any:
        return x + jnp.tanh(jnp.sin(x @ w))

    arguments = [jnp.ones((64, 64)) / 10] * 6, jnp.ones((1024, 64))
    step = recompute.jax.jit(gradient(jax.checkpoint(block)), measure=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", recompute.jax.NothingSaved)
        compiled = step.lower(*arguments).compile()
    assert step.report(*arguments).variant is Variant.KEEPING
    assert temporaries(compiled) < 0.7 * temporaries(jax.jit(gradient(block)).lower(*arguments).compile())


class RecordedLine(ProgressLine):
    """A progress line that records its phases and shares."""

    def __init__(self) -> None:
        super().__init__("step")
        self.states = list[tuple[str, float]]()

    def set_phase(self, phase: str, share: float | None = None) -> None:
        super().set_phase(phase, share)
        self.states.append((phase, self.share))


def test_progress_line_counts_the_compilations() -> None:
    line = RecordedLine()
    line.share = 0.5
    variant_choice.choose_variant(recompute.jax.jit(mlp().step, measure=True).lower(*eight_layers()), line)
    assert line.states[:2] == [("compiling 1 of 2", 0.5), ("compiling 2 of 2", 0.75)]
    alone = RecordedLine()
    variant_choice.choose_variant(recompute.jax.jit(mlp().step, measure=False).lower(*eight_layers()), alone)
    assert alone.states == []
