"""Attributes that are neither dropped nor understood, as terms around values and states: those of calls, groups and the
like, which are seen through."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from xdsl.ir import Attribute, Operation

from .anatomy import position_attributes
from .heads import Heads
from .terms import Head, Terms

Part = tuple[str, Operation, Mapping[str, Attribute]]
"""What it is, and which of its attributes count."""


class Wrapping:
    def __init__(self, terms: Terms, heads: Heads):
        self._terms = terms
        self._heads = heads

    def around(self, *parts: Part, always: bool = False) -> list[Head]:
        """Heads of terms for the parts that have attributes; for each part with `always`."""
        return [
            Head("attributed", what, self._heads.attributes(op, attributes))
            for what, op, attributes in parts
            if attributes or always
        ]

    def wrapped(self, around: Sequence[Head], numbers: Sequence[int]) -> list[int]:
        wrapped = list(numbers)
        for head in around:
            wrapped = [self._terms.term(head, (number,)) for number in wrapped]
        return wrapped

    def each_wrapped(self, what: str, function: Operation, name: str, numbers: Sequence[int]) -> list[int]:
        """The values, each with the attributes that the function called gives its position."""
        extras = position_attributes(function, name, len(numbers))
        pairs = zip(numbers, extras, strict=True)
        return [self.wrapped(self.around((what, function, extra)), [number])[0] for number, extra in pairs]


def into(around: Sequence[Head]) -> list[Head]:
    """What lies around a call on the way in, which is not what lies around it on the way out."""
    return [head._replace(name=f"{head.name}, entered") for head in around]


def without(attributes: Mapping[str, Attribute], names: Collection[str]) -> dict[str, Attribute]:
    return {name: value for name, value in attributes.items() if name not in names}
