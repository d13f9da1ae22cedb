"""The checkpoints of an optimizer: names that hold for every step, and values that hold while a loss is run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from .. import marks
from ..warning import warn

_JAX: Any = jax
"""Partly unknown to type checkers."""
NOT_INSIDE = (
    "set_checkpoints was given values outside of the loss, where nothing is known of them: call it inside of the loss, "
    "or give names of jax.ad_checkpoint.checkpoint_name; nothing is set"
)
NO_LIST = "_checkpoints should be a list of Variable or a list of String"


@dataclass(frozen=True)
class _Set:
    names: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()

    @staticmethod
    def of(checkpoints: object) -> _Set:
        """Raises `TypeError`. The same one twice is one."""
        if not isinstance(checkpoints, list):
            raise TypeError(f"{NO_LIST}, not {type(checkpoints).__name__}")
        given: list[Any] = checkpoints  # pyright: ignore[reportUnknownVariableType]
        if wrong := [one for one in given if not isinstance(one, str | jax.Array)]:
            raise TypeError(f"{NO_LIST}, and holds {type(wrong[0]).__name__}")
        names = dict.fromkeys(one for one in given if isinstance(one, str))
        values = {id(one): one for one in given if not isinstance(one, str)}
        return _Set(tuple(names), tuple(values.values()))


class Checkpoints:
    """What is set; while a loss runs, a second one beside it that ends with the run: nothing traced is kept."""

    def __init__(self) -> None:
        self._lasting = _Set()
        self._running: list[_Set] = []
        self._lost = False

    @property
    def names(self) -> tuple[str, ...]:
        return self._lasting.names

    def set(self, checkpoints: object) -> None:
        """Raises `TypeError` for anything but a list of names and arrays. Values stay with the run of the loss."""
        said = _Set.of(checkpoints)
        if self._running:
            self._running[-1] = said
        elif said.values and not said.names:
            self._lost = True
        else:
            self._lasting, self._lost = _Set(said.names), False

    def marked(self, loss: Callable[[Any], Any], parameters: Any, checkpoints: object) -> Any:
        """The loss of the parameters, with the checkpoints said on it. `checkpoints`: for this run; None: as set.

        Raises `TypeError` for a loss that gives no scalar, `ValueError` for a value that the loss itself does not have,
        in place of JAX's `UnexpectedTracerError` wherever that one is raised here.
        """
        self._running.append(self._lasting if checkpoints is None else _Set.of(checkpoints))
        try:
            value = _scalar(loss(parameters))
            said = self._running[-1]
        finally:
            self._running.pop()
        if self._lost and said == _Set() and checkpoints is None:
            warn(NOT_INSIDE, UserWarning)
        return _said(value, said)


def _scalar(value: Any) -> Any:
    kind = type(value).__name__
    if isinstance(value, jax.Array | np.ndarray | np.generic | float):
        array = _JAX.numpy.asarray(value)
        if array.shape == () and _JAX.numpy.issubdtype(array.dtype, np.floating):
            return array
        kind = f"{array.dtype}{list(array.shape)}"
    raise TypeError(f"the loss gives a scalar, a floating-point number of shape (), not {kind}")


def _said(value: Any, said: _Set) -> Any:
    if said == _Set():
        return value
    try:
        return marks.checkpoints(value, said.names, said.values)
    except jax.errors.UnexpectedTracerError as error:
        raise ValueError(
            "set_checkpoints: a value is of a function that is jitted, looped over or differentiated inside of the "
            "loss; name it there with jax.ad_checkpoint.checkpoint_name, and give the name"
        ) from error
