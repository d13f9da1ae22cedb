"""Distances between results, their table, and the report of a form that differs from the plain step."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from recompute.benchmarks.harness.markdown import insert_tables
from recompute.test.benchmark_scripts import script

pytest.importorskip("jax", reason="the benchmark runs JAX")

ROOT = Path(__file__).resolve().parents[3]
INF = float("inf")
EPS = float(np.finfo(np.float32).eps)


@pytest.fixture(scope="module")
def distances() -> Any:
    return script("rounding.distances")


def f32(*numbers: float) -> Any:
    return np.array(numbers, np.float32)


@pytest.mark.parametrize(
    ("reference", "results", "differing", "units", "relative"),
    [
        ([f32(1, 2), f32(3)], [f32(1, 2), f32(3)], set[int](), 0, 0),
        ([f32(1), f32(3, 4)], [f32(1), f32(3, 4.5)], {1}, 0.5 / (4 * EPS), 0.1),
        ([f32(3, 4), {"a": f32(10)}], [f32(3, 4.5), {"a": f32(9)}], {0, 1}, 0.5 / (4 * EPS), 0.1),
        ([f32(1, 0)], [f32(1, EPS)], {0}, 1, EPS),
        ([f32(0.0)], [f32(-0.0)], {0}, 0, 0),
        ([f32(0, 0)], [f32(0, 1)], {0}, INF, INF),
        ([f32(np.nan)], [f32(np.nan)], set[int](), INF, INF),
        ([f32(1)], [f32(np.inf)], {0}, INF, INF),
        ([np.array([2, 4])], [np.array([2, 3])], {0}, INF, 1 / 20**0.5),
        ([np.array([2, 4])], [np.array([2, 4])], set[int](), 0, 0),
        ([np.array([1], ml_dtypes.bfloat16)], [np.array([1.0078125], ml_dtypes.bfloat16)], {0}, 1, 2**-7),
        ([np.array([3 + 4j])], [np.array([3 + 3j])], {0}, 0.2 / float(np.finfo(np.float64).eps), 0.2),
    ],
)
def test_distances_are_the_largest_of_all_results(
    distances: Any, reference: Any, results: Any, differing: set[int], units: float, relative: float
) -> None:
    result = distances.Closeness.of(reference, results)
    assert result.leaves == len(reference)
    assert result.differing == differing
    assert result.units == pytest.approx(units)
    assert result.relative == pytest.approx(relative)


def test_result_differs_if_any_run_differs(distances: Any) -> None:
    result = distances.Closeness.largest(
        [distances.Closeness.of([f32(1), f32(8)], [f32(*a), f32(*b)]) for a, b in RUNS]
    )
    assert (result.differing, result.relative) == ({0, 1}, 0.5)
    assert result.units == pytest.approx(0.5 / EPS)
    assert distances.cell(result) == "2 / 4.2e+06 / 5.0e-01"


RUNS = (((1.5,), (8.0,)), ((1.0,), (9.0,)), ((1.0,), (8.0,)))


def chain_of(distances: Any, checkpoint: bool, factor: float = 1.0) -> Any:
    """Return a chain of three small blocks and its gradient."""
    jax = distances.jax

    def loss(x: Any) -> Any:
        for index in range(3):
            with jax.named_scope(f"block{index}"):
                block = jax.checkpoint(grow) if checkpoint else grow
                x = block(x)
        return jax.numpy.sum(x) * factor

    def grow(x: Any) -> Any:
        return jax.numpy.tanh(jax.numpy.exp(jax.numpy.sin(x)))

    example = distances.BUILDERS["chain"]("small")
    return type(example)(jax.value_and_grad(loss), example.arguments)


@pytest.fixture(scope="module")
def forms(distances: Any) -> Any:
    return distances.Forms.of(chain_of(distances, False), chain_of(distances, True))


def test_forms_of_a_step_are_proved_and_executed_equal(forms: Any) -> None:
    assert list(forms.modules) == list(forms.lowered) == ["plain", "inlined", "ours", "jax.checkpoint"]
    assert list(forms.unequal()) == []
    assert "optimization_barrier" in str(forms.modules["ours"])


@pytest.mark.parametrize("number", [0, 1])
def test_forms_of_a_step_agree_under_each_setting(distances: Any, forms: Any, number: int) -> None:
    """All forms are within rounding of each other under each setting of XLA."""
    row = distances.measure("small chain", forms, distances.SETTINGS[number], 2)
    assert list(row.other_numbers()) == []
    assert all(value.leaves == 2 and value.relative < 1e-5 for value in row.distances.values())
    (line,) = distances.table([row], distances.PAIRS).splitlines()[2:]
    assert re.fullmatch(r"\| small chain \| 2 \| (default|barriers kept) \|( (0|\d / \S+ / \S+) \|){7}", line)


def test_form_with_other_numbers_is_reported(distances: Any) -> None:
    forms = distances.Forms.of(chain_of(distances, False), chain_of(distances, True, factor=1.25))
    message = list(forms.unequal())
    assert message[0].startswith("jax.checkpoint is not proved equal to the plain step: ")
    assert [line.partition(":")[0] for line in message[1:]] == [
        f"jax.checkpoint differs in numpy on {kind} inputs" for kind in ("random", "positive", "adversarial")
    ]


def test_setting_with_other_numbers_is_reported(distances: Any) -> None:
    """A setting in which XLA's numbers differ from numpy's, as with a disabled pass, is reported."""
    near, far = (distances.Closeness.of([f32(1)], [f32(number)]) for number in (1.001, 1.1))
    row = distances.DistanceRow("step", "default", {pair: near for pair in distances.PAIRS})
    assert list(row.other_numbers()) == [] and not row.is_equal
    row.distances[distances.NUMPY, distances.OURS] = far
    assert list(row.other_numbers()) == [f"default: XLA's results for ours differ from numpy's: {far}"]


def test_page_has_a_row_for_every_step_and_setting(distances: Any) -> None:
    page = (ROOT / "docs" / "measured" / "bits.md").read_text()
    tables = [
        part.partition("<!-- end -->")[0] for part in page.split("<!-- distances -->\n", 1)[1].split("<!-- causes -->")
    ]
    cells = [[line.strip("| ").split(" | ") for line in table.strip().splitlines()[2:]] for table in tables]
    measured, diagnosed = ([(row[0], row[2]) for row in rows if len(row) > 2] for rows in cells)
    assert measured == [(step, setting.name) for step in distances.KNOWN for setting in distances.SETTINGS]
    differ = {row[0] for row in cells[0] if any(cell != "0" for cell in row[3:8])}
    steps = [step for step in distances.KNOWN if step in differ]
    assert diagnosed == [(step, setting.name) for step in steps for setting in distances.DIAGNOSES]


def test_tables_are_written_into_their_places(distances: Any) -> None:
    page = "# Page\n<!-- a -->\nold\n<!-- end -->\nwords\n<!-- b -->\n<!-- end -->\nmore\n"
    written = insert_tables(page, {"a": "| 1 |", "b": "| 2 |"})
    assert written == "# Page\n<!-- a -->\n| 1 |\n<!-- end -->\nwords\n<!-- b -->\n| 2 |\n<!-- end -->\nmore\n"
    with pytest.raises(AssertionError, match="the page lacks the line"):
        insert_tables(page, {"c": ""})
