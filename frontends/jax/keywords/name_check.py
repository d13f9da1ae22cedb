"""Reject names in the options `save`, `names` and `policy` that match no value of the step.

Without this check, a misspelt name would silently save no value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ....analysis.request.value_names import all_values_of_scope, given_names, matches_of, names_of
from ....analysis.step.descriptions import LOOP_SCOPES
from ....analysis.step.jax_paths import scope_of
from ....dialects.cloning import clone_of
from ....driver.verification.step_input import as_module
from ....options.selection import BadSelection
from ....support.operations import every_operation
from ....support.suggestions import similar_names
from ....transforms.inline import inline
from ..messages.call_site_warnings import UnmatchedName, warn

_MAX_LISTED = 6
"""The maximum number of existing names that a message lists."""
_NAME_VALUES = "name values with jax.ad_checkpoint.checkpoint_name, or blocks with recompute.jax.block"


POLICY = "policy"
"""The option whose value may be a JAX policy that contains names."""


class UnknownName(BadSelection):
    """Raised for a name that matches no value of the step."""


def demand_names(step: str, module: ModuleOp, patterns: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Check that every pattern matches an operation of the module, after its functions are inlined.

    Return the names in the policy that match nothing. This function has warned about each of them, so the rewrite need
    not report them again.

    Args:
        step: The name of the step, for the message.
        module: The step, with or without calls that mark values. It is left unchanged.
        patterns: Names and shell-style patterns, by option.

    Raises:
        UnknownName: For a pattern that matches nothing. The message lists similar names or, if there are none, some
            existing names. For a name in a policy, the warning `UnmatchedName` is given instead if another name in the
            policy matches.
    """
    requested = [(option, pattern) for option, names in patterns.items() for pattern in names]
    if not requested or not _without_match(every_operation(module), requested):
        return frozenset()
    # The scopes of a called function are complete only after inlining.
    flat = clone_of(as_module(module))
    inline(flat)
    operations = every_operation(flat)
    missing = _without_match(operations, requested)
    used = set(requested) - set(missing)
    # Policies are shared among models, so one matching name is enough.
    is_used = any(option == POLICY for option, _ in used)
    for option, pattern in missing:
        near = _similar_names(option, pattern, operations)
        if option == POLICY and is_used:
            similar = f"; similar names are: {', '.join(near)}" if near else ""
            warn(f"{step}: policy: the name {pattern!r} matches no value of the step{similar}", UnmatchedName)
            continue
        if option == POLICY:
            raise UnknownName(_without_checkpoint_name(step, pattern, near, operations))
        if (of_scope := all_values_of_scope(pattern, operations)) is not None:
            raise UnknownName(f"{step}: {option}={pattern!r} names a scope: write {of_scope!r} for the values in it")
        similar = f"similar names are: {', '.join(near)}" if near else _existing_names(operations)
        raise UnknownName(f"{step}: {option}={pattern!r} matches no value of the step; {similar}")
    return frozenset(pattern for _, pattern in missing)


def _similar_names(option: str, pattern: str, operations: Sequence[Operation]) -> list[str]:
    """Return the existing names that resemble a pattern. For a policy of JAX, these are names that `checkpoint_name`
    gave."""
    if option == POLICY:
        return similar_names(pattern, _named_values(operations))
    existing = (name for op in operations for name in names_of(op))
    return similar_names(pattern, dict.fromkeys([*existing, *_patterns_of_scopes(operations)]))


def _patterns_of_scopes(operations: Sequence[Operation]) -> list[str]:
    """Return a pattern such as `block0/*` for the values of each user-named scope, in program order."""
    scopes = [scope for op in operations for scope in scope_of(op.location).path if scope not in LOOP_SCOPES]
    return [f"{scope}/*" for scope in dict.fromkeys(scopes)]


def _without_checkpoint_name(step: str, name: str, near: Sequence[str], operations: Sequence[Operation]) -> str:
    """Return the error message for a name that a JAX policy mentions, but that no value of the step has.

    `near`: similar existing names.
    """
    missing = f"{step}: policy: the step has no value with the checkpoint_name {name!r}"
    if near:
        return f"{missing}; similar names are: {', '.join(near)}"
    if named := _named_values(operations):
        return f"{missing}; the names of its values are: {_listed(named)}"
    return f"{missing}, and no value with another one; name values with jax.ad_checkpoint.checkpoint_name"


def _existing_names(operations: Sequence[Operation]) -> str:
    """Return a phrase that lists existing names: the names that `checkpoint_name` gave or, if there are none, patterns
    for the values of scopes.

    If there are no scopes either, return advice on naming values.
    """
    named = _named_values(operations)
    for kind, names in (("the named values are", named), ("the scopes are", _patterns_of_scopes(operations))):
        if names:
            return f"{kind}: {_listed(names)}"
    return _NAME_VALUES


def _named_values(operations: Sequence[Operation]) -> list[str]:
    """Return the names that `checkpoint_name` gave to values, in program order."""
    return list(dict.fromkeys([name for op in operations for name in given_names(op)]))


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    return f"{', '.join(names[:_MAX_LISTED])}{more}"


def _without_match(operations: Sequence[Operation], requested: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    matches = matches_of(operations, [pattern for _, pattern in requested])
    return [(option, pattern) for option, pattern in requested if not matches[pattern]]
