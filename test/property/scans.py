"""Check random steps with loops, lowered by JAX: the rewrite is proved, and computes the same.

    python -m recompute.test.property.scans --count 1000 --seed 0

The seed determines bodies, carries, keys, the use of the index, reversed and unrolled scans, nested loops, conditions,
a second scan over the same body, and a repeated gradient. The exit status is 1 if the loops of a step were not proved,
or its results differ in any bit.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from recompute.dialects.context import make_context
from recompute.driver.api import rewrite
from recompute.driver.verification.verified import NotProved
from recompute.interpreters.execute_check import compare
from recompute.mlir_io.parser import parse_module
from recompute.options.loop_schedule import Loops
from recompute.options.recompute_options import RecomputeOptions
from recompute.support.diagnostics import Refusal

ROWS, WIDTH, LONGEST, INNER = 3, 4, 6, 3
UNARY: tuple[Callable[[Any], Any], ...] = (
    jnp.sin,
    jnp.cos,
    jnp.tanh,
    lambda a: jnp.exp(-a * a),
    lambda a: jnp.where(a > 0, a, 0.1 * a),
    lambda a: a.astype(jnp.bfloat16).astype(jnp.float32),
    lambda a: jnp.maximum(a, 0.2),
    lambda a: jnp.sort(a, axis=-1),
    lambda a: a - a.mean(-1, keepdims=True),
    lambda a: jnp.cumsum(a, 0) * 0.3,
    lambda a: a.T.reshape(a.shape),
)


@dataclass(frozen=True)
class Shape:
    """Choices that determine a step; its body depends on `seed`."""

    length: int
    carries: int
    index: bool
    key: bool
    reverse: bool
    unroll: int
    nested: bool
    condition: bool
    twice: bool
    two_gradients: bool
    stacked: bool
    seed: int

    @staticmethod
    def of(seed: int) -> Shape:
        dice = Random(seed)
        return Shape(
            length=dice.choice([1, 2, 3, 4, LONGEST]),
            carries=dice.randint(1, 3),
            index=dice.random() < 0.5,
            key=dice.random() < 0.25,
            reverse=dice.random() < 0.3,
            unroll=dice.choice([1, 1, 1, 2, 3]),
            nested=dice.random() < 0.25,
            condition=dice.random() < 0.2,
            twice=dice.random() < 0.3,
            two_gradients=dice.random() < 0.15,
            stacked=dice.random() < 0.5,
            seed=dice.randrange(10**9),
        )

    def body(self, carry: Any, each: Any) -> Any:
        dice = Random(self.seed)
        (values, key), (w, i) = carry, each
        drawn = None
        if self.key:
            key, drawn = jax.random.split(key)
        new = [self._expression(dice, values, w, i, drawn) for _ in values]
        if self.condition:
            new[0] = jax.lax.cond(i % 2 == 0, lambda h: jnp.sin(h @ w), lambda h: jnp.cos(h) * h, new[0])
        if self.nested:
            new[-1] = jax.lax.scan(self._inner(w), new[-1], jnp.arange(INNER))[0]
        new = [jnp.clip(value, -3, 3) if dice.random() < 0.3 else value for value in new]
        return (tuple(new), key), (new[0].sum(), new[-1] > 0) if self.stacked else None

    @staticmethod
    def _inner(w: Any) -> Callable[[Any, Any], Any]:
        return lambda h, j: (jnp.tanh(h @ w) + jnp.sin(h) * (0.1 * j.astype(h.dtype)), h.sum())

    def _expression(self, dice: Random, values: Sequence[Any], w: Any, i: Any, key: Any) -> Any:
        value = dice.choice(list(values))
        for _ in range(dice.randint(1, 5)):
            match dice.randrange(9):
                case 0 | 1 | 2 | 3:
                    value = dice.choice(UNARY)(value)
                case 4:
                    value = value @ w
                case 5:
                    value = value + dice.choice(list(values)) * 0.5
                case 6:
                    value = value * jnp.cos(dice.choice(list(values)))
                case 7 if self.index:
                    value = value * (1 + 0.1 * i.astype(value.dtype))
                case 8 if key is not None:
                    value = jnp.where(jax.random.bernoulli(key, 0.7, value.shape), value, 0)
                case _:
                    pass
        return value

    def loss(self, w: Any, x: Any) -> Any:
        numbers = jnp.arange(self.length)
        carry = tuple(jnp.cos(x * (j + 1)) for j in range(self.carries)), jax.random.key(1)
        entries: dict[str, Any] = {"reverse": self.reverse, "unroll": self.unroll}
        carry, stacks = jax.lax.scan(self.body, carry, (w[: self.length], numbers), **entries)
        total = sum(h.sum() for h in carry[0])
        if stacks is not None:
            total = total + (stacks[0] * numbers).sum() + jnp.where(stacks[1], 0.5, 0.1).sum()
        if self.twice:
            carry, _ = jax.lax.scan(self.body, (carry[0][::-1], carry[1]), (w[-self.length :], numbers))
            total = total + sum(jnp.sin(h).sum() for h in carry[0])
        return total

    def step(self, w: Any, x: Any) -> Any:
        if not self.two_gradients:
            return jax.value_and_grad(self.loss, (0, 1))(w, x)
        value, pulled = jax.vjp(self.loss, w, x)
        return value, pulled(1.0), pulled(value)


def arguments(seed: int) -> list[Any]:
    numbers = np.random.default_rng(seed)
    w = numbers.normal(size=(LONGEST, WIDTH, WIDTH)) * 0.6
    return [w.astype(np.float32), numbers.normal(size=(ROWS, WIDTH)).astype(np.float32)]


ASKED: tuple[Loops, ...] = (True, True, "keep(60%)", "keep(25%)")


def check(seed: int) -> str:
    """Check one step; return `cut` or `left` for its loops if it is correct, otherwise a description of the error."""
    given = arguments(seed)
    text = jax.jit(Shape.of(seed).step, keep_unused=True).lower(*given).as_text(debug_info=True)
    try:
        result = rewrite(text, RecomputeOptions(loops=ASKED[seed % len(ASKED)]))
    except (NotProved, Refusal) as error:
        return f"refused: {error}"
    messages = [str(remark) for remark in result.remarks]
    if any("not proved" in message for message in messages):
        return "the loops are not proved"
    if not compare(parse_module(text, "scan.mlir", make_context()), result.module, given).equal:
        return "other results"
    return "cut" if any("of new stacks: the loop" in message for message in messages) else "left"


RIGHT = ("cut", "left")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="how many steps (default: 200)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: 0)")
    given = parser.parse_args()
    verdicts = Counter[str]()
    for seed in range(given.seed, given.seed + given.count):
        verdict = check(seed)
        verdicts[verdict if verdict in RIGHT else "wrong"] += 1
        if verdict not in RIGHT:
            print(f"seed {seed}: {verdict}", flush=True)
        if sys.stderr.isatty():
            print(f"\r{seed - given.seed + 1} of {given.count}", end="", file=sys.stderr)
    print(", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()))
    return 1 if verdicts["wrong"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
