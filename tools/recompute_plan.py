"""recompute-plan: plan recomputation within a memory budget, with a proven lower bound on the cost.

    recompute-plan step.json --budget 0.5
    recompute-plan step.json --budget 8GiB --view-copies on -o plan.json --sequence order.txt
    recompute-plan step.json --budget min
    recompute-plan step.json --sweep 20
    recompute-plan step.json --sweep 20 --curve curve.html --beside theirs.txt
    recompute-plan step.json --budget 0.5 --evaluate order.txt
    recompute-plan step.mlir --sweep 10 --curve curve.svg
    recompute-plan step.mlir --fit 8GiB

A graph is a JSON file: nodes of a training step in the order of execution, with bytes and costs (docs/graphs.md). A
step is MLIR; `recompute-opt -p 'recompute{budget=…}'` applies a plan to it. `--budget`, `--evaluate`,
`--output`, `--sequence`, `--beside` and `--view-copies` apply only to graphs.

A budget is a share of the plain peak (0.5, 50%), bytes with a unit (8GiB, 500MB), or min. The output gives the peak,
the extra cost in percent of the step, a proven lower bound on this cost, and the difference between the two. A file
with an order of execution contains one node id per line; a copy repeats the id of its original. `--sequence` writes
such a file, and `--evaluate` prints the peak and the cost of the order in it.

`--fit` answers in its first line: yes; yes, with recomputation; no (this is proved); or unknown.

`--sweep` prints the row of each budget as soon as the search for this budget ends. It searches for at most 30 seconds
for each budget, unless `--time-limit` or `--effort` is given. If the limit ends a search, the row of this budget
reports it.

Without a time limit, the search is deterministic. `--fit` of a step has a default time limit of five minutes. Ctrl-C
ends the search with the best plan so far.

Exit codes: 0 a plan was found, or the step fits; 1 it is proved that no plan exists; 2 wrong usage or bad input; 3 no
plan was found, but it is not proved that none exists; 130 interrupted without a plan.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from ..planning.solvers.graph_file import BadGraph
from ..support.interface import command_line
from .file_access.files import FileError, chunks, demand_writable, read_text
from .plan.curve_files import demand_format
from .plan.plan_arguments import (
    BAD_INPUT,
    BY_PRECEDENCE,
    INTERRUPTED,
    PLANNED,
    PlanArguments,
    parse_plan_arguments,
    plan_parser,
)
from .plan.planned_graph import plan_graph


@command_line()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the console script. Return the exit code."""
    options = parse_plan_arguments(arguments, __doc__)
    try:
        return _plan(options)
    except BrokenPipeError:
        # The reader of the output has closed the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PLANNED
    except KeyboardInterrupt:
        # The user has pressed Ctrl-C twice, or once in a mode without intermediate results.
        print("recompute-plan: interrupted: no file is written", file=sys.stderr)
        return INTERRUPTED
    except (BadGraph, FileError, ValueError) as error:
        print(_as_error(str(error)), file=sys.stderr)
        return BAD_INPUT


def _as_error(text: str) -> str:
    return text if "error: " in text else f"recompute-plan: error: {text}"


def _plan(options: PlanArguments) -> int:
    if options.curve is not None:
        demand_format(options.curve)
    text, name = read_text(options.input)
    demand_writable((options.output, options.sequence, options.curve))
    if _is_graph(text, name):
        return plan_graph(options, text, name)
    # Imported here, because the modules that read MLIR are slow to import.
    from .plan.planned_step import plan_step

    codes = [plan_step(options, chunk, name) for chunk in chunks(text, options.split_input_file)]
    return max(codes, key=BY_PRECEDENCE.index)


def _is_graph(text: str, name: str) -> bool:
    """Return whether the input is a graph (a JSON object), according to its suffix or its first character."""
    return name.endswith(".json") or text.lstrip().startswith("{")


def argument_parser() -> argparse.ArgumentParser:
    return plan_parser(__doc__)


if __name__ == "__main__":
    sys.exit(main())
