"""Detection of every seeded bug, wherever it is planted; the programs without the bug are accepted."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import pytest
from xdsl.dialects.builtin import ModuleOp

from recompute.driver.verification.verified import verify_module
from recompute.mlir_io.parser import parse_module
from recompute.proof.prove import prove
from recompute.rewriting.mark import mark
from recompute.rewriting.rewrite import rewrite_in_place
from recompute.support.diagnostics import Refusal
from recompute.test.examples import original, recomputed, with_tokens
from recompute.test.structured_programs import steps
from recompute.transforms.clone import clone
from recompute.transforms.cse import cse
from recompute.transforms.inline_gradient import inline_gradient
from recompute.transforms.verify import verify

from . import proof_bugs, verifier_bugs
from .bug import Bug

PLACES = 2
"""In how many places of a program a bug is planted, one at a time; in a large program, in one."""
LARGE = 3000


@dataclass(frozen=True, eq=False)
class Pair:
    """Training step without and with recomputation."""

    plain: ModuleOp
    recomputed: ModuleOp


def by_jax(name: str) -> Pair:
    return Pair(original(f"{name}.small.mlir"), original(f"{name}.small.checkpoint.mlir"))


def with_barriers(name: str) -> Pair:
    """Return the example recomputed by the pipeline, as XLA receives it."""
    return Pair(original(f"{name}.small.mlir"), recomputed(f"{name}.small.mlir"))


def before_lowering(name: str) -> Pair:
    """Return the example recomputed by the pipeline, before tokens become barriers."""
    return Pair(original(f"{name}.small.mlir"), with_tokens(f"{name}.small.mlir"))


def with_regions() -> Pair:
    """Return two consecutive steps, as gradient regions both before and after."""
    plain = parse_module(steps(2, 3), "steps.mlir")
    module = plain.clone()
    rewrite_in_place(module)
    return Pair(plain, module)


def of_two_steps() -> Pair:
    """Return the same two steps in flat form, before tokens become barriers."""
    plain = parse_module(steps(2, 3), "steps.mlir")
    module = plain.clone()
    inline_gradient(module)
    mark(module)
    clone(module)
    cse(module)
    return Pair(plain, module)


PAIRS: dict[str, Callable[[], Pair]] = {
    "chain by JAX": lambda: by_jax("chain"),
    "mlp by JAX": lambda: by_jax("mlp"),
    "gpt by JAX": lambda: by_jax("gpt"),
    "chain with barriers": lambda: with_barriers("chain"),
    "mlp with barriers": lambda: with_barriers("mlp"),
    "chain with tokens": lambda: before_lowering("chain"),
    "mlp with tokens": lambda: before_lowering("mlp"),
    "two steps with tokens": of_two_steps,
    "two steps with regions": with_regions,
}


@cache
def prepared(name: str, prepare: Callable[[ModuleOp], None]) -> Pair:
    """Return the prepared pair, which is shared; bugs are planted into clones."""
    pair = PAIRS[name]()
    pair = Pair(pair.plain.clone(), pair.recomputed.clone())
    prepare(pair.plain)
    prepare(pair.recomputed)
    return pair


@dataclass(frozen=True, eq=False)
class Detector:
    """Check that accepts or rejects a pair, with the bugs that it must detect and the pairs into which they are
    planted."""

    bugs: tuple[Bug, ...]
    pairs: tuple[str, ...]
    accepts: Callable[[Pair], bool]


def is_proved(pair: Pair) -> bool:
    return prove(pair.plain, pair.recomputed).proved


def is_verified(pair: Pair) -> bool:
    try:
        verify(pair.recomputed)
    except Refusal:
        return False
    return True


VERIFIER = Detector(
    verifier_bugs.BUGS, tuple(name for name in PAIRS if "by JAX" not in name and "regions" not in name), is_verified
)
PROOF = Detector(proof_bugs.BUGS, tuple(PAIRS), is_proved)


@cache
def is_accepted(detector: Detector, name: str, prepare: Callable[[ModuleOp], None]) -> bool:
    return detector.accepts(prepared(name, prepare))


@pytest.mark.slow(
    "the lowest bit",
    "another precision",
    "the step's key",
    "another dimension of an iota",
    "what a loop carries",
    "another result of",
    "a barrier that permutes",
    "another kind of",
    "another direction",
    "effects reordered",
    "an effect dropped",
)
@pytest.mark.slow(
    "a copy reads another layer's input",
    "operands of a copy swapped",
    "what a loop starts from swapped",
    "other bounds of a slice",
    "the sign of a zero",
    "an operation skipped",
    "a constant in place of the dropout's key",
)
@pytest.mark.parametrize("bug", PROOF.bugs, ids=lambda bug: bug.name)
def test_proof_rejects_each_bug(bug: Bug) -> None:
    assert planted_and_caught(bug, PROOF) >= PLACES


@pytest.mark.parametrize("bug", VERIFIER.bugs, ids=lambda bug: bug.name)
def test_verifier_rejects_each_bug(bug: Bug) -> None:
    assert planted_and_caught(bug, VERIFIER) >= PLACES


def planted_and_caught(bug: Bug, detector: Detector) -> int:
    """Plant the bug in some places of every pair and check that each is detected; return the number of places."""
    planted = 0
    for name in detector.pairs:
        sound = prepared(name, bug.prepare)
        assert is_accepted(detector, name, bug.prepare), f"{name}: refused without a bug"
        count = sum(1 for _ in bug.edits(sound.recomputed))
        wanted = 1 if sum(1 for _ in sound.recomputed.walk()) > LARGE else PLACES
        for place in random.Random(f"{bug.name}, {name}").sample(range(count), min(count, wanted)):
            wrong = sound.recomputed.clone()
            list(bug.edits(wrong))[place]()
            if detector is PROOF:
                verify_module(wrong)
            assert not detector.accepts(Pair(sound.plain, wrong)), f"{name}, place {place} of {count}: not caught"
            planted += 1
    return planted
