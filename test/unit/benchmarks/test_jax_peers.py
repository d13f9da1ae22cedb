"""In the benchmark against the frameworks' remat, each threshold can be missed, and the tables state the
measurements."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the benchmark runs JAX")
pytest.importorskip("optax", reason="the optimizers of the steps")

from recompute.benchmarks.harness.xla_flags import KEEP_BARRIERS
from recompute.benchmarks.peers import __main__ as jax_peers
from recompute.benchmarks.peers import bars, form_costs, random_steps, tables
from recompute.benchmarks.peers.all_peers import PEERS
from recompute.benchmarks.peers.compiler_settings import HIDING, SLOP, settings_of
from recompute.benchmarks.peers.peer_forms import OURS, PLAIN, SAME, SAME_DOTS, THEIRS, THEIRS_DOTS, options_of
from recompute.benchmarks.peers.random_program import program
from recompute.benchmarks.peers.result_distances import Distances, Leaf, distance, largest_distances

ROOT = Path(__file__).resolve().parents[3]
INF = float("inf")


def cost(temp: int = 400, flops: float = 2000.0, **others: Any) -> dict[str, Any]:
    return asdict(
        form_costs.FormCost(temp, others.pop("alias", 64), flops, others.pop("differing", 1), 3, 2.0, **others)
    )


def of_setting(**ours: Any) -> dict[str, Any]:
    """Return equal costs for every form, except the given ones for ours at the same blocks."""
    forms = {form: cost() for form in (THEIRS, THEIRS_DOTS, SAME_DOTS, OURS)}
    return {PLAIN: cost(1000, 1000.0, differing=0), **forms, SAME: cost(**ours)}


@pytest.mark.parametrize("ours", [{}, {"temp": 408, "flops": 2010.0}, {"temp": 1, "flops": 1.0}])
def test_forms_as_good_as_the_framework_meet_every_bar(ours: dict[str, Any]):
    assert list(bars.missed(of_setting(**ours))) == []


@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        ({"temp": 409}, "ours, same blocks: 1.022 × the temporaries of theirs, above the limit of 1.02"),
        (
            {"temp": 500, "why": "no gradient"},
            "ours, same blocks: 1.250 × the temporaries of theirs, above the limit of 1.02 (no gradient)",
        ),
        ({"flops": 2020.0}, "ours, same blocks: 1.010 × the FLOPs of theirs, above the limit of 1.005"),
        ({"alias": 0}, "ours, same blocks: 0 bytes donated, but the plain step donates 64"),
    ],
)
def test_missed_bar_is_reported(ours: dict[str, Any], expected: str):
    assert list(bars.missed(of_setting(**ours))) == [expected]


def test_bar_with_saved_products_can_be_missed():
    result = of_setting() | {SAME_DOTS: cost(800)}
    assert list(bars.missed(result)) == [
        "ours, same blocks, dots saved: 2.000 × the temporaries of theirs, dots saved, above the limit of 1.02"
    ]
    del result[SAME_DOTS]
    assert list(bars.missed(result)) == []


def rows() -> dict[str, Any]:
    leaves = [{"name": "[0]", "theirs": 0.0, "ours": 1.0}, {"name": "[1]", "theirs": 1.0, "ours": 9.0}]
    measured = {
        "platform": "cpu",
        "jax": "1",
        "errors": {SAME_DOTS: "Refusal: no"},
        "distances": {"leaves": leaves, "is_plain": True},
    }
    entries = {"one": {"barriers kept": of_setting(temp=600, own_seconds=1.0), "default flags": of_setting()}}
    return {
        "gpt": {**measured, "costs": entries["one"]},
        "unet": {"platform": "cpu", "skipped": "8 devices are needed"},
    }


def test_tables_state_the_measured_ratios():
    result = jax_peers.tables_by_name(rows())
    assert "| gpt | 0.400 | 0.400 | 0.600 | 0.400 | 0.400 | 1.500 | 1.000 |" in result["setting 0"]
    assert "| gpt | 0.400 | 0.400 | 0.400 | 0.400 | 0.400 | 1.000 | 1.000 |" in result["setting 1"]
    assert "| gpt | 2.000 | 2.000 | 2.000 | 2.000 | 2.000 | 1.000 | 1.000 |" in result["setting 0"]
    assert "| gpt | 3 | 1 | 1 | 1 | 1.00 | 1.00 | 1.00 | 0.50 | 0.00 |" in result["setting 0"]
    assert "| gpt | `jax.checkpoint` | `block*` |" in result["peers"]
    assert result["missed"].splitlines() == [
        f"- gpt: {SAME_DOTS}: Refusal: no",
        "- unet: did not run: 8 devices are needed",
        f"- gpt: {SAME}: 1.500 × the temporaries of theirs, above the limit of 1.02",
    ]
    assert "| gpt | plain | 2 | 1.00 | 9.00 | 50% | `[1]` 9 (theirs 1) |" in result["distances"]
    assert result["distances"].endswith("- gpt: 1 of 2 results have a distance above 8 units of rounding")


def test_peaks_are_measured_in_separate_processes():
    """Each peak is measured in a process of its own, with columns for peaks and seconds per step."""
    row = rows()["gpt"]
    items = list[tuple[str, ...]]()

    def answer(*arguments: str) -> int:
        items.append(arguments)
        return 100 if PLAIN in arguments else 50

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax_peers, "measure_apart", answer)
        jax_peers.add_peaks("gpt", "small", row["costs"])
    assert len(items) == len(set(items)) == 2 * 6
    assert ("gpt", "--what", "peak", "--size", "small", "--form", OURS, "--setting", "default flags") in items
    table = tables.bits_and_times({"gpt": row}, "default flags")
    assert table.splitlines()[0].endswith("| peak: theirs | peak: ours, same blocks | peak: ours |")
    assert table.splitlines()[2].endswith("| 0.500 | 0.500 | 0.500 |")


def test_settings_vary_barriers_and_schedulers():
    """The settings vary the option for barriers on CPU, and the schedulers on GPU."""
    assert [dict(item.options) for item in settings_of("cpu")] == [KEEP_BARRIERS, {}]
    on, off, less = settings_of("gpu")[1:]
    assert (
        on.options[HIDING],
        off.options[HIDING],
        less.options[SLOP],
    ) == (True, False, 50)
    assert [item.name for item in settings_of("tpu")] == ["default flags"]


def test_options_passed_to_our_variants():
    same = {"segments": "block*"}
    assert options_of(PEERS["gpt"]) == {SAME: same, SAME_DOTS: {**same, "policy": "dots_saveable"}, OURS: {}}


def test_page_has_a_place_for_every_table():
    pages = {path: path.read_text() for path in jax_peers.PAGES}
    result = jax_peers.tables_by_name(rows())
    written = "".join(jax_peers.with_tables(pages, result).values())
    assert all(table in written for table in result.values())
    with pytest.raises(AssertionError, match="no page has the line '<!-- other -->'"):
        jax_peers.with_tables(pages, {"other": ""})


def test_page_lists_every_step():
    for path in jax_peers.PAGES:
        page = path.read_text()
        assert [name for name in PEERS if f"| {name} |" not in page] == []


@pytest.mark.parametrize(
    ("theirs", "ours", "is_close"),
    [(0, 2, True), (0, 2.1, False), (4, 6, True), (4, 6.1, False), (INF, INF, True), (0, INF, False)],
)
def test_leaf_is_close_relative_to_the_framework(theirs: float, ours: float, is_close: bool):
    assert Leaf("x", theirs, ours).is_close is is_close


def test_missed_distances():
    many = [Leaf(str(number), 0, 0) for number in range(19)]
    assert list(Distances((*many, Leaf("a", 0, 3))).missed()) == []
    assert [leaf.name for leaf in Distances((*many, Leaf("a", 0, 3))).far_leaves()] == ["a"]
    assert len(list(Distances((*many[:5], Leaf("a", 0, 3))).missed())) == 1
    above = "results have a distance above 8 units of rounding"
    assert list(Distances((Leaf("a", 6, 8.5),)).missed()) == [f"1 of 1 {above}"]
    assert list(Distances((*many, Leaf("a", 6, float("nan")))).missed()) == [f"1 of 20 {above}"]
    assert largest_distances([[Leaf("a", 1, 4)], [Leaf("a", 2, 3)]]).leaves == (Leaf("a", 2, 4),)


def test_distance_is_in_units_of_eps():
    first, eps = np.array([1.0, 2.0], np.float32), float(np.finfo(np.float32).eps)
    assert distance(first, first) == 0 and distance(first, first + np.float32(4 * eps)) == pytest.approx(2)
    assert distance(first, first.astype(np.float16)) == INF and distance(first, first[:1]) == INF
    assert distance(np.array([1]), np.array([2])) == INF


def verdict(seed: int, ours: int, why: str | None = None, distance: float = 0.0) -> random_steps.StepVerdict:
    return random_steps.StepVerdict(program(seed), 100, ours, why, distance, 1.0)


def test_verdicts_name_the_failing_seeds():
    good = [verdict(seed, 50) for seed in range(18)]
    assert random_steps.missed([*good, verdict(18, 100, "why"), verdict(19, 100, "why")]) == []
    assert random_steps.missed([*good, verdict(18, 101)]) == [
        "seeds whose step needs more memory than the plain step: [18]"
    ]
    assert random_steps.missed([*good, verdict(18, 1, distance=9)]) == ["seeds with a distance above 8: [18]"]
    three = [verdict(seed, 100, "why") for seed in (18, 19, 20)]
    assert random_steps.missed([*good, *three]) == ["3 seeds run the plain step: [18, 19, 20]"]
    assert "ABOVE" in str(verdict(1, 101)) and "FAR" in str(verdict(1, 1, distance=INF)) and "plain" in str(three[0])
    assert random_steps.summary(three).startswith("3 steps: 0 need more than the plain step, 3 are the plain step")
