"""What may fail (`MAY_FAIL`): where it runs belongs to what it is, and to what a program does.

scf.if %c { %q = arith.divsi %x, %y … }         is not          %q = arith.divsi %x, %y
                                                                scf.if %c { … }
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Operation

from .anatomy import name_of
from .scope import Scope
from .terms import Closed, Head, Terms


def where_it_runs(terms: Terms, head: Head, operands: tuple[int, ...], scope: Scope) -> tuple[int, ...]:
    """The operands, in a region with the execution of the region: it is not the same elsewhere.

    What has run already, around this region, is. What has not is noted in the scope.
    """
    around: Scope | None = scope
    while around is not None:
        there = _in(around, operands)
        if terms.term(head, there) in around.risky:
            return there
        around = around.around
    here = _in(scope, operands)
    scope.risky[terms.term(head, here)] = None
    return here


def _in(scope: Scope, operands: tuple[int, ...]) -> tuple[int, ...]:
    return (scope.entry, *operands) if scope.depth > 0 else operands


def note_risks(terms: Terms, term: int, op: Operation, regions: Iterable[Closed], scope: Scope) -> Iterable[int]:
    """What runs in the regions of an operation and may fail, does so if and when the operation runs them.

    Returns the terms that stand for it.
    """
    found = list[int]()
    for region in regions:
        if region.at_risk is not None:
            body, captures = region.at_risk
            found.append(terms.term(Head("risk", name_of(op), bodies=(body,)), (term, *captures)))
    scope.risky.update(dict.fromkeys(found))
    return found
