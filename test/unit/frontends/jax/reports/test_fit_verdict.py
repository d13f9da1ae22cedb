"""The verdict of `recompute.jax.explain`: whether a step fits within a budget or on the device."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import re
import sys
from dataclasses import replace
from html import escape, unescape
from typing import Any

import pytest

import recompute
from recompute.frontends.jax.reports.fit_verdict import DeviceBytes, FitVerdict, fit_verdict
from recompute.support.units import format_bytes
from recompute.test.unit.frontends.jax.steps import batch, jax, mlp, weights


def test_explain_states_how_sizes_and_flops_are_counted():
    text = str(recompute.jax.explain(mlp().step, weights(), batch(), budget="60MB"))
    assert "\na call runs: the plain step, just as jax.jit runs it\n" in text
    assert "\nsizes: as the compiler reports them; on the device: temporaries, arguments and results\n" in text
    assert "\nFLOPs: as the compiler counts them\n" in text
    text = str(recompute.jax.explain(mlp().step, weights(), batch(), budget="1%"))
    assert "\nwithout the budget, a call runs: the rewritten step; with the budget, a call raises an error\n" in text


@pytest.mark.parametrize("wrap", [lambda step: step, jax.jit, recompute.jax.jit])
def test_explain_accepts_any_step(wrap: Any):
    message = recompute.jax.explain(wrap(mlp().step), weights(), batch(), budget="500 KiB")
    needs = [item.device_bytes for item in (message.plain, message.chosen)]
    assert needs[0] is not None and needs[1] is not None and needs[1] <= 500 * 1024 < needs[0]
    assert re.search(r"^fits in 500 KiB +no +yes$", str(message), re.MULTILINE)
    first, second, *_ = str(message).splitlines()
    sizes = [format_bytes(size or 0) for size in needs]
    assert first == f"fits: needs {sizes[1]} of 500.0 KiB on the device; the plain step needs {sizes[0]}"
    assert second.startswith("step: ") and repr(message) == f"<recompute.jax.Report: {first}>"
    assert message.fit is not None and message.fit.fits and escape(first) in unescape(message._repr_html_())  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("budget", [None, "device"])
def test_budget_of_a_device_without_limit_is_rejected(budget: str | None):
    report = recompute.jax.explain(mlp().step, weights(), batch(), budget=budget)
    unknown = "unknown: the device reports no memory limit; give a size such as budget='8GiB'"
    assert str(report).splitlines()[0] == unknown and report.fit is not None and report.fit.fits is None
    assert "fits in" not in str(report) and report.copies > 0


def test_report_gives_a_verdict_on_device_memory(monkeypatch: pytest.MonkeyPatch):
    module: Any = sys.modules["recompute.frontends.jax.reports.compare_step"]
    for limit, start in ((2**20, "fits: needs "), (2**16, "does not fit: arguments"), (2**17, "does not fit without")):
        monkeypatch.setattr(module, "reported_total_bytes", lambda limit=limit: limit)
        assert str(recompute.jax.explain(mlp().step, weights(), batch())).startswith(start)


def test_verdict_depends_on_needs_and_budget():
    needs = DeviceBytes(plain=400, runs=300, fixed=100, least=200, devices=8)
    verdict = fit_verdict(needs, 150, has_failed=True)
    assert verdict == FitVerdict(
        False, "does not fit: the smallest step found needs 200 B, above the budget of 150 B per device"
    )
    assert fit_verdict(needs, 300, has_failed=False).text == (
        "fits: needs 300 B of 300 B per device; the plain step needs 400 B"
    )
    assert fit_verdict(needs, 400, has_failed=False).text.endswith("; the plain step also fits")
    assert fit_verdict(replace(needs, runs=None), 400, has_failed=False) == FitVerdict(
        None, "unknown: the compiler does not report the memory of the step"
    )


def test_a_budget_needs_a_unit_and_is_printed_as_given():
    assert "fits in 60MB" in str(recompute.jax.explain(mlp().step, weights(), batch(), budget="60MB"))
    with pytest.raises(ValueError, match="'8' has no unit: write '8%', '8MiB', '8GiB', or '8B' for bytes"):
        recompute.jax.explain(mlp().step, weights(), batch(), budget="8")
    with pytest.raises(ValueError, match=r"jit: invalid budget '8': '8' has no unit: .*"):
        recompute.jax.jit(mlp().step, budget="8")


def test_explain_accepts_static_arguments():
    jitted = jax.jit(lambda count, w, x: mlp().step(w[:count], x), static_argnums=0)
    assert recompute.jax.explain(jitted, 2, weights(), batch()).copies > 0


def test_fit_says_what_to_pass_instead_of_a_compiled_step():
    compiled = jax.jit(mlp().step).lower(weights(), batch()).compile()
    with pytest.raises(TypeError, match=r"not a compiled one: pass the result of jax.jit\(f\).lower"):
        recompute.fit(compiled, "1MiB")
