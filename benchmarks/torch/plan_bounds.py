"""Measure how far plans are from the optimum: their extra work and its proven lower bound, at shares of the plain peak.

    python -m recompute.benchmarks.torch.plan_bounds                  # the table of docs/measured/torch.md
    python -m recompute.benchmarks.torch.plan_bounds --only unet --shares 0.5,0.35

Results: extra work and bounds in percent of the plain step's, in docs/measured/torch.md. Time: about 1 minute.

The cost model defines the work, which is given in percent of the plain step's. For a refused budget, the row shows the
lower bound and the lowest peak of any plan. The exit status is 1 if a report gives no bound.
"""

from __future__ import annotations

import sys

import torch

from recompute.benchmarks.harness.command_line import add_only, add_shares, benchmark_parser, report_missed, selected
from recompute.benchmarks.harness.markdown import table_head, table_row
from recompute.benchmarks.torch.configure import configure_torch
from recompute.benchmarks.torch.model_cases import make
from recompute.benchmarks.torch.refusals import is_refusal, lowest_stated_peak, stated_lower_bound

MODELS = ("gpt6 dropout", "unet", "resnet50")
SHARES = (0.75, 0.5, 0.35, 0.25)
HEAD = ("model", "budget", "MB", "extra work %", "lower bound %", "gap in points")


def cells_within(name: str, share: float) -> tuple[str, ...]:
    """Return the table row of a model within a budget. Raises `RuntimeError` if the report gives no bound."""
    import recompute.torch as rt

    torch._dynamo.reset()
    model, inputs = make(name)
    step = rt.compile(model, budget=share, fullgraph=True)
    try:
        step(*inputs)
    except Exception as error:
        if not is_refusal(error):
            raise
        bound, lowest = stated_lower_bound(str(error)), lowest_stated_peak(str(error))
        needed = "no bound" if bound is None else f"at least {bound / 1e6:.2f} MB"
        reached = f"{lowest / 1e6:.2f} MB reached" if lowest else ""
        return name, f"{share:.0%}", "refused", reached, needed, ""
    (graph,) = step.report().graphs
    if graph.optimality is None:
        raise RuntimeError(f"{name}, budget {share:.0%}: the report gives no lower bound")
    optimality = graph.optimality
    megabytes = f"{graph.peak_bytes / 1e6:.2f}"
    return (
        name,
        f"{share:.0%}",
        megabytes,
        f"{optimality.percent:.2f}",
        f"{optimality.bound_percent:.2f}",
        f"{optimality.gap:.2f}",
    )


def main() -> int:
    """Print a row for each model and share, and return 1 if a report gives no bound."""
    parser = benchmark_parser(__doc__)
    add_only(parser, "model", MODELS)
    add_shares(parser, SHARES)
    options = parser.parse_args()
    configure_torch()
    faults: list[str] = []
    print(table_head(HEAD), flush=True)
    for name in selected(MODELS, options.only):
        for share in options.shares:
            try:
                print(table_row(cells_within(name, share)), flush=True)
            except RuntimeError as error:
                faults.append(str(error))
    return report_missed(faults)


if __name__ == "__main__":
    sys.exit(main())
