"""Terms: hash-consed expressions that represent the values of a program. Terms with equal ids represent equal values.

A *term* is a head (operation name, attributes, result types, bodies) applied to operands, which are the ids of other
terms. The head contains every part of an operation (`operation_parts.py`) except the operands. Parts that cannot be
compared raise `Refusal`.

    %1 = stablehlo.tanh %0                              tanh(#0)
    %2, %3 = custom_call %1                             #5: custom_call(state, #1); %2, %3 are result 0 and 1 of #5

Lambda lifting turns a region into a closed *body*: expressions over the arguments of the region, with positions instead
of names. A value that does not depend on these arguments is a *capture*: its id becomes an additional operand of the
operation. A body therefore has no free names at any nesting depth. While a region is open, its arguments are fresh
terms, which do not occur in the closed body.

    while(%c = %init) body { %y = add %c, %x; return %y }       while[body: entries = (argument, state, capture,
                                                                add(0, 2)), roots = (3, 1)](#init, #x)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from xdsl.dialects.builtin import IntegerAttr, TupleType, i32
from xdsl.ir import Attribute, Operation, SSAValue

from ...support.diagnostics import Refusal
from ...support.operations import name_of
from ..operations.operation_parts import properties_of
from .attribute_keys import AttributeKeys, OpaqueAttributeError


class Heads:
    """Makes the heads of terms. Every method raises `Refusal` for a part that cannot be compared."""

    def __init__(self, keys: AttributeKeys):
        self._keys = keys

    def of(self, kind: Kind, op: Operation, attributes: Mapping[str, Attribute], bodies: tuple[int, ...] = ()) -> Head:
        types = self.types(op.results, op)
        # For other kinds of terms, the operands determine their types.
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
        """Return pairs of the name and the id of each attribute, sorted by name."""
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
        kind: The kind of term. A `parameter` is an argument of a function. A `variable` is a fresh term that represents
            an argument of a region or an iteration number. An `effect` has the state before it as its first operand,
            and the term represents the state after it. A `risk` is an operation in a region that may fail, and
            `endless` a loop that may not terminate (`risks.py`). `loop`, `history`, `index`, `pattern`, `until`,
            `branch` and `rows` belong to the rules for loops (`loop_rules`); `devices`, `part` and `whole` belong to
            per-device bodies (`per_device.py`).
        name: Name of the operation, or a string that distinguishes terms of the same kind.
        attributes: Name and id of each attribute.
        types: Ids of the result types.
        bodies: Ids of the bodies of the regions.
        properties: Names of the attributes that are properties; only for unregistered operations.
        operand_types: Ids of the operand types; only for effects, since otherwise the operands determine them.
        numbers: Integers whose meaning depends on the kind. `result`: the index of the result. `risk`: the index of the
            region, and the number of regions. `index`: the scale of each operand, then the offset. Fresh terms: a
            unique id.
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
    """A closed region. Values in it are identified by their positions instead of names.

    Positions 0 to n - 1 are the n arguments, and position n is the state at the start of the region. The following
    positions are the entries, in order of discovery.

    Attributes:
        types: Ids of the argument types.
        entries: For each position after the state: the id of a head and the positions that it reads, or None for a
            capture.
        roots: Positions of the operands of the terminator, then of the final state.
        preserved: Positions of terms that must be preserved even if no root depends on them.
        ending: Id of the head of the terminator, or -1.
    """

    types: tuple[int, ...]
    entries: tuple[tuple[int, tuple[int, ...]] | None, ...]
    roots: tuple[int, ...]
    preserved: tuple[int, ...]
    ending: int


NO_BLOCK = RegionTerm((), (), (), (), -1)


class OpenRegion(NamedTuple):
    """A region whose operations are translated to terms, before it is closed over its captures to form a body.

    Attributes:
        arguments: Terms of the arguments, then of the state at the start of the region.
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
"""The id of a body, and the terms of its captures."""


class ClosedRegion(NamedTuple):
    """A region that has been closed to a body.

    Attributes:
        inside: The open region; None if the region has no block.
        body: Id of the closed body.
        captures: Terms of the captures of the body.
        risks: Closures of the operations in the region that may fail or not terminate.
    """

    inside: OpenRegion | None
    body: int
    captures: tuple[int, ...]
    risks: tuple[Closure, ...] = ()


class Terms:
    """A table of hash-consed heads, terms and bodies. Both programs share one table, so equal terms have equal ids.

    Four tables serve only to explain differences. `origins` maps each term to its first operation, and `open_regions`
    to its regions; both contain one dictionary for each program. `open_bodies` maps each body to the first region that
    was closed to it. `argument_indices` maps the terms of region arguments to their indices.
    """

    def __init__(self, functions: frozenset[str]):
        self.attributes = AttributeKeys(functions)
        self.heads: list[Head] = []
        self.terms: list[tuple[int, tuple[int, ...]]] = []
        self.argument_indices: dict[int, int] = {}
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
        """Return the id of the term with this head and these operands.

        `depth`: the nesting depth of a term without operands; 0 outside all regions. The depth of any other term is the
        largest depth of its operands.
        """
        return self.apply(self.head(head), operands, depth)

    def apply(self, head: int, operands: tuple[int, ...], depth: int = 0) -> int:
        """Return the id of the term with these operands whose head has the id `head`. See `term` for `depth`."""
        key = head, operands
        number = self._term_numbers.setdefault(key, len(self.terms))
        if number == len(self.terms):
            self.terms.append(key)
            depths = self._depths
            depths.append(max([depths[operand] for operand in operands]) if operands else depth)
        return number

    def fresh(self, kind: Kind, types: tuple[int, ...], depth: int) -> int:
        """Return a fresh term, which equals no other term. The kind of the term is `variable` for an argument of a
        region at this depth, and `state` for the state at the start of the region."""
        return self.term(Head(kind, "", types=types, numbers=(len(self.terms),)), depth=depth)

    def fresh_arguments(self, types: Sequence[int], depth: int) -> list[int]:
        """Return a fresh term for each argument of a region and record the argument's index for explanations."""
        arguments = [self.fresh("variable", (type_,), depth) for type_ in types]
        self.argument_indices.update(zip(arguments, range(len(arguments)), strict=True))
        return arguments

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
        """Return the type ids of a term. For one result of an operation with several results, return only the type of
        this result."""
        head = self.head_of(number)
        if head.kind != "result":
            return head.types[:1] if head.kind == "whole" else head.types
        types, (index,) = self.head_of(self.operands_of(number)[0]).types, head.numbers
        return types[index : index + 1]

    def close(self, inside: OpenRegion, types: tuple[int, ...], ending: int, depth: int) -> tuple[int, tuple[int, ...]]:
        """Close a region: build its body and collect its captures.

        A term is part of the body if and only if its depth is at least `depth`. Such a term depends on the arguments of
        this region, because deeper regions are already closed.

        Args:
            inside: The region as terms.
            types: Ids of the argument types.
            ending: Id of the head of the terminator, or -1.
            depth: Nesting depth of the region.

        Returns:
            The id of the body, and the captures in the order of their positions.
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
    """Return the head of a term that represents result `index` of an operation with several results."""
    return Head("result", "", numbers=(index,))


def leaves(terms: Terms, number: int, type_: Attribute) -> list[int]:
    """Return the terms of the elements of a tuple, with nested tuples flattened. For any other value, return its own
    term."""
    if not isinstance(type_, TupleType):
        return [number]
    elements = [_element(terms, number, index, part) for index, part in enumerate(type_.types)]
    return [leaf for element, part in zip(elements, type_.types, strict=True) for leaf in leaves(terms, element, part)]


def _element(terms: Terms, number: int, index: int, type_: Attribute) -> int:
    """Return the term of element `index` of a tuple. If a `stablehlo.tuple` made the tuple, the element is the operand
    of that operation at `index`."""
    head = terms.head_of(number)
    if (head.kind, head.name, head.attributes, head.bodies) == ("operation", TUPLE, (), ()):
        return terms.operands_of(number)[index]
    attributes = (("index", terms.attributes.number(IntegerAttr(index, i32))),)
    return terms.term(Head("operation", ELEMENT, attributes, (terms.attributes.number(type_),)), (number,))
