"""With the disk cache of plans, a second process does not search, but still exports and proves."""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the steps are PyTorch's")

import recompute  # noqa: E402
import recompute.torch as rt  # noqa: E402
from recompute.frontends.torch.partition import budget_rewrites, rewritten_step  # noqa: E402
from recompute.support.disk_cache import SUFFIX  # noqa: E402


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    before = recompute.config.cache_dir
    recompute.config.cache_dir = str(tmp_path)
    yield tmp_path
    recompute.config.cache_dir = before


def model() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        *(torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.GELU(), torch.nn.Dropout(0.1)) for _ in range(4))
    )


def run(**options: Any) -> tuple[Any, list[Any]]:
    """Run a step as a new process would, and return its report and its gradients."""
    torch._dynamo.reset()
    net = model()
    step = rt.compile(net, **options)
    step(torch.linspace(-1, 1, 256 * 32).view(256, 32)).square().mean().backward()
    (graph,) = step.report().graphs
    return graph, [parameter.grad for parameter in net.parameters()]


@pytest.mark.parametrize("options", [{"budget": "75%"}, {"budget": "min"}, {"segment_count": 2}])
def test_plan_of_an_earlier_run_is_reused(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch):
    first, gradients = run(**options)

    def plan(*_: Any) -> Any:
        raise AssertionError("the plan is stored")

    monkeypatch.setattr(budget_rewrites, "rewrite_within", plan)
    second, again = run(**options)
    assert not first.is_stored and second.is_stored and "plan from the disk cache, proved equal" in str(second)
    assert all(torch.equal(left, right) for left, right in zip(gradients, again, strict=True))
    for name in ("peak_bytes", "plain_bytes", "copies", "flops", "remarks", "optimality"):
        assert getattr(first, name) == getattr(second, name)


def test_plans_are_cached_per_options_and_step():
    assert not any(run(budget=budget)[0].is_stored for budget in ("75%", "80%", 0.85))
    assert run(budget="75%", cost="bytes")[0].is_stored is False
    assert run(budget="75%")[0].is_stored


def test_a_damaged_entry_counts_as_absent(folder: Path):
    first, _ = run(budget="75%")
    (path,) = folder.glob(f"*{SUFFIX}")
    data = bytearray(path.read_bytes())
    data[-9] ^= 1
    path.write_bytes(data)
    second, _ = run(budget="75%")
    assert not second.is_stored and second.peak_bytes == first.peak_bytes
    assert run(budget="75%")[0].is_stored, "the damaged entry was replaced"


def test_a_plan_with_another_peak_counts_as_absent(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        rewritten_step.RewrittenStep,
        "stored_plan",
        property(lambda self: rewritten_step.StoredPlan(self.result.plan_text, 1, (), None)),
    )
    run(budget="75%")
    assert not run(budget="75%")[0].is_stored


def test_a_planner_is_not_cached(folder: Path):
    run(planner=lambda graph: recompute.planning.plan.Plan())
    assert not list(folder.glob("*"))
