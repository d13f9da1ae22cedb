"""Curve by the XLA:CPU model: each point is the need of a written plan, the curve is monotone, and it has no
bound."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from recompute.driver.api import memory
from recompute.driver.budgets.pareto_by_model import NO_BOUND, swept_by_model
from recompute.mlir_io.parser import parse_module
from recompute.reports.curve_chart import to_svg
from recompute.search.candidate_plans.pool_cache import forget_pools
from recompute.test.examples import original
from recompute.test.unit.tools.plan.test_planned_step import STEP
from recompute.tools.recompute_plan import main


@pytest.mark.slow
def test_points_match_rewritten_programs() -> None:
    module = original("mlp.small.mlir")
    curve = swept_by_model(module, 8, lambda _: None, lambda: False)
    (plain,) = memory(module, "xla").values()
    assert curve.plain_peak_bytes == plain.peak_bytes and curve.minimum_bytes == 0
    assert len(curve.points) + len(curve.refused) == 8 and len(curve.points) >= 4
    for point in curve.points[:-1]:
        assert point.peak_bytes <= point.budget_bytes and point.percent > 0
        assert point.bound_percent is None and point.bound_by == NO_BOUND and point.recomputed_segments
    for low, high in pairwise(curve.points):
        assert low.percent >= high.percent
    assert not any(refusal.proved for refusal in curve.refused)


def test_stopped_curve_has_only_the_plain_point() -> None:
    forget_pools()
    curve = swept_by_model(parse_module(STEP, "step"), 4, lambda _: None, lambda: True)
    assert [point.found_by for point in curve.points] == ["plain"]
    assert all(refusal.reason.startswith("stopped: ") for refusal in curve.refused)


def test_command_writes_the_curve_of_the_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step, data, page = tmp_path / "step.mlir", tmp_path / "curve.json", tmp_path / "curve.html"
    step.write_text(STEP)
    assert main([str(step), "--sweep", "5", "-q", "--memory-model", "xla", "--curve", str(data)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("plain peak 8.0 KiB (8192 bytes) of temporaries; no bound is proved by this model")
    assert lines[1].split() == ["budget", "peak", "extra", "%", "found", "by"]
    assert lines[4].split()[:3] == ["0.6000", "0.5000", "22.2222"]
    (curve,) = json.loads(data.read_text())
    assert [item["bound_percent"] for item in curve["points"]] == [None, None, 0.0]
    assert main([str(step), "--sweep", "5", "-q", "--memory-model", "xla", "--curve", str(page)]) == 0
    assert "no bound is proved by this model" in page.read_text()


def test_picture_in_the_model_has_no_lower_bound() -> None:
    curve = swept_by_model(parse_module(STEP, "step"), 5, lambda _: None, lambda: False)
    picture = to_svg([curve], "memory")
    assert "</svg>" in picture and "proven lower bound" not in picture and "best plan found" in picture
