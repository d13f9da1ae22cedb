"""Trial of a mutant: whether the project reads it, what it proves, and whether it reads its own output."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from xdsl.dialects.builtin import ModuleOp

from recompute.proof.prove import Proof

from .mutants import Mutant
from .signatures import signature
from .spelling import resources_numbered
from .subject import Failed, Subject


@dataclass
class Outcome:
    """Outcome of a trial. `counts`: entries for the ledger. `findings`: kind and description; empty if all is well."""

    mutant: Mutant
    counts: list[str] = field(default_factory=list[str])
    findings: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    rules: frozenset[str] = frozenset()
    printed: str | None = None
    """What the project has printed of `after`, for the judge to read."""

    def kinds(self) -> list[str]:
        """Return the group of each finding."""
        return [f"{kind}: {signature(words)}" for kind, words in self.findings]


def tried(mutant: Mutant, subject: Subject) -> Outcome:
    """Read both programs, try to prove them equal, and read the printed output again."""
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
    """Return the message without the parts that are specific to one program."""
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
    for item in (proof, mirrored):
        if isinstance(item, Failed):
            outcome.findings.append((f"{item.kind} while proving", item.words))
            return
    assert isinstance(proof, Proof) and isinstance(mirrored, Proof)
    if proof.proved != mirrored.proved:
        outcome.findings.append(("proved in one direction only", f"{proof.reason}\n{mirrored.reason}"))
    outcome.counts.append("proved" if proof.proved else f"not proved{', compared' if proof.difference else ''}")
