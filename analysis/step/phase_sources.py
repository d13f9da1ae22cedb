"""Phase sources: attributes, locations and declarations that give the direction of an operation.

A frontend that does not write JAX's paths registers its own source:

    register_source("acme", PhaseSource(direction_of, lambda op: "the attribute acme.pass"))

Sources are queried in the order of their registration, and the first answer applies. It is an error if a later source
disagrees, since a wrong direction leads to wrong memory estimates.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from ...dialects.names import Names
from ...support.diagnostics import Refusal
from ...support.phase import Phase
from .direction import Direction
from .jax_paths import path_of, scope_of


@dataclass(frozen=True)
class PhaseSource:
    """A source of the direction of operations: whether an operation belongs to the forward or to the backward pass.

    Attributes:
        direction: A function that returns the direction of an operation: `Direction.NONE` if it belongs to neither
            pass, or None if the source does not know. It is called for every operation, so it must be fast.
        cite: A function that returns the origin of an operation's direction, as text for error messages.
    """

    direction: Callable[[Operation], Direction | None]
    cite: Callable[[Operation], str]


_PHASE, _GRADIENT, _NOTHING = Names.PHASE, "recompute.gradient", Direction.NONE
_PHASES = {phase.value: phase for phase in Phase}
_DIRECTIONS = {
    Phase.PRIMAL: Direction.FORWARD,
    Phase.RESIDUAL: Direction.FORWARD,
    Phase.GRADIENT: Direction.BACKWARD,
    Phase.UPDATE: Direction.NONE,
}


def stated_phase(op: Operation) -> Phase | None:
    """Return the phase in the attribute `recompute.phase`; `GRADIENT` for a gradient region without the attribute."""
    if (stated := op.attributes.get(_PHASE)) is None:
        return Phase.GRADIENT if op.name == _GRADIENT else None
    return _PHASES[stated.data] if isinstance(stated, StringAttr) else None


def _of_attribute(op: Operation) -> Direction | None:
    # Fast path: nearly every operation has no attribute for its phase, and is no gradient region.
    if _PHASE not in op.attributes and op.name != _GRADIENT:
        return None
    stated = stated_phase(op)
    return None if stated is None else _DIRECTIONS[stated]


def _of_jax_path(op: Operation) -> Direction | None:
    """Return the direction that JAX's path gives, or None for a path without `jvp`."""
    direction = scope_of(op.location).direction
    return None if direction is _NOTHING else direction


ATTRIBUTE = PhaseSource(_of_attribute, lambda op: f'the attribute {Names.PHASE} = "{stated_phase(op)}"')
JAX_PATH = PhaseSource(_of_jax_path, lambda op: f"the location '{path_of(op.location)}'")
_sources = {"recompute.phase": ATTRIBUTE, "jax": JAX_PATH}
BUILT_IN = frozenset(_sources)


def register_source(name: str, source: PhaseSource) -> None:
    """Append a source to the table of phase sources, or replace the registered source of the same name.

    Raises:
        ValueError: The name belongs to a built-in source.
    """
    if name in BUILT_IN:
        raise ValueError(f"name: the built-in phase source '{name}' cannot be replaced: choose another name")
    _sources[name] = source


@contextmanager
def registrations_undone() -> Generator[None]:
    """Restore the registered sources when the context exits."""
    before = dict(_sources)
    try:
        yield
    finally:
        _sources.clear()
        _sources.update(before)


def registered_sources() -> dict[str, PhaseSource]:
    """Return the sources that are not built in, by name, in order of registration."""
    return {name: source for name, source in _sources.items() if name not in BUILT_IN}


def sources(use_attributes: bool = True) -> tuple[PhaseSource, ...]:
    """Return all sources in the order in which they are queried.

    `use_attributes`: whether to include the attribute `recompute.phase`.
    """
    return tuple(source for source in _sources.values() if use_attributes or source is not ATTRIBUTE)


def directions_of(operations: Sequence[Operation], phase_sources: Iterable[PhaseSource]) -> dict[Operation, Direction]:
    """Return the direction of each operation, according to the first source that knows it.

    Raises:
        Refusal: Two sources disagree, or a source returns `NESTED`.
    """
    directions = dict[Operation, Direction]()
    earlier, nested = list[PhaseSource](), Direction.NESTED
    for source in phase_sources:
        query = source.direction
        for op in operations:
            if (direction := query(op)) is None:
                continue
            if direction is not directions.setdefault(op, direction) or direction is nested:
                _check(op, directions[op], earlier, direction, source)
        earlier.append(source)
    return {op: directions.get(op, _NOTHING) for op in operations}


def _check(
    op: Operation, first: Direction, earlier: Sequence[PhaseSource], direction: Direction, source: PhaseSource
) -> None:
    if direction is Direction.NESTED:
        raise Refusal(
            op,
            f"{source.cite(op)} marks a gradient of a gradient (Direction.NESTED); its phase source must instead "
            "return the direction of the outermost differentiation",
        )
    if Direction.NONE not in (first, direction):
        raise Refusal(
            op,
            f"conflicting directions: {source_of(op, earlier)} says {first.value}, "
            f"but {source.cite(op)} says {direction.value}",
        )


def source_of(op: Operation, phase_sources: Iterable[PhaseSource]) -> str | None:
    """Return a citation of the source that determines the direction of the operation; None if no source knows it."""
    return next((source.cite(op) for source in phase_sources if source.direction(op) is not None), None)
