"""Loops with checkpoints every k iterations: proved equal to plain loops, while near misses are rejected."""

from __future__ import annotations

import re

import pytest

from recompute.interpreters.execute_check import compare
from recompute.proof.prove import prove
from recompute.test.unit.proof.loop_rules.chunked_loops import ITERATIONS, chunked
from recompute.test.unit.proof.loop_rules.test_prove_loops import PLAIN, inputs, module_of

EACH = range(1, ITERATIONS + 1)


@pytest.mark.parametrize("k", EACH)
def test_chunked_loops_are_proved_equal_to_plain_loops(k: int) -> None:
    before, after = module_of(PLAIN), module_of(chunked(k))
    proof = prove(before, after)
    assert proof and proof.tier == 2, proof.reason
    assert prove(after, before)
    assert compare(before, after, inputs()).equal


def test_every_chunk_size_computes_the_same() -> None:
    two, three = module_of(chunked(2)), module_of(chunked(4))
    assert prove(two, three)


def edited(k: int, old: str, new: str) -> str:
    """Replace the one match of the pattern `old`."""
    text, count = re.subn(old, new, chunked(k))
    assert count == 1, (old, count)
    return text


def constant(name: str, number: int, k: int = 2) -> str:
    return edited(k, rf"%{name} = stablehlo.constant dense<-?\d+>", f"%{name} = stablehlo.constant dense<{number}>")


WRONG = {
    "the checkpoint of the chunk before": constant("top", 1),
    "the checkpoint of the chunk after": constant("top", 3),
    "chunks in the other direction": edited(
        2,
        r"%begin_slice = stablehlo.dynamic_slice %kept_chunks, %q",
        r"%begin_slice = stablehlo.dynamic_slice %kept_chunks, %p",
    ),
    "all chunks begin at the first": edited(
        2,
        r"%begin_slice = stablehlo.dynamic_slice %kept_chunks, %q",
        r"%begin_slice = stablehlo.dynamic_slice %kept_chunks, %o",
    ),
    "the last chunk is missing": constant("end", 2),
    "the last chunk is missing in the first pass": constant("end_whole", 2),
    "a chunk more in the first pass": constant("end_whole", 4),
    "an iteration of each chunk is missing in the first pass": constant("end_e_whole", 1),
    "an iteration of each chunk is missing when it is run again": constant("end_dead", 1),
    "an iteration of each chunk has no gradient": constant("end_eg", 1),
    "an iteration more in each chunk": constant("end_e_whole", 3),
    "chunks overlap in the first pass": constant("k_e_whole", 1),
    "chunks overlap when they are run again": constant("k_dead", 1),
    "chunks leave iterations out": constant("k_dead", 3),
    "the gradient counts other chunks": constant("size", 1),
    "the small stack in the other direction": edited(2, "dynamic_slice %again, %at_eg", "dynamic_slice %again, %j_eg"),
    "the small stack one too early": constant("end1_eg", 0),
    "a chunk counts itself and not its iterations": edited(
        2, "%i_dead = stablehlo.add %base_dead, %l_dead", "%i_dead = stablehlo.add %base_dead, %q"
    ),
    "a chunk that is run again counts from zero": edited(
        2, "%i_dead = stablehlo.add %base_dead, %l_dead", "%i_dead = stablehlo.add %l_dead, %o_dead"
    ),
    "it is run again from the start": edited(2, "%h_dead = %begin", "%h_dead = %x"),
    "it is run again from the end": edited(2, "%h_dead = %begin", "%h_dead = %y"),
    "each chunk starts anew": edited(2, "%h_e_whole = %b_whole", "%h_e_whole = %x"),
    "each chunk of the gradient starts anew": edited(2, "%d_eg = %u", "%d_eg = %ct"),
    "the checkpoint is what a chunk leaves": chunked(2).replace("%b_whole, dims = [1]", "%e_whole, dims = [1]"),
    "what is left over is left out": edited(4, "%h_y = %whole", "%h_y = %x"),
    "what is left over counts from zero": constant("i_by_y", 0, k=4),
    "what is left over counts from zero again": constant("i_by_ry", 0, k=4),
    "what is left over is one iteration shorter": constant("end_g0", 1, k=4),
    "the gradient forgets what is left over": edited(4, "%u = %g0", "%u = %ct"),
    "the gradient counts without what is left over": constant("rest", 0, k=4),
}


def in_order(text: str) -> str:
    """Move the store at the start of each iteration to its end, where it may read what the iteration computes."""
    lines = text.split("\n")
    moved = [line for line in lines if re.match(r" *%a(1|_slice)_whole =", line)]
    kept = [line for line in lines if line not in moved]
    at = next(index for index, line in enumerate(kept) if "%q1_whole =" in line)
    return "\n".join([*kept[:at], *moved, *kept[at:]])


@pytest.mark.parametrize("name", WRONG)
def test_nearly_equal_chunked_loops_are_not_proved(name: str) -> None:
    before, after = module_of(PLAIN), module_of(in_order(WRONG[name]))
    assert not prove(before, after) and not prove(after, before)
    assert not compare(before, after, inputs()).equal
