"""Operations have the phases of AOTAutograd's tags, and without tags those of their position."""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the graphs are PyTorch's")

import recompute.torch as rt  # noqa: E402
from recompute.dialects.names import Names  # noqa: E402
from recompute.dialects.torch import node_of  # noqa: E402
from recompute.support.operations import name_of  # noqa: E402


class _Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = torch.exp(x)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        x, y = ctx.saved_tensors
        return gradients[0] * y * torch.cos(x)


def test_custom_backward_is_in_gradient_phase() -> None:
    """The operations of a custom backward are in the gradient, although PyTorch does not tag them, and some read no
    gradient: `cos`."""

    def step(x: Any) -> Any:
        for _ in range(4):
            x = torch.sin(_Scaled.apply(x))
        return x.sum()

    torch._dynamo.reset()
    compiled = rt.compile(step, budget="min")
    x = torch.randn(64, 64, requires_grad=True)
    compiled(x).backward()
    own = x.detach().clone().requires_grad_()
    step(own).backward()
    assert torch.equal(x.grad, own.grad)
    (report,) = compiled.report().graphs
    phases = {
        node_of(op): op.attributes[Names.PHASE].data
        for op in report.module.walk()
        if Names.PHASE in op.attributes and "cos" in name_of(op)
    }
    assert len(phases) == 8, "the gradients of `sin`, and those of the custom function"
    assert set(phases.values()) == {"gradient"}
