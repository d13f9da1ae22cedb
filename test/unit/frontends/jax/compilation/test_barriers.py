"""The compiler option that keeps barriers on CPU is combined with passes that the user disables."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recompute
from recompute.frontends.jax.compilation import compiler_options
from recompute.frontends.jax.compilation.allocation import temporary_bytes
from recompute.frontends.jax.compilation.compiler_options import (
    DISABLED,
    DROPS_BARRIERS,
    keeping_barriers,
    merges_copies,
)
from recompute.test.unit.frontends.jax.steps import batch, jax, mlp, weights


@pytest.fixture
def merging(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat the installed version as one that merges copies, as jax 0.10 does."""
    monkeypatch.setattr(compiler_options, "NO_LONGER_MERGES", (99, 0))


@pytest.mark.usefixtures("merging")
@pytest.mark.parametrize(
    ("flags", "requests", "expected"),
    [
        ("", (), "cse_barrier_expander"),
        ("--xla_disable_hlo_passes=dce,cse", (), "dce,cse,cse_barrier_expander"),
        ("--a=b --xla_disable_hlo_passes='dce' --c", (), "dce,cse_barrier_expander"),
        ("", ({DISABLED: "algsimp"}, {DISABLED: "dce"}), "algsimp,dce,cse_barrier_expander"),
        ("--xla_disable_hlo_passes=dce", ({DISABLED: "dce,cse_barrier_expander"},), "dce,cse_barrier_expander"),
    ],
)
def test_disabled_passes_are_combined(
    flags: str, requests: tuple[Any, ...], expected: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XLA_FLAGS", flags)
    assert keeping_barriers(("cpu",), None, *requests) == {DISABLED: expected}


@pytest.mark.usefixtures("merging")
def test_disabled_passes_are_read_from_a_flags_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "flags"
    file.write_text("--xla_disable_hlo_passes=dce\n")
    monkeypatch.setenv("XLA_FLAGS", str(file))
    assert keeping_barriers(("cpu",)) == {DISABLED: "dce,cse_barrier_expander"}
    monkeypatch.setenv("XLA_FLAGS", str(file) + ".missing")
    assert keeping_barriers(("cpu",)) == {DISABLED: DROPS_BARRIERS}


@pytest.mark.usefixtures("merging")
def test_pass_that_jax_disables_stays_disabled(monkeypatch: pytest.MonkeyPatch):
    before = jax.config.jax_compiler_enable_remat_pass
    jax.config.update("jax_compiler_enable_remat_pass", False)
    try:
        assert keeping_barriers(("cpu",)) == {DISABLED: "rematerialization,cse_barrier_expander"}
    finally:
        jax.config.update("jax_compiler_enable_remat_pass", before)


@pytest.mark.usefixtures("merging")
def test_other_options_and_platforms_are_unchanged():
    assert keeping_barriers(("cpu",), {"a": 1, "b": 1}, {"b": 2}) == {"a": 1, "b": 2, DISABLED: DROPS_BARRIERS}
    assert keeping_barriers(("cuda",), {"a": 1}) == {"a": 1}
    assert keeping_barriers(("cuda",), None) is None


@pytest.mark.usefixtures("merging")
def test_disabled_passes_reach_the_compiler(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_disable_hlo_passes=one")
    seen: list[Any] = []
    compile = jax.stages.Lowered.compile

    def noted(self: Any, compiler_options: Any = None) -> Any:
        seen.append(compiler_options and dict(compiler_options))
        return compile(self, compiler_options)

    monkeypatch.setattr(jax.stages.Lowered, "compile", noted)
    step = recompute.jax.jit(mlp().step, measure=True, compiler_options={DISABLED: "two"})
    step(weights(), batch())
    step.lower(weights(), batch()).compile({DISABLED: "three", "xla_embed_ir_in_executable": True})
    assert seen == [
        {DISABLED: "one,two,cse_barrier_expander"},
        {"xla_backend_optimization_level": 0},  # the plain step, to measure it
        {DISABLED: "one,two,three,cse_barrier_expander", "xla_embed_ir_in_executable": True},
    ]


def test_compiled_step_keeps_its_barriers():
    """The compiled step keeps its saving, which would be lost if XLA:CPU merged the copies."""
    lowered = recompute.jax.jit(mlp().step).lower(weights(), batch())
    steps = lowered.compile(), lowered.optimized.compile(), lowered.plain.compile()
    kept, without, plain = map(temporary_bytes, steps)
    assert kept is not None and without is not None and plain is not None and kept < 0.8 * plain
    assert (without > 0.95 * plain) == merges_copies(("cpu",))


def test_no_pass_is_disabled_if_copies_are_not_merged(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(compiler_options, "NO_LONGER_MERGES", (0, 0))
    assert keeping_barriers(("cpu",), {"a": 1}, {DISABLED: "dce"}) == {"a": 1, DISABLED: "dce"}
    assert keeping_barriers(("cpu",), None) is None
