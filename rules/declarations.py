"""Check the facts that a user declares against each operation: a wrong declaration is an error there, with its name.

register("acme.slice", view(of=1))      "acme.slice"(%x)    error: acme.slice is declared a view of operand 1, ...
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import Any

from xdsl.ir import Attribute, Operation

from ..support.diagnostics import Refusal
from .facts import Count, Facts, OpClass, View


def why_misfit(op: Operation, facts: Facts) -> str | None:
    """The reason that the facts cannot hold for the operation, such as a missing operand; None if they can."""
    operands = len(op.operands)
    if OpClass.CONSTANT in facts.kinds and operands:
        return f"is declared a constant, and reads {_numbered(operands, 'operand')}"
    if facts.view is View.FORWARDS and len(op.results) > operands:
        results = _numbered(len(op.results), "result")
        return f"is declared to forward its operands, and has {results} for {_numbered(operands, 'operand')}"
    if facts.view in (View.STRIDED, View.DENSE) and facts.view_of >= operands:
        return f"is declared a view of operand {facts.view_of}, and has {_numbered(operands, 'operand')}"
    return None


def _numbered(count: int, noun: str) -> str:
    return f"{count or 'no'} {noun}{'' if count == 1 else 's'}"


def with_checked_counts(name: str, facts: Facts) -> Facts:
    """The facts, with functions that raise `Refusal` at an operation if they fail or return no number >= 0."""
    counts: dict[str, Any] = {
        field: _check(name, field, count) for field in ("flops", "transcendentals") if (count := getattr(facts, field))
    }
    if (runs := facts.body_runs) is not None:
        counts["body_runs"] = (
            _check(name, "body_runs", runs) if callable(runs) else tuple(_check(name, "body_runs", run) for run in runs)
        )
    return replace(facts, **counts)


def _check(name: str, field: str, count: Count) -> Count:
    def checked(op: Operation) -> int:
        number, wrong = number_from(count, op)
        if number is None:
            raise Refusal(op, f"the function that is declared as {field} of {name} {wrong}")
        return number

    return checked


def number_from(function: Callable[..., Any], argument: Operation | Attribute) -> tuple[int, str] | tuple[None, str]:
    """The number >= 0 that a user's function returns, or None and a description of the failure."""
    try:
        number = function(argument)
    except Exception as error:
        return None, f"raises {type(error).__name__}: {error}"
    if isinstance(number, bool) or not isinstance(number, Integral) or int(number) < 0:
        return None, f"gives {number!r}, and not a whole number >= 0"
    return int(number), ""
