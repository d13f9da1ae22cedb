"""Under Inductor: dropout keeps its mask in copies, and the key of the cache tells options apart."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import pickle
import shutil
from typing import Any

import pytest

from recompute.test.unit.frontends.torch.steps import torch

import recompute.torch as rt  # isort: skip
from recompute.frontends.torch.inductor import InductorPartitioner  # isort: skip
from recompute.frontends.torch.options import options_of  # isort: skip


def test_options_have_keys_of_their_own() -> None:
    keys = [InductorPartitioner(options_of({"budget": budget})).uuid() for budget in ("50%", "60%", "50%")]
    assert keys[0] == keys[2] != keys[1]
    assert InductorPartitioner(options_of({"planner": lambda graph: graph})).uuid() is None
    assert len(pickle.dumps(InductorPartitioner(options_of({"budget": "50%"})))) < 200


def test_unknown_backends() -> None:
    with pytest.raises(ValueError, match="unknown backend 'tpu'; known are aot_eager, inductor"):
        rt.compile(lambda x: x, backend="tpu")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a C++ compiler")
def test_dropout_keeps_its_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    torch._dynamo.reset()
    monkeypatch.setenv("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")

    def function(x: Any) -> Any:
        for _ in range(3):
            x = torch.nn.functional.dropout(x.sin().exp(), 0.5)
        return x.sum()

    def gradient(step: Any) -> Any:
        torch.manual_seed(5)
        own = torch.linspace(-1, 1, 4096).requires_grad_()
        step(own).backward()
        return own.grad

    ours = rt.compile(function, budget="min", backend="inductor")
    less = gradient(ours)
    (report,) = ours.report().graphs
    assert report.copies > 0 and report.reason == ""
    torch._dynamo.reset()
    assert torch.allclose(less, gradient(torch.compile(function)), rtol=1e-6, atol=0)
