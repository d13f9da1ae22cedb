"""The checkpoints of an optimizer. Checkpoints that are given as names apply to every step; values apply to one run of
the loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ..messages.argument_checks import type_name
from ..messages.call_site_warnings import warn

_JAX: Any = jax
"""Typed as `Any`, because the types of the library are incomplete."""
NOT_INSIDE = (
    "set_checkpoints was called with values outside the loss, where they have no meaning: call it inside the loss, or "
    "give names of jax.ad_checkpoint.checkpoint_name; no checkpoints are set"
)
NO_LIST = "_checkpoints should be a list of Variable or a list of String"


@dataclass(frozen=True)
class CheckpointList:
    """A list of checkpoints without duplicates. Checkpoints are names and traced values."""

    names: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()

    @staticmethod
    def of(checkpoints: object) -> CheckpointList:
        """Check a user's list of checkpoints, and separate names from values.

        Raises `TypeError` for anything but a list of names and arrays, and `ValueError` for a name that is empty or
        contains a comma.
        """
        if not isinstance(checkpoints, list):
            raise TypeError(f"{NO_LIST}, not {type_name(checkpoints)}")
        elements: list[Any] = checkpoints  # pyright: ignore[reportUnknownVariableType]
        if wrong := [element for element in elements if not isinstance(element, str | jax.Array)]:
            raise TypeError(f"{NO_LIST}, but it contains {type_name(wrong[0])}")
        if wrong := [name for name in elements if isinstance(name, str) and (not name or "," in name)]:
            raise ValueError(f"set_checkpoints: invalid name '{wrong[0]}': expected a non-empty name without a comma")
        names = dict.fromkeys(name for name in elements if isinstance(name, str))
        values = {id(value): value for value in elements if not isinstance(value, str)}
        return CheckpointList(tuple(names), tuple(values.values()))


class Checkpoints:
    """The checkpoints that are currently set for an optimizer.

    A list set during a run of the loss is dropped when the run ends, so that no tracer outlives its trace.
    """

    def __init__(self) -> None:
        self._lasting = CheckpointList()
        self._running: list[CheckpointList] = []
        self._lost = False
        """Whether values were set outside the loss and therefore dropped."""

    @property
    def names(self) -> tuple[str, ...]:
        return self._lasting.names

    def set(self, checkpoints: object) -> None:
        """Set the checkpoints of the current run of the loss. Outside a run, set the checkpoints of all later runs,
        which must be names.

        Raises the errors of `CheckpointList.of`.
        """
        checkpoint_list = CheckpointList.of(checkpoints)
        if self._running:
            self._running[-1] = checkpoint_list
        elif checkpoint_list.values and not checkpoint_list.names:
            self._lost = True
        else:
            self._lasting, self._lost = CheckpointList(checkpoint_list.names), False

    def run(self, loss: Callable[[Any], Any], parameters: Any, checkpoints: object) -> tuple[Any, CheckpointList]:
        """Run the loss. Return its value, and the checkpoints that are set at the end of the run.

        `checkpoints`: the checkpoints for this run; None for the checkpoints that are set. Raises `TypeError` if the
        loss is not a scalar.
        """
        self._running.append(self._lasting if checkpoints is None else CheckpointList.of(checkpoints))
        try:
            value = _scalar(loss(parameters))
            checkpoint_list = self._running[-1]
        finally:
            self._running.pop()
        if self._lost and checkpoint_list == CheckpointList() and checkpoints is None:
            warn(NOT_INSIDE, UserWarning)
        return value, checkpoint_list


def _scalar(value: Any) -> Any:
    kind = type_name(value)
    if isinstance(value, jax.Array | np.ndarray | np.generic | float):
        array = _JAX.numpy.asarray(value)
        if array.shape == () and _JAX.numpy.issubdtype(array.dtype, np.floating):
            return array
        kind = f"{array.dtype}{list(array.shape)}"
    raise TypeError(f"the loss must be a floating-point scalar, not {kind}")
