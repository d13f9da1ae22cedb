"""A step before and after, for people: what it needs, what holds its peak, what is kept and why, what runs again.

`print(report)` writes it; a notebook shows it with a picture of the memory over time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import jax

from ...analysis.explain.saved_values import SavedValue
from ...analysis.memory.timeline import Timeline
from ...driver.api import Rewritten, explain
from ...support.diagnostics import Refusal, Remark
from .budget import Round
from .choice import Way, temporary_bytes
from .lowered import Lowered
from .said import to_html, to_text

_JAX: Any = jax
"""JAX's own types are partly unknown to type checkers."""


UNNAMED = "unnamed"
"""What runs again outside of every segment."""


@dataclass(frozen=True)
class Needs:
    """What a compiled step needs, by the compiler: bytes, of which `aliased` are results in the place of arguments, and
    FLOPs of one run. None where the compiler says nothing."""

    temporaries: int | None
    arguments: int
    results: int
    aliased: int
    flops: float | None

    @property
    def device_bytes(self) -> int | None:
        """All together, while the step runs."""
        if self.temporaries is None:
            return None
        return self.temporaries + self.arguments + self.results - self.aliased


@dataclass(frozen=True)
class Report:
    """Of what a call runs, `way`, and of the plain step.

    measured: Temporaries of each way that was compiled to choose; empty where one was.
    why: Why nothing is recomputed; None where something is.
    again: How many operations of which segment run again.
    kept: What is saved for the backward pass, the largest first.
    timelines: By the model of XLA:CPU, before and after.
    budget: Bytes that the device has, or that were asked for.
    rounds: What was compiled to keep a budget.
    proved: Whether what runs is proved equal to the plain step.
    """

    name: str
    plain: Needs
    less: Needs
    way: Way
    measured: tuple[tuple[Way, int | None], ...]
    why: str | None
    copies: int
    again: tuple[tuple[str, int], ...]
    kept: tuple[SavedValue, ...]
    timelines: tuple[tuple[str, Timeline], ...]
    remarks: tuple[Remark | str, ...]
    budget: int | None
    rounds: tuple[Round, ...] = ()
    proved: bool = False

    def __str__(self) -> str:
        return to_text(self)

    def _repr_html_(self) -> str:
        return to_html(self)


def report(lowered: Lowered, budget: int | None = None) -> Report:
    """Compiles what a call does, and the plain step as `jax.jit` does. Raises as a call does. `budget`: in bytes; that
    of the device if nothing is said."""
    choice = lowered.choice
    plain = choice.compiled if choice.way is Way.PLAIN else lowered.plain_compiled
    done = choice.done
    return Report(
        name=lowered.name,
        plain=_needs(plain),
        less=_needs(choice.compiled),
        way=choice.way,
        measured=tuple(choice.sizes.items()),
        why=choice.why,
        copies=0 if done is None else done.copies,
        again=() if done is None else _again(done),
        kept=() if choice.way is Way.MERGED else _kept(lowered),
        timelines=() if done is None else _timelines(done),
        remarks=lowered.remarks if choice.way is not Way.MERGED or done is None else done.remarks,
        budget=_of_the_device() if budget is None else budget,
        rounds=() if lowered.within is None else lowered.within.rounds,
        proved=done is not None and bool(done.proof),
    )


def _needs(compiled: jax.stages.Compiled) -> Needs:
    analysis: Any = compiled.memory_analysis()
    parts = ("argument_size_in_bytes", "output_size_in_bytes", "alias_size_in_bytes")
    sizes = [0, 0, 0] if analysis is None else [int(getattr(analysis, part)) for part in parts]
    costs: Any = compiled.cost_analysis()
    flops = None if not costs or "flops" not in costs else float(costs["flops"])
    return Needs(temporary_bytes(compiled), sizes[0], sizes[1], sizes[2], flops)


def _again(done: Rewritten) -> tuple[tuple[str, int], ...]:
    counts = Counter[str]()
    for group in (group for step in done.plans for group in step.plan.groups):
        counts[group.segment or UNNAMED] += len(group.operations)
    return tuple(counts.most_common())


def _kept(lowered: Lowered) -> tuple[SavedValue, ...]:
    """Of the plain step what stays kept, and why: where the segments are those of the model, which can be explained."""
    if lowered.module is None:
        return ()
    try:
        found = explain(lowered.module, lowered.options.rewrite.selection)
    except (Refusal, ValueError):
        return ()
    known = {row.segment for one in found for row in one.segments}
    if lowered.rewritten is not None and not {segment for segment, _ in _again(lowered.rewritten)} <= known | {UNNAMED}:
        return ()
    kept = [value for one in found for value in one.values if value.reason is not None]
    return tuple(sorted(kept, key=lambda value: -value.bytes))


def _timelines(done: Rewritten) -> tuple[tuple[str, Timeline], ...]:
    pairs = done.memory("xla").items()
    several = len(pairs) > 1
    return tuple(
        (f"{function} {what}" if several else what, timeline)
        for function, both in pairs
        for what, timeline in zip(("plain", "recomputed"), both, strict=True)
    )


def _of_the_device() -> int | None:
    stats: Any = _JAX.local_devices()[0].memory_stats()
    return None if not stats or "bytes_limit" not in stats else int(stats["bytes_limit"])
