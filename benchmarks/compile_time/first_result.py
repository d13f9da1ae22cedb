"""Measure the time to the first result of `recompute.jax.jit`, as a multiple of the time with `jax.jit`.

    python -m recompute.benchmarks.compile_time.first_result                          # all rows, about an hour
    python -m recompute.benchmarks.compile_time.first_result --only default --only cache
    python -m recompute.benchmarks.compile_time.first_result --size small --rounds 1  # a quick check

Results: ratios of CPU seconds; docs/jax_compilation.md summarizes them. Time: about 1 hour.

Each time is the minimum of the CPU seconds of one process over all rounds. Only ratios are printed. *Added* is all time
between the call and the result except tracing, lowering and compilation: reading the module, the rewrite with its
proof, the choice, and writing the module back. The disk cache is off except in the row `cache`. `growth.py` measures
the growth with the number of operations.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import os
import statistics
import tempfile
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp

import recompute
from recompute.analysis.forecasts import peaks
from recompute.analysis.memory.xla.memory import PlainStep
from recompute.benchmarks.harness.command_line import add_only, add_rounds, add_size, benchmark_parser, selected
from recompute.benchmarks.harness.compiled_cost import flops, temporary_bytes
from recompute.benchmarks.harness.processes import run_python, with_cpu_seconds
from recompute.benchmarks.peers.all_peers import PEERS
from recompute.benchmarks.peers.peer import ALL, Built

STEPS = ("gpt", "linen gpt adamw")
BUDGETS = {"gpt": 0.5, "linen gpt adamw": 0.6, "unet": 0.4}
TIMED = ("gpt", "linen gpt adamw", "unet", "lstm scanned", "moe", "equinox vit")
LEAVES = (13, 150, 600)
CALLS = 200


@dataclass(frozen=True)
class FirstResult:
    """The cost of a first result, in CPU seconds.

    Attributes:
        total: The seconds from the call to the result.
        compiling: The seconds of all compilations.
        compilations: The number of compilations.
        model_evaluations: The number of evaluations of the XLA memory model.
        answer: The value that the measured function returns.
    """

    total: float
    compiling: float
    compilations: int
    model_evaluations: int
    answer: Any

    @property
    def before(self) -> float:
        """The seconds outside compilations: tracing, lowering, and the time that `recompute.jax.jit` adds."""
        return self.total - self.compiling

    @property
    def compiled(self) -> Any:
        """The compiled step, if the measured function returns one."""
        return getattr(self.answer, "compiled", self.answer)

    @property
    def temporary_bytes(self) -> int:
        """The bytes of temporaries of the compiled step."""
        return temporary_bytes(self.compiled)

    @property
    def flops(self) -> float:
        """The FLOPs of the compiled step, as XLA reports them."""
        return flops(self.compiled)


def measure(run: Callable[[], Any]) -> FirstResult:
    """Measure one call to a function with empty caches, both of JAX and of this project."""
    jax.clear_caches()
    from recompute.search.candidate_plans.pool_cache import forget_pools

    forget_pools()
    with counting() as counts, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer, total = with_cpu_seconds(run)
    return FirstResult(total, counts["seconds"], int(counts["compilations"]), int(counts["models"]), answer)


@contextmanager
def counting() -> Generator[dict[str, float]]:
    """Provide a context that counts compilations, their seconds, and evaluations of the XLA memory model."""
    counts = {"seconds": 0.0, "compilations": 0.0, "models": 0.0}
    compile = jax.stages.Lowered.compile

    def compiled(*args: Any, **keywords: Any) -> Any:
        result, seconds = with_cpu_seconds(lambda: compile(*args, **keywords))
        counts["seconds"] += seconds
        counts["compilations"] += 1
        return result

    def modelled(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            counts["models"] += 1
            return function(*args)

        return run

    with (
        mock.patch.object(jax.stages.Lowered, "compile", compiled),
        mock.patch.object(PlainStep, "peak_bytes", modelled(PlainStep.peak_bytes)),
        mock.patch.object(peaks, "xla_timeline", modelled(peaks.xla_timeline)),
    ):
        yield counts


@dataclass(frozen=True)
class FirstResultRows:
    """The rows of the benchmark, for steps of one size. Each measurement is the minimum over `rounds` rounds."""

    size: str
    rounds: int

    def fastest(self, built: Built, compile: Callable[[Any], Any]) -> FirstResult:
        """Return the measurement of the fastest round. `compile` compiles the step for given arguments."""
        with built.context():
            arguments = built.arguments(0)
            runs = [measure(lambda: compile(arguments)) for _ in range(self.rounds)]
        return min(runs, key=lambda run: run.total)

    def plain(self, name: str, remat: str | None = None) -> FirstResult:
        """Measure `jax.jit` on a step, plain or with its framework's remat."""
        built = PEERS[name].build(remat, self.size)
        return self.fastest(
            built, lambda arguments: jax.jit(built.step, **dict(built.options)).lower(*arguments).compile()
        )

    def ours(self, name: str, remat: str | None = None, **options: Any) -> FirstResult:
        """Measure `recompute.jax.jit` on a step. `options`: the options of `recompute.jax.jit` that `jax.jit` does not
        have."""
        built = PEERS[name].build(remat, self.size)

        def run(arguments: Any) -> Any:
            step = recompute.jax.jit(built.step, **{**built.options, **options})
            return step.lower_quietly(*arguments).compiled_step

        return self.fastest(built, run)

    def default(self) -> Iterator[str]:
        """Measure the time that `recompute.jax.jit` adds with all defaults."""
        for name in STEPS:
            plain, ours = self.plain(name), self.ours(name)
            yield f"{name}: added / XLA's compile time: {(ours.before - plain.before) / plain.compiling:.3f}"
            yield f"{name}: first result / jax.jit's: {ours.total / plain.total:.2f}"
            yield f"{name}: {ours.compilations} compilations, {ours.model_evaluations} evaluations of the XLA model"

    def cache(self) -> Iterator[str]:
        """Measure a step that an earlier run has stored in the cache. JAX lowers it again, but it is not rewritten
        again.
        """
        for name in STEPS:
            plain = self.plain(name)
            with tempfile.TemporaryDirectory() as folder:
                recompute.config.cache_dir = folder
                try:
                    stored = replace(self, rounds=self.rounds + 1).ours(name)
                finally:
                    recompute.config.cache_dir = ""
            added = (stored.before - plain.before) / plain.compiling
            yield f"{name}: added with the cache / XLA's compile time: {added:.3f}"

    def checkpoint(self) -> Iterator[str]:
        """Measure a step whose author has placed `jax.checkpoint` on every block."""
        name = "gpt"
        own, ours, unmarked = self.plain(name, ALL), self.ours(name, ALL), self.ours(name)
        yield f"{name} with jax.checkpoint: first result / jax.jit's: {ours.total / own.total:.2f}"
        yield f"{name} with jax.checkpoint: {ours.compilations} compilations, runs {ours.answer.variant.name}"
        share = ours.temporary_bytes / unmarked.temporary_bytes
        yield f"{name} with jax.checkpoint: temporaries / temporaries without it: {share:.3f}"

    def budget(self) -> Iterator[str]:
        """Measure the budget search: its time, its compilations, and the temporaries and FLOPs of its result."""
        for name, share in BUDGETS.items():
            plain = self.plain(name)
            for budget in (share, "min"):
                ours = self.ours(name, budget=budget)
                needs, work = ours.temporary_bytes / plain.temporary_bytes, ours.flops / plain.flops
                yield (
                    f"{name}, budget {budget}: first result / jax.jit's: {ours.total / plain.total:.1f}, "
                    f"{ours.compilations} compilations, temporaries {needs:.3f}, FLOPs {work:.3f} of plain"
                )

    def calls(self) -> Iterator[str]:
        """Measure the wall time of the calls after the first one, with committed arguments."""
        for count in LEAVES:
            weights = [jax.device_put(jnp.ones(4), jax.devices()[0]) for _ in range(count)]

            def loss(weights: Any) -> Any:
                return sum(jnp.sum(jnp.sin(w) ** 2) for w in weights)

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                steps = [jit(jax.grad(loss)) for jit in (jax.jit, recompute.jax.jit)]
                times = [[call(step, weights) for step in steps] for _ in range(CALLS)]
            theirs, ours = (min(column) for column in zip(*times[1:], strict=True))
            yield f"call with {count} leaves / call of jax.jit: {ours / theirs:.2f}"

    def steps(self) -> Iterator[str]:
        """Measure the wall time of the compiled step, in alternation with the step under its framework's remat."""
        for name in TIMED:
            forms = [PEERS[name].build(ALL, self.size), PEERS[name].build(None, self.size)]
            with forms[0].context():
                remat = jax.jit(forms[0].step, **dict(forms[0].options)).lower(*forms[0].arguments(0)).compile()
                ours = recompute.jax.jit(forms[1].step, **dict(forms[1].options))
                compiled = ours.lower_quietly(*forms[1].arguments(0)).compiled_step.compiled
                pairs = list(zip((remat, compiled), forms, strict=True))
                times = [[call(run, *form.arguments(0)) for run, form in pairs] for _ in range(2 + 3 * self.rounds)]
            theirs, own = (statistics.median(column) for column in zip(*times[1:], strict=True))
            yield f"{name}: time of a step / time with its framework's remat: {own / theirs:.3f}"

    def tool(self) -> Iterator[str]:
        """Measure `recompute-opt -p recompute` in a separate process."""
        name = "linen gpt adamw"
        plain, built = self.plain(name), PEERS[name].build(None, self.size)
        lowered = jax.jit(built.step, **dict(built.options)).lower(*built.arguments(0))
        with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
            file.write(lowered.as_text(debug_info=True))
            file.flush()
            code = "from recompute.tools.start import opt; raise SystemExit(opt())"
            command = ("-c", code, file.name, "-p", "recompute", "--print-debuginfo", "-o", os.devnull)
            seconds = min(run_python(command).cpu_seconds for _ in range(self.rounds))
        yield f"{name}: recompute-opt / XLA's compile time: {seconds / plain.compiling:.2f}"

    def imports(self) -> Iterator[str]:
        """Measure the time to import `recompute.jax`, relative to the import of JAX."""
        nothing, theirs, ours = (
            min(run_python(("-c", code)).cpu_seconds for _ in range(self.rounds))
            for code in ("", "import jax", "import jax, recompute.jax")
        )
        yield f"import of recompute.jax / import of jax: {(ours - theirs) / (theirs - nothing):.2f}"


def call(step: Callable[..., Any], *arguments: Any) -> float:
    """Return the wall time of one call in seconds, from ready arguments to ready results."""
    jax.block_until_ready(arguments)
    start = perf_counter()
    jax.block_until_ready(step(*arguments))
    return perf_counter() - start


ROWS: dict[str, Callable[[FirstResultRows], Iterator[str]]] = {
    row.__name__: row
    for row in (
        *(FirstResultRows.default, FirstResultRows.cache, FirstResultRows.checkpoint, FirstResultRows.calls),
        *(FirstResultRows.tool, FirstResultRows.imports, FirstResultRows.steps, FirstResultRows.budget),
    )
}


def main() -> None:
    """Print the lines of the requested rows."""
    parser = benchmark_parser(__doc__)
    add_only(parser, "row", ROWS)
    add_size(parser)
    add_rounds(parser, 3)
    options = parser.parse_args()
    recompute.config.cache_dir = ""
    for name in selected(ROWS, options.only):
        for line in ROWS[name](FirstResultRows(options.size, options.rounds)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
