"""Check budgets on random steps in program order: each is met, or rejected with a reason.

    python -m recompute.test.property.budgets --count 1000 --seed 0

For three shares of the step's peak, the result is proved equal and executed with equal bits; its metered peak is the
predicted one and within the budget; and no budget is refused if a tighter one is not. A refusal states a minimum, which
is compared with what other requests reach: the fewest bytes possible, segments, other budgets; on small steps, all
schedules. The exit status is 1 if one of these checks fails.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from random import Random

from xdsl.dialects.builtin import ModuleOp

from recompute.driver.api import memory, rewrite
from recompute.driver.rewrites.rewritten import Rewritten
from recompute.interpreters.execute_check import compare
from recompute.interpreters.inputs import random_inputs
from recompute.interpreters.meter import meter
from recompute.mlir_io.printer import print_module
from recompute.options.recompute_options import RecomputeOptions
from recompute.planning.graph import Graph
from recompute.planning.plan import Plan
from recompute.planning.solvers.problem import Problem
from recompute.planning.solvers.solve_graph import problem_of_graph
from recompute.rules.effects import is_constant
from recompute.support.diagnostics import Refusal
from recompute.test.unit.planning.solvers.exhaustive import optimum
from recompute.transforms.cse import cse
from recompute.transforms.inline import inline
from recompute.transforms.preparation.flatten import drop_dead

from .checks import is_executable
from .programs import Shape, generate
from .relations import add_dead_code
from .requests import parsed, step_of

SHARES = (30, 90)
MINIMUM = re.compile(r"(?:no plan|none) needs less than (?:[\d.]+ .iB \()?(\d+) bytes")
FUNCTION = "main"
SMALL = 13
"""So many values an exhaustive search has time for."""


@dataclass(frozen=True)
class Answer:
    """Result for a share of the step's peak: a module or a refusal."""

    share: int
    wanted: int
    rewritten: Rewritten | None
    refusal: str = ""

    @cached_property
    def peak(self) -> int:
        assert self.rewritten is not None
        return memory(self.rewritten.module)[FUNCTION].peak_bytes

    @property
    def minimum(self) -> int:
        """Minimum that a refusal states as proved; 0 if it states none."""
        match = MINIMUM.search(self.refusal)
        return int(match[1]) if match else 0

    @property
    def is_proved(self) -> bool:
        """Whether a refusal states as proved that no plan is within the budget."""
        return self.minimum > self.wanted or "proved by the" in self.refusal

    @property
    def kind(self) -> str:
        if self.rewritten is not None:
            return f"kept by {'copies' if self.rewritten.copies else 'the step as it is'}"
        return "refused: proved" if self.is_proved else "refused: not found"


def step_for(seed: int) -> ModuleOp:
    """Return a random step. A third of the steps have dead code, a third are small; half are inlined, with twins
    merged."""
    module = parsed(generate(seed, small if seed % 3 == 1 else lambda shape: shape))
    if seed % 3 == 2:
        add_dead_code(module, Random(seed))
    if seed % 2 == 0:
        inline(module)
        cse(module)
    return module


def has_twins(module: ModuleOp) -> bool:
    """Return whether the written step may need less than any plan: it merges equal operations, which planners do not
    model (docs/limits_budgets.md)."""
    flat = module.clone()
    inline(flat)
    drop_dead(flat)
    before = _computed(flat)
    cse(flat)
    return _computed(flat) < before


def _computed(module: ModuleOp) -> int:
    return sum(not is_constant(op) for op in module.walk())


def small(shape: Shape) -> Shape:
    return replace(shape, blocks=shape.blocks[:1], pieces=(1, 1), head=False, towers=False)


def request_for(seed: int) -> RecomputeOptions:
    random = Random(f"budgets/{seed}")
    target = "none" if random.random() < 0.5 else "stablehlo"
    return RecomputeOptions(target=target, memory_model="order", calls=random.random() < 0.7)


def shares_for(seed: int) -> list[int]:
    """Return three shares for the seed, the loosest first."""
    return sorted(Random(f"shares/{seed}").sample(range(*SHARES), 3), reverse=True)


def answer(module: ModuleOp, request: RecomputeOptions, share: int, plain: int) -> Answer:
    wanted = plain * share // 100
    try:
        return Answer(share, wanted, rewrite(module, replace(request, budget=f"{share}%")))
    except Refusal as refusal:
        return Answer(share, wanted, None, refusal.reason)


def reached(module: ModuleOp, request: RecomputeOptions) -> Iterator[int]:
    """Yield the peaks that other requests reach: the fewest bytes possible, and the choice without a budget."""
    for other in (replace(request, budget="min"), replace(request, memory_model="")):
        for calls in {request.calls, False}:
            try:
                yield memory(rewrite(module, replace(other, calls=calls)).module)[FUNCTION].peak_bytes
            except Refusal:
                continue


def problems_of(module: ModuleOp, request: RecomputeOptions, answers: Sequence[Answer]) -> Iterator[str]:
    """Describe the checks that fail."""
    for actual in answers:
        if actual.rewritten is not None:
            yield from (f"{actual.share}%: {words}" for words in wrong_with(module, actual, actual.rewritten))
    yield from wrong_among(answers)
    if refused := [entry for entry in answers if entry.rewritten is None]:
        peaks = [*reached(module, request), *(entry.peak for entry in answers if entry.rewritten is not None)]
        problem, least = problem_for(module, request), 0 if has_twins(module) else min(peaks)
        for actual in refused:
            yield from (f"{actual.share}%: {words}" for words in wrong_refusal(actual, least))
            yield from (f"{actual.share}%: {words}" for words in exhausted(actual, problem))


def wrong_with(module: ModuleOp, actual: Answer, result: Rewritten) -> Iterator[str]:
    if result.proof is None or not result.proof.proved:
        yield "not proved"
    if actual.peak > actual.wanted:
        yield f"{actual.peak} bytes at the peak, above {actual.wanted}"
    if not is_executable(module):
        return
    inputs = random_inputs(step_of(module), 0)
    if not (same := compare(module, result.module, inputs)).equal:
        yield f"executed: {same.difference}"
    flat = result.module.clone()
    inline(flat)
    metered = meter(step_of(flat), inputs)[1].peak_bytes
    if metered != actual.peak:
        yield f"metered {metered} bytes, counted {actual.peak}"


def wrong_among(answers: Sequence[Answer]) -> Iterator[str]:
    """Describe inconsistencies among answers, the loosest of which comes first."""
    for looser, tighter in pairwise(answers):
        if looser.rewritten is None and tighter.rewritten is not None:
            yield f"{looser.share}% is refused, {tighter.share}% is not: {looser.refusal}"


def dearer(answers: Sequence[Answer]) -> Iterator[str]:
    """Describe budgets that take more work than a tighter one (docs/limits_budgets.md). They are counted, but are not
    failures."""
    for looser, tighter in pairwise(answers):
        if (
            looser.rewritten is not None
            and tighter.rewritten is not None
            and looser.rewritten.extra_flops > tighter.rewritten.extra_flops
        ):
            works = f"{looser.rewritten.extra_flops} FLOPs more, {tighter.share}% {tighter.rewritten.extra_flops}"
            yield f"{looser.share}% takes {works}"


def wrong_refusal(actual: Answer, least: int) -> Iterator[str]:
    """Describe a refusal that is contradicted by `least`, a number of bytes that was reached; 0 if none was."""
    if 0 < least < actual.minimum:
        yield f"refused below {actual.minimum} bytes, but {least} were reached: {actual.refusal}"
    if 0 < least <= actual.wanted:
        yield f"refused, but {least} bytes were reached, and {actual.wanted} asked for: {actual.refusal}"
    if not actual.minimum:
        yield f"refused without a minimum: {actual.refusal}"


def problem_for(module: ModuleOp, request: RecomputeOptions) -> Problem | None:
    """Return the planner's problem if it is small enough for an exhaustive search."""
    graphs = list[Graph]()

    def planner(graph: Graph) -> Plan:
        graphs.append(graph)
        return Plan()

    rewrite(module, replace(request, planner=planner, memory_model=""))
    problems = [problem_of_graph(graph) for graph in graphs]
    return problems[0] if len(problems) == 1 and len(problems[0].storage_bytes) <= SMALL else None


def exhausted(actual: Answer, problem: Problem | None) -> Iterator[str]:
    """Describe a refusal that a search over all schedules contradicts."""
    if problem is None:
        return
    earliest = 0 if problem.allows_forward_copies else problem.earliest_stage
    if actual.is_proved and optimum(problem, actual.wanted, earliest) is not None:
        yield f"refused as proved, but there is a schedule: {actual.refusal}"
    if actual.minimum and optimum(problem, actual.minimum - 1, earliest) is not None:
        yield f"there is a schedule below the minimum: {actual.refusal}"


def check(seed: int) -> tuple[list[Answer], list[str]]:
    module, request = step_for(seed), request_for(seed)
    plain = memory(module)[FUNCTION].peak_bytes
    answers = [answer(module, request, share, plain) for share in shares_for(seed)]
    return answers, list(problems_of(module, request, answers))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--text", action="store_true", help="print the step of the seed")
    options = parser.parse_args()
    kinds, failed, more, start = Counter[str](), 0, 0, time.monotonic()
    for seed in range(options.seed, options.seed + options.count):
        if options.text:
            print(print_module(step_for(seed), debuginfo=True))
        answers, problems = check(seed)
        kinds.update(actual.kind for actual in answers)
        failed += bool(problems)
        more += len(list(dearer(answers)))
        for words in [*problems, *(f"(no failure) {item}" for item in dearer(answers))]:
            print(f"seed {seed}: {words}", flush=True)
    took = f"{time.monotonic() - start:.0f} s"
    print(f"{options.count} steps, {failed} failed, {more} budgets dearer than tighter ones, {took}: {dict(kinds)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
