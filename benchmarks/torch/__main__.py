"""Compare `recompute.torch` with PyTorch's own controls by the peak, FLOPs, time and results of one training step.

    python -m recompute.benchmarks.torch                              # all models
    python -m recompute.benchmarks.torch --only 'gpt6*' --json rows.json
    python -m recompute.benchmarks.torch --only unet --budgets 0.9,0.8 # our budgets, as shares of the eager peak
    python -m recompute.benchmarks.torch --without-ours               # only PyTorch's forms

Tables go to standard output, and progress to standard error. The exit status is 1 if one of our forms exceeds its
budget, differs from eager mode, or fails. A budget that is refused because no plan meets it is not a failure.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import torch

from recompute.benchmarks.harness.parsers import add_only, benchmark_parser, matching
from recompute.benchmarks.torch.form_rows import FormRow, rows
from recompute.benchmarks.torch.form_table import missed, table
from recompute.benchmarks.torch.model_cases import CASES
from recompute.benchmarks.torch.model_forms import RECOMPUTE_BUDGETS, baselines, recompute_forms


def report_progress(text: str) -> None:
    """Print a line to standard error."""
    print(text, file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = benchmark_parser(__doc__)
    add_only(parser)
    parser.add_argument(
        "--budgets",
        default=",".join(map(str, RECOMPUTE_BUDGETS)),
        help="our budgets, as shares of the eager peak",
    )
    parser.add_argument("--without-ours", action="store_true", help="measure only PyTorch's forms")
    parser.add_argument("--without-torch", action="store_true", help="measure only the eager form and our forms")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    return parser.parse_args()


def main() -> int:
    """Print the table of each model, and return 1 if one of our forms misses a requirement."""
    options = arguments()
    names = matching(CASES, options.only)
    if not names:
        report_progress(f"error: no model matches --only: choose from {', '.join(CASES)}")
        return 2
    budgets = tuple(float(share) for share in options.budgets.split(","))
    forms = baselines()[:1] if options.without_torch else baselines()
    forms += [] if options.without_ours else recompute_forms(budgets)
    torch.set_num_threads(1)
    every: list[FormRow] = []
    for name in names:
        result = list(rows(name, forms, report_progress))
        print(table(result), end="\n\n", flush=True)
        every += result
        if options.json:
            options.json.write_text(json.dumps([row.json for row in every], indent=1))
    lines = missed(every)
    for line in lines:
        report_progress(f"missed: {line}")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
