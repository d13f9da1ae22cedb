"""Run one case in Paddle on the CPU and print its results as JSON.

python paddle_run.py CASE plain|recomputed INPUTS.npz RESULTS.npz
"""

import json
import os
import sys

import numpy as np

# The documented static optimizer works on the old IR only, the newer pass on the new one only; read on import.
os.environ["FLAGS_enable_pir_api"] = str(int("cse" in sys.argv))  # noqa: SIM112
import paddle


def fleet(recomputed):
    from paddle_fleet import train

    losses, inputs, gradients, mismatches, calls = train([1, 2] if recomputed else [])
    documented, *_ = train([1, 2] if recomputed else [], batch=1)
    numbers = {"mask_mismatches": mismatches, "clones": calls - 5, "losses": [float(x) for x in documented]}
    return inputs, [losses[0], *gradients], numbers


def batch_norm(recomputed):
    from paddle_fleet import batch_norm as running_mean

    return [], [running_mean(recomputed)], {}


def cse(recomputed):
    if not recomputed:
        return [], [], {}
    from paddle_cse import copies_before_and_after

    before, after = copies_before_and_after()
    return [], [], {"clones": before, "clones_after_cse": after}


def static(name):
    def run(recomputed):
        from paddle_static import counts
        from paddle_static import run as run_static

        program, trained, feed, before, fetched, after = run_static(name, recomputed)
        inputs = [*(before[name] for name in trained), feed["x"], feed["label"]]
        running = [value for key, value in after.items() if key not in trained]
        numbers = {**counts(program), "results": 1 + len(trained)}
        return inputs, [*fetched, *running], numbers

    return run


STATIC = ("mlp", "layers", "layers_dropout", "gumbel", "rrelu", "static_batch_norm", "branches")
CASES = {"fleet": fleet, "dynamic_batch_norm": batch_norm, "cse": cse, **{name: static(name) for name in STATIC}}


def main(case, kind, inputs, results):
    arguments, result, numbers = CASES[case](kind == "recomputed")
    np.savez(inputs, *arguments)
    np.savez(results, *result)
    print(json.dumps({"version": paddle.__version__, **numbers}))


if __name__ == "__main__":
    main(*sys.argv[1:])
