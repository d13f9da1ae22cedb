"""Check user declarations: find facts that cannot be true of an operation, and functions in facts that fail or do not
return a number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import Any

from xdsl.ir import Attribute, Operation

from ..support.diagnostics import Refusal
from .facts import Count, Facts, OpClass, View


def why_misfit(op: Operation, facts: Facts) -> str | None:
    """Return the reason why the facts cannot be true of the operation, such as a missing operand, or None if there is
    no such reason."""
    operands = len(op.operands)
    if OpClass.CONSTANT in facts.op_classes and operands:
        return f"is declared to be a constant, but has {_with_number(operands, 'operand')}"
    if facts.view is View.FORWARDS and len(op.results) > operands:
        results = _with_number(len(op.results), "result")
        return f"is declared to forward its operands, but has {results} for {_with_number(operands, 'operand')}"
    if facts.view in (View.STRIDED, View.DENSE) and facts.view_of >= operands:
        return f"is declared to be a view of operand {facts.view_of}, but has {_with_number(operands, 'operand')}"
    if facts.overwrites_operand and not operands:
        return "is declared to write over operand 0, but has no operands"
    return None


def _with_number(count: int, noun: str) -> str:
    return f"{count or 'no'} {noun}{'' if count == 1 else 's'}"


def with_checked_counts(name: str, facts: Facts) -> Facts:
    """Return the facts, with checks around the functions that they contain. If a function fails at an operation, or
    does not return a non-negative integer, `Refusal` is raised at this operation."""
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
            raise Refusal(op, f"the function registered as {field} of {name} {wrong}")
        return number

    return checked


def number_from(function: Callable[..., Any], argument: Operation | Attribute) -> tuple[int, str] | tuple[None, str]:
    """Call a user's function, and return its result and "", or None and a description of the failure.

    The result must be a non-negative integer.
    """
    try:
        number = function(argument)
    except Exception as error:
        return None, f"raises {type(error).__name__}: {error}"
    if isinstance(number, bool) or not isinstance(number, Integral) or int(number) < 0:
        return None, f"returns {number!r}, but must return a non-negative integer"
    return int(number), ""
