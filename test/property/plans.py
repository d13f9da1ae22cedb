"""Check damaged plans: each is refused with a message, or is a valid plan whose results are proved equal.

python -m recompute.test.property.plans --count 400 --seed 0 --step mlp.small.mlir
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast

from recompute.options.recompute_options import RecomputeOptions
from recompute.planning.plan_file import BadPlan, from_json, to_json
from recompute.proof.prove import prove
from recompute.rewriting.rewrite import rewrite_in_place
from recompute.support.diagnostics import Refusal
from recompute.test.examples import original

STRANGE = [-1, 0, 1, 5, 10**6, 1.5, True, None, "x", "", [], {}, [0], [[0]], ["must_save"], {"a": 1}]
Path = tuple[Any, ...]


def paths(data: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the paths to all parts of the plan, starting with the plan itself."""
    yield path
    for key, value in children(data):
        yield from paths(value, (*path, key))


def children(data: Any) -> list[tuple[Any, Any]]:
    if isinstance(data, dict):
        return list(cast(dict[Any, Any], data).items())
    return list(enumerate(cast(list[Any], data))) if isinstance(data, list) else []


def damaged(text: str, seed: int) -> str:
    dice, data = random.Random(seed), json.loads(text)
    listed = list(paths(data))[1:]
    for _ in range(dice.choice([1, 1, 2])):
        # The first change may have taken away what the second is about.
        with suppress(KeyError, IndexError, TypeError, AttributeError):
            _change(data, dice.choice(listed), dice)
    return json.dumps(data)


def _change(data: Any, path: Path, dice: random.Random) -> None:
    for key in path[:-1]:
        data = data[key]
    last = path[-1]
    match dice.choice(["strange", "strange", "near", "gone", "twice", "shuffled"]):
        case "strange":
            data[last] = dice.choice(STRANGE)
        case "near":
            data[last] = max(0, data[last] + dice.choice([-3, -1, 1, 2, 7]))
        case "gone":
            del data[last]
        case "twice":
            data.insert(last, json.loads(json.dumps(data[last])))
        case _:
            dice.shuffle(data)


def outcome(step: str, seed: int) -> str:
    """Return what happened with a damaged plan. Anything but a refusal or a proof raises an exception."""
    text = to_json(rewrite_in_place(original(step).clone()).plans)
    module = original(step).clone()
    try:
        rewrite_in_place(module, RecomputeOptions().with_planned(from_json(damaged(text, seed))))
    except BadPlan:
        return "no plan"
    except Refusal:
        return "refused"
    proof = prove(original(step), module)
    assert proof.proved, f"seed {seed}: {proof}"
    return "proved"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--step", default="mlp.small.mlir")
    options = parser.parse_args()
    print(Counter(outcome(options.step, options.seed + index) for index in range(options.count)))


if __name__ == "__main__":
    main()
