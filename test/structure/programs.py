"""Programs from which mutants are made: the hand-written ones of the folder, and those lowered by JAX."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .jax_names import JAX_PROGRAMS
from .judge import Judge, canonical, lowered

FOLDER = Path(__file__).parent / "programs"


@dataclass(frozen=True)
class Base:
    """Program: its name, its original text, and the judge's printed form."""

    name: str
    given: str
    text: str

    @property
    def weight(self) -> float:
        """Probability weight, lower for large programs, whose mutants take long."""
        return 1 / (500 + len(self.text))


def names() -> list[str]:
    written = sorted(path.stem for path in FOLDER.glob("*.mlir"))
    return [*written, *(f"jax {name}" for name in JAX_PROGRAMS)]


def bases(judge: Judge, requested: Sequence[str] | None = None) -> list[Base]:
    """Return the programs with these names, all by default; the judge reads each of them."""
    chosen = list(requested) if requested is not None else names()
    removeprefixs = [name.removeprefix("jax ") for name in chosen if name.startswith("jax ")]
    lowered_texts = dict(zip(removeprefixs, judge.ask(*map(lowered, removeprefixs)), strict=True))
    given = [
        lowered_texts[name.removeprefix("jax ")].text if name.startswith("jax ") else _file(name) for name in chosen
    ]
    matches: list[Base] = []
    for name, text, answer in zip(chosen, given, judge.ask(*(canonical(text or "") for text in given)), strict=True):
        assert text is not None and answer.text is not None, f"{name} cannot be read: {answer.error}"
        matches.append(Base(name, text, answer.text))
    return matches


def _file(name: str) -> str:
    return (FOLDER / f"{name}.mlir").read_text()
