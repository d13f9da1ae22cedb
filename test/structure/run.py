"""Check with structural mutants that no pair is proved which an independent reader distinguishes.

    python -m recompute.test.structure.run --count 50000 --seed 1000000 --jobs 2 --ledger build/structure/ledger.json
    python -m recompute.test.structure.run --count 1 --seed 4711 --show

A seed determines a mutant, so `--seed N --count 1` repeats it. Proofs that no rule explains, tracebacks, hangs, and
outputs that cannot be read again are written to `--failures` (build/structure). With `--ledger FILE` an interrupted run
continues where it stopped.
"""

from __future__ import annotations

import argparse
import gc
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property, partial
from multiprocessing import Pool
from pathlib import Path

from .judge import Judge
from .ledger import Ledger
from .mutants import Mutant, finished, mutants
from .programs import Base, bases
from .subject import Subject
from .systematic import Site, edited_at, every_site
from .trials import Outcome, tried
from .verdicts import judged

BATCH = 50
MEMORY = 3 << 30
"""Bytes of address space that a process may have: a text that asks for more shall fail, and not take the machine."""


class Worker:
    """Judge, programs, and the functions under test."""

    def __init__(self, judge: Judge, programs: Sequence[Base], subject: Subject | None = None):
        self._judge, self._programs, self._subject = judge, programs, subject or Subject()

    def outcomes(self, seeds: Sequence[int]) -> list[Outcome]:
        """Return the outcomes of random mutants."""
        return self._judged(mutants(seeds, self._programs, self._judge))

    def outcomes_at(self, numbers: Sequence[int]) -> list[Outcome]:
        """Return the outcomes of the mutants at the numbered sites; higher numbers start further rounds over all
        sites."""
        rounds = [divmod(number, len(self.sites)) for number in numbers]
        drafts = [edited_at(self.sites[index], turn, self._programs) for turn, index in rounds]
        return self._judged(finished(numbers, drafts, self._judge))

    @cached_property
    def sites(self) -> list[Site]:
        return list(every_site(self._programs))

    def _judged(self, actual: Sequence[Mutant]) -> list[Outcome]:
        outcomes = [tried(mutant, self._subject) for mutant in actual]
        judged(outcomes, self._judge)
        return outcomes


_worker: list[Worker] = []
Outcomes = Callable[[Iterable[Sequence[int]]], Iterable[list[Outcome]]]


def _start(names: Sequence[str] | None) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    gc.set_threshold(100_000, 20, 20)
    judge = Judge()
    _worker.append(Worker(judge, bases(judge, names)))


def _outcomes(seeds: Sequence[int]) -> list[Outcome]:
    return _worker[0].outcomes(seeds)


def _outcomes_at(numbers: Sequence[int]) -> list[Outcome]:
    return _worker[0].outcomes_at(numbers)


def run_many(options: argparse.Namespace, outcomes_of: Outcomes) -> Ledger:
    """Run all seeds that the ledger lacks, or as many as possible before an interrupt."""
    ledger = Ledger.read(options.ledger) if options.ledger else Ledger()
    start = time.monotonic() - ledger.seconds
    seeds = range(options.seed + ledger.mutants, options.seed + options.count)
    with suppress(KeyboardInterrupt):
        for outcomes in outcomes_of(_batches(seeds)):
            for outcome in outcomes:
                ledger.add(outcome)
                report(outcome, ledger, options)
            ledger.seconds = time.monotonic() - start
            print(ledger.progress(), file=sys.stderr)
            if options.ledger:
                ledger.write(options.ledger)
    return ledger


def _batches(seeds: range) -> Iterator[range]:
    return (seeds[start : start + BATCH] for start in range(0, len(seeds), BATCH))


def report(outcome: Outcome, ledger: Ledger, options: argparse.Namespace) -> None:
    """Write the findings, a few of each kind."""
    mutant = outcome.mutant
    if options.show:
        print(shown(outcome))
    for (kind, words), alike in zip(outcome.findings, outcome.kinds(), strict=True):
        if len(ledger.findings[alike]) > options.most:
            continue
        print(f"seed {mutant.seed}: {alike}", file=sys.stderr)
        options.failures.mkdir(parents=True, exist_ok=True)
        path: Path = options.failures / f"{kind.replace(' ', '-')}-{mutant.seed}.txt"
        path.write_text(found_text(mutant, kind, words))


def found_text(mutant: Mutant, kind: str, words: str) -> str:
    """Return both programs as text, with the edits and the finding."""
    setting, change = ("; ".join(each.words) for each in (mutant.setting, mutant.change))
    edits = ", ".join(mutant.change.edits)
    head = f"seed {mutant.seed}, {mutant.base}: {kind}\nsetting: {setting}\nchange ({edits}): {change}\n"
    return f"{head}===== A\n{mutant.before}\n===== B\n{mutant.after}\n===== {kind}\n{words}\n"


def shown(outcome: Outcome) -> str:
    words = "\n".join([*outcome.counts, *sorted(outcome.rules), *(kind for kind, _ in outcome.findings)])
    return found_text(outcome.mutant, "outcome", words)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Change the structure of programs, and have every proof judged.")
    parser.add_argument("--count", type=int, default=1000, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes")
    parser.add_argument("--programs", nargs="*", help="only mutants of these programs")
    parser.add_argument("--every", action="store_true", help="no random edits, but every one at every place, in turn")
    parser.add_argument("--show", action="store_true", help="print every mutant and what came out")
    parser.add_argument("--most", type=int, default=3, help="how many findings of a kind are written")
    parser.add_argument("--ledger", type=Path, help="where a long run notes how far it is, and goes on from")
    parser.add_argument("--failures", type=Path, default=Path("build/structure"), help="where findings go")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    with Pool(options.jobs, partial(_start, options.programs)) as pool:
        ledger = run_many(options, partial(pool.imap, _outcomes_at if options.every else _outcomes))
    print("\n".join(ledger.lines()))
    return bool(ledger.findings)


if __name__ == "__main__":
    sys.exit(main())
