"""Terms: hash-consed expressions that represent the values of a program. Equal numbers mean equal values.

A *term* is a head (operation name, attributes, result types, bodies) applied to the numbers of its operands. The head
holds every part of an operation (`operation_parts.py`) except the operands; a part that cannot be compared is refused.

    %1 = stablehlo.tanh %0                              tanh(#0)
    %2, %3 = custom_call %1                             #5: custom_call(state, #1); %2, %3 are result 0 and 1 of #5

A region becomes a closed *body* by lambda lifting: its expressions over its own arguments, with positions instead of
names. A value that does not depend on these arguments is a *capture*: it is passed by number, as one more operand of
the operation. A body therefore has no free names at any nesting depth: the arguments of a region get fresh numbers,
which disappear when the region is closed.

    while(%c = %init) body { %y = add %c, %x; return %y }       while[body: entries = (argument, state, capture,
                                                                add(0, 2)), roots = (3, 1)](#init, #x)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from xdsl.dialects.builtin import IntegerAttr, TupleType, i32
from xdsl.ir import Attribute, Operation, SSAValue

from ..support.diagnostics import Refusal
from ..support.operations import name_of
from .attribute_keys import AttributeKeys, OpaqueAttributeError
from .operation_parts import properties_of


class Heads:
    """Constructor of heads. Every method raises `Refusal` for a part that cannot be compared."""

    def __init__(self, keys: AttributeKeys):
        self._keys = keys

    def of(self, kind: Kind, op: Operation, attributes: Mapping[str, Attribute], bodies: tuple[int, ...] = ()) -> Head:
        types = self.types(op.results, op)
        # For other kinds the operand types follow from the operand terms.
        operand_types = self.types(op.operands, op) if kind == "effect" else ()
        return Head(
            kind=kind,
            name=name_of(op),
            attributes=self.attributes(op, attributes),
            types=types,
            bodies=bodies,
            properties=properties_of(op),
            operand_types=operand_types,
        )

    def attributes(self, op: Operation, attributes: Mapping[str, Attribute]) -> Attributes:
        """Return the numbers of the attributes, sorted by name."""
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
    "variable",
    "state",
    "attributed",
    "risk",
    "endless",
    "loop",
    "history",
    "index",
    "devices",
    "part",
    "whole",
    "pattern",
    "until",
    "branch",
    "rows",
]
Attributes = tuple[tuple[str, int], ...]


class Head(NamedTuple):
    """A term without its operands.

    Attributes:
        kind: The kind of term. `parameter`: an argument of a function. `variable`: a fresh term, for an argument of a
            region or an iteration number. `effect`: its first operand is the state before it, and the term is the state
            after it. `risk` is an operation that may fail in a region, and `endless` a loop that may not terminate,
            after the effects before it (`risks.py`). `loop`, `history`, `index`, `pattern`, `until`, `branch` and
            `rows` belong to the rules for loops (`loop_rules`), `devices`, `part` and `whole` to per-device bodies
            (`per_device.py`).
        name: Name of the operation, or a string that distinguishes terms of the same kind.
        attributes: Name and number of each attribute.
        types: Numbers of the result types.
        bodies: Numbers of the bodies of the regions.
        properties: Names of the attributes that are properties, for operations that distinguish the two.
        operand_types: Numbers of the operand types; for effects only, since otherwise the operands determine them.
        numbers: Integers whose meaning depends on the kind. `result`: its index. `risk`: the index of the region, and
            the number of regions. `index`: the scale of each operand, and the offset. Fresh terms: a unique number.
    """

    kind: Kind
    name: str
    attributes: Attributes = ()
    types: tuple[int, ...] = ()
    bodies: tuple[int, ...] = ()
    properties: tuple[str, ...] = ()
    operand_types: tuple[int, ...] = ()
    numbers: tuple[int, ...] = ()


class RegionTerm(NamedTuple):
    """A closed region, in which a value is identified by its position instead of a name.

    Positions 0 to n - 1 are the n arguments, and position n is the state at the start. The positions after it belong to
    the entries, in order of discovery.

    Attributes:
        types: Numbers of the argument types.
        entries: For each position after the state, a head and the positions that it reads, or None for a capture.
        roots: Positions of the terminator's operands, then of the final state.
        preserved: Positions of terms that must be preserved even if no root depends on them.
        ending: Number of the terminator's head.
    """

    types: tuple[int, ...]
    entries: tuple[tuple[int, tuple[int, ...]] | None, ...]
    roots: tuple[int, ...]
    preserved: tuple[int, ...]
    ending: int


NO_BLOCK = RegionTerm((), (), (), (), -1)


class OpenRegion(NamedTuple):
    """A region as terms, before it is closed.

    Attributes:
        arguments: Terms of the arguments, then of the state at the start.
        roots: Terms of the results, then of the final state.
        preserved: Terms that must be preserved even if no root depends on them.
    """

    arguments: tuple[int, ...]
    roots: tuple[int, ...]
    preserved: tuple[int, ...] = ()

    @property
    def has_effects(self) -> bool:
        return self.arguments[-1] != self.roots[-1]


Closure = tuple[int, tuple[int, ...]]
"""A body and its captures."""


class ClosedRegion(NamedTuple):
    """A region in three forms: its open terms (None without a block), the number of its closed body, and its captures.

    `risks`: closures of the terms that run in it and may fail or not terminate.
    """

    inside: OpenRegion | None
    body: int
    captures: tuple[int, ...]
    risks: tuple[Closure, ...] = ()


class Terms:
    """Table of hash-consed heads, terms and bodies. Both programs share one table, so equal values get equal numbers.

    `origins` (first operation of each term) and `open_regions` (regions of each term), one for each program, and
    `open_bodies` (the first region that was closed to each body) only serve to explain differences.
    """

    def __init__(self, functions: frozenset[str]):
        self.attributes = AttributeKeys(functions)
        self.heads: list[Head] = []
        self.terms: list[tuple[int, tuple[int, ...]]] = []
        self.origins: tuple[dict[int, Operation], dict[int, Operation]] = ({}, {})
        self.open_regions: tuple[dict[int, tuple[OpenRegion, ...]], dict[int, tuple[OpenRegion, ...]]] = ({}, {})
        self.open_bodies: dict[int, OpenRegion] = {}
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
        """Return the number of a term.

        `depth`: nesting depth of a term without operands; 0 outside all regions. Other terms have the largest depth
        of their operands.
        """
        return self.apply(self.head(head), operands, depth)

    def apply(self, head: int, operands: tuple[int, ...], depth: int = 0) -> int:
        """Return the number of the term whose head has the number `head`; see `term`."""
        key = head, operands
        number = self._term_numbers.setdefault(key, len(self.terms))
        if number == len(self.terms):
            self.terms.append(key)
            depths = self._depths
            depths.append(max([depths[operand] for operand in operands]) if operands else depth)
        return number

    def fresh(self, kind: Kind, types: tuple[int, ...], depth: int) -> int:
        """Return a fresh term that equals no other: an argument of a region at this depth (`variable`), or the state at
        its start (`state`)."""
        return self.term(Head(kind, "", types=types, numbers=(len(self.terms),)), depth=depth)

    def body(self, body: RegionTerm) -> int:
        number = self._body_numbers.setdefault(body, len(self.bodies))
        if number == len(self.bodies):
            self.bodies.append(body)
        return number

    def depth_of(self, number: int) -> int:
        """Return the depth of the innermost region on whose arguments the term depends; 0 if it depends on none."""
        return self._depths[number]

    def head_of(self, number: int) -> Head:
        return self.heads[self.terms[number][0]]

    def operands_of(self, number: int) -> tuple[int, ...]:
        return self.terms[number][1]

    def types_of(self, number: int) -> tuple[int, ...]:
        """Return the numbers of a term's types; for a single result of a multi-result operation, only its own type."""
        head = self.head_of(number)
        if head.kind != "result":
            return head.types[:1] if head.kind == "whole" else head.types
        types, (index,) = self.head_of(self.operands_of(number)[0]).types, head.numbers
        return types[index : index + 1]

    def close(self, inside: OpenRegion, types: tuple[int, ...], ending: int, depth: int) -> tuple[int, tuple[int, ...]]:
        """Close a region at this depth: number its body, and collect its captures.

        A term is part of the body if and only if its depth is at least `depth`. Deeper regions are closed already, so
        such a term depends on the arguments of this region.

        Args:
            inside: The region as terms.
            types: Numbers of the argument types.
            ending: Number of the terminator's head, or -1.
            depth: Nesting depth of the region.

        Returns:
            The number of the body, and the captures, in the order of their positions.
        """
        positions = {number: position for position, number in enumerate(inside.arguments)}
        entries: list[tuple[int, tuple[int, ...]] | None] = []
        captures: list[int] = []
        pending = list(reversed(inside.roots + inside.preserved))
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
        preserved = tuple(positions[number] for number in inside.preserved)
        body = self.body(RegionTerm(types, tuple(entries), roots, preserved, ending))
        self.open_bodies.setdefault(body, inside)
        return body, tuple(captures)


TUPLE, ELEMENT = "stablehlo.tuple", "stablehlo.get_tuple_element"


def result_head(index: int) -> Head:
    """Return the head of result `index` of an operation with several results."""
    return Head("result", "", numbers=(index,))


def leaves(terms: Terms, number: int, type_: Attribute) -> list[int]:
    """Return the terms of the elements of a value, with nested tuples flattened."""
    if not isinstance(type_, TupleType):
        return [number]
    elements = [_element(terms, number, index, part) for index, part in enumerate(type_.types)]
    return [leaf for element, part in zip(elements, type_.types, strict=True) for leaf in leaves(terms, element, part)]


def _element(terms: Terms, number: int, index: int, type_: Attribute) -> int:
    """Return the term of element `index` of a tuple, or the operand of `stablehlo.tuple` that it equals."""
    head = terms.head_of(number)
    if (head.kind, head.name, head.attributes, head.bodies) == ("operation", TUPLE, (), ()):
        return terms.operands_of(number)[index]
    attributes = (("index", terms.attributes.number(IntegerAttr(index, i32))),)
    return terms.term(Head("operation", ELEMENT, attributes, (terms.attributes.number(type_),)), (number,))
