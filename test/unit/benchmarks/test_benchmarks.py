"""Each threshold of the benchmark against `jax.checkpoint` can be missed."""

from __future__ import annotations

from typing import Any

import pytest

from recompute.test.benchmark_scripts import script

pytest.importorskip("jax", reason="the benchmark runs JAX")


@pytest.fixture(scope="module")
def benchmark() -> Any:
    return script("xla_memory.against_jax_checkpoint")


PLAIN = {"temp_bytes": 1000, "flops": 1000.0, "alias_bytes": 64}
CHECKPOINT = {"temp_bytes": 400, "flops": 2000.0, "alias_bytes": 64}


def missed(benchmark: Any, ours: dict[str, float]) -> list[str]:
    rest = {"argument_bytes": 0, "output_bytes": 0, "dots": 0, "compile_seconds": 0.0}
    rows = {"plain": PLAIN, "jax.checkpoint": CHECKPOINT, "ours": CHECKPOINT | ours}
    costs = {name: benchmark.CompiledCost(**rest, **row) for name, row in rows.items()}
    return list(benchmark.ExampleComparison("mlp", "large", costs).missed())


@pytest.mark.parametrize("ours", [{}, {"temp_bytes": 404, "flops": 2009.0}, {"temp_bytes": 1, "flops": 1.0}])
def test_results_equal_to_jax_checkpoint_meet_every_bar(benchmark: Any, ours: dict[str, float]):
    assert missed(benchmark, ours) == []


@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        ({"temp_bytes": 405}, "405 bytes of temporaries, but 400 with jax.checkpoint"),
        ({"flops": 2011.0}, "2011 FLOPs, but 2000 with jax.checkpoint"),
        ({"alias_bytes": 0}, "0 aliased bytes, but 64 in the plain step"),
    ],
)
def test_missed_bar_is_reported(benchmark: Any, ours: dict[str, float], expected: str):
    assert missed(benchmark, ours) == [expected]
