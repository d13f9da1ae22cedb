"""`nn.Cell.recompute`: a function or a module that is told once, and is a segment whenever it is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import jax

from ....analysis.request.called import Switches
from .. import checked
from ..called import called

R = TypeVar("R")
_JAX: Any = jax


class Cell(Generic[R]):
    """A function, or a module of flax or equinox. What it is around is left as it is, and is called as it is.

    It is a pytree of what is inside, so a cell around an equinox module can be part of a model. Raises `TypeError` for
    what cannot be called.
    """

    def __init__(self, block: Callable[..., R]) -> None:
        checked.a_callable("Cell", block)
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
        """From now on calls are recomputed, all inside but what leaves the cell. Said again, the last time counts.

        mp_comm_recompute: collectives inside may run again, on all devices alike.
        parallel_optimizer_comm_recompute: those that gather parameters may: all-gathers of arguments of the step.
        recompute_slice_activation: what is kept for the cell is sharded over the devices of the mesh meanwhile.
        output_recompute: what leaves the cell is computed again too.

        Inside of a cell that is recomputed it says nothing: the outer one counts. Raises `TypeError` for what is not
        True or False.
        """
        said = {
            "mp_comm_recompute": mp_comm_recompute,
            "parallel_optimizer_comm_recompute": parallel_optimizer_comm_recompute,
            "recompute_slice_activation": recompute_slice_activation,
            "output_recompute": output_recompute,
        }
        checked.flags("Cell.recompute", **said)
        self.switches = Switches(**said)

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        if self.switches is None:
            return self.block(*args, **kwargs)
        return called(self.block, args, kwargs, switches=self.switches)

    def __repr__(self) -> str:
        return f"Cell({self.block!r}{'' if self.switches is None else ', recomputed'})"


def _flattened(cell: Cell[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """A function is no leaf: it is part of the structure."""
    is_data = not _JAX.tree_util.all_leaves([cell.block])
    return ((cell.block,), (None, cell.switches)) if is_data else ((), (cell.block, cell.switches))


def _flattened_with_keys(cell: Cell[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    inside, structure = _flattened(cell)
    return tuple((_JAX.tree_util.GetAttrKey("block"), one) for one in inside), structure


def _unflattened(structure: tuple[Any, ...], inside: tuple[Any, ...]) -> Cell[Any]:
    kind: Any = Cell
    cell: Cell[Any] = object.__new__(kind)
    block, cell.switches = structure
    (cell.block,) = inside or (block,)
    return cell


_JAX.tree_util.register_pytree_with_keys(Cell, _flattened_with_keys, _unflattened, _flattened)
