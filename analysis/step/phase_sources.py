"""Who tells in which direction an operation runs. A frontend that does not write JAX's paths adds a source of its own:

    register_source("acme", PhaseSource(direction_of, lambda op: "the attribute acme.pass"))

The sources are asked in the order of the table. The first that knows is believed, and where a later one knows better
that is an error: a wrong guess would be a wrong claim about memory.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from ...dialects.recompute import Names
from ...support.diagnostics import Refusal
from .direction import Direction
from .jax_paths import path_of, scope_of


@dataclass(frozen=True)
class PhaseSource:
    """`direction`: of an operation, `Direction.NONE` for one that is in neither, None where the source does not know.
    It is asked of every operation, so it must be quick. `cite`: where it says so, in words for errors.
    """

    direction: Callable[[Operation], Direction | None]
    cite: Callable[[Operation], str]


_PHASE, _GRADIENT, _NOTHING = Names.PHASE, "recompute.gradient", Direction.NONE
_DIRECTIONS = {
    "primal": Direction.FORWARD,
    "residual": Direction.FORWARD,
    "gradient": Direction.BACKWARD,
    "update": Direction.NONE,
}


def stated_phase(op: Operation) -> str | None:
    """The phase that the attribute `recompute.phase` says; a gradient region says it by its name."""
    if (stated := op.attributes.get(_PHASE)) is None:
        return "gradient" if op.name == _GRADIENT else None
    return stated.data if isinstance(stated, StringAttr) else None


def _of_attribute(op: Operation) -> Direction | None:
    # Nearly every operation has neither; this is asked of each.
    if _PHASE not in op.attributes and op.name != _GRADIENT:
        return None
    stated = stated_phase(op)
    return None if stated is None else _DIRECTIONS[stated]


def _of_jax_path(op: Operation) -> Direction | None:
    """A path without `jvp` says nothing."""
    direction = scope_of(op.location).direction
    return None if direction is _NOTHING else direction


ATTRIBUTE = PhaseSource(_of_attribute, lambda op: f'the attribute {Names.PHASE} = "{stated_phase(op)}"')
JAX_PATH = PhaseSource(_of_jax_path, lambda op: f"the location '{path_of(op.location)}'")
_sources = {"recompute.phase": ATTRIBUTE, "jax": JAX_PATH}
BUILT_IN = frozenset(_sources)


def register_source(name: str, source: PhaseSource) -> None:
    """Ask this source too, after those that are there; a later one of the same name replaces an earlier.

    `ValueError` for the name of a built-in source.
    """
    if name in BUILT_IN:
        raise ValueError(f"name: the source '{name}' is built in and cannot be registered anew")
    _sources[name] = source


@contextmanager
def registrations_undone() -> Generator[None]:
    """Forget, on leaving, what was registered inside."""
    before = dict(_sources)
    try:
        yield
    finally:
        _sources.clear()
        _sources.update(before)


def sources(use_attributes: bool = True) -> tuple[PhaseSource, ...]:
    """The table as it is now."""
    return tuple(source for source in _sources.values() if use_attributes or source is not ATTRIBUTE)


def directions_of(operations: Sequence[Operation], asked: Iterable[PhaseSource]) -> dict[Operation, Direction]:
    """What the sources say together. Raises `Refusal` where they disagree, and for gradients of gradients."""
    found = dict[Operation, Direction]()
    before, nested = list[PhaseSource](), Direction.NESTED
    for source in asked:
        says = source.direction
        for op in operations:
            if (said := says(op)) is None:
                continue
            if said is not found.setdefault(op, said) or said is nested:
                _check(op, found[op], before, said, source)
        before.append(source)
    return {op: found.get(op, _NOTHING) for op in operations}


def _check(
    op: Operation, known: Direction, before: Sequence[PhaseSource], said: Direction, source: PhaseSource
) -> None:
    if said is Direction.NESTED:
        nested = f"{source.cite(op)} is a gradient of a gradient"
        raise Refusal(op, f"{nested}; only first-order gradients are supported")
    if Direction.NONE not in (known, said):
        raise Refusal(op, f"{who_says(op, before)} says {known.value}, {source.cite(op)} says {said.value}")


def who_says(op: Operation, asked: Iterable[PhaseSource]) -> str | None:
    """The source that is believed, in words; None where none knows."""
    return next((source.cite(op) for source in asked if source.direction(op) is not None), None)
