"""Examples of Paddle's documents, which give the documented results."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

pytest.importorskip("jax", reason="the examples train with it")
pytest.importorskip("optax", reason="the optimizer of one of them")

PAGE = Path(__file__).resolve().parents[5] / "docs" / "paddle_calls.md"
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}


@pytest.mark.slow
def test_fleet_page_network_trains_equally(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    from recompute.examples.paddle_network import main

    main(["--width", "128", "--batch", "1024", "--folder", str(tmp_path / "new")])
    message = capsys.readouterr().out
    ((normal, ours),) = re.findall(r"^normal_loss: (\[.*\]), recompute_loss: (\[.*\])$", message, re.MULTILINE)
    assert normal == ours and normal.count(",") == 4
    matches = re.findall(r"^temporaries, (.*): (\S+) (\w+)$", message, re.MULTILINE)
    sizes = {words: float(size) * UNITS[unit] for words, size, unit in matches}
    assert sizes["blocks 1 and 2"] < 0.8 * sizes["none"]
    assert sizes["blocks 1 and 2"] <= 1.01 * sizes["jax.checkpoint"]
    picture = (tmp_path / "new" / "paddle_network.memory.svg").read_text()
    assert "five blocks" in picture and picture.count("</svg>") == 1


@pytest.mark.slow
def test_fleet_page_network_saves_memory_in_full_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    from recompute.examples.paddle_network import main

    main(["--folder", str(tmp_path)])
    assert "normal_loss: [" in capsys.readouterr().out


@pytest.mark.slow
def test_optimizer_page_network_trains(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    from recompute.examples.paddle_optimizer import main

    main(["--folder", str(tmp_path)])
    assert "</svg>" in (tmp_path / "paddle_optimizer.memory.svg").read_text()
    message = capsys.readouterr().out
    costs = re.findall(r"^step=(\d) cost=(\d+\.\d{6})$", message, re.MULTILINE)
    assert [int(step) for step, _ in costs] == list(range(10))
    assert all(0 < float(cost) < 5 for _, cost in costs)
    for way in ("apply_gradients", "apply_optimize"):
        assert f"{way}: parameters, moments and cost are bit-identical to those of minimize" in message


def test_page_snippet_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (snippet,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "snippet.py").write_text(snippet)
    runpy.run_path(str(tmp_path / "snippet.py"))
    message = capsys.readouterr().out
    (ratio,) = re.findall(r"^temporaries .* (\S+)$", message, re.MULTILINE)
    assert float(ratio) < 0.9
    losses = [float(line) for line in message.splitlines()[-3:]]
    assert losses[2] < losses[1] < losses[0]


def test_functions_named_on_page_exist():
    import recompute

    calls = set(re.findall(r"paddle\.(\w+)\(", PAGE.read_text())) & set(recompute.jax.paddle.__all__)
    assert calls == {"recompute", "recompute_sequential", "RecomputeOptimizer"}
    for method in re.findall(r"`(?:program(?:, params_grads)? = )?sgd\.(\w+)\(", PAGE.read_text()):
        assert hasattr(recompute.jax.paddle.RecomputeOptimizer, method), method
