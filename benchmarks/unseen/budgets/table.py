"""What budgets come to on the real compiler, on steps that nobody fitted: temporaries, compiles, FLOPs, results.

    python -m recompute.benchmarks.unseen.budgets.table                 # all of them, some 40 minutes on two cores
    python -m recompute.benchmarks.unseen.budgets.table capsules --json rows.jsonl
    python -m recompute.benchmarks.unseen.budgets.table --budgets 0.6,min --unnamed

Shares are of XLA's temporaries of the plain step. `checkpoint`: the temporaries of `jax.checkpoint` around each block for
a budget; `bytes`: as many MiB of the device as the plain step needs at 0.6 of its temporaries. `apart`: the largest
difference of a result from the plain step's, over the largest element of that result; theirs is `jax.checkpoint`'s.
Exit status 1: a budget was not kept, or a bar was missed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

import recompute
from recompute.dialects.diagnostics import Refusal

from ..common import UnseenStep, random_inputs
from .steps import STEPS

BUDGETS = ("0.8", "0.6", "0.4", "checkpoint", "bytes", "min")
COMPILES = 4
BARRIERS = {"xla_disable_hlo_passes": "cse_barrier_expander"}


@dataclass(frozen=True)
class Row:
    """`budget` and `needs`: of the plain step's temporaries (of the device, where `what` is bytes). FLOPs over the
    plain step's."""

    step: str
    what: str
    budget: float | None
    needs: float | None
    flops: float | None
    theirs_needs: float
    theirs_flops: float
    compiles: int
    apart: float | None
    theirs_apart: float
    seconds: float
    refused: str | None = None

    @property
    def use(self) -> float | None:
        return None if self.needs is None or self.budget is None else self.needs / self.budget

    def missed(self) -> Iterator[str]:
        if self.use is not None and self.use > 1:
            yield "above the budget"
        if self.compiles > COMPILES:
            yield f"{self.compiles} compiles"
        if self.what == "checkpoint" and (self.flops is None or self.flops > self.theirs_flops + 1e-4):
            yield f"FLOPs {self.flops}, jax.checkpoint {self.theirs_flops}"
        if self.apart is not None and self.apart > max(1e-5, 4 * self.theirs_apart):
            yield f"results {self.apart:.1e} apart, jax.checkpoint's {self.theirs_apart:.1e}"

    def __str__(self) -> str:
        cells = [self.step, self.what, shown(self.budget), shown(self.needs), shown(self.use), shown(self.flops)]
        cells += [shown(self.theirs_needs), shown(self.theirs_flops), str(self.compiles)]
        cells += [f"{self.apart:.1e}" if self.apart is not None else "", f"{self.theirs_apart:.1e}"]
        return "| " + " | ".join([*cells, f"{self.seconds:.0f}", self.refused or "; ".join(self.missed())]) + " |"


HEAD = "| step | budget | share | needs | use | FLOPs | theirs | FLOPs | compiles | apart | theirs | s | |\n" + "|---" * 13 + "|"


def shown(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


@dataclass(frozen=True)
class Plain:
    """The plain step compiled, its results, and what comes of its `jax.checkpoint` twin. Bytes and FLOPs by XLA."""

    step: UnseenStep
    temporaries: int
    device: int
    flops: float
    results: Any
    theirs: tuple[float, float, float]

    @classmethod
    def of(cls, step: UnseenStep, twin: UnseenStep) -> Plain:
        compiled: Any = step.lower().compile()
        other: Any = twin.lower().compile(compiler_options=BARRIERS)
        temporaries, flops = compiled.memory_analysis().temp_size_in_bytes, compiled.cost_analysis()["flops"]
        results = compiled(*random_inputs(step))
        away = apart(results, other(*random_inputs(step)))
        share = other.memory_analysis().temp_size_in_bytes / temporaries
        device = device_bytes(compiled)
        theirs = share, other.cost_analysis()["flops"] / flops, away
        return cls(step, temporaries, device, flops, results, theirs)

    def asked(self, what: str) -> tuple[float | str, float | None]:
        """The budget as it is given, and as a share of what it speaks of."""
        if what == "min":
            return "min", None
        if what == "bytes":
            mebibytes = f"{(self.device - 0.4 * self.temporaries) / 2**20:.2f}"
            return f"{mebibytes}MiB", float(mebibytes) * 2**20 / self.device
        share = self.theirs[0] if what == "checkpoint" else float(what)
        return min(share, 1.0), min(share, 1.0)


def device_bytes(compiled: Any) -> int:
    read = compiled.memory_analysis()
    held = read.argument_size_in_bytes + read.output_size_in_bytes - read.alias_size_in_bytes
    return int(held + read.temp_size_in_bytes)


def apart(ours: Any, theirs: Any) -> float:
    """The largest difference of two trees of results, over the largest element of the result where it is."""
    most = 0.0
    for one, two in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        x, y = np.asarray(one, np.float64), np.asarray(two, np.float64)
        if not np.array_equal(np.isfinite(x), np.isfinite(y)):
            return float("inf")
        most = max(most, float(np.max(np.abs(x - y), initial=0)) / max(float(np.max(np.abs(x), initial=0)), 1e-30))
    return most


def row_of(name: str, plain: Plain, what: str) -> Row:
    asked, share = plain.asked(what)
    start = time.perf_counter()
    jitted = recompute.jax.jit(plain.step.function, donate_argnums=plain.step.donate, budget=asked)
    try:
        lowered = jitted.lower_quietly(*plain.step.arguments)
    except Refusal as error:
        seconds, why = time.perf_counter() - start, f"refused: {error.reason}"
        return Row(name, what, share, None, None, *plain.theirs[:2], 0, None, plain.theirs[2], seconds, why)
    done: Any = lowered.compile()
    seconds = time.perf_counter() - start
    needs = done.memory_analysis().temp_size_in_bytes / plain.temporaries
    if what == "bytes":
        needs = device_bytes(done) / plain.device
    compiles = 0 if lowered.within is None else len(lowered.within.rounds)
    away = apart(plain.results, done(*random_inputs(plain.step)))
    flops = done.cost_analysis()["flops"] / plain.flops
    return Row(name, what, share, needs, flops, *plain.theirs[:2], compiles, away, plain.theirs[2], seconds)


def rows(names: Sequence[str], budgets: Sequence[str], scopes: bool) -> Iterator[Row]:
    for name in names or STEPS:
        plain = Plain.of(STEPS[name](False, scopes), STEPS[name](True, True))
        for what in budgets:
            if what != "checkpoint" or plain.theirs[0] < 1:
                yield row_of(name, plain, what)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", metavar="STEP", help="all if none is named")
    parser.add_argument("--budgets", default=",".join(BUDGETS), metavar="LIST")
    parser.add_argument("--unnamed", action="store_true", help="without a name scope around each block")
    parser.add_argument("--json", type=Path, metavar="FILE", help="one row a line, added to what is there")
    options = parser.parse_args()
    print(HEAD, flush=True)
    found = list[Row]()
    for row in rows(options.steps, options.budgets.split(","), not options.unnamed):
        print(row, flush=True)
        found.append(row)
        if options.json is not None:
            with options.json.open("a") as file:
                file.write(json.dumps(asdict(row)) + "\n")
    uses = [row.use for row in found if row.use is not None]
    print(f"\nmedian use of the budget: {statistics.median(uses) if uses else 0:.3f}")
    sys.exit(any(next(row.missed(), None) for row in found))


if __name__ == "__main__":
    main()
