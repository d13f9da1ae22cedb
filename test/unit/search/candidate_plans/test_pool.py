"""The pool of plans of a step: built once for all budgets, and again where any other option differs."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from recompute.analysis.step import phase_sources
from recompute.driver.api import rewrite
from recompute.mlir_io.parser import parse_module
from recompute.options.recompute_options import DEFAULT_OPTIONS, RecomputeOptions
from recompute.options.selection import Selection
from recompute.planning.solvers.result import Stop
from recompute.rules.facts import pure
from recompute.rules.registry import register, registrations_undone
from recompute.search.candidate_plans import pool
from recompute.search.candidate_plans.pool import Pool
from recompute.search.candidate_plans.pool_cache import forget_pools, pool_of
from recompute.support.diagnostics import Refusal
from recompute.test.unit.transforms.test_segment_budgets import STEP


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[RecomputeOptions]:
    """Return a list that records the options of each pool built from now on."""
    requests, original = list[RecomputeOptions](), Pool.of

    def counted(module: ModuleOp, options: RecomputeOptions, stop: Stop) -> Pool:
        requests.append(options)
        return original(module, options, stop)

    forget_pools()
    monkeypatch.setattr(pool.Pool, "of", counted)
    return requests


def test_several_budgets_share_one_pool(made: list[RecomputeOptions]) -> None:
    texts = [rewrite(STEP, RecomputeOptions(budget=budget, memory_model="xla")).text for budget in ("95%", "85%")]
    assert len(made) == 1
    forget_pools()
    assert rewrite(STEP, RecomputeOptions(budget="85%", memory_model="xla")).text == texts[1]


def test_changed_options_or_step_make_a_new_pool(made: list[RecomputeOptions], tmp_path: Path) -> None:
    first = pool_of(parse_module(STEP, "one"), DEFAULT_OPTIONS)
    assert pool_of(parse_module(STEP, "one"), DEFAULT_OPTIONS) is first and len(made) == 1
    for other in (RecomputeOptions(copies=1), RecomputeOptions(loops=False)):
        pool_of(parse_module(STEP, "one"), other)
    pool_of(parse_module(STEP.replace("sine %x", "cosine %x"), "one"), DEFAULT_OPTIONS)
    assert len(made) == 4


def test_source_positions_do_not_change_the_pool(made: list[RecomputeOptions]) -> None:
    """A step that is called from another line or stack has the same pool: its positions differ, but not its scopes."""
    at = 'loc("jit(f)/jvp(layer0)/sin"(callsite("model.py":1:2 at "main.py":{line}:1)))'
    texts = [STEP.replace('loc("jit(f)/jvp(layer0)/sin")', at.format(line=line)) for line in (3, 4)]
    pools = [pool_of(parse_module(text, name), DEFAULT_OPTIONS) for text, name in zip(texts, "ab", strict=True)]
    assert pools[0] is pools[1] and len(made) == 1
    pool_of(parse_module(texts[0].replace("jvp(layer0)/sin", "jvp(layer2)/sin"), "a"), DEFAULT_OPTIONS)
    assert len(made) == 2


def test_user_phase_source_makes_positions_count(made: list[RecomputeOptions]) -> None:
    with phase_sources.registrations_undone():
        phase_sources.register_source("by line", phase_sources.PhaseSource(lambda op: None, lambda op: ""))
        for name in "ab":
            pool_of(parse_module(STEP, name), DEFAULT_OPTIONS)
    assert len(made) == 2


def test_registered_facts_prevent_pool_reuse(made: list[RecomputeOptions]) -> None:
    with registrations_undone():
        register("acme.swish", pure())
        text = STEP.replace(
            "stablehlo.sine %x : tensor<256xf32>", '"acme.swish"(%x) : (tensor<256xf32>) -> tensor<256xf32>'
        )
        for _ in range(2):
            pool_of(parse_module(text, "one"), DEFAULT_OPTIONS)
    assert len(made) == 2


def test_incomplete_pool_is_not_kept(made: list[RecomputeOptions]) -> None:
    for _ in range(2):
        pool_of(parse_module(STEP, "one"), DEFAULT_OPTIONS, lambda: True)
    assert len(made) == 2


def test_steps_without_the_selected_segments_are_exempt() -> None:
    """The second step of a function is outlined; each step lacks the segments of the other."""
    line = '  %{} = stablehlo.{} : tensor<64xf32> loc("jit(f)/{}/op")\n'.format
    lines = list[str]()
    for name, read, made in (("a", "x", "n"), ("b", "n", "m")):
        forward = [f"tanh %{read}", f"sine %{name}0", f"tanh %{name}1", f"sine %{name}2"]
        lines += [line(f"{name}{index}", text, f"jvp({name}{index // 2})") for index, text in enumerate(forward)]
        for index in reversed(range(4)):
            cotangent = "ct" if index == 3 else f"g{name}{index + 1}"
            product = f"multiply %{cotangent}, %{name}{index}"
            lines.append(line(f"g{name}{index}", product, f"transpose(jvp({name}{index // 2}))"))
        lines.append(line(made, f"add %{read}, %g{name}0", "update"))
    text = (
        "func.func @main(%x: tensor<64xf32>, %ct: tensor<64xf32>) -> tensor<64xf32> {\n"
        + "".join(lines)
        + "  func.return %m : tensor<64xf32>\n}"
    )
    for name in "ab":
        options = RecomputeOptions(selection=Selection(f"{name}*"))
        (candidate, *_) = Pool.of(parse_module(text, "step.mlir"), options).candidates
        assert len(candidate.plans) == 2
    with pytest.raises(Refusal, match=r"no segment matches 'c\*'"):
        Pool.of(parse_module(text, "step.mlir"), RecomputeOptions(selection=Selection("c*")))
