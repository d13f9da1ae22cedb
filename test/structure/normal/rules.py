"""Rules of the proof as explicit changes of a tree, and the rules that are needed to make two programs equal.

They are independent of the prover: they work on trees that jaxlib has printed, and have their own list of pure
operations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache

from ..tree import Program, read
from ..writing import written
from .names_and_order import (
    in_order_of_names,
    with_plain_private_names,
    with_properties_of_linalg,
    without_empty_lists,
    without_marks,
    without_module_name,
    without_public,
    without_uncalled,
)
from .pure_code import in_order_of_need, out_of_regions, without_doubles, without_unread
from .transparent import without_barriers, without_calls, without_groups

RULES: dict[str, Callable[[Program], None]] = {
    "properties of linalg may be written as attributes": with_properties_of_linalg,
    "attributes that start with recompute. are ignored": without_marks,
    "the name of the module is ignored": without_module_name,
    "public is what a function is anyway": without_public,
    "empty lists of attributes are as good as none": without_empty_lists,
    "groups are what they hold": without_groups,
    "barriers and depends give back their values": without_barriers,
    "calls are the body of the function": without_calls,
    "private functions without calls are ignored": without_uncalled,
    "names of private functions are ignored": with_plain_private_names,
    "the order of functions is ignored": in_order_of_names,
    "regions compute from what they capture": out_of_regions,
    "equal pure operations are one": without_doubles,
    "pure code without uses is ignored": without_unread,
    "the order of pure code is ignored": in_order_of_need,
}
"""Applied in this order."""

_CALLS = "calls are the body of the function"
_TRIED_FIRST = (_CALLS, *(name for name in reversed(RULES) if name != _CALLS))
"""When looking for rules that can be done without: the mighty ones go first."""


@cache
def _every() -> frozenset[str]:
    return frozenset(RULES)


def normal_form(text: str, names: Collection[str] | None = None) -> str:
    """Return the canonical text after applying the named rules, all by default."""
    program = read(text)
    for name, rule in RULES.items():
        if names is None or name in names:
            rule(program)
    return _sorted_text(program)


def _sorted_text(program: Program) -> str:
    for op in program.module.walk():
        op.properties = dict(sorted(op.properties.items()))
        op.attributes = dict(sorted(op.attributes.items()))
    return written(program)


def explanation(before: str, after: str) -> frozenset[str] | None:
    """Return a minimal set of rules that makes two canonical texts equal, or None if all rules together do not."""
    if normal_form(before) != normal_form(after):
        return None
    needed = _every()
    for name in _TRIED_FIRST:
        fewer = needed - {name}
        if normal_form(before, fewer) == normal_form(after, fewer):
            needed = fewer
    return needed
