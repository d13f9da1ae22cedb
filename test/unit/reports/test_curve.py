"""Curves over budgets: text, data and pictures, which show every solved budget."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from xml.etree import ElementTree

import pytest

from recompute.planning.solvers.problem import OperationRow, problem_of
from recompute.planning.solvers.result import Infeasible, Result
from recompute.planning.solvers.sequence import evaluate, sequence_of
from recompute.planning.solvers.solvers_by_name import solve
from recompute.reports.curve import Curve, Marker, SegmentRecomputation, Sweep, curve_of, to_json
from recompute.reports.curve_chart import to_png, to_svg
from recompute.reports.curve_html import to_html
from recompute.test.unit.reports.page_scripts import scripts_of

LAYERS = 4


def chain() -> list[OperationRow]:
    """Return a chain in which each backward operation reads the gradient and the value of its layer."""
    forward = [OperationRow(f"f{at}", 10, [at - 1] if at else [], [100]) for at in range(LAYERS)]
    rows, last = list(forward), LAYERS - 1
    for at in reversed(range(LAYERS)):
        rows.append(OperationRow(f"b{at}", 20, [last, at], [8], is_backward=True, may_run_again=False))
        last = len(rows) - 1
    return rows


PROBLEM = problem_of(chain(), outputs=[2 * LAYERS - 1])
PLAIN = evaluate(PROBLEM, sequence_of(PROBLEM, ())).peak_bytes
BUDGETS = [PLAIN * at // 8 for at in range(1, 9)]
OUTCOMES = [solve(PROBLEM, budget) for budget in BUDGETS]
MARKERS = (Marker("theirs </script>", PLAIN // 2, 12.5),)


def recomputed_segments_of(result: Result) -> tuple[SegmentRecomputation, ...]:
    return (
        (SegmentRecomputation("layer", len(result.pairs), result.percent, ("%h (m.py:1:2)",)),) if result.pairs else ()
    )


CURVE = curve_of("a < chain", Sweep(PROBLEM, PLAIN, BUDGETS, OUTCOMES), MARKERS, recomputed_segments_of)


def test_curve_matches_solver_outcomes() -> None:
    results = [outcome for outcome in OUTCOMES if isinstance(outcome, Result)]
    refused = [outcome for outcome in OUTCOMES if isinstance(outcome, Infeasible)]
    assert [point.percent for point in CURVE.points] == [result.percent for result in results] and len(results) >= 3
    assert [point.bound_percent for point in CURVE.points] == [result.bound_percent for result in results]
    assert len(CURVE.refused) == len(refused) >= 1
    assert [refusal.proved for refusal in CURVE.refused] == [refusal.proved for refusal in refused]
    assert all(point.peak_bytes >= CURVE.minimum_bytes for point in CURVE.points)
    assert any("f" in line for line in CURVE.holding)


def test_json_contains_whole_curve() -> None:
    (data,) = json.loads(to_json([CURVE]))
    assert (data["name"], data["plain_peak_bytes"], data["minimum_bytes"]) == ("a < chain", PLAIN, CURVE.minimum_bytes)
    assert [item["percent"] for item in data["points"]] == [point.percent for point in CURVE.points]
    assert data["markers"] == [{"name": "theirs </script>", "peak_bytes": PLAIN // 2, "percent": 12.5}]
    assert data["points"][0]["recomputed_segments"][0]["values"] == ["%h (m.py:1:2)"]


def test_picture_is_deterministic() -> None:
    picture = to_svg([CURVE], "costs")
    assert picture == to_svg([CURVE], "costs")
    assert ElementTree.fromstring(picture).tag.endswith("svg")
    assert to_png([CURVE], "costs").startswith(b"\x89PNG")
    # Two panels are higher than one, and a curve without any plan can be drawn.
    nothing = Curve(
        name="none", plain_peak_bytes=PLAIN, minimum_bytes=PLAIN, holding=(), points=(), refused=CURVE.refused
    )
    heights = [height_of(item) for item in (picture, to_svg([CURVE, nothing], "costs"))]
    assert heights[1] > 1.5 * heights[0]
    with pytest.raises(ValueError, match="at least one"):
        to_svg([], "costs")


def height_of(picture: str) -> float:
    match = re.search(r'height="([\d.]+)pt"', picture)
    assert match is not None
    return float(match[1])


def test_picture_has_a_marker_for_each_point() -> None:
    """The SVG has a `use` element, matplotlib's form of a marker, for each point."""
    uses = to_svg([CURVE], "costs").count("<use ")
    fewer = Curve(
        name=CURVE.name,
        plain_peak_bytes=PLAIN,
        minimum_bytes=CURVE.minimum_bytes,
        holding=(),
        points=CURVE.points[1:],
        refused=CURVE.refused[1:],
    )
    # A point found, a budget refused, a marker, and the marker's place in the legend.
    assert uses - to_svg([fewer], "costs").count("<use ") >= 3


PAGE = to_html([CURVE], "a < b")


def scripts() -> tuple[str, str]:
    data, script = scripts_of(PAGE)
    return data, script


def test_page_embeds_data_and_loads_nothing_external() -> None:
    data, _ = scripts()
    assert json.loads(data) == json.loads(to_json([CURVE]))
    assert "<title>a &lt; b</title>" in PAGE and not re.search(r"https?:|src=|href=|@import|fetch\(", PAGE)


def test_pointer_shows_the_nearest_point() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node to run the page's script with")
    data, script = scripts()
    show = (
        f"const [curve] = {data}; const scale = scaleOf(curve), all = places(curve);"
        "for (const one of all) {"
        "  const at = nearest(all, scale, scale.x(one.bytes) + 1, scale.y(one.percent) - 1);"
        "  if (at !== one) throw new Error('another point is nearer');"
        "  console.log(one.text.replaceAll('\\n', '|'));"
        "}"
        "console.log((draw(curve).match(/<circle/g) || []).length);"
    )
    completed = subprocess.run([node, "-e", script + show], capture_output=True, text=True)
    assert (completed.returncode, completed.stderr) == (0, "")
    *output, circles = completed.stdout.splitlines()
    points, total = CURVE.points, len(CURVE.points) + len(CURVE.markers) + len(CURVE.refused)
    assert len(output) == total and int(circles) == total + 1
    first = points[0]
    assert f"extra  {first.percent:.1f} %, at least {first.bound_percent:.1f} % is proved" in output[0]
    assert f"layer: {first.recomputed_segments[0].executions} recomputed" in output[0] and "%h (m.py:1:2)" in output[0]
    assert output[len(points)].startswith("theirs </script>|peak") and "no plan, proved: " in output[-1]
