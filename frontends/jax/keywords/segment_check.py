"""Errors for options that match no segment of a step. The errors list the scopes of the model, and are raised before
anything is compiled.

Example:

    train_step: no segment matches 'block*': the step contains no scopes; in JAX, name parts of the model with
    jax.named_scope or recompute.jax.block
"""

from __future__ import annotations

import inspect
import sys
from dataclasses import replace
from typing import Any, cast

import jax
from xdsl.dialects.builtin import ModuleOp

from ....analysis.request.resolved import resolve
from ....analysis.request.segments import NoSuchSegment
from ....analysis.step.descriptions import LOOP_SCOPES
from ....analysis.step.jax_paths import scope_of
from ....analysis.step.module_steps import numbered_steps
from ....dialects.cloning import clone_of
from ....driver.verification.step_input import as_module
from ....options.recompute_options import RecomputeOptions
from ....options.selection import AUTO, BadSelection
from ....search.prepare import prepare
from ....support.diagnostics import Refusal
from ....support.operations import every_operation
from ....transforms.inline import inline
from ....transforms.take_marks import take_marks

_JAX: Any = jax
"""Typed as `Any`, because the types of JAX are incomplete."""


def demand_segments(step: str, module: ModuleOp, options: RecomputeOptions) -> None:
    """Check that the selection applies to the step, as the rewrite does after the plain step is compiled.

    Args:
        step: The name of the step, for the message.
        module: The step, with or without calls that mark values. It is left unchanged.
        options: The options of the rewrite.

    Raises:
        BadSelection: If the selection applies to no step of the module, for example because its pattern for segments
            matches nothing.
    """
    selection = options.selection
    if (selection.segments, selection.checkpoints, selection.segment_budgets, selection.exclude) == (
        AUTO.segments,
        AUTO.checkpoints,
        AUTO.segment_budgets,
        AUTO.exclude,
    ):
        return
    marked = clone_of(as_module(module))
    errors = list[BadSelection]()
    try:
        take_marks(marked)
        for _, prepared_step in numbered_steps(prepare(marked, replace(options, loops=False)).module):
            try:
                resolve(prepared_step.phases, selection)
                return
            except BadSelection as error:
                errors.append(error)
    except Refusal as error:
        if isinstance(error.__cause__, BadSelection):
            errors.append(error.__cause__)
    if errors:
        raise in_terms_of_model(step, module, errors[0])


def in_terms_of_model(step: str, module: ModuleOp, error: BadSelection) -> BadSelection:
    """Return the error with the name of the step. If a pattern matches no segment, the error lists the scopes of the
    model, without functions of JAX."""
    if isinstance(error, NoSuchSegment):
        error = replace(error, scopes=scopes_of_model(module))
    return BadSelection(f"{step}: {error}")


def scopes_of_model(module: ModuleOp) -> tuple[str, ...]:
    """Return every named scope of the model and its parents, sorted. If there are no named scopes, return the jitted
    functions of the model.

    Scopes inside the jitted functions of JAX itself, such as `jax.random.bernoulli`, are left out.
    """
    flat = clone_of(as_module(module))
    inline(flat)
    of_jax = _functions_of_jax()
    scopes = [scope_of(op.location) for op in every_operation(flat)]
    own = [scope for scope in scopes if of_jax.isdisjoint((*scope.functions, *scope.path))]
    paths = {tuple(part for part in scope.path if part not in LOOP_SCOPES) for scope in own} - {()}
    paths = paths or {scope.functions for scope in own}
    return tuple(sorted({"/".join(path[:depth]) for path in paths for depth in range(1, len(path) + 1)}))


def _functions_of_jax() -> frozenset[str]:
    """Return the names of the functions that JAX itself jits, such as `_where` and `tril`."""
    jitted = cast("type[Any]", type(_JAX.jit(lambda: None)))
    values: list[Any] = [
        inspect.unwrap(value, stop=lambda function: isinstance(function, jitted))
        for name, module in list(sys.modules.items())
        if name.startswith("jax.")
        for value in list(vars(module).values())
        if callable(value) and not isinstance(value, type)
    ]
    return frozenset(value.__name__ for value in values if isinstance(value, jitted))
