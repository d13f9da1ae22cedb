"""Check on random steps that `recompute.jax.jit` never runs a step that needs more memory than with `jax.jit`.

    python -m recompute.benchmarks.peers.random_steps --count 20 --seed 0

Results: bytes of temporaries, and distances in units of rounding; a summary is in
docs/measured/jax_random_steps.md. Time: about 5 minutes.

Each step is compiled by `recompute.jax.jit` with all defaults, as for a call, and by `jax.jit` with default flags. Both
compiled steps run once on the same inputs. The exit status is 1 if a requirement is not met.

Distances are `max|a - b| / (eps × max|leaf|)`, with the eps of the leaf's type, or of bf16 in a step that rounds to
bf16.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

import recompute
from recompute.benchmarks.harness.command_line import benchmark_parser, report_missed
from recompute.benchmarks.harness.result_arrays import arrays_of
from recompute.benchmarks.peers.peer import Built
from recompute.benchmarks.peers.random_program import RandomProgram, build_step, program
from recompute.benchmarks.peers.result_distances import distance
from recompute.frontends.jax.compilation.allocation import temporary_bytes
from recompute.frontends.jax.lowering.variant_choice import choose_variant

FARTHEST, PLAIN_SHARE = 8.0, 0.1
APART = 1000
"""The distance between the first step seeds of consecutive values of `--seed`, so that their steps differ."""
BF16 = float(jnp.finfo(jnp.bfloat16).eps / jnp.finfo(jnp.float32).eps)


@dataclass(frozen=True)
class StepVerdict:
    """The result of the check of one step.

    Attributes:
        why: The reason why the plain step runs; None if the rewritten step runs.
        distance: The largest distance of a result, in units of rounding (of bf16 if the step rounds to bf16).
    """

    program: RandomProgram
    plain_bytes: int
    ours_bytes: int
    why: str | None
    distance: float
    seconds: float

    @property
    def is_above(self) -> bool:
        """Whether the chosen step needs more bytes of temporaries than the plain step."""
        return self.ours_bytes > self.plain_bytes

    @property
    def is_far(self) -> bool:
        """Whether the distance of a result from the plain step's exceeds `FARTHEST`, or is not a number."""
        return not self.distance <= FARTHEST

    def __str__(self) -> str:
        marks = [word for word, is_so in (("ABOVE", self.is_above), ("FAR", self.is_far), ("plain", self.why)) if is_so]
        ratio = f"{self.ours_bytes / self.plain_bytes:.3f}" if self.plain_bytes else "-"
        units = f"{self.distance:.2g}{' of bf16' if self.program.rounds_to_bf16 else ''}"
        first = f"{self.program.seed}: {ratio} of {self.plain_bytes} bytes, distance {units}, {self.seconds:.1f} s"
        return f"{first} {' '.join(marks)}".rstrip() + f" | {self.program}"


def judge(spec: RandomProgram) -> StepVerdict:
    """Compile and run a program both ways, and compare the temporaries and the results."""
    step = build_step(spec)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", recompute.jax.NothingSaved)
        lowered = recompute.jax.jit(step.step, **step.options).lower(*step.arguments(spec.seed))
        choice = choose_variant(lowered)
    seconds = time.perf_counter() - start
    plain = jax.jit(step.step, **step.options).lower(*step.arguments(spec.seed)).compile()
    before, after = temporary_bytes(plain), temporary_bytes(choice.compiled)
    assert before is not None and after is not None, "the compiler reports no memory"
    units = farthest(step, plain, choice.compiled, spec.seed) / (BF16 if spec.rounds_to_bf16 else 1)
    return StepVerdict(spec, before, after, choice.why, units, seconds)


def farthest(step: Built, plain: jax.stages.Compiled, ours: jax.stages.Compiled, seed: int) -> float:
    """Return the largest distance of a result, or infinity if integers differ or a result is not finite."""
    expected, result = (arrays_of(run(*step.arguments(seed))) for run in (plain, ours))
    if not all(np.isfinite(entry.astype(np.float64)).all() for entry in expected):
        return float("inf")
    return max(distance(a, b) for a, b in zip(expected, result, strict=True))


def missed(verdicts: Sequence[StepVerdict]) -> list[str]:
    """Return a message for each requirement that is not met, with the seeds of the steps."""
    above_seeds = [verdict.program.seed for verdict in verdicts if verdict.is_above]
    far_seeds = [verdict.program.seed for verdict in verdicts if verdict.is_far]
    plain_seeds = [verdict.program.seed for verdict in verdicts if verdict.why is not None]
    lines = [f"seeds whose step needs more memory than the plain step: {above_seeds}"] if above_seeds else []
    lines += [f"seeds with a distance above {FARTHEST:g}: {far_seeds}"] if far_seeds else []
    many = len(plain_seeds) > PLAIN_SHARE * len(verdicts)
    return lines + ([f"{len(plain_seeds)} seeds run the plain step: {plain_seeds}"] if many else [])


def summary(verdicts: Sequence[StepVerdict]) -> str:
    """Return a one-line summary of all steps: the number of steps that miss each requirement, and the median ratio of
    temporaries.
    """
    counts = {
        "need more than the plain step": sum(verdict.is_above for verdict in verdicts),
        "are the plain step": sum(verdict.why is not None for verdict in verdicts),
        "are far": sum(verdict.is_far for verdict in verdicts),
    }
    ratios = [verdict.ours_bytes / max(verdict.plain_bytes, 1) for verdict in verdicts]
    text = ", ".join(f"{count} {label}" for label, count in counts.items())
    return f"{len(verdicts)} steps: {text}; median {np.median(ratios):.3f} of the plain step's temporaries"


def main() -> None:
    """Print a line for each step, and exit with 1 if a requirement is not met."""
    parser = benchmark_parser(__doc__)
    parser.add_argument(
        "--count", type=int, default=20, metavar="COUNT", help="the number of random steps (default: %(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="SEED", help="the seed of the random steps (default: %(default)s)"
    )
    options = parser.parse_args()
    verdicts = list[StepVerdict]()
    for seed in range(options.seed * APART, options.seed * APART + options.count):
        verdicts.append(judge(program(seed)))
        print(verdicts[-1], flush=True)
    print(summary(verdicts))
    sys.exit(report_missed(missed(verdicts)))


if __name__ == "__main__":
    main()
