"""What a user declares, held against the operation that it meets: a wrong declaration is an error there, with its name.

register("acme.slice", view(of=1))      "acme.slice"(%x)    error: acme.slice is declared a view of operand 1, ...
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import Any

from xdsl.ir import Attribute, Operation

from ..support.diagnostics import Refusal
from .facts import Count, Facts, Kind, View


def why_misfit(op: Operation, facts: Facts) -> str | None:
    """Why the facts cannot hold for the operation: what they name is not there."""
    operands = len(op.operands)
    if Kind.CONSTANT in facts.kinds and operands:
        return f"is declared a constant, and reads {_numbered(operands, 'operand')}"
    if facts.view is View.FORWARDS and len(op.results) > operands:
        results = _numbered(len(op.results), "result")
        return f"is declared to forward its operands, and has {results} for {_numbered(operands, 'operand')}"
    if facts.view in (View.STRIDED, View.DENSE) and facts.view_of >= operands:
        return f"is declared a view of operand {facts.view_of}, and has {_numbered(operands, 'operand')}"
    return None


def _numbered(count: int, what: str) -> str:
    return f"{count or 'no'} {what}{'' if count == 1 else 's'}"


def with_checked_counts(name: str, facts: Facts) -> Facts:
    """The facts, whose functions raise a `Refusal` at the operation where they fail or give no number."""
    counts: dict[str, Any] = {
        what: _checked(name, what, count) for what in ("flops", "transcendentals") if (count := getattr(facts, what))
    }
    if (runs := facts.body_runs) is not None:
        counts["body_runs"] = (
            _checked(name, "body_runs", runs)
            if callable(runs)
            else tuple(_checked(name, "body_runs", run) for run in runs)
        )
    return replace(facts, **counts)


def _checked(name: str, what: str, count: Count) -> Count:
    def checked(op: Operation) -> int:
        number, wrong = number_from(count, op)
        if number is None:
            raise Refusal(op, f"the function that is declared as {what} of {name} {wrong}")
        return number

    return checked


def number_from(function: Callable[..., Any], asked: Operation | Attribute) -> tuple[int, str] | tuple[None, str]:
    """The number >= 0 that a function of the user gives, or None and what it does instead."""
    try:
        number = function(asked)
    except Exception as error:
        return None, f"raises {type(error).__name__}: {error}"
    if isinstance(number, bool) or not isinstance(number, Integral) or int(number) < 0:
        return None, f"gives {number!r}, and not a whole number >= 0"
    return int(number), ""
