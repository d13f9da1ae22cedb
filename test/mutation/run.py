"""Mutation testing: check whether the quick tests of a file fail if the file is changed.

    python -m recompute.test.mutation.run                                   # every file, ten mutants of each
    python -m recompute.test.mutation.run transforms/cse.py --count 1000    # all mutants of one
    python -m recompute.test.mutation.run transforms/cse.py --line 96

No file is written: a mutant runs in a process of its own, which loads the changed source instead of the file. The
script prints each surviving mutant and a table. A mutant whose tests exceed the time limit counts as killed.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from pathlib import Path
from random import Random
from types import CodeType

import pytest

from ..run_lines.execute import failure
from .mutants import Mutant, mutants, mutated

ROOT = Path(__file__).resolve().parents[2]
QUIETLY = ("-x", "-q", "-p", "no:cacheprovider")

PASSES = (
    "filecheck/transforms",
    *("unit/search/choice/test_segment_decisions.py", "unit/analysis/memory/xla/test_taken.py"),
    *(f"unit/analysis/request/test_{name}.py" for name in ("names", "segments")),
    *(f"unit/transforms/test_{name}.py" for name in ("clone", "cse", "stagger")),
    "unit/transforms/plans/test_mark.py",
    "property/test_found.py",
)
PLANNING = (*PASSES, "unit/planning")
VERIFIER = (
    "unit/analysis/verify",
    "filecheck/transforms",
    "seeded_bugs/test_seeded_bugs.py::test_verifier_rejects_each_bug",
)
PROOF = tuple(
    f"unit/proof/{name}.py"
    for name in ("test_prove_refusals", "test_prove", "test_prove_dialects", "expressions/test_attribute_keys")
)
RULES = ("filecheck/transforms", "unit/rules")
STORAGE = ("unit/analysis/memory/test_timeline.py",)
XLA = ("filecheck/tools", "unit/analysis/memory/xla/test_fusion.py")
TESTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("transforms/clone.py", "transforms/cse.py"), PASSES),
    **{f"transforms/plans/{name}.py": PASSES for name in ("apply_plan", "cloned_steps", "given_plans")},
    **dict.fromkeys(
        ("analysis/request/value_names.py", "analysis/step/marks.py", "search/choice/segment_decisions.py"), PASSES
    ),
    **{
        f"planning/{name}.py": PLANNING
        for name in (
            *("gates", "orders", "liveness", "check", "unsplit_groups"),
            *("by_segment/copy_groups", "by_segment/copy_requests", "by_segment/batches", "by_segment/each_pass"),
            *("by_segment/plan_targets", "by_segment/segment_arrivals"),
        )
    },
    "analysis/forecasts/peaks.py": ("filecheck/transforms", "unit/analysis/forecasts/test_peaks.py"),
    **dict.fromkeys(("transforms/verify.py", "analysis/verify/invariants.py"), VERIFIER),
    "proof/prove.py": PROOF,
    **{f"proof/translation/{name}.py": PROOF for name in ("value_numbering", "call_inliner", "head_cache")},
    **{f"proof/expressions/{name}.py": PROOF for name in ("terms", "attribute_keys")},
    "proof/operations/pure_operations.py": ("unit/proof/operations/test_pure_operations.py",),
    **{
        f"rules/{name}.py": RULES
        for name in (
            *("arith", "chlo", "linalg", "math", "memref", "sdy", "stablehlo", "tensor"),
            *("body_runs", "flop_counts", "effects", "expansions", "facts", "flops", "registry"),
        )
    },
    **dict.fromkeys(("rules/buffers.py", "rules/scf.py", "rules/func.py"), (*RULES, *STORAGE)),
    "rules/fusion.py": XLA,
}
"""The quick tests below `test/`, by the source file that they test."""


@dataclass
class Result:
    tried: int = 0
    timed_out: int = 0
    survivors: list[Mutant] = field(default_factory=list[Mutant])


def survives(path: Path, mutant: Mutant | None, tests: Sequence[str], seconds: float) -> bool | None:
    """Return whether the tests pass in a process with the mutant; None if they exceed the time limit."""
    child = os.fork()
    if child == 0:
        os.setsid()
        _run_mutant(path, mutant, tests)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        result, status = os.waitpid(child, os.WNOHANG)
        if result:
            return status == 0
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _run_mutant(path: Path, mutant: Mutant | None, tests: Sequence[str]) -> None:
    """Run the tests with the mutant and exit the process; the exit status says whether a test failed."""
    code = 1
    try:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        if mutant is not None:
            _load_instead(path, compile(mutated(path.read_text(), mutant), str(path), "exec"))
        folders = [test for test in tests if test.startswith("filecheck")]
        others = [str(ROOT / "test" / test) for test in tests if test not in folders]
        lit = sorted(file for folder in folders for file in (ROOT / "test" / folder).glob("*.mlir"))
        code = int(any(failure(file) is not None for file in lit))
        if not code and others:
            code = int(pytest.main([*QUIETLY, *others]))
    finally:
        os._exit(code)


def _load_instead(path: Path, changed: CodeType) -> None:
    load = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        return changed if Path(self.path).resolve() == path else load(self, fullname)

    SourceFileLoader.get_code = get_code


def test_file(name: str, count: int, line: int | None, seconds: float) -> Result:
    path, result = ROOT / name, Result()
    listed = [mutant for mutant in mutants(path.read_text()) if line in (None, mutant.line)]
    chosen = Random(name).sample(listed, min(count, len(listed)))
    for mutant in sorted(chosen, key=lambda mutant: (mutant.line, mutant.node, mutant.variant)):
        alive = survives(path, mutant, TESTS[name], seconds)
        result.tried += 1
        result.timed_out += alive is None
        if alive:
            result.survivors.append(mutant)
            print(f"  survives: {name}:{mutant.line}: {mutant.what}", flush=True)
    killed = result.tried - len(result.survivors)
    print(f"| {name} | {len(listed)} | {result.tried} | {killed} | {len(result.survivors)} |", flush=True)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Change sources slightly, one change at a time: do the quick tests fail?"
    )
    parser.add_argument("files", nargs="*", help="sources; all that have quick tests by default")
    parser.add_argument("--count", type=int, default=10, help="number of mutants of each file; each run draws the same")
    parser.add_argument("--line", type=int, help="only mutants of this line")
    parser.add_argument("--seconds", type=float, default=240, help="time limit for the tests of one mutant")
    options = parser.parse_args()
    if unknown := [name for name in options.files if name not in TESTS]:
        parser.error(f"no quick tests are known for {unknown[0]}")
    names = options.files or list(TESTS)
    for tests in {TESTS[name]: name for name in names}:
        if not survives(ROOT, None, tests, 4 * options.seconds):
            parser.error(f"the tests fail without a mutant: {' '.join(tests)}")
    results = [test_file(name, options.count, options.line, options.seconds) for name in names]
    return any(result.survivors for result in results)


if __name__ == "__main__":
    sys.exit(main())
