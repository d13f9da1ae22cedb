"""A step is rewritten once, also across processes, and the cached answer equals the fresh one."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import recompute
from recompute.driver.cache import cache_keys
from recompute.frontends.jax.compilation import budgeted as budget
from recompute.frontends.jax.compilation.variants import Variant
from recompute.frontends.jax.lowering import cached_lowered, merged, rewrite_lowered, rewrite_within, variant_choice
from recompute.frontends.jax.lowering.lowered import Lowered
from recompute.support.disk_cache import SUFFIX
from recompute.test.imports import ROOT
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

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty cache folder for one test."""
    monkeypatch.setattr(recompute.config, "cache_dir", str(tmp_path))
    return tmp_path


@pytest.fixture
def rewrites(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that records each later rewrite, as the name of the module that asked for it."""
    seen: list[str] = []
    for module in (rewrite_lowered, rewrite_within, merged, budget):

        def counted(*args: Any, rewrite: Any = module.rewrite, name: str = module.__name__, **keywords: Any) -> Any:
            seen.append(name.rpartition(".")[2])
            return rewrite(*args, **keywords)

        monkeypatch.setattr(module, "rewrite", counted)
    return seen


def entries(folder: Path) -> list[Path]:
    return list(folder.glob(f"*{SUFFIX}"))


def answer(actual: Lowered) -> tuple[object, ...]:
    """Return everything that a user can see of a lowered step."""
    rewritten = actual.rewritten
    message = actual.as_text(debug_info=True), actual.plain_reason, list(map(str, actual.remarks)), actual.own_barriers
    if rewritten is None:
        return message
    again = rewritten.text, rewritten.plan_text, rewritten.proof, rewritten.copies, rewritten.extra_flops
    return *message, *again, rewritten.predicted_saving, list(map(str, rewritten.remarks)), rewritten.memory()


def lower(function: Callable[..., Any], *arguments: Any, **options: Any) -> Lowered:
    """Lower in a new thread: locations hold the call stack, which would otherwise be that of the test, and enter the
    cache keys."""
    with warnings.catch_warnings(), ThreadPoolExecutor(1) as thread:
        warnings.simplefilter("ignore", recompute.jax.NothingSaved)
        return thread.submit(lambda: recompute.jax.jit(function, **options).lower(*arguments)).result()


def marked() -> Any:
    def layer(w: Any, x: Any, index: int) -> Any:
        return x + recompute.jax.again(jnp.tanh(recompute.jax.save(jnp.sin(x @ w["up"])))) @ w["down"]

    return descent(forward(layer))


def small(parameters: Any, x: Any) -> Any:
    return jax.value_and_grad(lambda p: jnp.sum(p[0]["up"] * x[0, 0]))(parameters)


CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "default": (mlp().step, {}),
    "segments": (mlp().step, {"segments": "block*", "policy": "dots_saveable", "donate_argnums": 0}),
    "marks": (marked(), {"segments": "none"}),
    "nothing is recomputed": (small, {}),
    "no gradient": (forward(), {}),
    "offload": (mlp().step, {"offload": "marked"}),
}


@pytest.mark.parametrize("case", CASES)
def test_cached_answer_equals_a_fresh_one(case: str, folder: Path, rewrites: list[str]):
    function, options = CASES[case]
    fresh = lower(function, weights(), batch(), **options)
    expected = answer(fresh)
    assert len(entries(folder)) == 1
    rewrites.clear()
    cached = lower(function, weights(), batch(), **options)
    assert rewrites == [] and answer(cached) == expected
    assert cached.module is not None and fresh.module is not None
    assert str(cached.module) == str(fresh.module)
    if not options.get("donate_argnums"):
        assert far_apart(cached.compile()(weights(), batch()), fresh.compile()(weights(), batch())) == []


def test_cached_report_equals_a_fresh_one(folder: Path):
    reports = [str(recompute.jax.jit(mlp().step).report(weights(), batch())) for _ in range(2)]
    assert reports[0] == reports[1] and "plain" in reports[0]


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data[:200] + b"?" + data[201:], lambda _: b""])
def test_damaged_entry_is_ignored(damage: Callable[[bytes], bytes], folder: Path, rewrites: list[str]):
    expected = answer(lower(mlp().step, weights(), batch()))
    (entry,) = entries(folder)
    intact = entry.read_bytes()
    entry.write_bytes(damage(intact))
    assert answer(lower(mlp().step, weights(), batch())) == expected
    assert rewrites == ["rewrite_lowered"] * 2 and entry.read_bytes() == intact


def test_entry_of_other_version_is_ignored(folder: Path, rewrites: list[str], monkeypatch: pytest.MonkeyPatch):
    lower(mlp().step, weights(), batch())
    versions = {**cache_keys.versions(), "recompute": "of yesterday"}
    monkeypatch.setattr(cache_keys, "versions", lambda: versions)
    lower(mlp().step, weights(), batch())
    assert rewrites == ["rewrite_lowered"] * 2 and len(entries(folder)) == 2


def test_steps_and_options_have_entries_of_their_own(folder: Path, rewrites: list[str]):
    for arguments, options in (
        ((weights(), batch()), {}),
        ((weights(2), batch()), {}),
        ((weights(), batch()), {"segments": "block*"}),
        ((weights(), batch()), {"strict": True}),
    ):
        lower(mlp().step, *arguments, **options)
    assert rewrites == ["rewrite_lowered"] * 4 and len(entries(folder)) == 4


def test_function_options_are_not_cached(folder: Path, rewrites: list[str]):
    plan = lower(mlp().step, weights(), batch()).rewritten
    assert plan is not None
    functions = {"planner": lambda graph: plan.plans[0].plan, "policy": lambda operation, shapes, names: False}
    for name, function in functions.items():
        for _ in range(2):
            lower(mlp().step, weights(), batch(), **{name: function})
    assert rewrites == ["rewrite_lowered"] * 5 and len(entries(folder)) == 1


def test_empty_cache_folder_disables_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rewrites: list[str]):
    monkeypatch.setattr(recompute.config, "cache_dir", "")
    for _ in range(2):
        lower(mlp().step, weights(), batch())
    assert rewrites == ["rewrite_lowered"] * 2


def test_measured_choice_is_cached(folder: Path, compiled: list[bool]):
    chosen = [lower(mlp().step, weights(), batch(), measure=True).compiled_step for _ in range(2)]
    assert compiled == [True, False, True]
    assert chosen[0].sizes == chosen[1].sizes and len(chosen[1].sizes) == 2
    assert chosen[0].variant is chosen[1].variant is Variant.RECOMPUTED and chosen[1].rewritten is not None


def test_unconfirmed_choice_is_measured_again(folder: Path, compiled: list[bool], monkeypatch: pytest.MonkeyPatch):
    """Both forms are measured again if the compiler reports other sizes than the cached choice has."""
    lower(mlp().step, weights(), batch(), measure=True).compiled_step  # noqa: B018
    monkeypatch.setattr(variant_choice, "temporary_bytes", lambda compiled: temporaries(compiled) + 1)
    result = lower(mlp().step, weights(), batch(), measure=True).compiled_step
    assert result.variant is Variant.RECOMPUTED and compiled == [True, False, True, True, False]


def checkpointed() -> Any:
    def layer(w: Any, x: Any) -> Any:
        return x + jax.nn.gelu(x @ w["up"]) @ w["down"]

    again = jax.checkpoint(layer, policy=jax.checkpoint_policies.dots_saveable)

    def loss(parameters: Any, x: Any) -> Any:
        for index, w in enumerate(parameters):
            x = (layer if index % 4 else again)(w, x)
        return jnp.mean(x**2)

    return descent(loss)


@pytest.mark.slow
def test_merged_step_is_cached(folder: Path, rewrites: list[str]):
    arguments = weights(8, 32, 128), batch(512, 32)
    fresh = lower(checkpointed(), *arguments)
    assert fresh.compiled_step.variant is Variant.MERGED and fresh.merged is not None
    expected = fresh.merged.text, fresh.compiled_step.sizes, str(fresh.compiled_step.compiled.as_text())
    rewrites.clear()
    cached = lower(checkpointed(), *arguments)
    assert cached.compiled_step.variant is Variant.MERGED and cached.merged is not None and rewrites == []
    assert (cached.merged.text, cached.compiled_step.sizes, str(cached.compiled_step.compiled.as_text())) == expected


@pytest.mark.parametrize("share", [0.6, 1.0])
def test_budgeted_step_is_compiled_once_from_cache(
    share: float, folder: Path, rewrites: list[str], compiled: list[bool]
):
    """One step is compiled from the cache: the one that kept the budget, or the plain step for a share of 1."""
    arguments = weights(8, 32, 128), batch(512, 32)
    fresh = lower(mlp().step, *arguments, budget=share)
    expected = answer(fresh)
    rewrites.clear()
    compiled.clear()
    cached = lower(mlp().step, *arguments, budget=share)
    assert compiled == [share < 1] and rewrites == [] and answer(cached) == expected
    assert cached.within is not None and fresh.within is not None
    assert (cached.within.rounds, cached.within.plain_bytes) == (fresh.within.rounds, fresh.within.plain_bytes)
    assert temporaries(cached.within.compiled) == temporaries(fresh.within.compiled)


def test_cached_budget_shows_its_phase_and_its_result(folder: Path, caplog: pytest.LogCaptureFixture):
    fresh = lower(mlp().step, weights(), batch(), budget=0.6)
    caplog.set_level("DEBUG", "recompute.progress")
    lower(mlp().step, weights(), batch(), budget=0.6)
    assert any(": compiling the stored step after " in message for message in caplog.messages)
    assert fresh.within is not None and any(fresh.within.summary in message for message in caplog.messages)


def test_unconfirmed_budget_is_searched_again(folder: Path, rewrites: list[str], monkeypatch: Any):
    arguments = weights(8, 32, 128), batch(512, 32)
    lower(mlp().step, *arguments, budget=0.6)
    rewrites.clear()
    for module in (cached_lowered, rewrite_within):
        monkeypatch.setattr(module, "result_of_record", lambda *_: None)
    assert lower(mlp().step, *arguments, budget=0.6).within is not None and rewrites


SOURCE = """
import jax, jax.numpy as jnp
def loss(weights, x):
    for index, w in enumerate(weights):
        with jax.named_scope(f"{scope}{index}"):
            x = x + jnp.tanh(jnp.sin(x @ w)) @ w.T
    return jnp.mean(x ** 2)
step = jax.value_and_grad(loss)
"""


@pytest.mark.parametrize(("scope", "is_found"), [("block", True), ("layer", False)])
def test_search_is_not_repeated_for_a_step_at_other_lines(
    scope: str, is_found: bool, folder: Path, rewrites: list[str], compiled: list[bool]
):
    """The plan of the search is applied and proved again; scopes count, since they choose the segments."""

    def step_at(line: int, scope: str) -> Any:
        names: dict[str, Any] = {"scope": scope}
        exec(compile("\n" * line + SOURCE, "model.py", "exec"), names)
        return names["step"]

    arguments = weights(8, 32, 128), batch(512, 32)
    matrices = [layer["up"] for layer in arguments[0]]
    before = lower(step_at(0, "block"), matrices, arguments[1], budget=0.6)
    rewrites.clear()
    compiled.clear()
    after = lower(step_at(7, scope), matrices, arguments[1], budget=0.6)
    assert (rewrites == ["rewrite_within"] and compiled == [True]) is is_found
    assert after.rewritten is not None and before.rewritten is not None
    if is_found:
        assert after.rewritten.plan_text == before.rewritten.plan_text and after.rewritten.proof
        assert ":14:" in after.as_text(debug_info=True) and ":14:" not in before.as_text(debug_info=True)


PROCESS = """
import jax, jax.numpy as jnp, recompute
from recompute.frontends.jax.lowering import rewrite_lowered
rewrite, count = rewrite_lowered.rewrite, 0
def counted(*args, **keywords):
    global count
    count += 1
    return rewrite(*args, **keywords)
rewrite_lowered.rewrite = counted
hits = []
jax.monitoring.register_event_listener(lambda event, **_: hits.append(event))
def loss(weights, x):
    for w in weights:
        x = x + jnp.tanh(jnp.sin(x @ w)) @ w.T
    return jnp.mean(x ** 2)
step = recompute.jax.jit(jax.value_and_grad(loss))
value, _ = step([jnp.full((16, 64), 0.1)] * 8, jnp.ones((256, 16)))
print(count, sum(event.endswith("/cache_hits") for event in hits) > 0, float(value).hex())
"""


def test_second_process_reuses_the_cache(tmp_path: Path):
    """A second process rewrites nothing, and its compilations come from JAX's own cache."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "RECOMPUTE_CACHE_DIR": str(tmp_path / "ours"),
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "jax"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    message = list[list[str]]()
    for seed in ("1", "2"):
        process = subprocess.run(
            [sys.executable, "-c", PROCESS],
            cwd=ROOT.parent,
            env={**environment, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        )
        message.append(process.stdout.split())
    assert [words[:2] for words in message] == [["1", "False"], ["0", "True"]] and message[0][2] == message[1][2]
