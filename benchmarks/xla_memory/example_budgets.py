"""Compile every example with `recompute.jax.jit` within several budgets, and compare it with `jax.checkpoint`.

    python -m recompute.benchmarks.xla_memory.example_budgets
    python -m recompute.benchmarks.xla_memory.example_budgets chain gpt --size large --json results.json
    python -m recompute.benchmarks.xla_memory.example_budgets --peers  # the models of benchmarks/peers

Results: temporaries and FLOPs as multiples of the plain step's, in docs/measured/budgets.md. Time: about 1 hour.

Budgets are shares of XLA's temporaries for the plain step. The last budget of each example equals the temporaries of
the step with `jax.checkpoint`. The columns list: the share that the budget allows; the share that the compiled step
needs; their ratio; the FLOPs, and those with `jax.checkpoint`, as multiples of the plain step's; the number of
compilations; and the wall time. The exit status is 1 if a requirement is not met.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from recompute.benchmarks.harness.command_line import (
    add_json,
    add_size,
    benchmark_parser,
    report_missed,
)
from recompute.benchmarks.harness.compiled_cost import temporaries_and_flops
from recompute.benchmarks.harness.row_printer import print_rows
from recompute.benchmarks.harness.xla_flags import flags_with_host_devices

os.environ.setdefault("RECOMPUTE_CACHE_DIR", "")
os.environ["XLA_FLAGS"] = flags_with_host_devices(8)

import jax

import recompute
from recompute.benchmarks.harness.budget_rows import (
    BUDGET_HEAD,
    BudgetRow,
    RequestedBudget,
    compile_within_budget,
)

SHARES = (0.8, 0.6, 0.4)
"""The budgets, as shares of the plain step's temporaries."""
_JAX: Any = jax
JIT = _JAX.jit


@dataclass(frozen=True)
class BudgetedStep:
    """A step to compile within budgets.

    Attributes:
        name: The name of the step in the table.
        function: The step function.
        arguments: The arguments with which it is lowered.
        options: Its options of `jax.jit`.
        context: Returns the context in which JAX must run, such as a mesh.
        checkpointed: Lowers the step with its framework's own remat.
    """

    name: str
    function: Callable[..., Any]
    arguments: Sequence[Any]
    options: Mapping[str, Any]
    context: Callable[[], AbstractContextManager[Any]]
    checkpointed: Callable[[], Any]


def example_steps() -> dict[str, Callable[[str], BudgetedStep]]:
    """Return the examples as functions from the size to the step, by name."""
    from recompute.examples.export import BUILDERS

    def build(name: str, size: str) -> BudgetedStep:
        step, twin = BUILDERS[name](size), BUILDERS[name](size, checkpoint=True)
        options = {"donate_argnums": step.donated}
        return BudgetedStep(name, step.function, step.arguments, options, nullcontext, twin.lower)

    return {name: lambda size, name=name: build(name, size) for name in BUILDERS}


def peer_steps() -> dict[str, Callable[[str], BudgetedStep]]:
    """Return the models of `benchmarks/peers` as functions from the size to the step, by name."""
    from recompute.benchmarks.peers.all_peers import PEERS
    from recompute.benchmarks.peers.peer import ALL

    def build(name: str, size: str) -> BudgetedStep:
        built, twin = PEERS[name].build(None, size), PEERS[name].build(ALL, size)

        def checkpointed() -> Any:
            return JIT(twin.step, **twin.options).lower(*twin.arguments(0))

        return BudgetedStep(name, built.step, built.arguments(0), built.options, built.context, checkpointed)

    return {name: lambda size, name=name: build(name, size) for name in PEERS}


def rows_of(step: BudgetedStep) -> Iterator[BudgetRow]:
    """Yield a row for each budget of `SHARES`, and one for the temporaries of the step with `jax.checkpoint`."""
    from recompute.examples.with_jax import compile_keeping_barriers

    with step.context():
        plain = temporaries_and_flops(JIT(step.function, **step.options).lower(*step.arguments).compile())
        temporaries, flops = temporaries_and_flops(compile_keeping_barriers(step.checkpointed()))
        requests = [RequestedBudget.of_share(share) for share in SHARES]
        if temporaries < plain[0]:
            requests.append(RequestedBudget.of_checkpoint(temporaries / plain[0], flops / plain[1]))
        for request in requests:
            jitted = recompute.jax.jit(step.function, **step.options, budget=request.argument)
            yield compile_within_budget(step.name, jitted, step.arguments, request, plain)[0]


def main() -> int:
    """Print a table row for each budget of each step, and return 1 if a requirement is not met."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("names", nargs="*", metavar="STEP", help="the examples or models to measure (default: all)")
    parser.add_argument("--peers", action="store_true", help="measure the models of benchmarks/peers, not the examples")
    add_size(parser)
    add_json(parser)
    options = parser.parse_args()
    steps = peer_steps() if options.peers else example_steps()
    if unknown := sorted(set(options.names) - set(steps)):
        parser.error(f"unknown step {unknown[0]!r}: choose from {', '.join(steps)}")
    measured = (row for name in options.names or steps for row in rows_of(steps[name](options.size)))
    rows = print_rows(BUDGET_HEAD, measured, BudgetRow.cells, options.json)
    uses = [row.use for row in rows if row.use is not None]
    print(f"\nmedian share of the budget that is used: {statistics.median(uses) if uses else 0:.3f}")
    return report_missed([text for row in rows for text in row.missed()])


if __name__ == "__main__":
    sys.exit(main())
