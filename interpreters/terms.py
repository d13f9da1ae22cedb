"""Terms: the expressions that compute values, hash-consed in a table, so that equal numbers mean equal values.

A *term* is a head (operation name, attributes, result types, bodies) applied to the numbers of its operands.

    %1 = stablehlo.tanh %0                              tanh(#0)
    %2, %3 = custom_call %1                             #5: custom_call(state, #1); %2, %3 are result 0 and 1 of #5

A region becomes a closed *body* (lambda lifting): its expressions over its own arguments, with positions instead of
names. A value that does not depend on these arguments is a *capture*: it is passed by number, as one more operand of
the operation. So a body has no free names at any nesting depth: the arguments of a region get fresh numbers, which
disappear when the region is closed.

    while(%c = %init) body { %y = add %c, %x; return %y }       while[body: entries = (argument, state, capture,
                                                                add(0, 2)), roots = (3, 1)](#init, #x)
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from xdsl.ir import Operation

from .attribute_keys import AttributeKeys

Side = Literal[0, 1]
Kind = Literal[
    "operation",
    "effect",
    "result",
    "parameter",
    "bound",
    "state",
    "attributed",
    "risk",
    "loop",
    "history",
    "index",
    "place",
    "part",
    "whole",
    "pattern",
    "branch",
    "rows",
]
Attributes = tuple[tuple[str, int], ...]
ENDLESS = "may not end"
"""The name of a `risk` term that includes the effects before it."""


class Head(NamedTuple):
    """A term without its operands. `types` and the values of `attributes` are numbers too.

    `properties`: the names of the attributes that are properties, for operations that distinguish them.
    `operand_types`: set for effects only. An `effect` reads the state before it as its first operand, and is itself the
    state after it. `loop`, `history`, `index`, `pattern`, `branch` and `rows` belong to the rules for loops
    (`loop_rules`), `place`, `part` and `whole` to per-device bodies (`per_device.py`).
    """

    kind: Kind
    name: str
    attributes: Attributes = ()
    types: tuple[int, ...] = ()
    bodies: tuple[int, ...] = ()
    properties: tuple[str, ...] = ()
    operand_types: tuple[int, ...] = ()


class RegionTerm(NamedTuple):
    """A region without names: positions 0 to n - 1 are its n arguments, n is the state at its start, then come the
    entries in order of discovery: a capture (None), or a head with the positions it reads."""

    types: tuple[int, ...]
    entries: tuple[tuple[int, tuple[int, ...]] | None, ...]
    roots: tuple[int, ...]  # operands of the terminator, then the end state
    kept: tuple[int, ...]  # terms that must occur besides
    ending: int  # the head of the terminator


NO_BLOCK = RegionTerm((), (), (), (), -1)


class Inside(NamedTuple):
    """A region as terms, before it is closed: its arguments, then its first state; its results, then its end state.

    `kept`: terms that must occur even if nothing reads them.
    """

    bound: tuple[int, ...]
    roots: tuple[int, ...]
    kept: tuple[int, ...] = ()

    @property
    def has_effects(self) -> bool:
        return self.bound[-1] != self.roots[-1]


Closure = tuple[int, tuple[int, ...]]
"""A body and its captures."""


class Closed(NamedTuple):
    """A region as terms, its body and its captures; `risks`: closures of its terms that run and may fail."""

    inside: Inside | None
    body: int
    captures: tuple[int, ...]
    risks: tuple[Closure, ...] = ()


class Terms:
    """The table. `origins` (first operation of each term) and `insides` (its regions), by side, serve explanations."""

    def __init__(self, functions: frozenset[str]):
        self.attributes = AttributeKeys(functions)
        self.heads: list[Head] = []
        self.terms: list[tuple[int, tuple[int, ...]]] = []
        self.origins: tuple[dict[int, Operation], dict[int, Operation]] = ({}, {})
        self.insides: tuple[dict[int, tuple[Inside, ...]], dict[int, tuple[Inside, ...]]] = ({}, {})
        self._depths: list[int] = []
        self._head_numbers: dict[Head, int] = {}
        self._term_numbers: dict[tuple[int, tuple[int, ...]], int] = {}
        self._body_numbers: dict[RegionTerm, int] = {}
        self.bodies: list[RegionTerm] = []

    def head(self, head: Head) -> int:
        number = self._head_numbers.setdefault(head, len(self.heads))
        if number == len(self.heads):
            self.heads.append(head)
        return number

    def term(self, head: Head, operands: tuple[int, ...] = (), depth: int = 0) -> int:
        """The number of the term. `depth`, only for terms without operands, is 0 outside of all regions."""
        key = self.head(head), operands
        number = self._term_numbers.setdefault(key, len(self.terms))
        if number == len(self.terms):
            self.terms.append(key)
            self._depths.append(max((self._depths[operand] for operand in operands), default=depth))
        return number

    def bound(self, kind: Kind, types: tuple[int, ...], depth: int) -> int:
        """A fresh value, equal to no other one: an argument of a region at this depth, or the state at its start."""
        return self.term(Head(kind, f"number {len(self.terms)}", types=types), depth=depth)

    def body(self, body: RegionTerm) -> int:
        number = self._body_numbers.setdefault(body, len(self.bodies))
        if number == len(self.bodies):
            self.bodies.append(body)
        return number

    def depth_of(self, number: int) -> int:
        """The depth of the innermost region on whose arguments the term depends; 0 if there is none."""
        return self._depths[number]

    def head_of(self, number: int) -> Head:
        return self.heads[self.terms[number][0]]

    def operands_of(self, number: int) -> tuple[int, ...]:
        return self.terms[number][1]

    def types_of(self, number: int) -> tuple[int, ...]:
        """The types of a term, usually one; for one of several results its own type."""
        head = self.head_of(number)
        if head.kind != "result":
            return head.types[:1] if head.kind == "whole" else head.types
        types, index = self.head_of(self.operands_of(number)[0]).types, int(head.name)
        return types[index : index + 1]

    def close(self, inside: Inside, types: tuple[int, ...], ending: int, depth: int) -> tuple[int, tuple[int, ...]]:
        """The body of a region at this depth, and its captures.

        A term depends on the region's arguments exactly if it has at least its depth: deeper regions are closed.
        """
        positions = {number: position for position, number in enumerate(inside.bound)}
        entries: list[tuple[int, tuple[int, ...]] | None] = []
        captures: list[int] = []
        pending = list(reversed(inside.roots + inside.kept))
        while pending:
            number = pending[-1]
            if number in positions:
                pending.pop()
                continue
            entry = None
            if self._depths[number] >= depth:
                head, operands = self.terms[number]
                if missing := [operand for operand in operands if operand not in positions]:
                    pending.extend(reversed(missing))
                    continue
                entry = head, tuple(positions[operand] for operand in operands)
            else:
                captures.append(number)
            positions[number] = len(positions)
            entries.append(entry)
        roots = tuple(positions[root] for root in inside.roots)
        kept = tuple(positions[number] for number in inside.kept)
        return self.body(RegionTerm(types, tuple(entries), roots, kept, ending)), tuple(captures)
