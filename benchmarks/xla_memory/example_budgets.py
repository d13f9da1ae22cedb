"""Compile every example with `recompute.jax.jit` within several budgets, and compare it with `jax.checkpoint`.

    python -m recompute.benchmarks.xla_memory.example_budgets
    python -m recompute.benchmarks.xla_memory.example_budgets chain gpt --size large --json results.json
    python -m recompute.benchmarks.xla_memory.example_budgets --peers  # the models of benchmarks/peers
    python -m recompute.benchmarks.xla_memory.example_budgets --order  # in program order, without JAX

Budgets are shares of XLA's temporaries for the plain step. The last budget of each example is the temporaries of the
step with `jax.checkpoint`. The exit status is 1 if a bar is missed.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from recompute.benchmarks.harness.compiled_cost import temporaries_and_flops
from recompute.benchmarks.harness.parsers import benchmark_parser
from recompute.benchmarks.harness.xla_flags import flags_with_host_devices

os.environ.setdefault("RECOMPUTE_CACHE_DIR", "")
os.environ["XLA_FLAGS"] = flags_with_host_devices(8)

import jax

from recompute.analysis.memory.peaks import Peaks
from recompute.analysis.step.module_steps import numbered_steps
from recompute.driver.api import rewrite
from recompute.options.recompute_options import RecomputeOptions
from recompute.planning.objective import MAX_EAGER_FACTOR
from recompute.support.diagnostics import Refusal
from recompute.transforms.preparation.timelines import flat_copy

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "stablehlo"
SHARES = (0.8, 0.6, 0.4)
"""The budgets, as shares of the plain step's temporaries."""
MAX_COMPILES = 4
"""The number of compilations after which a budget search must stop (docs/jax_compilation.md)."""
_JAX: Any = jax
JIT = _JAX.jit


@dataclass(frozen=True)
class ExampleBudgetRow:
    """The measurement of one step within one budget.

    Attributes:
        label: The name of the budget in the table.
        budget: The budget, as a share of the plain step's temporaries.
        needs: The temporaries that the compiled step needs, as a share of the plain step's.
        work: The FLOPs of the compiled step, as a multiple of the plain step's.
        theirs: The FLOPs with `jax.checkpoint`, as a multiple of the plain step's.
        refused: The reason why the budget was refused.
    """

    example: str
    label: str
    budget: float
    needs: float | None
    work: float | None
    theirs: float | None
    compiles: int
    seconds: float
    refused: str | None = None

    @property
    def use(self) -> float | None:
        """The share of the budget that the compiled step needs; None if the budget was refused."""
        return None if self.needs is None else self.needs / self.budget

    def missed(self) -> Iterator[str]:
        """Yield a message for each missed bar: the budget, the number of compilations, and the FLOPs."""
        if self.needs is not None and self.needs > self.budget:
            yield f"{self.example} {self.label}: {self.needs:.3f} of the plain step's temporaries exceed the budget"
        if self.compiles > MAX_COMPILES:
            yield f"{self.example} {self.label}: {self.compiles} compilations, more than {MAX_COMPILES}"
        if self.theirs is not None and self.work is None:
            yield f"{self.example} {self.label}: refused, although the step of jax.checkpoint is within this budget"
        elif self.theirs is not None and self.work is not None and self.work > self.theirs:
            yield f"{self.example} {self.label}: {self.work} × the plain FLOPs, but {self.theirs} with jax.checkpoint"

    def __str__(self) -> str:
        head = f"{self.example:20} {self.label:15} {self.budget:6.3f}"
        if self.needs is None or self.use is None:
            return f"{head} refused: {self.refused} ({self.seconds:.0f} s)"
        theirs = "" if self.theirs is None else f"{self.theirs:7.3f}"
        measured = f"{self.needs:6.3f} {self.use:6.3f} {self.work:7.3f}"
        return f"{head} {measured} {theirs:>7} {self.compiles:3} {self.seconds:5.0f}"


@dataclass(frozen=True)
class BudgetedStep:
    """A step with its arguments, its options of `jax.jit`, and the context in which it runs.

    `checkpointed`: lowers the step with its framework's own remat.
    """

    name: str
    function: Callable[..., Any]
    arguments: Sequence[Any]
    options: Mapping[str, Any]
    context: Callable[[], AbstractContextManager[Any]]
    checkpointed: Callable[[], Any]


def examples(names: Sequence[str], size: str) -> Iterator[BudgetedStep]:
    """Yield the examples with the given names, or all examples."""
    from recompute.examples.export import BUILDERS

    for name in names or BUILDERS:
        step, twin = BUILDERS[name](size), BUILDERS[name](size, checkpoint=True)
        options = {"donate_argnums": step.donated}
        yield BudgetedStep(name, step.function, step.arguments, options, nullcontext, twin.lower)


def peers(names: Sequence[str], size: str) -> Iterator[BudgetedStep]:
    """Yield the models of `benchmarks/peers` with the given names, or all models."""
    from recompute.benchmarks.peers.all_peers import PEERS
    from recompute.benchmarks.peers.peer import ALL

    for name in names or PEERS:
        built, theirs = PEERS[name].build(None, size), PEERS[name].build(ALL, size)

        def lowered(theirs: Any = theirs) -> Any:
            return JIT(theirs.step, **theirs.options).lower(*theirs.arguments(0))

        yield BudgetedStep(name, built.step, built.arguments(0), built.options, built.context, lowered)


def rows_of(step: BudgetedStep) -> Iterator[ExampleBudgetRow]:
    """Yield a row for each budget of `SHARES`, and one for the temporaries of the step with `jax.checkpoint`."""
    from recompute.examples.with_jax import compile_keeping_barriers

    with step.context():
        compiled: Any = JIT(step.function, **step.options).lower(*step.arguments).compile()
        plain, flops = temporaries_and_flops(compiled)
        twin: Any = compile_keeping_barriers(step.checkpointed())
        for share in SHARES:
            yield row_of(step, f"{share}", share, plain, flops, None)
        theirs = twin.cost_analysis()["flops"] / flops
        # Round up, so that the budget includes all of these bytes.
        share = math.nextafter(twin.memory_analysis().temp_size_in_bytes / plain, 1)
        if share < 1:
            yield row_of(step, "jax.checkpoint", share, plain, flops, theirs)


def row_of(
    step: BudgetedStep, label: str, share: float, plain: int, flops: float, theirs: float | None
) -> ExampleBudgetRow:
    """Measure a step within a budget.

    Args:
        step: The step.
        label: The name of the budget in the table.
        share: The budget, as a share of the plain step's temporaries.
        plain: The plain step's temporaries in bytes.
        flops: The plain step's FLOPs.
        theirs: The FLOPs with `jax.checkpoint`, as a multiple of the plain step's; None for no comparison.
    """
    import recompute

    start = time.perf_counter()
    jitted = recompute.jax.jit(step.function, **step.options, budget=share)
    try:
        lowered = jitted.lower_quietly(*step.arguments)
    except Refusal as error:
        seconds = time.perf_counter() - start
        return ExampleBudgetRow(
            step.name, label, share, None, None, theirs, MAX_COMPILES, seconds, error.reason.split(";")[0]
        )
    outcome: Any = lowered.compile()
    needs, work = outcome.memory_analysis().temp_size_in_bytes / plain, outcome.cost_analysis()["flops"] / flops
    compiles = 0 if lowered.within is None else len(lowered.within.rounds)
    return ExampleBudgetRow(step.name, label, share, needs, work, theirs, compiles, time.perf_counter() - start)


def in_order(size: str) -> int:
    """Rewrite every example with `recompute{budget=50% memory-model=order}`, and return the number of failures.

    A step that exceeds the budget, in program order or eagerly, or that is not proved, is a failure.
    """
    missed = 0
    for path in sorted(EXAMPLES.glob(f"*.{size}.mlir")):
        start = time.perf_counter()
        try:
            outcome = rewrite(path.read_text(), RecomputeOptions(budget="50%", memory_model="order"), name=path.name)
        except Refusal as error:
            print(f"{path.name:34} refused: {error.reason} ({time.perf_counter() - start:.1f} s)", flush=True)
            continue
        before, after = outcome.memory()["main"]
        eager = [
            Peaks.of_step(*numbered_step).eager
            for numbered_step in numbered_steps(flat_copy(outcome.module), bare=True)
        ]
        budget = before.peak_bytes / 2
        proved = outcome.proof is not None and outcome.proof.proved
        missed += after.peak_bytes > budget or not proved or max(eager) > MAX_EAGER_FACTOR * budget
        print(
            f"{path.name:34} peak {after.peak_bytes / budget:.3f} of the budget, eager {max(eager) / budget:.3f}, "
            f"{outcome.extra_flops} additional FLOPs,  {'proved' if proved else 'NOT proved'} "
            f"({time.perf_counter() - start:.1f} s)",
            flush=True,
        )
    return missed


def main() -> None:
    """Print a table row for each budget of each step, and exit with 1 if a bar is missed."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("examples", nargs="*", metavar="EXAMPLE", help="the examples to measure; all by default")
    parser.add_argument("--size", choices=("small", "large"), default="large", help="the size (default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows to FILE")
    parser.add_argument("--order", action="store_true", help="plan within 50%% in program order, without JAX")
    parser.add_argument("--peers", action="store_true", help="measure the models of benchmarks/peers")
    options = parser.parse_args()
    if options.order:
        sys.exit(in_order(options.size) > 0)
    print(f"{'example':20} {'budget':15}  share  needs    use   FLOPs  theirs   n     s")
    rows = list[ExampleBudgetRow]()
    for step in (peers if options.peers else examples)(options.examples, options.size):
        for row in rows_of(step):
            print(row, flush=True)
            rows.append(row)
    uses = [row.use for row in rows if row.use is not None]
    print(f"median share of the budget that is used: {statistics.median(uses) if uses else 0:.3f}")
    missed = [text for row in rows for text in row.missed()]
    print(*missed, sep="\n")
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
