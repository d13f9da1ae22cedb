"""Measure the extra cost and the proven bound of the planner, on a GPT, on other networks, and against PyTorch's
partitioner.

    python -m recompute.benchmarks.solvers.planner                            # the graph gpt24L, with its limits
    python -m recompute.benchmarks.solvers.planner pytorch                    # at the peaks of PyTorch's partitioner
    python -m recompute.benchmarks.solvers.planner times --python PYTHON      # alternate with PyTorch; needs torch
    python -m recompute.benchmarks.solvers.planner nets --seconds 60          # irregular networks of planner_graphs.py
    python -m recompute.benchmarks.solvers.planner nets --net unet --share 0.3 --seconds 600 --effort long
    python -m recompute.benchmarks.solvers.planner formulations --seconds 60  # Checkmate's program, small graphs
    python -m recompute.benchmarks.solvers.planner scale                      # 4,000 to 100,000 operations

Results: extra cost and bounds in percent, and wall seconds, in docs/measured/solvers.md. Time: about 2 minutes; `nets`
30 minutes.

`graphs/gpt24L.json.gz` is PyTorch 2.13's joint graph of a 24-layer GPT, and `graphs/gpt24L.pytorch.json` lists the
choices of its partitioners. The exit status is 1 if a requirement is not met.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from math import inf
from pathlib import Path
from time import perf_counter

from recompute.benchmarks.harness.command_line import benchmark_parser, report_missed
from recompute.benchmarks.harness.growth_exponent import growth_exponent
from recompute.benchmarks.solvers.checkmate_program import PublishedResult, checkmate
from recompute.benchmarks.solvers.planner_graphs import NETS, chain, graph, inception, layered, lstm, unet
from recompute.planning.solvers.effort import EFFORTS
from recompute.planning.solvers.graph_file import read_graph
from recompute.planning.solvers.incumbent import Incumbent
from recompute.planning.solvers.problem import Problem
from recompute.planning.solvers.result import Infeasible, Result
from recompute.planning.solvers.sequence import evaluate, sequence_of
from recompute.planning.solvers.solvers_by_name import solve
from recompute.planning.solvers.working_set import largest_working_set

GRAPHS = Path(__file__).resolve().parent / "graphs"
BARS = {0.8: 1.005, 0.6: 4.422, 0.5: 7.467, 0.4: 11.849, 0.3: 16.327, 0.2: 21.26, 0.1687: inf}
"""The largest allowed extra cost in percent, by budget as a share of the plain peak. The last budget has no limit."""
GAP = 0.01
"""The largest allowed gap to the bound, in percentage points."""
SECONDS = 20.0
"""The largest allowed time for one budget."""
WORSE = 0.01
"""The percentage points by which a plan may cost more than PyTorch's plan."""
SHARES = (0.8, 0.6, 0.5, 0.4, 0.3)
LAYERED_SHARES = (0.9, 0.8)
"""The budgets of networks and of layered graphs, as shares of the plain peak."""
LAYERED = {"layered 100": 100, "layered 250": 250}
"""The numbers of operations of the layered graphs, by name."""
NET_NAMES = (*NETS, *LAYERED)
FEW_OPERATIONS = 300
"""The largest number of operations for which the gap at the budget 0.3 has a limit (`gap_bar`)."""
LONG_SECONDS = 600.0
EXPONENTS = {0.6: 1.25, 0.3: 1.5}
"""The largest allowed exponent with which time grows with the number of operations, by budget."""


def gpt() -> Problem:
    """Read the joint graph of the 24-layer GPT."""
    return read_graph(gzip.decompress((GRAPHS / "gpt24L.json.gz").read_bytes()).decode(), "gpt24L")


def plain_peak(problem: Problem) -> int:
    """Return the peak of the plain step in bytes, in program order."""
    return evaluate(problem, sequence_of(problem, ())).peak_bytes


def plan_and_print(
    name: str, problem: Problem, budget: int, seconds: float | None = None, effort: str = "full"
) -> tuple[Result | Infeasible, float]:
    """Plan within a budget, print a row, and return the result and its wall time in seconds.

    Args:
        name: The label of the row.
        problem: The problem to plan.
        budget: The budget in bytes.
        seconds: The time limit, or None.
        effort: A key of `EFFORTS`.
    """
    began = perf_counter()
    result = solve(problem, budget, best=Incumbent(problem, budget, seconds), effort=EFFORTS[effort]())
    wall_seconds = perf_counter() - began
    if isinstance(result, Infeasible):
        print(f"{name:<28} refused: {result.reason}")
    else:
        numbers = f"{result.percent:9.4f} %  bound {result.bound_percent:9.4f} %  gap {result.optimality.gap:8.4f}"
        print(f"{name:<28} {numbers}  {wall_seconds:6.1f} s  {result.provenance} ({result.path})", flush=True)
    return result, wall_seconds


def bars() -> Iterator[str]:
    """Plan the GPT within each budget of `BARS`, and yield a message for each requirement that is not met."""
    problem = gpt()
    peak = plain_peak(problem)
    plan_and_print("warm-up", problem, peak // 2)
    for share, bar in BARS.items():
        result, seconds = plan_and_print(f"gpt24L {share}", problem, int(share * peak))
        if isinstance(result, Infeasible) or result.percent > bar:
            yield f"budget {share}: no plan, or an extra cost above {bar} %"
        elif share >= 0.2 and ((gap := result.optimality.gap) > GAP or seconds > SECONDS):
            yield f"budget {share}: a gap of {gap:.4f} points, or a time of {seconds:.1f} s, is above its limit"


def pytorch() -> Iterator[str]:
    """Plan the GPT at the peaks of PyTorch's partitioners, and yield a message where our plan costs more."""
    problem = gpt()
    for theirs in json.loads((GRAPHS / "gpt24L.pytorch.json").read_text()):
        budget, percent = theirs["peak_bytes"], problem.percent(theirs["rec_cost"])
        result, _ = plan_and_print(f"{theirs['tag'][:14]} {theirs['budget']} {budget / 1e6:.0f} MB", problem, budget)
        if isinstance(result, Result):
            print(f"{'':<28} theirs {percent:.4f} %, ours better by {percent - result.percent:.4f} points")
        if isinstance(result, Infeasible) or result.percent > percent + WORSE:
            yield f"{budget} bytes: no plan, or an extra cost above PyTorch's {percent:.4f} %"


def times(python: str) -> Iterator[str]:
    """Time both planners alternately, with the peaks of PyTorch's partitioner as the budgets of our planner."""
    problem = gpt()
    plan_and_print("warm-up", problem, plain_peak(problem) // 2)
    for theirs in json.loads((GRAPHS / "gpt24L.pytorch.json").read_text()):
        if theirs["budget"] is None or theirs["budget"] == 1:
            continue
        call = [python, str(GRAPHS.parent / "pytorch_partitioner.py"), str(theirs["budget"])]
        reported = json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout)
        name = f"{theirs['budget']}: {theirs['peak_bytes'] / 1e6:.0f} MB"
        _, seconds = plan_and_print(name, problem, theirs["peak_bytes"])
        ratio = seconds / reported["seconds"]
        print(
            f"{'':<28} PyTorch {reported['seconds']:.1f} s for {reported['nodes']} nodes, ours {ratio:.2f} × that time",
            flush=True,
        )
        if ratio > 1:
            yield f"{name}: {ratio:.2f} × PyTorch's time"


def nets(options: argparse.Namespace) -> Iterator[str]:
    """Plan the networks of `planner_graphs.py` and layered graphs, and yield a message for each gap above its limit."""
    problems = {name: read_graph(json.dumps(graph(name)), name) for name in NETS}
    problems |= {name: layered(operations) for name, operations in LAYERED.items()}
    for name in options.net or problems:
        problem = problems[name]
        for share in options.share or (LAYERED_SHARES if name in LAYERED else SHARES):
            budget = int(share * plain_peak(problem))
            result, _ = plan_and_print(f"{name} {share}", problem, budget, options.seconds, options.effort)
            bar = gap_bar(share, len(problem), options.seconds)
            if isinstance(result, Infeasible) or result.optimality.gap > bar:
                yield f"{name} at {share}: no plan, or a gap above {bar} points"


def gap_bar(share: float, operations: int, seconds: float) -> float:
    """Return the largest allowed gap in percentage points, or infinity if there is no limit."""
    if share >= 0.4:
        return 0.1
    return (1.0 if seconds >= LONG_SECONDS else 4.0) if operations <= FEW_OPERATIONS and share >= 0.3 else inf


def small_graphs() -> Iterator[tuple[str, Problem]]:
    """Yield graphs of up to 60 operations: small networks, and random layered graphs."""
    nets = {"unet": unet(1, 1 << 16, 1), "lstm": lstm(1), "inception": inception(1), "chain": chain(42, True)}
    for name, net in nets.items():
        yield name, read_graph(json.dumps(net.finished()), name)
    for operations in (25, 50):
        yield f"layered {operations}", layered(operations)


def formulations(seconds: float) -> Iterator[str]:
    """Plan small graphs with our solver and Checkmate's program, and yield a message where our plan costs more."""
    for name, problem in small_graphs():
        plain, lower_bound = plain_peak(problem), largest_working_set(problem).bytes
        for share in (0.9, 0.8, 0.7):
            budget = int(share * plain)
            if budget < lower_bound:
                continue
            named = f"{name} ({len(problem)}) {share}"
            ours, _ = plan_and_print(named, problem, budget, seconds)
            theirs = checkmate(problem, budget, seconds)
            cost = print_published(problem, budget, theirs)
            if isinstance(ours, Result) and cost is not None and ours.percent > cost + 1e-6:
                yield f"{named}: the plan costs {ours.percent - cost:.4f} points more than Checkmate's"
            if isinstance(ours, Infeasible) and cost is not None:
                yield f"{named}: no plan, but Checkmate found one with an extra cost of {cost:.4f} %"
            if isinstance(ours, Result) and theirs.infeasible:
                yield f"{named}: a plan, although Checkmate proved that none exists"


def print_published(problem: Problem, budget: int, theirs: PublishedResult) -> float | None:
    """Print the result of Checkmate's program. Return the extra cost of its plan in percent, as our evaluator computes
    it; None if there is no plan within the budget.
    """
    size = f"{theirs.seconds:6.1f} s  Checkmate, {theirs.columns} columns, {theirs.rows} rows"
    if theirs.pairs is None:
        print(f"{'':<28} {'infeasible' if theirs.infeasible else 'no plan'}  {size}", flush=True)
        return None
    result = evaluate(problem, sequence_of(problem, theirs.pairs))
    percent, is_within = problem.percent(result.extra_cost), result.peak_bytes <= budget
    numbers = f"{percent:9.4f} %  bound {theirs.bound_percent:9.4f} %  gap {percent - theirs.bound_percent:8.4f}"
    print(f"{'':<28} {numbers}  {size}{'' if is_within else ', ABOVE THE BUDGET'}", flush=True)
    return percent if is_within else None


def chains(irregular: bool) -> Iterator[Problem]:
    """Yield chains of 4,000 to 100,000 operations."""
    for operations in (4_000, 20_000, 100_000):
        yield read_graph(json.dumps(chain(operations, irregular).finished()), "chain")


def scale() -> Iterator[str]:
    """Plan chains of increasing size, and yield a message for each gap, time or exponent above its limit."""
    for irregular in (False, True):
        spent: dict[float, list[tuple[int, float]]] = {share: [] for share in EXPONENTS}
        for problem, share in ((problem, share) for problem in chains(irregular) for share in EXPONENTS):
            name = f"{len(problem)} {'irregular' if irregular else 'regular'} {share}"
            result, seconds = plan_and_print(name, problem, int(share * plain_peak(problem)))
            spent[share].append((len(problem), seconds))
            if isinstance(result, Infeasible) or result.optimality.gap > 0.1 or seconds > 60:
                yield f"{name}: no plan, a gap above 0.1 points, or {seconds:.1f} s, above the limit of 60 s"
        for share, limit in EXPONENTS.items():
            (few, short), *_, (many, long) = spent[share]
            exponent = growth_exponent((few, many), (short, long))
            print(f"growth at {share}: exponent {exponent:.2f}")
            if exponent > limit:
                yield f"budget {share}: exponent {exponent:.2f}, above the limit of {limit}"


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = benchmark_parser(__doc__)
    parser.add_argument(
        "table",
        nargs="?",
        choices=("bars", "pytorch", "times", "nets", "formulations", "scale"),
        default="bars",
        metavar="TABLE",
        help="the table to print (default: %(default)s), from: %(choices)s",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="`nets` and `formulations`: the time limit for each budget (default: %(default)s)",
    )
    parser.add_argument(
        "--effort",
        choices=tuple(EFFORTS),
        default="full",
        help="`nets`: the effort of the search (default: %(default)s)",
    )
    parser.add_argument(
        "--net",
        action="append",
        choices=NET_NAMES,
        metavar="NET",
        help=f"`nets`: a network to plan; may be repeated (default: all), from: {', '.join(NET_NAMES)}",
    )
    share = (
        "`nets`: a budget, as a share of the plain peak; may be repeated "
        f"(default: {', '.join(map(str, SHARES))}; for layered graphs {', '.join(map(str, LAYERED_SHARES))})"
    )
    parser.add_argument("--share", action="append", type=float, help=share)
    parser.add_argument(
        "--python",
        default=sys.executable,
        metavar="PYTHON",
        help="`times`: a Python interpreter that can import torch (default: this one)",
    )
    return parser.parse_args()


def main() -> int:
    """Print the requested table, and return 1 if a requirement is not met."""
    options = arguments()
    tables = {
        "bars": bars,
        "pytorch": pytorch,
        "times": lambda: times(options.python),
        "nets": lambda: nets(options),
        "formulations": lambda: formulations(options.seconds),
        "scale": scale,
    }
    return report_missed(list(tables[options.table]()))


if __name__ == "__main__":
    sys.exit(main())
