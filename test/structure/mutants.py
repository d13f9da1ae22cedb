"""Generation of mutants: a seed determines a program and a structurally changed version of it.

1. The tree is edited: a change that both programs share, then the mutation, in several variants.
2. The judge prints both programs in one of MLIR's forms: pretty or generic, with or without locations.
3. The text is edited, in several variants.

Of several variants, one that the judge can read is chosen, since most random edits are invalid. One seed in five is
`wild` and takes any variant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .drafts import PRELUDE, Changed, Draft, edit_text, edited_text, edited_trees
from .judge import Answer, Judge, Task, canonical, form
from .programs import Base
from .spelling import spelled_out


@dataclass(frozen=True)
class Mutant:
    """Mutant. `setting`: the edits that made `before`. `means`: the judge's reading of both texts."""

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


def mutants(seeds: Sequence[int], bases: Sequence[Base], judge: Judge) -> list[Mutant]:
    """Return one mutant for each seed, determined by the seed."""
    return finished(seeds, [edited_trees(seed, bases) for seed in seeds], judge)


def finished(seeds: Sequence[int], drafts: Sequence[Draft], judge: Judge) -> list[Mutant]:
    """Return one mutant for each draft, as the judge reads it."""
    forms = judge.ask(*(task for draft in drafts for task in _forms(draft)))
    for draft, answers in _shared(drafts, forms):
        _take_forms(draft, answers)
        edit_text(draft)
    meanings = judge.ask(*(canonical(spelled_out(text)) for draft in drafts for text in draft.texts()))
    return [
        _finished(seed, draft, answers) for seed, (draft, answers) in zip(seeds, _shared(drafts, meanings), strict=True)
    ]


def _shared(drafts: Sequence[Draft], answers: Sequence[Answer]) -> Iterator[tuple[Draft, list[Answer]]]:
    """Yield each draft with the answers for its texts. Drafts may change in between."""
    left = list(answers)
    for draft in drafts:
        count = len(draft.texts())
        yield draft, left[:count]
        del left[:count]


def _forms(draft: Draft) -> list[Task]:
    """Return tasks for the judge that print each text in one of MLIR's forms."""
    own = [(after.text, draft.rng) for after in draft.afters]
    return [
        form(text, generic=rng.random() < 0.65, locations=rng.random() < 0.4)
        for text, rng in [(draft.before.text, draft.common), *own]
    ]


def _take_forms(draft: Draft, answers: Sequence[Answer]) -> None:
    """Continue with the printed texts, or with the original text if the judge could not print it."""
    before, *others = answers
    if before.text is None or (draft.before.text == draft.base.text and draft.common.random() < 0.3):
        draft.before = Changed(draft.base.given)
    else:
        draft.before = replace(draft.before, text=before.text)
    for _ in range(draft.common.choice([0, 0, 0, 1, 2])):
        draft.before = edited_text(draft.before, PRELUDE, draft.common)
    if draft.afters:
        index = draft.choose(others)
        draft.afters = [replace(draft.afters[index], text=others[index].text or draft.afters[index].text)]


def _finished(seed: int, draft: Draft, answers: Sequence[Answer]) -> Mutant:
    index = draft.choose(answers[1:])
    return Mutant(seed, draft.base.name, draft.before, draft.afters[index], (answers[0], answers[1 + index]))
