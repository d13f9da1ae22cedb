"""The bars of the benchmark against `jax.checkpoint` can be missed, each of them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from recompute.test.benchmark_scripts import script

pytest.importorskip("jax", reason="the benchmark runs JAX")


@pytest.fixture(scope="module")
def benchmark() -> Any:
    return script("against_jax_checkpoint")


PLAIN = {"temp_bytes": 1000, "flops": 1000.0, "alias_bytes": 64}
CHECKPOINT = {"temp_bytes": 400, "flops": 2000.0, "alias_bytes": 64}
CLOSE = {"bit_equal": True, "ours": 1e-7, "checkpoint": 1e-7}


def missed(benchmark: Any, ours: dict[str, float], close: dict[str, float]) -> list[str]:
    rest = {"argument_bytes": 0, "output_bytes": 0, "dots": 0, "compile_seconds": 0.0}
    rows = {"plain": PLAIN, "jax.checkpoint": CHECKPOINT, "ours": CHECKPOINT | ours}
    costs = {name: benchmark.Cost(**rest, **row) for name, row in rows.items()}
    closeness = (benchmark.Closeness(size="small", **(CLOSE | close)),)
    return list(benchmark.Comparison("mlp", "large", costs, closeness).missed())


@pytest.mark.parametrize("ours", [{}, {"temp_bytes": 404, "flops": 2009.0}, {"temp_bytes": 1, "flops": 1.0}])
def test_as_good_as_jax_checkpoint_misses_nothing(benchmark: Any, ours: dict[str, float]):
    assert missed(benchmark, ours, {}) == []


@pytest.mark.parametrize(
    ("ours", "close", "expected"),
    [
        ({"temp_bytes": 405}, {}, "temporaries 405 bytes, jax.checkpoint 400"),
        ({"flops": 2011.0}, {}, "2011 floating-point operations, jax.checkpoint 2000"),
        ({"alias_bytes": 0}, {}, "aliased 0 bytes, plain 64"),
        ({}, {"bit_equal": False}, "small results differ from plain with fusion off"),
        ({}, {"ours": 2e-7}, "small results 2.0e-07 from plain, jax.checkpoint 1.0e-07"),
        ({}, {"ours": math.inf, "checkpoint": math.inf}, "small results are not finite"),
    ],
)
def test_a_missed_bar_is_told(benchmark: Any, ours: dict[str, float], close: dict[str, float], expected: str):
    assert missed(benchmark, ours, close) == [expected]


def test_distance_is_relative_and_the_largest_of_all_results(benchmark: Any):
    assert benchmark.distance([3.0, [0.0, 4.0]], [3.0, [0.0, 4.0]]) == 0.0
    assert benchmark.distance([[3.0, 4.0], 10.0], [[3.0, 4.5], 10.0]) == pytest.approx(0.125)
    assert benchmark.distance([1.0, 1.0], [math.nan, 1.0]) == math.inf
