"""The examples train in less memory, with the losses of the plain step."""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import importlib
import re
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the examples are of PyTorch")
rt = pytest.importorskip("recompute.torch", reason="the PyTorch frontend is not there")


def run(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> tuple[list[str], str]:
    """The lines with losses, and the report."""
    torch._dynamo.reset()
    monkeypatch.setattr("sys.argv", [f"{name}.py"])
    importlib.import_module(f"recompute.examples.torch.{name}").main()
    lines = capsys.readouterr().out.splitlines()
    losses = [line for line in lines if line.startswith("loss ")]
    return losses, "\n".join(line for line in lines if line not in losses)


class PlainStep:
    """What `rt.compile` returns, of a model that runs eagerly."""

    def __init__(self, model: Any):
        self.model = model

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.model(*args, **keywords)

    def report(self) -> str:
        return ""


@pytest.mark.slow("gpt", "unet", "resnet")
@pytest.mark.parametrize("name", ["gpt", "resnet", "unet", "bert"])
def test_example_trains_with_equal_losses(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    if name == "bert":
        pytest.importorskip("transformers", reason="the example has a model of transformers")
    losses, report = run(name, monkeypatch, capsys)
    assert len(losses) == 3
    (copies,) = re.findall(r"(\d+) operations are recomputed", report)
    assert int(copies) > 0 and "proved equal" in report
    monkeypatch.setattr(rt, "compile", lambda model, **keywords: PlainStep(model))
    plain, _ = run(name, monkeypatch, capsys)
    assert losses == plain
