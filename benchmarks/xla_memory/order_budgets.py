"""Check that every example, rewritten within 50 % of its peak in program order, is within the budget.

    python -m recompute.benchmarks.xla_memory.order_budgets               # all examples, large
    python -m recompute.benchmarks.xla_memory.order_budgets mlp --size small

Results: peaks as shares of the budget, printed only. Time: about 10 minutes.

JAX is not needed: the steps are the MLIR files of `examples/stablehlo`. Each is rewritten with
`recompute{budget=50% memory-model=order}`. The columns list the peak in program order and the peak of an eager
executor, as shares of the budget; the FLOPs that recomputation adds; whether the rewrite is proved; and the wall time.
The exit status is 1 if a peak exceeds its budget, or if a rewrite is not proved.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

from recompute.analysis.forecasts.peaks import Peaks
from recompute.analysis.step.module_steps import numbered_steps
from recompute.benchmarks.harness.command_line import add_names, add_size, benchmark_parser, report_missed
from recompute.benchmarks.harness.markdown import table_head, table_row
from recompute.benchmarks.harness.paths import EXAMPLES
from recompute.driver.api import rewrite
from recompute.options.recompute_options import RecomputeOptions
from recompute.planning.objective import MAX_EAGER_FACTOR
from recompute.support.diagnostics import Refusal
from recompute.transforms.preparation.timelines import flat_copy

NAMES = sorted(path.name.removesuffix(".small.mlir") for path in EXAMPLES.glob("*.small.mlir"))
HEAD = ("example", "peak / budget", "eager peak / budget", "additional FLOPs", "proof", "s")


def print_row(name: str, size: str) -> Iterator[str]:
    """Rewrite an example, print its table row, and yield a message for each requirement that it does not meet."""
    start = time.perf_counter()
    path = EXAMPLES / f"{name}.{size}.mlir"
    try:
        outcome = rewrite(path.read_text(), RecomputeOptions(budget="50%", memory_model="order"), name=path.name)
    except Refusal as error:
        seconds = f"{time.perf_counter() - start:.1f}"
        print(table_row((name, "refused", "", "", error.reason.replace("|", "/")[:100], seconds)), flush=True)
        return
    before, after = outcome.memory()["main"]
    budget = before.peak_bytes / 2
    steps = numbered_steps(flat_copy(outcome.module), bare=True)
    peak, eager = after.peak_bytes / budget, max(Peaks.of_step(*step).eager for step in steps) / budget
    proved = outcome.proof is not None and outcome.proof.proved
    proof, seconds = "proved" if proved else "NOT proved", f"{time.perf_counter() - start:.1f}"
    print(table_row((name, f"{peak:.3f}", f"{eager:.3f}", outcome.extra_flops, proof, seconds)), flush=True)
    if peak > 1:
        yield f"{name}: the peak in program order is {peak:.3f} of the budget"
    if eager > MAX_EAGER_FACTOR:
        limit = f"above the limit of {MAX_EAGER_FACTOR}"
        yield f"{name}: the peak of an eager executor is {eager:.3f} of the budget, {limit}"
    if not proved:
        yield f"{name}: the rewrite is not proved"


def main() -> int:
    """Print a table row for each example, and return 1 if a requirement is not met."""
    parser = benchmark_parser(__doc__)
    add_names(parser, "example", NAMES)
    add_size(parser)
    options = parser.parse_args()
    print(table_head(HEAD), flush=True)
    return report_missed([line for name in options.names or NAMES for line in print_row(name, options.size)])


if __name__ == "__main__":
    sys.exit(main())
