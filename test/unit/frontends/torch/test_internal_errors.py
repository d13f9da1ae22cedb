"""An internal error of this package is a warning, and an error of the step only with `strict`."""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs PyTorch")

import recompute.torch as rt  # noqa: E402
from recompute.frontends.torch.partition import partitioner  # noqa: E402


@pytest.fixture(autouse=True)
def broken(monkeypatch: pytest.MonkeyPatch):
    def read_joint(*args: Any, **keywords: Any) -> Any:
        raise KeyError("a table without a line")

    monkeypatch.setattr(partitioner, "read_joint", read_joint)
    torch._dynamo.reset()


def function(x: Any) -> Any:
    return x.sin().exp().tanh().sum()


def test_step_runs_with_a_warning():
    x = torch.linspace(-1, 1, 64, requires_grad=True)
    step = rt.compile(function, budget="min")
    with pytest.warns(rt.NothingSaved, match="KeyError: 'a table without a line'"):
        step(x).backward()
    (expected,) = torch.autograd.grad(function(x), x)
    assert torch.equal(x.grad, expected)
    assert "a table without a line" in step.report().graphs[0].reason


def test_strict_raises_internal_error():
    step = rt.compile(function, budget="min", strict=True)
    with pytest.raises(Exception, match="KeyError"):
        step(torch.ones(4, requires_grad=True))
