"""Errors planted into the functions under test, each of which the harness must detect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp

from recompute.mlir_io.printer import print_module
from recompute.proof.prove import Proof

from .drafts import TEXT_EDITS, TREE_EDITS, Changed
from .edits import harmless
from .judge import Answer, Judge, canonical
from .mutants import Mutant
from .programs import Base
from .subject import Subject
from .tree import read
from .trials import tried
from .verdicts import compare_verdict, judged
from .writing import written

TEXT = '"builtin.module"() ({\n  "foo.op"() {k = 1 : i32} : () -> ()\n}) : () -> ()\n'
EMPTY = ModuleOp([])


def prove_anything(before: ModuleOp, after: ModuleOp) -> Proof:
    return Proof(True, "")


def write_something(module: ModuleOp, **_: bool) -> str:
    return TEXT


BELIEVES_ALL = Subject(lambda text: EMPTY, lambda module: None, write_something, prove_anything)
HARMLESS = {"calls", "dead_and_double", "tiny_modules"}
WRONG = {"wrong proof", "proved, though no MLIR"}


def kinds(mutant: Mutant, subject: Subject, judge: Judge) -> set[str]:
    outcome = tried(mutant, subject)
    judged([outcome], judge)
    return {kind for kind, _ in outcome.findings}


def mutant(before: str, after: str, *means: Answer, edits: tuple[str, ...] = (), seed: int = 1) -> Mutant:
    answers = means if len(means) == 2 else (Answer(before), Answer(after))
    return Mutant(seed, "test", Changed(before), Changed(after, edits), (answers[0], answers[1]))


def edited(name: str, base: Base, rng: Random) -> str | None:
    """Return the program after one edit, as text."""
    if name in TEXT_EDITS:
        result = TEXT_EDITS[name](base.text, rng)
        return None if result is None else result[1]
    program = read(base.text)
    return None if TREE_EDITS[name](program, rng) is None else written(program)


def wrongly_proved(name: str, programs: Sequence[Base], judge: Judge, tries: int = 6) -> Iterator[bool]:
    """Yield, for repeated tries, whether the harness detects a prover that ignores one kind of edit."""
    pairs = [
        (program, text)
        for i in range(tries)
        for program in programs
        if (text := edited(name, program, Random(i))) is not None
    ]
    answers = judge.ask(*(canonical(text) for _, text in pairs))
    for (base, text), answer in zip(pairs, answers, strict=True):
        outcome = tried(mutant(base.text, text, Answer(base.text), answer, edits=(name,)), BELIEVES_ALL)
        compare_verdict(outcome)
        yield any(kind in WRONG for kind, _ in outcome.findings)


SAME_TO_JAXLIB = {"space", "locations", "attribute order"}
"""Edits that leave the canonical text as it is, or no MLIR at all."""
OF_ALIASES = {"alias introduce", "alias first"}
"""They need no definition; the other edits of aliases need a program that has one."""
CHANGES = [name for name in (*TREE_EDITS, *TEXT_EDITS) if name not in harmless.EDITS and name not in SAME_TO_JAXLIB]


@pytest.mark.parametrize("name", CHANGES)
def test_unsound_prover_is_detected(name: str, programs: Sequence[Base], judge: Judge) -> None:
    if name.startswith("alias ") and name not in OF_ALIASES:
        programs = [with_aliases(base) for base in programs if base.name == "attributes"]
    assert any(wrongly_proved(name, programs, judge))


@pytest.mark.parametrize("name", harmless.EDITS)
def test_harmless_edits_are_explained(name: str, programs: Sequence[Base], judge: Judge) -> None:
    assert not any(wrongly_proved(name, [program for program in programs if program.name in HARMLESS], judge, tries=2))


def with_aliases(base: Base) -> Base:
    text = base.text.replace("1 : i32", "#one").replace("f32>", "!number>")
    return Base(base.name, base.given, f"#one = 1 : i32\n#two = 2 : i32\n!number = f32\n{text}")


PROGRAM = """
module {
  func.func @f(%x: i32) -> i32 {
    %0 = "foo.op"(%x) {k = 1 : i32} : (i32) -> i32
    return %0 : i32
  }
}
"""


def sleepy(*_: object, **__: object) -> Any:
    while True:
        pass


def broken(*_: object, **__: object) -> Any:
    raise KeyError("k")


def forgetful(module: ModuleOp, **_: object) -> str:
    return print_module(module).replace(" {k = 2 : i32}", "")


def unreadable(module: ModuleOp, **_: object) -> str:
    return print_module(module).replace("return", "retour")


def restless(module: ModuleOp, **_: object) -> str:
    """Print the module with a number that changes each time it is printed."""
    return print_module(module).replace("k = 1", "k = 3").replace("k = 2", "k = 1")


def one_sided(before: ModuleOp, after: ModuleOp) -> Proof:
    return Proof("k = 1" in str(before), "")


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (Subject(), set[str]()),
        (Subject(parse=sleepy, seconds=0.05), {"hang while reading"}),
        (Subject(write=sleepy, seconds=0.5), {"hang while printing"}),
        (Subject(verify=broken), {"traceback while reading"}),
        (Subject(write=broken), {"traceback while printing"}),
        (Subject(proof=broken), {"traceback while proving"}),
        (Subject(write=forgetful), {"output means something else to jaxlib"}),
        (Subject(write=unreadable), {"output cannot be read again", "output means something else to jaxlib"}),
        (Subject(write=restless), {"output reads as something else", "output means something else to jaxlib"}),
        (Subject(proof=one_sided), {"proved in one direction only", "wrong proof"}),
    ],
)
def test_planted_errors_are_detected(subject: Subject, expected: set[str], judge: Judge) -> None:
    other = PROGRAM.replace("k = 1", "k = 2")
    assert kinds(mutant(PROGRAM, other, *judge.ask(canonical(PROGRAM), canonical(other))), subject, judge) == expected
