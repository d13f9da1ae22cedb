"""Check the proof on two loops that pass on stacks, and on almost correct rewrites: proved pairs compute the same.

    python -m recompute.test.property.rewritten_loops --count 5000 --seed 0
    python -m recompute.test.property.rewritten_loops --count 5000 --passes

Unlike `loops.py`, which edits programs of JAX and the passes, this script has a grammar of its own (`loop_grammar.py`):
counters of every integer type, steps and starts of any sign, indices that wrap, clamp, skip or repeat, stacks with two
writers or read where nothing was written, and loops that are split, chunked or peeled. The rewrite stores another value
in the first loop and computes the original from it in the second one, as if integers did not overflow. With `--passes`
the programs are given to the passes instead, and their output is proved and executed. The exit status is 1 if a proved
pair or the output of a pass computes different results, or if the output of a pass is not proved.
"""

from __future__ import annotations

import argparse
from collections import Counter
from random import Random

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import VerifyException

from recompute.dialects.context import make_context
from recompute.dialects.stablehlo.checks import shape_of
from recompute.interpreters.execute_check import PreparedPair
from recompute.mlir_io.parser import parse_module
from recompute.options.loop_schedule import Loops, schedule_of
from recompute.proof.prove import prove
from recompute.search.local_choices.recompute_loops import recompute_loops
from recompute.support.diagnostics import Refusal
from recompute.test.property.loop_grammar import pair
from recompute.test.property.loop_pieces import written

WAYS: tuple[Loops, ...] = (
    True,
    "periodic(1)",
    "periodic(2)",
    "periodic(3)",
    "periodic(auto)",
    "binomial(1)",
    "binomial(3)",
)
WRONG = ("other", "unproved")


def check(seed: int) -> str:
    """Check one random pair, and return its class.

    `other`: proved, but different results. Otherwise `same text`, `rejected`, `same`, `endless` or `invalid`.
    """
    programs = pair(seed)
    if not all(loop.ends() for program in programs for loop in program.loops):
        return "endless"
    texts = [written(program) for program in programs]
    if texts[0] == texts[1]:
        return "same text"
    try:
        before, after = map(module_of, texts)
    except (VerifyException, Refusal):
        return "invalid"
    if not prove(before, after):
        return "rejected"
    return "same" if computes_the_same(before, after, seed) else "other"


def check_passes(seed: int) -> str:
    """Run a pass on one random program, and return the class of its output.

    `other`: different results. `unproved`: not proved. Otherwise `left`, `same` or `endless`.
    """
    dice = Random(seed)
    program, loops = dice.choice(pair(seed)), dice.choice(WAYS)
    if not all(loop.ends() for loop in program.loops):
        return "endless"
    before = module_of(written(program))
    after = before.clone()
    if not recompute_loops(after, loops=loops).copies:
        return "left"
    after.verify()
    if schedule_of(loops).is_proved and not prove(before, after):
        return "unproved"
    return "same" if computes_the_same(before, after, seed) else "other"


def module_of(text: str) -> ModuleOp:
    module = parse_module(text, "loops.mlir", make_context())
    module.verify()
    return module


def computes_the_same(before: ModuleOp, after: ModuleOp, seed: int) -> bool:
    """Return whether both programs agree on random numbers, also with zeros, infinities and NaN among them."""
    runs = PreparedPair.of(before, after)
    shapes = [shape_of(argument) for argument in runs.before.function.body.block.args]
    for draw in range(2):
        numbers = np.random.default_rng(2 * seed + draw)
        arrays = [numbers.normal(size=shape).astype(np.float32) for shape in shapes]
        if draw:
            arrays[0].flat[:3] = [-0.0, np.inf, np.nan]
        if not runs.compare(arrays).equal:
            return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="how many pairs (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--passes", action="store_true", help="what the passes make of the programs")
    given = parser.parse_args()
    verdicts = Counter[str]()
    for seed in range(given.seed, given.seed + given.count):
        verdict = (check_passes if given.passes else check)(seed)
        verdicts[verdict] += 1
        if verdict in WRONG:
            print(f"seed {seed}: {verdict}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()))
    return 1 if any(verdicts[verdict] for verdict in WRONG) else 0


if __name__ == "__main__":
    raise SystemExit(main())
