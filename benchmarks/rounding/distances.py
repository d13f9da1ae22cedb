"""Measure how rounding in XLA:CPU differs between the plain, inlined, recomputed and checkpointed variants of a step.

    python -m recompute.benchmarks.rounding.distances          # all examples and `rounding_steps`, small shapes
    python -m recompute.benchmarks.rounding.distances adam unet --seeds 9
    python -m recompute.benchmarks.rounding.distances --write  # also write the tables of docs/measured/bits.md

Results: differing results, and distances in units of rounding, in docs/measured/bits.md. Time: about 15 minutes.

Every variant of a step is first proved equal to the plain step, and compared with it bit by bit in numpy. The exit
status is 1 if a variant is not equal, or if XLA's results are far from numpy's. Differences in XLA's rounding are
measured, but are not failures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import jax
import jaxlib.version

from recompute.benchmarks.harness.command_line import add_names, benchmark_parser, report_progress
from recompute.benchmarks.harness.markdown import markdown_table, write_tables
from recompute.benchmarks.harness.paths import MEASURED_PAGES
from recompute.benchmarks.rounding.rounding_steps import STEPS
from recompute.benchmarks.rounding.step_forms import CHECKPOINT, INLINED, OURS, PLAIN, Forms
from recompute.examples.closeness import Closeness
from recompute.examples.export import BUILDERS
from recompute.examples.models.step import random_inputs
from recompute.examples.with_jax import DROPS_BARRIERS, compile_without

PAGE = MEASURED_PAGES / "bits.md"
KNOWN = (*BUILDERS, *STEPS)
SEEDS = 5
NUMPY = "numpy"
# Pairs of forms, for which the distance of the second form's results from the first form's is measured.
FROM_PLAIN = ((PLAIN, INLINED), (PLAIN, OURS), (PLAIN, CHECKPOINT))
PAIRS = (*FROM_PLAIN, (INLINED, OURS), (CHECKPOINT, OURS), (NUMPY, PLAIN), (NUMPY, OURS))
OTHER_NUMBERS = 0.05
"""The relative distance above which a difference cannot be rounding. Even in bf16, rounding is far smaller."""


@dataclass(frozen=True)
class XlaSetting:
    """A compiler setting: the names of disabled passes of XLA, and other options."""

    name: str
    without: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict[str, Any])


SETTINGS = (XlaSetting("default"), XlaSetting("barriers kept", (DROPS_BARRIERS,)))
# To find the cause of a difference, the compiler runs with one of its parts disabled, then with all of them disabled.
TREE, MOVER = "tree_reduction_rewriter", "reshape-mover"
PRECISE, UNOPTIMIZED = {"xla_allow_excess_precision": False}, {"xla_backend_optimization_level": 0}
DIAGNOSES = (
    XlaSetting(f"`{TREE}` off", (DROPS_BARRIERS, TREE)),
    XlaSetting(f"`{MOVER}` off", (DROPS_BARRIERS, MOVER)),
    XlaSetting("`xla_allow_excess_precision=false`", (DROPS_BARRIERS,), PRECISE),
    XlaSetting("`xla_backend_optimization_level=0`", (DROPS_BARRIERS,), UNOPTIMIZED),
    XlaSetting("all four", (DROPS_BARRIERS, TREE, MOVER), PRECISE | UNOPTIMIZED),
)


@dataclass(frozen=True)
class DistanceRow:
    """The distances of a step's results under one setting, for each pair of variants."""

    step: str
    setting: str
    distances: dict[tuple[str, str], Closeness]

    def other_numbers(self) -> Iterator[str]:
        """Yield a message for each variant whose results under XLA differ from numpy's by more than `OTHER_NUMBERS`."""
        for of in (PLAIN, OURS):
            if not self.distances[NUMPY, of].relative <= OTHER_NUMBERS:
                yield f"{self.setting}: XLA's results for {of} differ from numpy's: {self.distances[NUMPY, of]}"

    @property
    def is_equal(self) -> bool:
        """Whether all variants have the same bits under XLA."""
        return not any(entry.differing for (base, _), entry in self.distances.items() if base != NUMPY)


def forms_of(name: str) -> Forms:
    """Build the variants of an example, or of a step from `rounding_steps`, in the small size."""
    if name in STEPS:
        return Forms.of(STEPS[name](False), STEPS[name](True))
    return Forms.of(BUILDERS[name]("small"), BUILDERS[name]("small", checkpoint=True))


def measure(name: str, forms: Forms, setting: XlaSetting, seeds: int) -> DistanceRow:
    """Compile the variants with a setting, and return the largest distances over `seeds` random inputs."""
    compiled = {
        form: compile_without(lowered, *setting.without, **setting.options) for form, lowered in forms.lowered.items()
    }
    runs = [run_all(forms, compiled, seed) for seed in range(seeds)]
    return DistanceRow(
        name, setting.name, {pair: Closeness.largest(distance_between(run, *pair) for run in runs) for pair in PAIRS}
    )


def run_all(forms: Forms, compiled: Mapping[str, jax.stages.Compiled], seed: int) -> dict[str, Any]:
    """Run each variant on the inputs drawn from a seed, and return the results by variant.

    Each variant needs new inputs, since runs consume donated ones.
    """
    results = {form: each(*random_inputs(forms.step, seed)) for form, each in compiled.items()}
    return {**results, NUMPY: forms.by_numpy(random_inputs(forms.step, seed))}


def distance_between(run: Mapping[str, Any], base: str, other: str) -> Closeness:
    """Return the distance between the results of `other` and `base` in one run."""
    return Closeness.of(run[base], run[other])


def rows_of(name: str, forms: Forms, seeds: int) -> Iterator[DistanceRow]:
    """Measure a step under each setting, and under the diagnostic settings if any result differs."""
    rows = [measure(name, forms, setting, seeds) for setting in SETTINGS]
    yield from rows
    if not all(row.is_equal for row in rows):
        yield from (measure(name, forms, setting, seeds) for setting in DIAGNOSES)


def cell(result: Closeness) -> str:
    """Format a distance as 'differing results / distance in rounding units / relative distance', or 0."""
    return f"{len(result.differing)} / {result.units:.2g} / {result.relative:.1e}" if result.differing else "0"


def table(rows: Iterable[DistanceRow], pairs: Sequence[tuple[str, str]]) -> str:
    """Return a table of the rows, with a column for each pair of variants."""
    head = ["step", "results", "flags", *(other if base == PLAIN else f"{other} from {base}" for base, other in pairs)]
    lines = [
        [row.step, row.distances[pairs[0]].leaves, row.setting, *(cell(row.distances[pair]) for pair in pairs)]
        for row in rows
    ]
    return markdown_table(head, lines)


def tables(rows: Sequence[DistanceRow]) -> dict[str, str]:
    """Return the tables, by the names of their markers on the page."""
    settings = {setting.name for setting in SETTINGS}
    return {
        "distances": table((row for row in rows if row.setting in settings), PAIRS),
        "causes": table((row for row in rows if row.setting not in settings), FROM_PLAIN),
    }


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = benchmark_parser(__doc__)
    add_names(parser, "step", KNOWN)
    seeds = "the number of random inputs on which each step runs (default: %(default)s)"
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="COUNT", help=seeds)
    parser.add_argument("--write", action="store_true", help=f"write the tables of docs/measured/{PAGE.name}")
    options = parser.parse_args()
    if options.write and options.names:
        parser.error("--write cannot be combined with step names: the page lists every step")
    return options


def main() -> None:
    """Print the tables, and exit with a message for each failure."""
    options = arguments()
    rows, failures = list[DistanceRow](), list[str]()
    for name in options.names or KNOWN:
        report_progress(f"{name} ...")
        forms = forms_of(name)
        result = list(rows_of(name, forms, options.seeds))
        rows += result
        failures += (f"{name}: {line}" for line in chain(forms.unequal(), *(row.other_numbers() for row in result)))
    tables_of_page = tables(rows)
    print("\n\n".join([f"jaxlib {jaxlib.version.__version__}, {options.seeds} inputs", *tables_of_page.values()]))
    if options.write and not failures:
        write_tables(PAGE, tables_of_page)
    sys.exit("\n".join(failures) or None)


if __name__ == "__main__":
    main()
