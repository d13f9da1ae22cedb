"""What `policy=` may be besides a name: one of `jax.checkpoint_policies`, or a function of one's own.

def saveable(operation, shapes, names):
    return operation == "stablehlo.dot_general" or "hidden" in names
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import jax
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation

from ...analysis.request.names import names_of
from ...analysis.request.policies import SAVEABLE, SelectionByFunction
from ...options.selection import Selection
from ...rules.names import name_of

Saveable = Callable[[str, tuple[tuple[int, ...], ...], tuple[str, ...]], bool]
"""Of an operation: its name (`stablehlo.tanh`), the shapes of its results, and all names that it goes by."""
WITH_NAMES = {
    "SaveOnlyTheseNames": ("save_only_these_names", "saveable_names"),
    "SaveAnyNamesButThese": ("save_any_names_but_these", "names"),
}
"""Types of what JAX's functions on names return: our policy, and where its names are."""


def selected(policy: Any = "nothing_saveable", **said: Any) -> Selection:
    """The selection with this policy. Raises `TypeError` for a function that takes something else."""
    if isinstance(policy, str):
        return Selection(policy=policy, **said)
    if (name := _name_in_jax(policy)) is not None:
        return Selection(policy=name, **said)
    if type(policy).__name__ in WITH_NAMES:
        name, where = WITH_NAMES[type(policy).__name__]
        names = (*said.pop("names", ()), *sorted(getattr(policy, where)))
        return Selection(policy=name, names=names, **said)
    _check(policy)
    return SelectionByFunction(saveable=_on_operations(policy), **said)


def _name_in_jax(policy: Any) -> str | None:
    known: Any = jax.checkpoint_policies
    return next((name for name in SAVEABLE if getattr(known, name, None) == policy), None)


def _check(policy: Any) -> None:
    """A policy as `jax.checkpoint` takes it would be called with what it does not expect, and save nothing."""
    called = getattr(policy, "__name__", type(policy).__name__)
    if str(getattr(policy, "__module__", "")).startswith("jax."):
        raise TypeError(
            f"recompute.jax.jit: policy '{called}' is JAX's own and cannot be looked into: give its name, and names=(…)"
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
            f"recompute.jax.jit: policy {called} is called with the name of an operation, the shapes of its results "
            f"and its names, and says whether it is saved; it takes {signature or 'something else'}"
        )


def _on_operations(policy: Saveable) -> Callable[[Operation, tuple[str, ...]], bool]:
    def saves(op: Operation, _: tuple[str, ...]) -> bool:
        return bool(policy(name_of(op), tuple([_shape(result.type) for result in op.results]), names_of(op)))

    return saves


def _shape(kind: Attribute) -> tuple[int, ...]:
    return kind.get_shape() if isinstance(kind, TensorType) else ()
