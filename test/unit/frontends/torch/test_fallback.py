"""Unsupported steps run as without this package: with one warning, equal results, and no error of this package."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

import warnings
from typing import Any

import pytest

from recompute.test.unit.frontends.torch.steps import compiled, made, run, torch

import recompute.torch as rt  # isort: skip


def _gradient(step: Any, x: Any) -> Any:
    own = x.clone().requires_grad_()
    step(own).backward()
    return own.grad


def _branches(x: Any) -> Any:
    """Return the result of a higher-order operation, which has no encoding."""
    return torch.cond(x.sum() > 0, lambda y: y.sin() * y, lambda y: y.cos() * y, (x,)).exp().sum()


def test_a_higher_order_operation_is_left_to_pytorch() -> None:
    torch._dynamo.reset()
    x = torch.linspace(-1, 2, 32)
    step = rt.compile(_branches, budget="50%")
    with pytest.warns(rt.NothingSaved, match="cond.*: it is a higher-order operation") as caught:
        ours = _gradient(step, x)
    assert len([item for item in caught if item.category is rt.NothingSaved]) == 1
    theirs = _gradient(torch.compile(_branches, backend="aot_eager"), x)
    assert torch.equal(ours, theirs)
    assert "left to PyTorch's partitioner" in str(step.report())


def test_inference_is_unchanged() -> None:
    torch._dynamo.reset()
    model, args = made("gpt without dropout")
    step = rt.compile(model, budget="1%")
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", rt.NothingSaved)
        assert torch.equal(step(*args), model(*args))
    assert step.report().graphs == ()


def test_impossible_budget_error_reports_minimum() -> None:
    torch._dynamo.reset()
    model, args = made("gpt")
    step = rt.compile(model, budget="5%")
    expected = r"the budget of .* no plan needs less than .* bytes\)?.*; the lowest peak of any plan is .*"
    with pytest.raises(Exception, match=expected) as raised:
        step(*args)
    torch._dynamo.reset()
    smallest = rt.compile(model, budget="min")
    smallest(*args)
    assert f"{smallest.report().graphs[0].peak_bytes} bytes) in addition to weights and inputs" in str(raised.value)


def test_unknown_operation_runs_once() -> None:
    """A custom operation with a hidden counter is not copied, since its effects are unknown."""
    torch._dynamo.reset()
    runs = list[int]()

    @torch.library.custom_op("recompute_test::scaled", mutates_args=())
    def scaled(x: torch.Tensor) -> torch.Tensor:
        runs.append(1)
        return x * 2

    scaled.register_fake(lambda x: torch.empty_like(x))
    scaled.register_autograd(lambda ctx, grad: grad * 2)

    def function(x: Any) -> Any:
        for _ in range(4):
            x = scaled(x).sin().exp().tanh()
        return x.sum()

    x = torch.linspace(-1, 1, 4096)
    step = rt.compile(function, budget="min")
    ours = _gradient(step, x)
    assert len(runs) == 4
    (report,) = step.report().graphs
    assert report.copies > 0 and report.reason == ""
    assert torch.equal(ours, _gradient(function, x))


def test_region_policy_applies_to_its_operations() -> None:
    torch._dynamo.reset()

    def function(x: Any, policy: str) -> Any:
        with rt.region("inner", policy=policy):
            y = x.sin().exp().tanh()
        return (y.cos() * y).sum()

    x = torch.linspace(-1, 1, 65536)
    copies = dict[str, int]()
    for policy in ("recompute", "save"):
        torch._dynamo.reset()
        step = rt.compile(lambda own, policy=policy: function(own, policy), segments="none")
        assert torch.equal(_gradient(step, x), _gradient(lambda own, policy=policy: function(own, policy), x))
        (report,) = step.report().graphs
        copies[policy] = report.copies
    assert copies["recompute"] > copies["save"] == 0


def test_user_checkpoint_is_kept() -> None:
    from torch.utils.checkpoint import checkpoint

    def function(x: Any) -> Any:
        for _ in range(3):
            x = checkpoint(lambda y: y.sin().exp().tanh().cos(), x, use_reentrant=False)
        return x.sum()

    torch._dynamo.reset()
    x = torch.linspace(-1, 1, 65536)
    step = rt.compile(function)
    assert torch.equal(_gradient(step, x), _gradient(function, x))
    (report,) = step.report().graphs
    assert report.copies > 0 and report.peak_bytes < report.plain_bytes


def test_two_graphs_are_both_reported() -> None:
    model, args = made("gpt without dropout")

    class Broken(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, tokens: Any, targets: Any) -> Any:
            loss = self.model(tokens, targets)
            torch._dynamo.graph_break()
            return loss * loss.exp()

    broken = Broken()
    step, ran = compiled(broken, args, lambda own: rt.compile(own))
    assert ran.same_as(run(broken, broken, args))
    assert len(step.report().graphs) == 2
    assert "2 graphs: the peak of the whole step can exceed the peak of each graph; fullgraph=True" in str(
        step.report()
    )


def test_other_sizes_are_planned_for_the_sizes_at_hand() -> None:
    """A second batch of another size, for which Dynamo makes the size symbolic, is planned; a third one needs no new
    graph."""
    torch._dynamo.reset()
    weight = torch.linspace(-1, 1, 64 * 64).view(64, 64).requires_grad_()

    def function(x: Any) -> Any:
        for _ in range(4):
            x = torch.nn.functional.dropout((x @ weight).tanh().view(-1, 64), 0.1)
        return (x.exp() / x.shape[0]).sum()

    def gradient(step: Any, x: Any) -> Any:
        weight.grad = None
        torch.manual_seed(3)
        step(x).backward()
        return weight.grad

    step = rt.compile(function, budget="60%")
    with warnings.catch_warnings():
        warnings.simplefilter("error", rt.NothingSaved)
        for rows in (256, 320, 384):
            x = torch.linspace(-1, 1, rows * 64).view(rows, 64)
            assert torch.equal(gradient(step, x), gradient(function, x))
    fixed, symbolic = step.report().graphs
    assert fixed.copies > 0 and symbolic.copies > 0


def test_flex_attention_runs_as_in_pytorch() -> None:
    """The operation runs as in PyTorch; on the CPU it has no gradient, so its operands need none."""
    from torch.nn.attention.flex_attention import flex_attention

    torch._dynamo.reset()
    q = torch.linspace(-1, 1, 2 * 128 * 16).view(1, 2, 128, 16)

    def function(x: Any) -> Any:
        return (flex_attention(q, q, q) * x.sin().exp()).sum()

    x = torch.linspace(-1, 2, 16)
    step = rt.compile(function, budget="50%")
    with pytest.warns(rt.NothingSaved, match="PyTorch's own partitioner is used: .*flex_attention") as caught:
        ours = _gradient(step, x)
    assert len([item for item in caught if item.category is rt.NothingSaved]) == 1
    assert torch.equal(ours, _gradient(torch.compile(function, backend="aot_eager"), x))
    (report,) = step.report().graphs
    assert "flex_attention" in report.reason


def test_report_of_step_without_graphs_gives_the_reason() -> None:
    """The reason is given for a gradient inside the compiled function, and for a module that Dynamo leaves to
    Python."""
    torch._dynamo.reset()
    whole = rt.compile(lambda x: torch.func.grad(lambda y: y.sin().exp().sum())(x), budget="50%")
    assert str(whole.report()) == "nothing with a backward pass has been compiled yet"
    whole(torch.ones(16))
    assert whole.report().reason.startswith("no graph has a backward pass: 1 compiled without one")
    rnn = torch.nn.LSTM(8, 8)
    recurrent = rt.compile(lambda x: rnn(x)[0].sum(), budget="50%")
    recurrent(torch.ones(4, 2, 8)).backward()
    assert recurrent.report().graphs == ()
    assert recurrent.report().reason.startswith("nothing was compiled: ") and "LSTM" in recurrent.report().reason


def test_an_operation_with_an_ordered_effect_runs_once() -> None:
    """An operation with an ordered effect runs once; PyTorch orders it by tokens, which the step takes and returns."""
    from torch._higher_order_ops.effects import _EffectType, _register_effectful_op

    torch._dynamo.reset()
    message = list[float]()

    @torch.library.custom_op("recompute_test::tell", mutates_args=())
    def tell(x: torch.Tensor) -> torch.Tensor:
        message.append(float(x))
        return x.clone()

    tell.register_fake(torch.empty_like)
    handle = _register_effectful_op(torch.ops.recompute_test.tell.default, _EffectType.ORDERED)

    def loss(x: Any) -> Any:
        for _ in range(4):
            x = torch.sin(torch.exp(torch.cos(x)))
            tell(x.detach().mean())
        return x.sum()

    try:
        x = torch.linspace(-1, 2, 4096)
        step = rt.compile(loss, budget="60%")
        with warnings.catch_warnings():
            warnings.simplefilter("error", rt.NothingSaved)
            gradient = _gradient(step, x)
        ours = message.copy()
        message.clear()
        assert torch.equal(gradient, _gradient(loss, x))
        assert len(ours) == 4 and ours == message
        (graph,) = step.report().graphs
        assert graph.copies and graph.peak_bytes <= 0.6 * graph.plain_bytes
    finally:
        handle.destroy()
