"""The option `policy`, given as one of `jax.checkpoint_policies` or as a user's function.

Example:

    def saveable(operation, shapes, names):
        return operation == "stablehlo.dot_general" or "hidden" in names
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

import jax
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation

from ....analysis.request.policies import SAVEABLE
from ....analysis.request.value_names import names_of
from ....options.selection import Selection, SelectionByFunction
from ....support.operations import name_of

Saveable = Callable[[str, tuple[tuple[int, ...], ...], tuple[str, ...]], bool]
"""A function that returns whether the results of an operation are saved.

Its arguments are the operation's name (`stablehlo.tanh`), the shapes of its results, and the names that select it.
"""
WITH_NAMES = {
    "SaveOnlyTheseNames": ("save_only_these_names", "saveable_names"),
    "SaveAnyNamesButThese": ("save_any_names_but_these", "names"),
}
"""For each type of JAX policy that selects by name, the equivalent policy here and the attribute that holds the names.

These types exist in jax 0.10 and 0.11. In jax 0.12, a policy that selects by name is a closure over the set of its
names.
"""


def selection_with(policy: Any = "nothing_saveable", **fields: Any) -> Selection:
    """Return a selection with the given policy, which need not be a name.

    Args:
        policy: The name of a policy, one of `jax.checkpoint_policies`, or a `Saveable`.
        **fields: Other fields of the selection.

    Raises:
        TypeError: For a function that does not have the parameters of a `Saveable`.
    """
    if isinstance(policy, str):
        return Selection(policy=policy, **fields)
    if (name := _name_in_jax(policy)) is not None:
        return Selection(policy=name, **fields)
    if (on_names := _policy_on_names(policy)) is not None:
        name, policy_names = on_names
        return Selection(policy=name, names=(*fields.pop("names", ()), *sorted(policy_names)), **fields)
    _check(policy)
    return SelectionByFunction(saveable=_on_operations(policy), **fields)


def names_of_policy(policy: Any) -> tuple[str, ...]:
    """Return the names in a JAX policy that selects by name; () for any other policy."""
    on_names = _policy_on_names(policy)
    return () if on_names is None else tuple(sorted(on_names[1]))


def _name_in_jax(policy: Any) -> str | None:
    jax_policies: Any = jax.checkpoint_policies
    return next((name for name in SAVEABLE if getattr(jax_policies, name, None) == policy), None)


def _policy_on_names(policy: Any) -> tuple[str, Iterable[str]] | None:
    """Return the name of a JAX policy that selects by name, and the names that it contains; None for other policies."""
    if type(policy).__name__ in WITH_NAMES:
        name, attribute = WITH_NAMES[type(policy).__name__]
        return name, getattr(policy, attribute)
    if not (isinstance(policy, FunctionType) and policy.__module__.startswith("jax.")):
        return None
    maker = policy.__qualname__.partition(".")[0]
    enclosed: list[Any] = list(inspect.getclosurevars(policy).nonlocals.values())
    is_on_names = maker in {name for name, _ in WITH_NAMES.values()} and list(map(type, enclosed)) in (
        [set],
        [frozenset],
    )
    return (maker, enclosed[0]) if is_on_names else None


def _check(policy: Any) -> None:
    """Raise `TypeError` for a function that is not a `Saveable`, such as a policy for `jax.checkpoint`."""
    policy_name = getattr(policy, "__name__", type(policy).__name__)
    if str(getattr(policy, "__module__", "")).startswith("jax."):
        raise TypeError(
            f"recompute.jax.jit: the names in JAX's policy '{policy_name}' cannot be read: give the policy by "
            "name, with names=(…)"
        )
    try:
        signature = inspect.signature(policy)
        signature.bind("stablehlo.tanh", (), ())
    except TypeError:
        signature = None
    except ValueError:
        return
    if signature is None or any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.parameters.values()):
        raise TypeError(
            f"recompute.jax.jit: the policy '{policy_name}' must accept three arguments: the name of an "
            f"operation, the shapes of its results, and its names; it accepts {signature or 'other arguments'}"
        )


def _on_operations(policy: Saveable) -> Callable[[Operation, tuple[str, ...]], bool]:
    def saves(op: Operation, _: tuple[str, ...]) -> bool:
        return bool(policy(name_of(op), tuple([_shape(result.type) for result in op.results]), names_of(op)))

    return saves


def _shape(kind: Attribute) -> tuple[int, ...]:
    return kind.get_shape() if isinstance(kind, TensorType) else ()
