"""Run every case in the real system and here, compare the measurements, and print a table.

    python test/conformance/side_by_side.py [--write] [--only CASE ...]

The script creates `.venv-mindspore` and `.venv-paddle` if they do not exist. The exit status is 1 if a system cannot be
installed, or if losses or gradients differ by more than the tolerance. `--write` also writes
docs/measured/side_by_side.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

from recompute.test.conformance import ours_measured, theirs_measured
from recompute.test.conformance.cases import CASES, TOLERANCE, Case
from recompute.test.conformance.environments import ROOT, SYSTEMS, CaseFailed, NotInstalled, install
from recompute.test.conformance.measures import ROWS, Measures, relative_change, shown

OUTPUT = ROOT / "docs" / "measured" / "side_by_side.md"


@dataclass(frozen=True)
class Comparison:
    """Measurements of both systems for a case."""

    case: Case
    theirs: Measures
    ours: Measures

    @property
    def distance(self) -> float | None:
        """Largest difference between both systems' losses and gradients, or None if they draw their own numbers.

        Running statistics are compared separately, with those of the plain run.
        """
        requested = [index for index in range(self.case.compared) if index not in self.case.statistics]
        theirs, ours = self.theirs.results, self.ours.results
        return relative_change([theirs[i] for i in requested], [ours[i] for i in requested])

    @property
    def agrees(self) -> bool:
        return self.distance is None or self.distance <= TOLERANCE[self.case.system]


def compare(case: Case, folder: Path) -> Comparison:
    theirs, inputs = theirs_measured.measure(case, folder)
    return Comparison(case, theirs, ours_measured.measure(case, inputs))


def table(comparisons: Iterable[Comparison]) -> Iterator[str]:
    yield "| case | measure | theirs | ours |"
    yield "|---|---|---|---|"
    for comparison in comparisons:
        label = f"**{comparison.case.name}** ({comparison.case.system}): {comparison.case.words}"
        for name, words in ROWS.items():
            if getattr(comparison.theirs, name) is None and getattr(comparison.ours, name) is None:
                continue
            yield f"| {label} | {words} | {shown(comparison.theirs, name)} | {shown(comparison.ours, name)} |"
            label = ""
        if comparison.distance is not None:
            verdict = "equal within" if comparison.agrees else "DIFFERENT beyond"
            distance = f"{comparison.distance:.1e}, {verdict} {_tolerance(comparison)}"
            yield f"| | loss and gradients, ours against theirs | | {distance} |"


def _tolerance(comparison: Comparison) -> str:
    return f"{TOLERANCE[comparison.case.system]:g}"


def page(comparisons: list[Comparison]) -> str:
    versions = {comparison.case.system: comparison.theirs.version for comparison in comparisons}
    named = ", ".join(f"{system} {version}" for system, version in sorted(versions.items()))
    return "\n".join([HEAD.format(named=named, date=date.today().isoformat()), *table(comparisons), ""])


HEAD = """# Side by side

This page compares MindSpore and Paddle with `recompute`, on the same nets, weights and inputs, on the CPU: {named};
{date}. `make conformance` writes this page; do not edit it.

The column *theirs* gives the numbers that each framework reports. For MindSpore, these are the copies and tokens in the
compiled graph, and the peak of the memory pool, with arguments and results. For Paddle, they are the copied operations,
the forward values that the backward pass reads, and the live bytes in the textual order of the program.

The column *ours* counts operations of StableHLO, which are more: a bias is a broadcast and an addition, and a relu is a
comparison and a selection. Our peaks are temporaries in program order. Therefore compare the change from plain to
recomputed in each column, and not the numbers of both columns. Differences are relative to the largest number of each
array.
"""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="also write docs/measured/side_by_side.md")
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="CASE",
        choices=[case.name for case in CASES],
        default=[],
        help="run only these cases",
    )
    options = parser.parse_args(arguments)
    chosen = [case for case in CASES if not options.only or case.name in options.only]
    try:
        for system in dict.fromkeys(case.system for case in chosen):
            install(SYSTEMS[system])
        with TemporaryDirectory() as folder:
            comparisons = [compare(case, Path(folder)) for case in chosen]
    except (NotInstalled, CaseFailed) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print("\n".join(table(comparisons)))
    if options.write:
        OUTPUT.write_text(page(comparisons))
    return 0 if all(comparison.agrees for comparison in comparisons) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
