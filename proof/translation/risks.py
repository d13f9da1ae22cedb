"""Risks: terms for the operations of a program that may fail or not terminate.

    scf.if %c { %q = arith.divsi %x, %y … }     the division runs if %c: risk[scf.if, region 0: divsi(#x, #y)](#c)
    %q = arith.divsi %x, %y                     the division always runs: divsi(#x, #y)

The result of such an operation is an ordinary term. In addition, the scope records the operation, but only once,
because an operation that has succeeded with the same operands does not fail later. The rewritten program must not have
risks that the original program lacks. A loop that may not terminate is recorded together with the state, so that it
stays after the effects that precede it.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Iterable, Mapping, Sequence

from xdsl.ir import Operation

from ...support.operations import name_of
from ..expressions.terms import ClosedRegion, Closure, Head, OpenRegion, RegionTerm, Terms
from .scope import RegionScope

_BY_FIRST_OPERAND = frozenset("scf.if scf.index_switch stablehlo.case stablehlo.if".split())
_ENDLESS = Head("endless", "")
MAX_CLOSED_APART = 64
"""Maximum number of risks to close separately in a region. Each closure takes time linear in the region's size."""


def record_risk(terms: Terms, scope: RegionScope, term: int, *, ordered: bool = False) -> None:
    """Record in the scope that the operation of a term runs, unless this is recorded already.

    `ordered`: whether the operation must stay after the effects so far.
    """
    if term in executed_operations(scope):
        return
    scope.executed[term] = ordered
    scope.risks[terms.term(_ENDLESS, (term, scope.state)) if ordered else term] = None


def executed_operations(scope: RegionScope) -> Mapping[int, bool]:
    """Return the operations that are recorded in a scope and its enclosing scopes. See `RegionScope.executed`."""
    scopes = list[dict[int, bool]]()
    current: RegionScope | None = scope
    while current is not None:
        scopes.append(current.executed)
        current = current.enclosing
    return ChainMap(*scopes)


def record_region_risks(
    terms: Terms, scope: RegionScope, op: Operation, regions: Iterable[ClosedRegion], term: int
) -> list[int]:
    """Record the risks in the regions of an operation, which may occur whenever the operation runs its regions.

    `term`: the term of the operation.

    Returns:
        The terms that were recorded.
    """
    decides = terms.operands_of(term)[0] if is_decided_by_first_operand(terms, term) else term
    return record_closure_risks(terms, scope, name_of(op), [region.risks for region in regions], decides)


def record_closure_risks(
    terms: Terms, scope: RegionScope, name: str, regions: Sequence[Iterable[Closure]], decides: int
) -> list[int]:
    """Record the risks of an operation's regions, as `record_region_risks` does.

    Args:
        terms: The table.
        scope: The scope of the operation.
        name: Name of the operation.
        regions: The risks of each region, closed over the arguments of the region.
        decides: The term that determines which region runs, and how often.

    Returns:
        The terms that were recorded.
    """
    recorded = list[int]()
    for index, closures in enumerate(regions):
        for body, captures in closures:
            head = Head("risk", name, bodies=(body,), numbers=(index, len(regions)))
            recorded.append(terms.term(head, (decides, *captures)))
            record_risk(terms, scope, recorded[-1], ordered=_is_ordered(terms, body))
    return recorded


def is_decided_by_first_operand(terms: Terms, term: int) -> bool:
    """Return whether the operation runs exactly one region, exactly once, and selects this region by its first operand
    alone."""
    head = terms.head_of(term)
    return head.kind == "operation" and head.name in _BY_FIRST_OPERAND


def _is_ordered(terms: Terms, body: int) -> bool:
    """Return whether a closed risk is a loop that may not terminate. `body`: the body of the closure."""
    closed = terms.bodies[body]
    entries = (closed.entries[root - len(closed.types) - 1] for root in closed.roots if root > len(closed.types))
    heads = (terms.heads[entry[0]] for entry in entries if entry is not None)
    return any(head.kind == "endless" for head in heads)


def is_implied(terms: Terms, risk: int, earlier: Collection[int]) -> bool:
    """Return whether a risk is among the risks `earlier` or only runs an operation of one of these risks again in a
    region."""
    inner: int | None = risk
    while inner is not None and inner not in earlier:
        inner = _invariant_operation(terms, inner)
    return inner is not None


def _invariant_operation(terms: Terms, risk: int) -> int | None:
    """Return the operation that a risk runs in a region, if its operands are the same in each execution of the region,
    else None."""
    head = terms.head_of(risk)
    operands = terms.operands_of(risk)
    if head.kind == "endless":
        inner = _invariant_operation(terms, operands[0])
        return None if inner is None else terms.term(head, (inner, operands[1]))
    if not head.bodies:
        return None
    body = terms.bodies[head.bodies[0]]
    # The first root of a loop that runs until its condition fails is the condition.
    position = body.roots[1 if head.kind == "until" else 0]
    if (entry := _entry(body, position)) is not None and terms.heads[entry[0]].kind == "endless":
        position = entry[1][0]
    if position <= len(body.types) or _entry(body, position) is not None:
        return None
    captures = [place for place, entry in enumerate(body.entries, len(body.types) + 1) if entry is None]
    return operands[len(operands) - len(captures) + captures.index(position)]


def _entry(body: RegionTerm, position: int) -> tuple[int, tuple[int, ...]] | None:
    return body.entries[position - len(body.types) - 1] if position > len(body.types) else None


def close_risks(
    terms: Terms, scope: RegionScope, arguments: Sequence[int], types: tuple[int, ...]
) -> tuple[Closure, ...]:
    """Return the risks of a region as closures over its arguments: one closure for each risk, or a single one if there
    are many risks."""
    risks = tuple(scope.risks)
    groups = [risks] if len(risks) > MAX_CLOSED_APART else [(risk,) for risk in risks]
    return tuple(terms.close(OpenRegion(tuple(arguments), group), types, -1, scope.depth) for group in groups)
