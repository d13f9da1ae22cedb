"""Which operations of a segment a named policy saves: the policies of `jax.checkpoint_policies`, by their names.

Source of the names and of what they save: the JAX documentation of `jax.checkpoint_policies`.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from xdsl.ir import Operation

from ...dialects.stablehlo.records import DotAttr
from ...rules.kinds import is_product
from ...rules.names import name_of
from .names import is_named
from .selection import BadSelection

Saves = Callable[[Operation, tuple[str, ...]], bool]


def _has_batch(op: Operation) -> bool:
    numbers = op.properties.get("dot_dimension_numbers")
    return name_of(op) == "linalg.batch_matmul" or (
        isinstance(numbers, DotAttr) and bool(numbers.data.lhs_batching_dimensions)
    )


def _everything(op: Operation, names: tuple[str, ...]) -> bool:
    return True


def _nothing(op: Operation, names: tuple[str, ...]) -> bool:
    return False


def _dots(op: Operation, names: tuple[str, ...]) -> bool:
    return is_product(op)


def _dots_without_batch(op: Operation, names: tuple[str, ...]) -> bool:
    return is_product(op) and not _has_batch(op)


def _not_named(op: Operation, names: tuple[str, ...]) -> bool:
    return not is_named(op, names)


SAVEABLE: dict[str, Saves] = {
    "nothing_saveable": _nothing,
    "everything_saveable": _everything,
    "dots_saveable": _dots,
    "checkpoint_dots": _dots,
    "dots_with_no_batch_dims_saveable": _dots_without_batch,
    "checkpoint_dots_with_no_batch_dims": _dots_without_batch,
    "offload_dot_with_no_batch_dims": _dots_without_batch,
    "save_only_these_names": is_named,
    "save_and_offload_only_these_names": is_named,
    "save_any_names_but_these": _not_named,
    "save_anything_except_these_names": _not_named,
}
# Saved values that carry the mark `offload`, for whoever can move them to the host.
OFFLOADING = frozenset({"offload_dot_with_no_batch_dims", "save_and_offload_only_these_names"})
NAMING = frozenset(name for name, saves in SAVEABLE.items() if saves in (is_named, _not_named))


class UnknownPolicy(BadSelection):
    """A policy that nobody has heard of."""

    def __init__(self, name: str):
        close = get_close_matches(name, SAVEABLE, n=1)
        hint = f"did you mean '{close[0]}'?" if close else f"known are {', '.join(SAVEABLE)}"
        super().__init__(f"unknown policy '{name}'; {hint}")


def saves(policy: str) -> Saves:
    """The test of a policy. Raises `UnknownPolicy`."""
    if policy not in SAVEABLE:
        raise UnknownPolicy(policy)
    return SAVEABLE[policy]
