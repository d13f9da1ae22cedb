"""The checkpoints of an optimizer: names that hold for every step, and values that hold while a loss is run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ..warning import warn
from .kinds import kind_of

_JAX: Any = jax
"""Partly unknown to type checkers."""
NOT_INSIDE = (
    "set_checkpoints was given values outside of the loss, where nothing is known of them: call it inside of the loss, "
    "or give names of jax.ad_checkpoint.checkpoint_name; nothing is set"
)
NO_LIST = "_checkpoints should be a list of Variable or a list of String"


@dataclass(frozen=True)
class Said:
    """What is a checkpoint."""

    names: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()

    @staticmethod
    def of(checkpoints: object) -> Said:
        """Raises `TypeError`. The same one twice is one."""
        if not isinstance(checkpoints, list):
            raise TypeError(f"{NO_LIST}, not {kind_of(checkpoints)}")
        given: list[Any] = checkpoints  # pyright: ignore[reportUnknownVariableType]
        if wrong := [one for one in given if not isinstance(one, str | jax.Array)]:
            raise TypeError(f"{NO_LIST}, and holds {kind_of(wrong[0])}")
        if wrong := [one for one in given if isinstance(one, str) and (not one or "," in one)]:
            raise ValueError(f"set_checkpoints: '{wrong[0]}' is no name: it is empty, or has a comma")
        names = dict.fromkeys(one for one in given if isinstance(one, str))
        values = {id(one): one for one in given if not isinstance(one, str)}
        return Said(tuple(names), tuple(values.values()))


class Checkpoints:
    """What is set; while a loss runs, a second one beside it that ends with the run: nothing traced is kept."""

    def __init__(self) -> None:
        self._lasting = Said()
        self._running: list[Said] = []
        self._lost = False

    @property
    def names(self) -> tuple[str, ...]:
        return self._lasting.names

    def set(self, checkpoints: object) -> None:
        """Raises `TypeError` for anything but a list of names and arrays. Values stay with the run of the loss."""
        said = Said.of(checkpoints)
        if self._running:
            self._running[-1] = said
        elif said.values and not said.names:
            self._lost = True
        else:
            self._lasting, self._lost = Said(said.names), False

    def run(self, loss: Callable[[Any], Any], parameters: Any, checkpoints: object) -> tuple[Any, Said]:
        """The loss of the parameters, and what is set when it is through. `checkpoints`: for this run; None: as set.

        Raises `TypeError` for a loss that gives no scalar.
        """
        self._running.append(self._lasting if checkpoints is None else Said.of(checkpoints))
        try:
            value = _scalar(loss(parameters))
            said = self._running[-1]
        finally:
            self._running.pop()
        if self._lost and said == Said() and checkpoints is None:
            warn(NOT_INSIDE, UserWarning)
        return value, said


def _scalar(value: Any) -> Any:
    kind = kind_of(value)
    if isinstance(value, jax.Array | np.ndarray | np.generic | float):
        array = _JAX.numpy.asarray(value)
        if array.shape == () and _JAX.numpy.issubdtype(array.dtype, np.floating):
            return array
        kind = f"{array.dtype}{list(array.shape)}"
    raise TypeError(f"the loss gives a scalar, a floating-point number of shape (), not {kind}")
