"""Policies that select the operations to save: a policy of `jax.checkpoint_policies` by name, or a user-given function.

The names and their meaning are taken from JAX's documentation of `jax.checkpoint_policies`.
"""

from __future__ import annotations

from xdsl.ir import Operation

from ...dialects.stablehlo.attributes import DotAttr
from ...options.selection import BadSelection, Saves, Selection, SelectionByFunction
from ...rules.effects import is_product
from ...support.interface import option
from ...support.operations import name_of
from ...support.suggestions import suggestion
from .value_names import given_names, is_named


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


def _any_name_but(op: Operation, names: tuple[str, ...]) -> bool:
    return bool(given_names(op)) and not is_named(op, names)


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
    "save_any_names_but_these": _any_name_but,
    "save_anything_except_these_names": _not_named,
}
# Policies whose saved values may be moved to the host; they get the mark `offload`.
OFFLOADING = frozenset({"offload_dot_with_no_batch_dims", "save_and_offload_only_these_names"})
NEEDS_NAMES = frozenset(name for name, saves in SAVEABLE.items() if saves is is_named)
"""Policies that need a list of names, because they save only named values."""
SELECTS_BY_NAME = tuple(policy for policy in SAVEABLE if "names" in policy)
"""The named policies that read the option `names`."""


class UnknownPolicy(BadSelection):
    """Raised for an unknown policy name."""

    def __init__(self, name: str):
        super().__init__(f"unknown policy '{name}'{suggestion(name, SAVEABLE)}")


def named_policy(policy: str) -> Saves:
    """Return the predicate of a named policy.

    Raises:
        UnknownPolicy: No policy has this name.
    """
    if policy not in SAVEABLE:
        raise UnknownPolicy(policy)
    return SAVEABLE[policy]


def why_names_unread(selection: Selection) -> str | None:
    """Return the reason that the names of the selection have no effect; None if the selection has no names, or if its
    policy reads them."""
    policy = selection.policy
    if not selection.names or policy in SELECTS_BY_NAME or isinstance(selection, SelectionByFunction):
        return None
    return f"names has no effect with policy={policy}: these policies use names: {', '.join(SELECTS_BY_NAME)}"


def policy_of(selection: Selection) -> Saves:
    """Return the predicate of the selection's policy.

    Raises:
        UnknownPolicy: No policy has this name.
        BadSelection: The policy needs names, and the selection has none.
    """
    if selection.policy in NEEDS_NAMES and not selection.names:
        raise BadSelection(
            f"policy {selection.policy} saves only values with given names, but no names are given: give "
            f"{option('names')}, or use the policy nothing_saveable"
        )
    return selection.saveable if isinstance(selection, SelectionByFunction) else named_policy(selection.policy)
