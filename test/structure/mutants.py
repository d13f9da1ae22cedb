"""From a seed to two programs: one, and the same with something changed in its structure.

1. Edits of the tree: a setting that both programs have; then the change, in several ways to choose from.
2. The judge prints them in one of MLIR's forms: pretty or generic, with locations or without.
3. Edits of the text, in several ways to choose from.

Where there is a choice, one that the judge can read is taken: most random edits leave no program. Not so for one seed
in five, the `wild` ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from .edits import aliases, attributes, functions, harmless, operands, region_edits, snippets, text, whole_operations
from .edits.sites import Edits
from .edits.text import TextEdits
from .judge import Answer, Judge, Task, canonical, form
from .programs import Base
from .spelling import spelled_out
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
    """A text and what was done to make it: names of edits, and in words."""

    text: str
    edits: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mutant:
    """`setting`: what was done to make `before`. `means`: what the judge reads in the two texts."""

    seed: int
    base: str
    setting: Changed
    change: Changed
    means: tuple[Answer, Answer]

    @property
    def before(self) -> str:
        return self.setting.text

    @property
    def after(self) -> str:
        return self.change.text


@dataclass
class Draft:
    """A mutant in the making."""

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
        """Which of the `afters` to go on with, by what the judge says of each."""
        good = [index for index, answer in enumerate(answers) if answer.text is not None]
        return good[0] if good and not self.wild else 0


def mutants(seeds: Sequence[int], bases: Sequence[Base], judge: Judge) -> list[Mutant]:
    """One mutant for each seed, always the same one."""
    drafts = [edited_trees(seed, bases) for seed in seeds]
    forms = judge.ask(*(task for draft in drafts for task in _forms(draft)))
    for draft, answers in _shared(drafts, forms):
        _take_forms(draft, answers)
        _edit_text(draft)
    meanings = judge.ask(*(canonical(spelled_out(one)) for draft in drafts for one in draft.texts()))
    return [
        _finished(seed, draft, answers) for seed, (draft, answers) in zip(seeds, _shared(drafts, meanings), strict=True)
    ]


def _shared(drafts: Sequence[Draft], answers: Sequence[Answer]) -> Iterator[tuple[Draft, list[Answer]]]:
    """Each draft with the answers on its texts. Drafts may change in between."""
    left = list(answers)
    for draft in drafts:
        count = len(draft.texts())
        yield draft, left[:count]
        del left[:count]


def edited_trees(seed: int, bases: Sequence[Base]) -> Draft:
    common = Random(f"setting {seed // ALIKE}")
    base = common.choices(bases, [one.weight for one in bases])[0]
    draft = Draft(base, common, Random(seed), Changed(base.text))
    for _ in range(common.choice([0, 0, 0, 1, 1, 2])):
        draft.before = _edited(draft.before, SETTINGS, common)
    if draft.in_text:
        return draft
    rng = draft.rng
    count = rng.choice([1, 1, 1, 2, 3])
    for _ in range(_CANDIDATES):
        after = Changed(draft.before.text)
        for _ in range(count):
            after = _edited(after, tuple(TREE_EDITS), rng)
        draft.afters.append(after)
    return draft


def _edited(changed: Changed, names: Sequence[str], rng: Random) -> Changed:
    """One edit of a tree that finds something to do, if there is any among a few."""
    try:
        program = read(changed.text)
    except TreeError:
        # An edit before this one has made a text that is no tree.
        return changed
    for _ in range(_TRIES):
        name = rng.choice(names)
        if (done := TREE_EDITS[name](program, rng)) is not None:
            return Changed(written(program), (*changed.edits, name), (*changed.words, done))
    return changed


def _forms(draft: Draft) -> list[Task]:
    """Tasks for the judge: each text in one of MLIR's forms."""
    own = [(after.text, draft.rng) for after in draft.afters]
    return [
        form(text, generic=rng.random() < 0.65, locations=rng.random() < 0.4)
        for text, rng in [(draft.before.text, draft.common), *own]
    ]


def _take_forms(draft: Draft, answers: Sequence[Answer]) -> None:
    """Go on with what the judge has printed, or with the text as it was where it has not."""
    before, *others = answers
    if before.text is None or (draft.before.text == draft.base.text and draft.common.random() < 0.3):
        draft.before = Changed(draft.base.given)
    else:
        draft.before = replace(draft.before, text=before.text)
    for _ in range(draft.common.choice([0, 0, 0, 1, 2])):
        draft.before = _edited_text(draft.before, PRELUDE, draft.common)
    if draft.afters:
        index = draft.choose(others)
        draft.afters = [replace(draft.afters[index], text=others[index].text or draft.afters[index].text)]


def _edit_text(draft: Draft) -> None:
    rng = draft.rng
    if not draft.in_text:
        if rng.random() < 0.1:
            draft.afters = [_edited_text(draft.afters[0], tuple(TEXT_EDITS), rng) for _ in range(_CANDIDATES)]
        return
    count = rng.choice([1, 1, 1, 2])
    for _ in range(_CANDIDATES):
        after = Changed(draft.before.text)
        for _ in range(count):
            after = _edited_text(after, tuple(TEXT_EDITS), rng)
        draft.afters.append(after)


def _edited_text(changed: Changed, names: Sequence[str], rng: Random) -> Changed:
    for _ in range(_TRIES):
        name = rng.choice(names)
        if (done := TEXT_EDITS[name](changed.text, rng)) is not None:
            return Changed(done[1], (*changed.edits, name), (*changed.words, done[0]))
    return changed


def _finished(seed: int, draft: Draft, answers: Sequence[Answer]) -> Mutant:
    index = draft.choose(answers[1:])
    return Mutant(seed, draft.base.name, draft.before, draft.afters[index], (answers[0], answers[1 + index]))
