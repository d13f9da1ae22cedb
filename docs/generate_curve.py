"""Draw docs/curve.svg: the extra work of plans as a function of their memory, for the graph of a 24-layer GPT. The
chart also shows lower bounds and the points that PyTorch's partitioner reaches.

    python docs/generate_curve.py

The file is the same on every run with the same version of matplotlib. The script needs the extras `plan` and `plot`.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path

from recompute.planning.solvers.effort import Effort
from recompute.planning.solvers.graph_file import read_graph
from recompute.planning.solvers.problem import Pair, Problem
from recompute.planning.solvers.sequence import evaluate, sequence_of
from recompute.planning.solvers.solvers_by_name import solve
from recompute.planning.solvers.sweep import Outcome, sweep
from recompute.reports.curve import Curve, Marker, Sweep, curve_of
from recompute.reports.curve_chart import to_svg

FOLDER = Path(__file__).resolve().parent
GRAPHS = FOLDER.parent / "benchmarks" / "solvers" / "graphs"
COUNT = 20
TITLE = "What memory costs: a training step of a 24-layer GPT"
PYTORCH = {
    "default_partition": "PyTorch, default partition",
    "min_cut(inductor)": "PyTorch, min-cut",
    "min_cut+budget": "PyTorch, activation memory budget",
}


def curve() -> Curve:
    problem = read_graph(gzip.decompress((GRAPHS / "gpt24L.json.gz").read_bytes()).decode(), "gpt24L")
    peak = evaluate(problem, sequence_of(problem, ())).peak_bytes

    def solved(budget: int, starts: Iterable[frozenset[Pair]]) -> Outcome:
        return solve(problem, budget, starts=starts, effort=Effort.brief())

    budgets = [peak * at // COUNT for at in range(1, COUNT + 1)]
    return curve_of("gpt24L", Sweep(problem, peak, budgets, sweep(budgets, solved)), pytorch(problem))


def pytorch(problem: Problem) -> list[Marker]:
    rows = json.loads((GRAPHS / "gpt24L.pytorch.json").read_text())
    return [Marker(PYTORCH[row["tag"]], row["peak_bytes"], problem.percent(row["rec_cost"])) for row in rows]


if __name__ == "__main__":
    (FOLDER / "curve.svg").write_text(to_svg([curve()], TITLE))
