"""Compare recomputation with hand-placed `jax.checkpoint` on families of steps, by XLA:CPU's temporaries and FLOPs.

    python -m recompute.benchmarks.families                       # all steps, one line for each
    python -m recompute.benchmarks.families scan_cond_scan unet

Results: temporaries as shares of the plain step's, ratios of FLOPs, and wall seconds, printed only. Time: about 10
minutes.

No block has a scope name. "By hand" wraps blocks and loop bodies in `jax.checkpoint`, with the variant of four that
needs the fewest bytes. The columns list: the temporaries by hand and with recomputation, as shares of the plain step's;
the ratio of these two; the ratio of FLOPs; the seconds to rewrite and compile; the step that runs; and whether the
rewrite is proved.
"""

# pyright: basic

from __future__ import annotations

import time
import warnings
from functools import partial

import jax

import recompute
from recompute.benchmarks.families import block_steps, gradient_steps, loop_steps
from recompute.benchmarks.families.parts import STEPS
from recompute.benchmarks.harness.command_line import add_names, benchmark_parser
from recompute.benchmarks.harness.compiled_cost import temporaries_and_flops
from recompute.benchmarks.harness.xla_flags import KEEP_BARRIERS

recompute.config.cache_dir = ""  # The seconds must include the rewrite.

FAMILIES = loop_steps, gradient_steps, block_steps
POLICIES = jax.checkpoint_policies
BY_HAND = (
    partial(jax.checkpoint, prevent_cse=False),
    jax.checkpoint,
    partial(jax.checkpoint, policy=POLICIES.dots_saveable, prevent_cse=False),
    partial(jax.checkpoint, policy=POLICIES.dots_with_no_batch_dims_saveable),
)


def row(name: str) -> str:
    """Measure one step, and return its table row as a string."""
    function, arguments = STEPS[name](lambda body: body)
    plain, _ = temporaries_and_flops(jax.jit(function).lower(*arguments).compile())
    by_hand = (jax.jit(STEPS[name](wrap)[0]).lower(*arguments) for wrap in BY_HAND)
    size, flops = min(temporaries_and_flops(lowered.compile(compiler_options=KEEP_BARRIERS)) for lowered in by_hand)
    start = time.monotonic()
    lowered = recompute.jax.jit(function).lower_quietly(*arguments)
    choice = lowered.compiled_step
    seconds = time.monotonic() - start
    our_size, our_flops = temporaries_and_flops(choice.compiled)
    proved = lowered.rewritten is not None and bool(lowered.rewritten.proof)
    return (
        f"{name:<32}{size / plain:>8.3f}{our_size / plain:>8.3f}{our_size / size:>8.3f}{our_flops / flops:>8.3f}"
        f"{seconds:>7.1f}  {choice.variant.name.lower()}, {'proved' if proved else 'not proved'}"
        f"{'' if choice.why is None else f': {choice.why}'}"
    )


def main() -> None:
    """Print a table row for each step that the command line names."""
    parser = benchmark_parser(__doc__)
    add_names(parser, "step", STEPS)
    names = parser.parse_args().names or STEPS
    warnings.simplefilter("ignore", recompute.jax.NothingSaved)
    print(f"{'step':<32}{'by hand':>8}{'ours':>8}{'ratio':>8}{'FLOPs':>8}{'s':>7}")
    for name in names:
        print(row(name), flush=True)


if __name__ == "__main__":
    main()
