"""Refuse names in `save=` and `names=` that no value of the step has: a misspelt name would save nothing, silently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ...analysis.request.value_names import named_by, names_of
from ...driver.api import as_module
from ...options.selection import BadSelection
from ...support.walk import every_operation
from ...transforms.inline import inline

NEAR = 3
"""The maximum number of similar names in a message."""
NAME_IT = "name values with jax.ad_checkpoint.checkpoint_name, or blocks with recompute.jax.block"


class UnknownName(BadSelection):
    """A name that no value of the step has."""


def demand_names(step: str, module: ModuleOp, patterns: Mapping[str, Sequence[str]]) -> None:
    """Check that every pattern names an operation of the module, functions inlined.

    Args:
        step: The name of the step, for the message.
        module: The step, with or without calls of marks. It is left unchanged.
        patterns: Names and shell-style patterns, by option.

    Raises:
        UnknownName: For a pattern that matches nothing; the message has similar names.
    """
    wanted = [(option, pattern) for option, names in patterns.items() for pattern in names]
    if not wanted or not _without_match(every_operation(module), wanted):
        return
    # Scopes of a called function are complete after inlining only.
    flat = as_module(module).clone()
    inline(flat)
    operations = every_operation(flat)
    for option, pattern in _without_match(operations, wanted):
        near = get_close_matches(pattern, {name for op in operations for name in names_of(op)}, NEAR)
        similar = f"similar names are: {', '.join(near)}" if near else NAME_IT
        raise UnknownName(f"{step}: {option}={pattern!r} matches no value of the step; {similar}")


def _without_match(operations: Sequence[Operation], wanted: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    matches = named_by(operations, [pattern for _, pattern in wanted])
    return [(option, pattern) for option, pattern in wanted if not matches[pattern]]
