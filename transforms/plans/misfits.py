"""Apply a function to all steps of a module, except to steps that lack a segment or checkpoint that the selection
names.

A nested or later step is outlined as a separate function. If a selection names only segments of one of these steps, it
is not an error that the remaining steps lack these segments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from xdsl.dialects.func import FuncOp

from ...options.selection import BadSelection
from ...support.diagnostics import BadRequest
from ...support.operations import every_operation
from ...support.outlined_names import is_outlined
from ..per_device.outline import is_stand_in

S = TypeVar("S")
T = TypeVar("T")


def for_each_step(steps: Iterable[tuple[FuncOp, S]], work: Callable[[FuncOp, S], T]) -> dict[FuncOp, T]:
    """Return the result of `work` for each step to which the selection applies, by function.

    Args:
        steps: The functions with their steps.
        work: Takes a function and its step. Raises `BadSelection` if the selection does not apply to the step.

    Raises:
        Refusal: The selection does not apply to a function. A part of a function with several steps
            (`is_part_of_function`) is exempt if the selection applies to any other function.
    """
    results, misfits = dict[FuncOp, T](), list[tuple[FuncOp, BadSelection]]()
    for function, step in steps:
        try:
            results[function] = work(function, step)
        except BadSelection as error:
            misfits.append((function, error))
    for function, error in misfits:
        if not (results and is_part_of_function(function)):
            raise BadRequest(function, str(error)) from error
    return results


def is_part_of_function(function: FuncOp) -> bool:
    """Return whether the function is one part of a function with several steps: a nested or later step that is
    outlined, or a function that contains a placeholder of an outlined step."""
    return is_outlined(function) or contains_outlined_step(function)


def contains_outlined_step(function: FuncOp) -> bool:
    """Return whether the function contains a placeholder of an outlined step."""
    return any(map(is_stand_in, every_operation(function)))
