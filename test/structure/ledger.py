"""The record of tried mutants and findings, which a long run stores in a file."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from .trials import Outcome


@dataclass
class Ledger:
    """Counts of mutants and findings. `edits`: for each edit, how many mutants were made, accepted, proved and
    reported."""

    mutants: int = 0
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter[str])
    rules: Counter[str] = field(default_factory=Counter[str])
    edits: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    findings: dict[str, list[int]] = field(default_factory=dict[str, list[int]])

    @classmethod
    def read(cls, path: Path) -> Ledger:
        """Return the ledger in a file, or an empty one if there is no such file."""
        if not path.exists():
            return cls()
        result = cls(**json.loads(path.read_text()))
        result.counts, result.rules = Counter(result.counts), Counter(result.rules)
        return result

    def write(self, path: Path) -> None:
        """Write the ledger atomically."""
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(path.name + ".part")
        unfinished.write_text(json.dumps(vars(self)))
        unfinished.replace(path)

    def add(self, outcome: Outcome) -> None:
        self.mutants += 1
        self.counts.update(outcome.counts)
        self.rules.update(outcome.rules)
        accepted = outcome.printed is not None
        for edit in dict.fromkeys(outcome.mutant.change.edits):
            row = self.edits.setdefault(edit, [0, 0, 0, 0])
            message = 1, int(accepted), int("proved" in outcome.counts), int(bool(outcome.findings))
            self.edits[edit] = [before + more for before, more in zip(row, message, strict=True)]
        for kind in dict.fromkeys(outcome.kinds()):
            self.findings.setdefault(kind, []).append(outcome.mutant.seed)

    def progress(self) -> str:
        result = sum(map(len, self.findings.values()))
        speed = self.mutants / max(self.seconds, 0.1)
        return f"{self.mutants} mutants, {speed:.0f} a second; {result} findings of {len(self.findings)} kinds"

    def lines(self) -> list[str]:
        """Return the ledger as lines of text."""
        return [
            f"mutants   {self.mutants} in {self.seconds:.0f} s",
            *(f"{count:7} {what}" for what, count in sorted(self.counts.items())),
            "rules that explain a proof of different texts",
            *(f"{count:7} {rule}" for rule, count in self.rules.most_common()),
            "edits: tried, accepted, proved, with findings",
            *(f"{row[0]:7} {row[1]:7} {row[2]:7} {row[3]:7} {edit}" for edit, row in sorted(self.edits.items())),
            *(f"FOUND {len(seeds)} x {kind}; seeds {_first(seeds)}" for kind, seeds in sorted(self.findings.items())),
            *([] if self.findings else ["findings  none"]),
        ]


def _first(seeds: list[int]) -> str:
    return " ".join(map(str, seeds[:8])) + (" ..." if len(seeds) > 8 else "")
