"""Compare `recompute.torch` with PyTorch's own memory controls by the peak, FLOPs, time and results of a training step.

    python -m recompute.benchmarks.torch                              # all models
    python -m recompute.benchmarks.torch --only 'gpt6*' --json rows.json
    python -m recompute.benchmarks.torch --only unet --budgets 0.9,0.8 # our budgets, as shares of the eager peak
    python -m recompute.benchmarks.torch --without-ours               # only PyTorch's variants

Results: peaks in MB, FLOPs as multiples of the eager step's, and seconds; a part is in docs/measured/torch.md. Time:
about 1 hour.

Tables go to standard output, and progress to standard error. The exit status is 1 if one of our variants exceeds its
budget, differs from eager mode, or fails. A budget that is refused because no plan meets it is not a failure.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

from recompute.benchmarks.harness.command_line import (
    add_json,
    add_only,
    add_shares,
    benchmark_parser,
    report_missed,
    report_progress,
    selected,
    write_json,
)
from recompute.benchmarks.torch.configure import configure_torch
from recompute.benchmarks.torch.form_rows import FormRow, rows
from recompute.benchmarks.torch.form_table import missed, table
from recompute.benchmarks.torch.model_cases import CASES
from recompute.benchmarks.torch.model_forms import RECOMPUTE_BUDGETS, baselines, recompute_forms


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = benchmark_parser(__doc__)
    add_only(parser, "model", CASES)
    add_shares(parser, RECOMPUTE_BUDGETS, "--budgets")
    parser.add_argument("--without-ours", action="store_true", help="measure only PyTorch's forms")
    parser.add_argument("--without-torch", action="store_true", help="measure only the eager form and our forms")
    add_json(parser)
    return parser.parse_args()


def main() -> int:
    """Print the table of each model, and return 1 if one of our variants misses a requirement."""
    options = arguments()
    forms = baselines()[:1] if options.without_torch else baselines()
    forms += [] if options.without_ours else recompute_forms(options.budgets)
    configure_torch()
    every: list[FormRow] = []
    for name in selected(CASES, options.only):
        result = list(rows(name, forms, report_progress))
        print(table(result), end="\n\n", flush=True)
        every += result
        write_json(options.json, [asdict(row) for row in every])
    return report_missed(missed(every))


if __name__ == "__main__":
    sys.exit(main())
