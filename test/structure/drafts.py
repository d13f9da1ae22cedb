"""Mutants under construction: edits of the tree, followed by edits of the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from .edits import aliases, attributes, functions, harmless, operands, region_edits, snippets, text, whole_operations
from .edits.sites import Edits
from .edits.text import TextEdits
from .judge import Answer
from .programs import Base
from .tree import TreeError, read
from .writing import written

TREE_EDITS: Edits = (
    attributes.EDITS
    | operands.EDITS
    | whole_operations.EDITS
    | region_edits.EDITS
    | functions.EDITS
    | snippets.EDITS
    | harmless.EDITS
)
TEXT_EDITS: TextEdits = text.EDITS | aliases.EDITS
SETTINGS = (
    *["snippet"] * 6,
    *harmless.EDITS,
    *attributes.EDITS,
    *("function positions", "terminator attribute", "region add", "function call"),
)
PRELUDE = ("alias first", "alias first", "alias first", "alias chain")
ALIKE = 4
"""Seeds in a row that have one setting."""
_TRIES = 5
_CANDIDATES = 3


@dataclass(frozen=True)
class Changed:
    """Text with the edits that produced it, by name and in words."""

    text: str
    edits: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


@dataclass
class Draft:
    """Mutant under construction."""

    base: Base
    common: Random
    """For the setting, which a few seeds in a row have in common: it is read once."""
    rng: Random
    before: Changed
    afters: list[Changed] = field(default_factory=list[Changed])
    """To choose from; none where only the text will be changed."""

    def __post_init__(self) -> None:
        self.wild = self.rng.random() < 0.2
        self.in_text = self.rng.random() < 0.4

    def texts(self) -> list[str]:
        return [self.before.text, *(after.text for after in self.afters)]

    def choose(self, answers: Sequence[Answer]) -> int:
        """Return the index of the variant in `afters` to continue with, given the judge's answers."""
        good = [index for index, answer in enumerate(answers) if answer.text is not None]
        return good[0] if good and not self.wild else 0


def edited_trees(seed: int, bases: Sequence[Base]) -> Draft:
    common = Random(f"setting {seed // ALIKE}")
    base = common.choices(bases, [actual.weight for actual in bases])[0]
    draft = Draft(base, common, Random(seed), Changed(base.text))
    for _ in range(common.choice([0, 0, 0, 1, 1, 2])):
        draft.before = edited(draft.before, SETTINGS, common)
    if draft.in_text:
        return draft
    rng = draft.rng
    count = rng.choice([1, 1, 1, 2, 3])
    for _ in range(_CANDIDATES):
        after = Changed(draft.before.text)
        for _ in range(count):
            after = edited(after, tuple(TREE_EDITS), rng)
        draft.afters.append(after)
    return draft


def edited(changed: Changed, names: Sequence[str], rng: Random) -> Changed:
    """Apply the first of a few tree edits that finds a position, if one does."""
    try:
        program = read(changed.text)
    except TreeError:
        # An edit before this one has made a text that is no tree.
        return changed
    for _ in range(_TRIES):
        name = rng.choice(names)
        if (result := TREE_EDITS[name](program, rng)) is not None:
            return Changed(written(program), (*changed.edits, name), (*changed.words, result))
    return changed


def edit_text(draft: Draft) -> None:
    rng = draft.rng
    if not draft.in_text:
        if rng.random() < 0.1:
            draft.afters = [edited_text(draft.afters[0], tuple(TEXT_EDITS), rng) for _ in range(_CANDIDATES)]
        return
    count = rng.choice([1, 1, 1, 2])
    for _ in range(_CANDIDATES):
        after = Changed(draft.before.text)
        for _ in range(count):
            after = edited_text(after, tuple(TEXT_EDITS), rng)
        draft.afters.append(after)


def edited_text(changed: Changed, names: Sequence[str], rng: Random) -> Changed:
    for _ in range(_TRIES):
        name = rng.choice(names)
        if (result := TEXT_EDITS[name](changed.text, rng)) is not None:
            return Changed(result[1], (*changed.edits, name), (*changed.words, result[0]))
    return changed
