"""Compare `recompute.torch` with PyTorch's own controls: peak, FLOPs, time and equality of one training step.

    python -m recompute.benchmarks.torch                              # all models
    python -m recompute.benchmarks.torch --only 'gpt6*' --json rows.json
    python -m recompute.benchmarks.torch --only unet --budgets 0.9,0.8 # shares of the eager step's peak, for ours
    python -m recompute.benchmarks.torch --without-ours               # only PyTorch's forms

Tables go to standard output, progress to standard error. Exit status 1: one of our forms exceeds its budget, differs
from eager mode, or fails. It is not a failure if a budget is refused because no plan meets it.
"""

from __future__ import annotations

import argparse
import json
import sys
from fnmatch import fnmatch
from pathlib import Path

import torch

from recompute.benchmarks.torch.cases import CASES
from recompute.benchmarks.torch.forms import RECOMPUTE_BUDGETS, baselines, recompute_forms
from recompute.benchmarks.torch.measure import Row, rows
from recompute.benchmarks.torch.table import missed, table


def progress(text: str) -> None:
    """Write a line to standard error."""
    print(text, file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="PATTERN", help="models whose names match; may be repeated")
    parser.add_argument(
        "--budgets", default=",".join(map(str, RECOMPUTE_BUDGETS)), help="shares of the eager step's peak"
    )
    parser.add_argument("--without-ours", action="store_true", help="only PyTorch's forms")
    parser.add_argument("--without-torch", action="store_true", help="only eager and our forms")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    return parser.parse_args()


def main() -> int:
    """Print the table of each model, and return 1 if one of our forms misses a requirement."""
    options = arguments()
    names = [name for name in CASES if not options.only or any(fnmatch(name, part) for part in options.only)]
    if not names:
        progress(f"error: --only matches no model: choose from {', '.join(CASES)}")
        return 2
    budgets = tuple(float(share) for share in options.budgets.split(","))
    forms = baselines()[:1] if options.without_torch else baselines()
    forms += [] if options.without_ours else recompute_forms(budgets)
    torch.set_num_threads(1)
    every: list[Row] = []
    for name in names:
        result = list(rows(name, forms, progress))
        print(table(result), end="\n\n", flush=True)
        every += result
        if options.json:
            options.json.write_text(json.dumps([row.json for row in every], indent=1))
    lines = missed(every)
    for line in lines:
        progress(f"missed: {line}")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
