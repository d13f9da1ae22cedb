"""A short part of the long run of structural tests, and the ledger in which the long run keeps its results."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from .drafts import TEXT_EDITS, TREE_EDITS
from .judge import Judge
from .ledger import Ledger
from .mutants import mutants
from .programs import Base
from .run import Worker, parse, run_many
from .signatures import signature

SEEDS = range(120)


@pytest.mark.slow
def test_short_run_has_no_findings(judge: Judge, programs: Sequence[Base]) -> None:
    ledger = Ledger()
    for outcome in Worker(judge, programs).outcomes(SEEDS):
        ledger.add(outcome)
    assert ledger.findings == {}
    expected = ("same text: proved", "different text: explained", "not proved", "refused, jaxlib refuses")
    assert all(ledger.counts[what] >= 5 for what in expected)
    assert len(ledger.rules) >= 5
    assert len(ledger.edits) >= len({*TREE_EDITS, *TEXT_EDITS}) / 2


def test_interrupted_run_resumes_with_same_result(judge: Judge, programs: Sequence[Base], tmp_path: Path) -> None:
    outcomes_of = partial(map, Worker(judge, programs).outcomes)

    def run_up_to(count: int, *more: str) -> Ledger:
        return run_many(parse(["--seed", "7", "--count", str(count), "--failures", str(tmp_path), *more]), outcomes_of)

    noted = ("--ledger", str(tmp_path / "ledger.json"))
    run_up_to(4, *noted)
    resumed, whole = run_up_to(10, *noted), run_up_to(10)
    assert replace(resumed, seconds=0) == replace(whole, seconds=0)
    assert Ledger.read(tmp_path / "ledger.json") == resumed
    assert f"mutants   {10}" in whole.lines()[0]


def test_findings_are_written(judge: Judge, programs: Sequence[Base], tmp_path: Path) -> None:
    worker = Worker(judge, programs)
    outcome = worker.outcomes([0])[0]
    outcome.findings.append(("wrong proof", "--- before\nfoo.a 1\n--- after\nfoo.a 2"))
    options = parse(["--count", "1", "--failures", str(tmp_path), "--most", "1"])
    ledger = run_many(options, lambda _: [[outcome, outcome]])
    (path,) = tmp_path.iterdir()
    assert outcome.mutant.before in path.read_text() and outcome.mutant.after in path.read_text()
    assert list(ledger.findings.values()) == [[outcome.mutant.seed] * 2]


def test_seed_determines_the_mutant_in_every_process(judge: Judge, programs: Sequence[Base]) -> None:
    script = (
        "from recompute.test.structure.drafts import edited_trees\n"
        "from recompute.test.structure.programs import Base\n"
        f"bases = [{programs[0]!r}, {programs[1]!r}]\n"
        "print([one.text for seed in range(40) for one in edited_trees(seed, bases).afters])"
    )
    texts = [
        subprocess.run(
            [sys.executable, "-c", script], env=os.environ | {"PYTHONHASHSEED": item}, capture_output=True, check=True
        ).stdout
        for item in ("1", "2")
    ]
    assert texts[0] == texts[1] != b""
    assert mutants(range(8), programs, judge) == mutants(range(8), programs, judge)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (
            'Traceback (most recent call last):\n  File "/a/b.py", line 3, in f\n    x\nKeyError: 7',
            "KeyError: N at b.py, in f",
        ),
        ('--- before\n  "foo.op"() {a = 1}\n--- after\n  "foo.op"() {b = 1}', "foo.op: a b"),
        ("<input>:3:4\n  ^^^ here\nexpected 17", "expected N"),
    ],
)
def test_signature_omits_numbers_and_details(words: str, kind: str) -> None:
    assert signature(words) == kind


def test_systematic_edits_have_no_findings(judge: Judge, programs: Sequence[Base]) -> None:
    worker = Worker(judge, programs)
    outcomes = worker.outcomes_at(range(0, len(worker.sites), 97))
    assert {outcome.mutant.change.edits[0] for outcome in outcomes} <= TREE_EDITS.keys()
    assert [kind for outcome in outcomes for kind in outcome.kinds()] == []
    assert len({site.edit for site in worker.sites}) == len(TREE_EDITS)
