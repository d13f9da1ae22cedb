"""Terms: the expressions that compute values, hash-consed in a table, so that equal numbers mean equal values.

The head of a term holds all parts of an operation except its operands, as numbers.

A *term* is a head (operation name, attributes, result types, bodies) applied to the numbers of its operands.

    %1 = stablehlo.tanh %0                              tanh(#0)
    %2, %3 = custom_call %1                             #5: custom_call(state, #1); %2, %3 are result 0 and 1 of #5

A region becomes a closed *body* (lambda lifting): its expressions over its own arguments, with positions instead of
names. A value that does not depend on these arguments is a *capture*: it is passed by number, as one more operand of
the operation. So a body has no free names at any nesting depth: the arguments of a region get fresh numbers, which
disappear when the region is closed.

    while(%c = %init) body { %y = add %c, %x; return %y }       while[body: entries = (argument, state, capture,
                                                                add(0, 2)), roots = (3, 1)](#init, #x)

    name, attributes, properties, types of the results, bodies of the regions; of effects also the types of the operands

All parts of an operation (`operation_parts.py`) enter terms here; parts that cannot be compared are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from xdsl.dialects.builtin import IntegerAttr, TupleType, i32
from xdsl.ir import Attribute, Operation, SSAValue

from ..support.diagnostics import Refusal
from .attribute_keys import AttributeKeys, OpaqueAttributeError
from .operation_parts import name_of, properties_of


class Heads:
    """Numbers the parts of heads. Every method raises `Refusal` for a part that cannot be compared."""

    def __init__(self, keys: AttributeKeys):
        self._keys = keys

    def of(self, kind: Kind, op: Operation, attributes: Mapping[str, Attribute], bodies: tuple[int, ...] = ()) -> Head:
        types = self.types(op.results, op)
        # For other kinds the operand types follow from the operand terms.
        operand_types = self.types(op.operands, op) if kind == "effect" else ()
        return Head(kind, name_of(op), self.attributes(op, attributes), types, bodies, properties_of(op), operand_types)

    def attributes(self, op: Operation, attributes: Mapping[str, Attribute]) -> Attributes:
        """Number the attributes, in the order of their names."""
        try:
            return tuple((name, self._keys.number(attributes[name])) for name in sorted(attributes))
        except OpaqueAttributeError as error:
            raise Refusal(op, f"{name_of(op)} has an attribute that cannot be compared: {error}") from None

    def types(self, values: Iterable[SSAValue], op: Operation) -> tuple[int, ...]:
        return self.numbers([value.type for value in values], op)

    def numbers(self, types: Iterable[Attribute], op: Operation) -> tuple[int, ...]:
        try:
            return tuple([self._keys.number(type_) for type_ in types])
        except OpaqueAttributeError as error:
            raise Refusal(op, f"{name_of(op)} has a type that cannot be compared: {error}") from None


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
        """Return the number of the term. `depth`, only for terms without operands, is 0 outside of all regions."""
        key = self.head(head), operands
        number = self._term_numbers.setdefault(key, len(self.terms))
        if number == len(self.terms):
            self.terms.append(key)
            self._depths.append(max((self._depths[operand] for operand in operands), default=depth))
        return number

    def bound(self, kind: Kind, types: tuple[int, ...], depth: int) -> int:
        """Return a fresh value, equal to no other one: an argument of a region at this depth, or the state at its
        start."""
        return self.term(Head(kind, f"number {len(self.terms)}", types=types), depth=depth)

    def body(self, body: RegionTerm) -> int:
        number = self._body_numbers.setdefault(body, len(self.bodies))
        if number == len(self.bodies):
            self.bodies.append(body)
        return number

    def depth_of(self, number: int) -> int:
        """Return the depth of the innermost region on whose arguments the term depends; 0 if there is none."""
        return self._depths[number]

    def head_of(self, number: int) -> Head:
        return self.heads[self.terms[number][0]]

    def operands_of(self, number: int) -> tuple[int, ...]:
        return self.terms[number][1]

    def types_of(self, number: int) -> tuple[int, ...]:
        """Return the types of a term, usually one; for one of several results its own type."""
        head = self.head_of(number)
        if head.kind != "result":
            return head.types[:1] if head.kind == "whole" else head.types
        types, index = self.head_of(self.operands_of(number)[0]).types, int(head.name)
        return types[index : index + 1]

    def close(self, inside: Inside, types: tuple[int, ...], ending: int, depth: int) -> tuple[int, tuple[int, ...]]:
        """Return the body of a region at this depth, and its captures.

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


TUPLE, ELEMENT = "stablehlo.tuple", "stablehlo.get_tuple_element"


def leaf_types(types: Iterable[Attribute]) -> list[Attribute]:
    """Return the types with tuples flattened."""
    return [leaf for type_ in types for leaf in (leaf_types(type_.types) if isinstance(type_, TupleType) else [type_])]


def leaves(terms: Terms, number: int, type_: Attribute) -> list[int]:
    """Return the terms of the elements of a value of this type."""
    if not isinstance(type_, TupleType):
        return [number]
    elements = [_element(terms, number, index, part) for index, part in enumerate(type_.types)]
    return [leaf for element, part in zip(elements, type_.types, strict=True) for leaf in leaves(terms, element, part)]


def _element(terms: Terms, number: int, index: int, type_: Attribute) -> int:
    """Return the value that a tuple was made of, or the term of `stablehlo.get_tuple_element`."""
    head = terms.head_of(number)
    if (head.kind, head.name, head.attributes, head.bodies) == ("operation", TUPLE, (), ()):
        return terms.operands_of(number)[index]
    attributes = (("index", terms.attributes.number(IntegerAttr(index, i32))),)
    return terms.term(Head("operation", ELEMENT, attributes, (terms.attributes.number(type_),)), (number,))
