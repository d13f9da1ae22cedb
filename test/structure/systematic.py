"""Every tree edit at every position in every program, once, to cover what random choices miss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, NamedTuple, TypeVar

from .drafts import TREE_EDITS, Changed, Draft
from .programs import Base
from .tree import read
from .writing import written

T = TypeVar("T")


class Site(NamedTuple):
    """First choice of an edit, which determines its place."""

    base: int
    edit: str
    number: int


class FirstChosen(Random):
    """Random generator whose first choice is fixed. `places`: the number of alternatives it had."""

    def __init__(self, number: int, seed: int):
        super().__init__(seed)
        self._number, self.places = number, 0

    def choice(self, seq: Any) -> Any:
        if self.places:
            return super().choice(seq)
        self.places = len(seq)
        return seq[self._number % len(seq)]


def every_site(bases: Sequence[Base]) -> Iterator[Site]:
    for index, base in enumerate(bases):
        for name, edit in TREE_EDITS.items():
            first = FirstChosen(0, 0)
            result = edit(read(base.text), first)
            # An edit without a choice, such as of an order, is one place.
            yield from (Site(index, name, number) for number in range(first.places or int(result is not None)))


def edited_at(site: Site, seed: int, bases: Sequence[Base]) -> Draft:
    """Return the draft edited at a site; further choices depend on the seed."""
    base = bases[site.base]
    program = read(base.text)
    result = TREE_EDITS[site.edit](program, FirstChosen(site.number, seed))
    draft = Draft(base, Random(f"form of {base.name}"), Random(seed), Changed(base.text))
    draft.wild, draft.in_text = True, False
    draft.afters = [Changed(written(program), (site.edit,), (result or "nothing",))]
    return draft
