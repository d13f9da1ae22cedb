"""MindSpore's `nn.Cell.recompute`, `ops.Primitive.recompute` and `mindspore.recompute`.

A cell turns each call to a function or module into a segment. A primitive is always or never recomputed.
`mindspore.recompute` turns a single call into a segment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import jax

from ....analysis.request.scope_names import CallTreatment, Switches
from ..annotations.scopes import call_in_scope
from ..messages import argument_checks

R = TypeVar("R")
_JAX: Any = jax


class Cell(Generic[R]):
    """A wrapper around a function, or around a Flax or Equinox module. The wrapped object stays unchanged.

    A cell is a pytree that contains the wrapped module. A cell around an equinox module can therefore be part of a
    model.

    Args:
        block: The function or the module.

    Raises:
        TypeError: If `block` is not callable.
    """

    def __init__(self, block: Callable[..., R]) -> None:
        argument_checks.demand_callable("Cell", block)
        self.block = block
        self.switches: Switches | None = None

    def recompute(
        self,
        *,
        mp_comm_recompute: bool = True,
        parallel_optimizer_comm_recompute: bool = False,
        recompute_slice_activation: bool = False,
        output_recompute: bool = False,
    ) -> None:
        """Recompute all values of later calls, except the outputs of the cell.

        A second call overrides the first. The setting of a cell inside a recomputed cell is ignored.

        Args:
            mp_comm_recompute: Also recompute collectives inside the cell, equally often on all devices.
            parallel_optimizer_comm_recompute: Also recompute collectives that gather parameters: all-gathers of step
                arguments.
            recompute_slice_activation: Shard the cell's saved values over the devices of the mesh.
            output_recompute: Also recompute the outputs of the cell.

        Raises:
            TypeError: For a switch that is neither True nor False.
        """
        switches = {
            "mp_comm_recompute": mp_comm_recompute,
            "parallel_optimizer_comm_recompute": parallel_optimizer_comm_recompute,
            "recompute_slice_activation": recompute_slice_activation,
            "output_recompute": output_recompute,
        }
        argument_checks.demand_flags("Cell.recompute", **switches)
        self.switches = Switches(**switches)

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        if self.switches is None:
            return self.block(*args, **kwargs)
        return call_in_scope(self.block, args, kwargs, switches=self.switches)

    def __repr__(self) -> str:
        return f"Cell({self.block!r}{'' if self.switches is None else ', recomputed'})"


def _flatten(cell: Cell[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the children and the structure of the pytree. A function that is not a pytree is part of the structure."""
    is_data = not _JAX.tree_util.all_leaves([cell.block])
    return ((cell.block,), (None, cell.switches)) if is_data else ((), (cell.block, cell.switches))


def _flatten_with_keys(cell: Cell[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    children, structure = _flatten(cell)
    return tuple((_JAX.tree_util.GetAttrKey("block"), child) for child in children), structure


def _unflatten(structure: tuple[Any, ...], children: tuple[Any, ...]) -> Cell[Any]:
    kind: Any = Cell
    cell: Cell[Any] = object.__new__(kind)
    block, cell.switches = structure
    (cell.block,) = children or (block,)
    return cell


_JAX.tree_util.register_pytree_with_keys(Cell, _flatten_with_keys, _unflatten, _flatten)


class Primitive(Generic[R]):
    """A wrapper around a JAX function, such as `jnp.exp`. The function is treated as a single operation.

    Args:
        function: The function.

    Raises:
        TypeError: If it is not callable.
    """

    def __init__(self, function: Callable[..., R]) -> None:
        argument_checks.demand_callable("Primitive", function)
        self.function = function
        self.mode: bool | None = None

    def recompute(self, mode: bool = True) -> Primitive[R]:
        """Set whether later calls are always or never recomputed, including their results, inside and outside cells.

        Args:
            mode: Whether to recompute.

        Returns:
            The primitive itself.

        Raises:
            TypeError: If `mode` is neither True nor False.
        """
        argument_checks.demand_flags("Primitive.recompute", mode=mode)
        self.mode = mode
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        if self.mode is None:
            return self.function(*args, **kwargs)
        return call_in_scope(self.function, args, kwargs, kind=CallTreatment.AGAIN if self.mode else CallTreatment.SAVE)

    def __repr__(self) -> str:
        return f"Primitive({self.function!r}{'' if self.mode is None else f', recompute={self.mode}'})"


def recompute(
    block: Callable[..., R], *args: Any, use_reentrant: bool = True, output_recompute: bool = False, **kwargs: Any
) -> R:
    """Call a function as a segment: only the arguments and results of the call are saved, and all other values are
    recomputed.

    A call inside another such call is part of the outer segment.

    Args:
        block: The function or the module.
        *args: Its positional arguments.
        use_reentrant: Has no effect. JAX has no tape, and differentiates complex types whatever the value of this
            option.
        output_recompute: Also recompute the results. Consecutive calls stay separate segments.
        **kwargs: Its keyword arguments.

    Returns:
        The result of the function.

    Raises:
        TypeError: If `block` is not callable, and for a switch that is neither True nor False.
    """
    argument_checks.demand_callable("recompute", block)
    argument_checks.demand_flags("recompute", use_reentrant=use_reentrant, output_recompute=output_recompute)
    return call_in_scope(block, args, kwargs, switches=Switches(output_recompute=output_recompute))
