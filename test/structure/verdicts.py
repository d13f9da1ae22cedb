"""What comes out of one mutant, and what of it is a finding."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from xdsl.dialects.builtin import ModuleOp

from recompute.interpreters.prove import Proof

from .judge import Answer, Judge, canonical, processed
from .mutants import Mutant
from .normal.rules import explanation, normal_form
from .signatures import signature
from .spelling import resources_numbered, spelled_out
from .subject import Failed, Subject
from .tree import TreeError

_LEFT_OUT = ("empty lists of attributes are as good as none",)


@dataclass
class Outcome:
    """`counts`: what is said of the mutant in the ledger. `findings`: kind and words; nothing where all is well."""

    mutant: Mutant
    counts: list[str] = field(default_factory=list[str])
    findings: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    rules: frozenset[str] = frozenset()
    printed: str | None = None
    """What the project has printed of `after`, for the judge to read."""

    def kinds(self) -> list[str]:
        """One for each finding: what it has in common with others."""
        return [f"{kind}: {signature(words)}" for kind, words in self.findings]


def tried(mutant: Mutant, subject: Subject) -> Outcome:
    """What the project says of the two programs, and whether it reads what it prints."""
    outcome = Outcome(mutant)
    before = _read_cached(subject, mutant.before)
    after = subject.read(mutant.after)
    _note_reading(outcome, after)
    if isinstance(after, Failed):
        return outcome
    if isinstance(before, Failed):
        outcome.counts.append("before refused")
    else:
        _prove(outcome, subject, before, after)
    _read_again(outcome, subject, after)
    return outcome


@lru_cache(8)
def _read_cached(subject: Subject, text: str) -> ModuleOp | Failed:
    return subject.read(text)


def _note_reading(outcome: Outcome, after: ModuleOp | Failed) -> None:
    meant = outcome.mutant.means[1]
    theirs = "jaxlib crashes" if meant.crashed else "jaxlib refuses" if meant.text is None else "jaxlib accepts"
    ours = "refused" if isinstance(after, Failed) else "accepted"
    outcome.counts.append(f"{ours}, {theirs}")
    if isinstance(after, Failed):
        if after.kind != "refused":
            outcome.findings.append((f"{after.kind} while reading", after.words))
        elif "malformed input" in after.words:
            outcome.counts.append("refused without a reason (malformed input)")
    elif meant.error is not None:
        outcome.counts.append(f"accepted though jaxlib refuses: {message_kind(meant.error)}")


def message_kind(error: str) -> str:
    """The message without what is particular to one program."""
    lines = [line for line in error.splitlines() if "error:" in line]
    message = (lines[0] if lines else error).partition("error: ")[2]
    message = re.sub(r'^"[^"]*":\d+:\d+: ', "", message)
    return re.sub(r"'[^']*'|\"[^\"]*\"|\d+|(?<=properties ).*(?= for op)|(?<=\[).*(?=\])", "*", message)[:100]


def _read_again(outcome: Outcome, subject: Subject, after: ModuleOp) -> None:
    generic, debuginfo = outcome.mutant.seed % 3 > 0, outcome.mutant.seed % 2 > 0
    printed = subject.written(after, generic=generic, debuginfo=debuginfo)
    if isinstance(printed, Failed):
        outcome.findings.append((f"{printed.kind} while printing", printed.words))
        return
    outcome.printed = printed
    again = subject.read(printed)
    if isinstance(again, Failed):
        outcome.findings.append(("output cannot be read again", f"{again.words}\n--- output\n{printed}"))
        return
    twice = subject.written(again, generic=generic, debuginfo=debuginfo)
    if isinstance(twice, Failed) or resources_numbered(twice) != resources_numbered(printed):
        outcome.findings.append(
            ("output reads as something else", f"--- output\n{printed}\n--- printed again\n{twice}")
        )


def _prove(outcome: Outcome, subject: Subject, before: ModuleOp, after: ModuleOp) -> None:
    proof, mirrored = subject.proved(before, after), subject.proved(after, before)
    for one in (proof, mirrored):
        if isinstance(one, Failed):
            outcome.findings.append((f"{one.kind} while proving", one.words))
            return
    assert isinstance(proof, Proof) and isinstance(mirrored, Proof)
    if proof.proved != mirrored.proved:
        outcome.findings.append(("proved in one direction only", f"{proof.reason}\n{mirrored.reason}"))
    outcome.counts.append("proved" if proof.proved else f"not proved{', compared' if proof.difference else ''}")


def judged(outcomes: Sequence[Outcome], judge: Judge) -> None:
    """Add what the judge says of what was printed, and of what was proved."""
    printed = [outcome for outcome in outcomes if outcome.printed is not None and outcome.mutant.means[1].text]
    texts = [text or "" for one in printed for text in (one.printed, one.mutant.means[1].text)]
    answers = judge.ask(*(canonical(spelled_out(text)) for text in texts))
    for outcome, (answer, own) in zip(printed, _pairs(answers), strict=True):
        _compare_output(outcome, answer, own)
    for outcome in outcomes:
        if "proved" in outcome.counts or any(one.startswith("not proved") for one in outcome.counts):
            compare_verdict(outcome)
    doubtful = [outcome for outcome in outcomes if outcome.rules]
    texts = [answer.text or "" for outcome in doubtful for answer in outcome.mutant.means]
    answers = judge.ask(*map(processed, texts))
    for outcome, pair in zip(doubtful, _pairs(answers), strict=True):
        outcome.counts.append(_after_pipeline(*pair))


def _pairs(answers: Sequence[Answer]) -> Iterator[tuple[Answer, Answer]]:
    return zip(answers[::2], answers[1::2], strict=True)


def _after_pipeline(before: Answer, after: Answer) -> str:
    if before.text is None or after.text is None:
        return "explained: jaxlib's passes cannot run"
    same = "same" if before.text == after.text else "still different"
    return f"explained: {same} after jaxlib's inline,cse,symbol-dce"


def _compare_output(outcome: Outcome, answer: Answer, own: Answer) -> None:
    """`answer`: what the output means; `own`: what jaxlib reads in its own text."""
    meant = resources_numbered(outcome.mutant.means[1].text or "")
    means = resources_numbered(answer.text or "")
    if means == meant:
        outcome.counts.append("output means the same to jaxlib")
    elif own.text is None:
        outcome.counts.append("jaxlib cannot read its own text")
    elif means and normal_form(means, _LEFT_OUT) == normal_form(meant, _LEFT_OUT):
        outcome.counts.append("output leaves empty lists of attributes out")
    elif answer.error is not None and "not found for custom op" in answer.error:
        outcome.counts.append("output with operations that jaxlib does not know")
    elif spelled_out(outcome.mutant.after) != outcome.mutant.after and _squeezed(means) == _squeezed(meant):
        outcome.counts.append("output spells an alias out in other words")
    else:
        said = means or answer.error or "jaxlib crashes"
        words = f"--- output\n{outcome.printed}\n--- means\n{said}\n--- instead of\n{meant}"
        outcome.findings.append(("output means something else to jaxlib", words))


def _squeezed(text: str) -> str:
    """Without what does not matter in an affine map."""
    return re.sub(r"[\s()]", "", text)


def compare_verdict(outcome: Outcome) -> None:
    """Note whether the judge's reading of the two texts allows the verdict."""
    before, after = (answer.text for answer in outcome.mutant.means)
    proved = "proved" in outcome.counts
    if before is None or after is None:
        if proved:
            errors = [message_kind(one.error or "crash") for one in outcome.mutant.means if one.text is None]
            outcome.counts.append(f"proved, not readable for jaxlib: {errors[-1]}")
            if outcome.mutant.before != outcome.mutant.after and not _is_verification(outcome.mutant.means):
                outcome.findings.append(
                    ("proved, though no MLIR", "\n".join(one.error or "" for one in outcome.mutant.means))
                )
        return
    if before == after:
        outcome.counts.append("same text: proved" if proved else "same text: not proved")
    elif proved:
        _explain(outcome, before, after)


def _is_verification(answers: Sequence[Answer]) -> bool:
    """The text is MLIR, only its operations are not what they must be."""
    return all(answer.text is not None or "see current operation" in (answer.error or "") for answer in answers)


def _explain(outcome: Outcome, before: str, after: str) -> None:
    try:
        rules = explanation(before, after)
    except TreeError as error:
        outcome.findings.append(("harness: cannot be read as a tree", str(error)))
        return
    if rules is None:
        words = f"--- before\n{normal_form(before)}\n--- after\n{normal_form(after)}"
        outcome.findings.append(("wrong proof", words))
        return
    outcome.counts.append("different text: explained")
    outcome.rules = rules
