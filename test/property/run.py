"""Run the pipeline on many random programs, and print a ledger at the end.

    python -m recompute.test.property.run --count 20000 --seed 0 --execute --essential --jobs 2
    python -m recompute.test.property.run --count 1 --seed 4711 --shrink

A failing program and its request are written to `--failures` (build/property). A seed determines the program and the
request, so `--seed N --count 1` repeats a run. With `--ledger FILE` an interrupted run continues where it stopped; the
file is valid only for the sources with which it began.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import Pool
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from recompute.mlir_io.printer import print_module
from recompute.support.operations import name_of

from .checks import CHECKS, EXECUTION, Checks, Outcome, Problem, check
from .programs import generate
from .relations import RELATIONS
from .requests import Request, parsed, prepare, request_for
from .shrink import shrink

EVERYTHING: Checks = CHECKS | RELATIONS
# What makes a result right and a saving real; the rest is about how the result is written.
ESSENTIAL: Checks = {name: CHECKS[name] for name in ("verifies", "proved", "peak", "left alone", "gated")}


@dataclass
class Ledger:
    """Counts of programs and of findings."""

    programs: int = 0
    fired: int = 0
    copies: int = 0
    refusals: Counter[str] = field(default_factory=Counter[str])
    operations: Counter[str] = field(default_factory=Counter[str])
    failures: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    seconds: float = 0.0

    @classmethod
    def read(cls, path: Path) -> Ledger:
        """Return the ledger in a file, or an empty one if there is no such file."""
        if not path.exists():
            return cls()
        result = cls(**json.loads(path.read_text()))
        result.refusals, result.operations = Counter(result.refusals), Counter(result.operations)
        return result

    def write(self, path: Path) -> None:
        """Write the ledger atomically."""
        unfinished = path.with_name(path.name + ".part")
        unfinished.write_text(json.dumps(vars(self)))
        unfinished.replace(path)

    @property
    def fired_share(self) -> float:
        return self.fired / max(1, self.programs)

    def add(self, seed: int, operations: Iterable[str], outcome: Outcome) -> None:
        self.programs += 1
        self.fired += outcome.copies > 0
        self.copies += outcome.copies
        self.operations.update(operations)
        if outcome.refusal:
            self.refusals[outcome.refusal.partition("'")[0].strip()] += 1
        for kind in dict.fromkeys(problem.kind for problem in outcome.problems):
            self.failures.setdefault(kind, []).append(seed)

    def lines(self) -> list[str]:
        """Return the ledger as lines of text."""
        matches = [
            f"programs        {self.programs}",
            f"fired           {self.fired} ({self.fired_share:.1%})",
            f"copies          {self.copies}",
            f"operations      {len(self.operations)} distinct: {' '.join(sorted(self.operations))}",
            f"seconds         {self.seconds:.0f} ({1000 * self.seconds / max(1, self.programs):.0f} ms a program)",
        ]
        matches += [f"refused         {count} x {reason}" for reason, count in self.refusals.most_common()]
        matches += [f"FAILED          {_failed(kind, seeds)}" for kind, seeds in sorted(self.failures.items())]
        return [*matches, "failures        none"] if not self.failures else matches


def _failed(kind: str, seeds: Sequence[int]) -> str:
    more = " ..." if len(seeds) > 8 else ""
    return f"{len(seeds)} x {kind}; seeds {' '.join(map(str, seeds[:8]))}{more}"


def run_one(seed: int, checks: Checks = EVERYTHING) -> tuple[Request, ModuleOp, Outcome]:
    """Generate a program and a request, run the pipeline, and check the result; the seed determines everything."""
    program = generate(seed)
    module = parsed(program)
    request = request_for(program, module)
    prepare(module, request)
    return request, module, check(module, request, checks)


def run_many(seeds: Sequence[int], options: argparse.Namespace) -> Ledger:
    """Run all seeds, or as many as possible before an interrupt, in `--jobs` processes."""
    ledger = Ledger.read(options.ledger) if options.ledger else Ledger()
    seeds, start = seeds[ledger.programs :], time.monotonic() - ledger.seconds
    checks = (ESSENTIAL if options.essential else EVERYTHING) | (EXECUTION if options.execute else {})
    with suppress(KeyboardInterrupt), Pool(options.jobs) as pool:
        for seed, operations, outcome in pool.imap(partial(_summary, names=tuple(checks)), seeds, chunksize=8):
            ledger.add(seed, operations, outcome)
            ledger.seconds = time.monotonic() - start
            if outcome.problems:
                _report_again(seed, checks, options)
            if ledger.programs % 100 == 0:
                print(f"{ledger.programs} programs, {len(ledger.failures)} kinds of failure", file=sys.stderr)
                _note(ledger, options)
    _note(ledger, options)
    return ledger


def _note(ledger: Ledger, options: argparse.Namespace) -> None:
    if options.ledger:
        ledger.write(options.ledger)


def _summary(seed: int, names: Sequence[str]) -> tuple[int, frozenset[str], Outcome]:
    """Return the part of an outcome that the ledger needs, since modules cannot be sent between processes."""
    known = EVERYTHING | EXECUTION
    _, module, outcome = run_one(seed, {name: known[name] for name in names})
    return seed, frozenset(name_of(op) for op in module.walk()), outcome


def _report_again(seed: int, checks: Checks, options: argparse.Namespace) -> None:
    request, module, outcome = run_one(seed, checks)
    for problem in outcome.problems:
        report(seed, request, module, problem, options)


def report(seed: int, request: Request, module: ModuleOp, problem: Problem, options: argparse.Namespace) -> None:
    """Print what failed and write the program, shrunk on request."""
    print(f"seed {seed}: {problem.check}: {problem.detail}", file=sys.stderr)
    if options.shrink:
        module = shrink(module, request, problem, EVERYTHING | EXECUTION)
    options.failures.mkdir(parents=True, exist_ok=True)
    path: Path = options.failures / f"seed-{seed}-{problem.check.replace(' ', '-')}.mlir"
    path.write_text(found_text(seed, request, module, problem))


def found_text(seed: int, request: Request, module: ModuleOp, problem: Problem) -> str:
    """Return the program as text, with the request and the problem in comments."""
    detail = "\n// ".join(problem.detail.splitlines())
    options = f"segments={request.segments} target={request.target}"
    return f"// Seed {seed}, {problem.check}: {detail}\n// recompute-opt -p 'recompute{{{options}}}'\n" + print_module(
        module, debuginfo=True
    )


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run the pipeline on random programs and check every result.")
    parser.add_argument("--count", type=int, default=1000, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--essential", action="store_true", help=f"check only: {', '.join(ESSENTIAL)}")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes")
    parser.add_argument("--execute", action="store_true", help="run both programs too, and compare bits")
    parser.add_argument("--shrink", action="store_true", help="make failing programs small before they are written")
    parser.add_argument("--ledger", type=Path, help="where a long run notes how far it is, and goes on from")
    parser.add_argument("--failures", type=Path, default=Path("build/property"), help="where failing programs go")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    ledger = run_many(range(options.seed, options.seed + options.count), options)
    print("\n".join(ledger.lines()))
    return bool(ledger.failures)


if __name__ == "__main__":
    sys.exit(main())
