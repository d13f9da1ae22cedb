"""Compiler option that keeps barriers on CPU, combined with passes that others disable."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recompute
from recompute.frontends.jax.compilation.allocation import temporary_bytes
from recompute.frontends.jax.compilation.compiler_options import DISABLED, DROPS_BARRIERS, keeping_barriers
from recompute.test.unit.frontends.jax.steps import batch, jax, mlp, weights


@pytest.mark.parametrize(
    ("flags", "asked", "expected"),
    [
        ("", (), "cse_barrier_expander"),
        ("--xla_disable_hlo_passes=dce,cse", (), "dce,cse,cse_barrier_expander"),
        ("--a=b --xla_disable_hlo_passes='dce' --c", (), "dce,cse_barrier_expander"),
        ("", ({DISABLED: "algsimp"}, {DISABLED: "dce"}), "algsimp,dce,cse_barrier_expander"),
        ("--xla_disable_hlo_passes=dce", ({DISABLED: "dce,cse_barrier_expander"},), "dce,cse_barrier_expander"),
    ],
)
def test_all_that_is_turned_off(flags: str, asked: tuple[Any, ...], expected: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XLA_FLAGS", flags)
    assert keeping_barriers(("cpu",), None, *asked) == {DISABLED: expected}


def test_flags_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "flags"
    file.write_text("--xla_disable_hlo_passes=dce\n")
    monkeypatch.setenv("XLA_FLAGS", str(file))
    assert keeping_barriers(("cpu",)) == {DISABLED: "dce,cse_barrier_expander"}
    monkeypatch.setenv("XLA_FLAGS", str(file) + ".missing")
    assert keeping_barriers(("cpu",)) == {DISABLED: DROPS_BARRIERS}


def test_a_pass_that_jax_turns_off(monkeypatch: pytest.MonkeyPatch):
    before = jax.config.jax_compiler_enable_remat_pass
    jax.config.update("jax_compiler_enable_remat_pass", False)
    try:
        assert keeping_barriers(("cpu",)) == {DISABLED: "rematerialization,cse_barrier_expander"}
    finally:
        jax.config.update("jax_compiler_enable_remat_pass", before)


def test_other_options_and_platforms():
    assert keeping_barriers(("cpu",), {"a": 1, "b": 1}, {"b": 2}) == {"a": 1, "b": 2, DISABLED: DROPS_BARRIERS}
    assert keeping_barriers(("cuda",), {"a": 1}) == {"a": 1}
    assert keeping_barriers(("cuda",), None) is None


def test_they_reach_the_compiler(monkeypatch: pytest.MonkeyPatch):
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


def test_barriers_are_kept():
    """Keep the barriers with the option; without it XLA:CPU drops them, and the saving is lost."""
    lowered = recompute.jax.jit(mlp().step).lower(weights(), batch())
    kept, dropped = (temporary_bytes(each) for each in (lowered.compile(), lowered.less.compile()))
    assert kept is not None and dropped is not None and kept < 0.8 * dropped
