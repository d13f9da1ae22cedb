"""A budget that holds on the real compiler: plan, compile, read what XLA allocates, correct the model, plan again.

Plans of all kinds are foreseen by the model of XLA:CPU; of those that are foreseen to fit the one with the least extra
work is compiled. What it needs corrects what is foreseen of the others (`planning/picking.py`), until no cheaper one is
left that should fit, or `COMPILES` are made.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp

from ...driver.api import Rewritten, rewrite
from ...driver.verified import NotProved
from ...options.recompute_options import RecomputeOptions
from ...planning.picking import Picking
from ...planning.solvers.limit import SECONDS_AS_PYTHON, SLOW, is_compiled, limited
from ...search.budget.moves import with_moves
from ...search.candidates import Candidate
from ...search.pools import pool_of
from ...support.diagnostics import Refusal
from ...support.units import MINIMUM, budget_text, is_share, parse_budget
from ...transforms.plans.segment_budgets import of_rest
from ...transforms.take_marks import take_marks

_JAX: Any = jax
"""JAX's own types are partly unknown to type checkers."""
ORDINARY = -1
"""The number of the choice without a budget, beside those of the pool. The budget `min` never needs more."""
COMPILES = 4
"""So many rewritten steps are compiled, the plain one not counted."""
DEVICE = "device"


@dataclass(frozen=True)
class Round:
    """A candidate that was compiled.

    Attributes:
        words: The candidate in words.
        foreseen: The forecast of its temporaries in bytes; None for the choice without a budget.
        needs: Bytes of temporaries as the compiler says; None where the plan could not be applied.
        extra_flops: Its extra FLOPs.
        fits: Whether it keeps the budget; None for the budget `min`.
    """

    words: str
    foreseen: int | None
    needs: int | None
    extra_flops: int
    fits: bool | None

    def __str__(self) -> str:
        if self.needs is None:
            return f"{self.words}: cannot be carried out"
        said = {True: ", within the budget", False: ", above the budget", None: ""}[self.fits]
        foreseen = "" if self.foreseen is None else f"{self.foreseen} bytes foreseen, "
        return f"{self.words}: {foreseen}{self.needs} by the compiler{said}; {self.extra_flops} FLOPs more"


@dataclass(frozen=True)
class Within:
    """`budget`: as it was asked for, `temporaries`: what it leaves for temporaries, in bytes, None for as little as can
    be; `plain`: what the plain step needs. `done` and `compiled`: the best of the `rounds`, None where the plain step
    fits."""

    budget: str
    temporaries: int | None
    plain: int
    rounds: tuple[Round, ...]
    done: Rewritten | None
    compiled: jax.stages.Compiled

    @property
    def nothing_to_do(self) -> str:
        return f"nothing to do: the plain step needs {self.plain} bytes of temporaries, within the budget {self.budget}"


def checked_budget(budget: Any) -> str:
    """The option `budget` as text. Raises `TypeError` and `ValueError`."""
    if isinstance(budget, bool) or not isinstance(budget, str | int | float):
        raise TypeError(f"recompute.jax.jit: budget is a text, a share or bytes, not {type(budget).__name__}")
    try:
        text = budget_text(budget)
        if text.lower() != DEVICE:
            parse_budget(text, 1)
    except ValueError as error:
        raise ValueError(f'recompute.jax.jit: {error}, or "device"') from error
    return text


def within(
    name: str,
    module: ModuleOp,
    options: RecomputeOptions,
    budget: str,
    compile_plain: Callable[[], jax.stages.Compiled],
    compile_module: Callable[[ModuleOp], jax.stages.Compiled],
) -> Within:
    """The step compiled within the budget. Raises `Refusal` where none of what was compiled keeps it, and where the
    compiler, or the device, says nothing."""
    plain = compile_plain()
    needs = _temporaries(module, plain)
    wanted = _wanted(module, budget, plain, needs)
    if wanted is not None and needs <= wanted and not options.selection.segment_budgets:
        return Within(budget, wanted, needs, (), None, plain)
    return _Rounds(name, module, options, budget, plain, needs, wanted, compile_module).best()


def _wanted(module: ModuleOp, budget: str, plain: jax.stages.Compiled, needs: int) -> int | None:
    """Bytes of temporaries; a number of bytes is for arguments and results too."""
    if budget.lower() == MINIMUM:
        return None
    if budget.lower() != DEVICE and is_share(budget):
        return parse_budget(budget, needs)
    analysis: Any = plain.memory_analysis()
    around = analysis.argument_size_in_bytes + analysis.output_size_in_bytes - analysis.alias_size_in_bytes
    found = free_bytes(module) if budget.lower() == DEVICE else parse_budget(budget, needs)
    if found is None or found < around:
        raise Refusal(
            module,
            f"no plan keeps the budget {budget}, {found} bytes of the device: arguments and results, which no plan "
            f"changes, need {around}",
        )
    return found - around


def free_bytes(module: ModuleOp) -> int:
    """What the device reports. Raises `Refusal` where it says nothing."""
    device: Any = _JAX.local_devices()[0]
    stats: Any = device.memory_stats()
    if not stats or "bytes_limit" not in stats:
        raise Refusal(module, f'budget="device": {device.platform} does not report its memory: give bytes or a share')
    return int(stats["bytes_limit"]) - int(stats.get("bytes_in_use", 0))


def _temporaries(module: ModuleOp, compiled: jax.stages.Compiled) -> int:
    analysis: Any = compiled.memory_analysis()
    if analysis is None:
        raise Refusal(module, "a budget needs a compiler that says what it allocates, and this one does not")
    return int(analysis.temp_size_in_bytes)


@dataclass(frozen=True)
class _Rounds:
    name: str
    module: ModuleOp
    options: RecomputeOptions
    budget: str
    plain: jax.stages.Compiled
    needs: int
    wanted: int | None
    compile_module: Callable[[ModuleOp], jax.stages.Compiled]

    def best(self) -> Within:
        pool = self._pool()
        limit = float(self.wanted or 0)
        picking = Picking([one.foreseen for one in pool], limit, (1.0, float(self.needs)))
        rounds, found = list[Round](), dict[int, tuple[Rewritten, jax.stages.Compiled]]()

        def needed(at: int) -> float | None:
            foreseen = int(picking.expected(picking.choices[at]))
            try:
                done = self._rewritten(pool[at])
            except (Refusal, NotProved):
                rounds.append(Round(pool[at].words, foreseen, None, 0, None))
                return None
            return measured(at, done, pool[at].words, foreseen)

        def measured(at: int, done: Rewritten, words: str, foreseen: int | None) -> float:
            compiled = self.compile_module(done.module)
            found[at] = done, compiled
            needs = _temporaries(self.module, compiled)
            fits = None if self.wanted is None else needs <= limit
            rounds.append(Round(words, foreseen, needs, done.extra_flops, fits))
            print(f"recompute.jax: {self.name}: {len(rounds)} of {most}: {rounds[-1]}", file=sys.stderr, flush=True)
            return float(needs)

        most = COMPILES + (self.wanted is None)
        best = picking.run(needed, COMPILES)
        if self.wanted is None:
            best = picking.least
            least = float("inf") if best is None else _temporaries(self.module, found[best][1])
            with suppress(Refusal, NotProved):
                ordinary = rewrite(self.module, self.options)
                if ordinary.copies and measured(ORDINARY, ordinary, "as without a budget", None) < least:
                    best = ORDINARY
        if best is None:
            raise Refusal(self.module, self._not_reached(rounds))
        return Within(self.budget, self.wanted, self.needs, tuple(rounds), *found[best])

    def _pool(self) -> Sequence[Candidate]:
        marked = self.module.clone()
        take_marks(marked)
        options = with_moves(marked, self.options)
        if not is_compiled():
            print(f"recompute.jax: {SLOW.format(seconds=SECONDS_AS_PYTHON)}", file=sys.stderr, flush=True)
        return pool_of(marked, options, limited())

    def _rewritten(self, one: Candidate) -> Rewritten:
        rest = of_rest(self.options.selection)
        done = rewrite(self.module, replace(self.options, selection=rest, plan=one.plans, loops=one.loops))
        if not done.copies:
            raise Refusal(self.module, "nothing is recomputed")
        return done

    def _not_reached(self, rounds: list[Round]) -> str:
        words = f"no plan keeps the budget {self.budget}, {self.wanted} of {self.needs} bytes of temporaries"
        reached = [one.needs for one in rounds if one.needs is not None]
        least = f"the least of {len(reached)} compiled needs {min(reached)}" if reached else "nothing can be recomputed"
        return "; ".join([f"{words}: {least}", *map(str, rounds)])
