"""Pairs of nearly equal loops, from attacks on the proof, are rejected."""

from __future__ import annotations

import numpy as np
import pytest

from recompute.interpreters.execute_check import compare
from recompute.mlir_io.parser import parse_module
from recompute.proof.prove import Proof, prove
from recompute.test.unit.proof.loop_rules.attacked_loops import (
    WHICH,
    barrier,
    binary,
    branched,
    called,
    constant,
    constrained,
    constrained_part,
    counted,
    drawn,
    going_on,
    last,
    looped,
    narrowed,
    of_number,
    on_devices,
    ordered,
    outside,
    part,
    permuted,
    reduced,
    summed,
    unary,
    within,
)

N, V = "tensor<i32>", "tensor<4xf32>"
SINE, COSINE, TANH = unary("sine"), unary("cosine"), unary("tanh")
A, OTHER = '@mesh, [{"a"}]', '@mesh, [{"b"}]'


def scaled(by: str) -> str:
    return last(constant(by, kind=V) + binary("multiply", "%h", "%c"))


def bits(name: str) -> str:
    number = f"    %m0 = stablehlo.{name} %i : {N}\n"
    return of_number(number + constant("-3") + binary("add", "%m0", "%c", N, "%m"))


def integers(name: str) -> str:
    negative = constant("-3") + binary("add", "%i", "%c", N, "%l")
    return of_number(negative + constant("1", "%d") + binary(name, "%l", "%d", N, "%m"))


def row(place: str, extra: str = "") -> str:
    """Return a body that reads one of two rows at a position that may be out of bounds."""
    return last(f"""{extra}    %o = stablehlo.constant dense<0> : {N}
    %e = {COSINE}
    %t = stablehlo.concatenate %e, %h, dim = 0 : ({V}, {V}) -> tensor<8xf32>
    %u = stablehlo.reshape %t : (tensor<8xf32>) -> tensor<2x4xf32>
    %s = stablehlo.dynamic_slice %u, {place}, %o, sizes = [1, 4] : (tensor<2x4xf32>, {N}, {N}) -> tensor<1x4xf32>
    %v = stablehlo.reshape %s : (tensor<1x4xf32>) -> {V}""")


def chosen(pred: str, first: str = "%h", second: str = "%n0") -> str:
    compare = f"    %n0 = {unary('negate')}\n    %c = stablehlo.compare {pred} : ({V}, {V}) -> tensor<4xi1>\n"
    return last(f"{compare}    %v = stablehlo.select %c, {first}, {second} : tensor<4xi1>, {V}")


def kept_twice(place: str) -> str:
    """Return a body that writes at `place` of a two-row tensor, which holds the argument twice at first."""
    return last(f"""    %o = stablehlo.constant dense<0> : {N}
    %t = stablehlo.broadcast_in_dim %x, dims = [1] : ({V}) -> tensor<2x4xf32>
    %e = {COSINE}
    %r = stablehlo.reshape %e : ({V}) -> tensor<1x4xf32>
    %u = stablehlo.dynamic_update_slice %t, %r, {place}, %o : (tensor<2x4xf32>, tensor<1x4xf32>, {N}, {N}) -> tensor<2x4xf32>
    %s = stablehlo.slice %u [1:2, 0:4] : (tensor<2x4xf32>) -> tensor<1x4xf32>
    %v = stablehlo.reshape %s : (tensor<1x4xf32>) -> {V}""")


BODIES = {
    "a counter that wraps": (narrowed("i8"), narrowed("i32")),
    "a counter that wraps without a sign": (narrowed("i8"), narrowed("ui8")),
    "a counter as one bit": (narrowed("i1"), narrowed("i8")),
    "the sign of zero": (scaled("0.0"), scaled("-0.0")),
    "the payload of a NaN": (scaled("0x7FC00000"), scaled("0x7FC00001")),
    "infinity and the largest number": (scaled("0x7F800000"), scaled("0x7F7FFFFF")),
    "branches exchanged": (branched(SINE, COSINE, TANH), branched(SINE, TANH, COSINE)),
    "the branch for what is out of range": (branched(SINE, COSINE, TANH), branched(SINE, COSINE)),
    "a branch by another number": (branched(SINE, COSINE), branched(SINE, COSINE, at="%i1")),
    "a branch that captures another value": (branched(SINE, COSINE), branched(SINE, unary("cosine", "%x"))),
    "how rows are combined": (reduced(), reduced("maximum")),
    "what a sum begins with": (reduced(), reduced(start="-0.0")),
    "the order in which rows are combined": (reduced("subtract"), reduced("subtract", left="%b", right="%a")),
    "rows that are not combined": (reduced(), reduced(left="%a", right="%a")),
    "the direction of a sort": (ordered(), ordered("GT")),
    "how a sort breaks ties": (ordered(), ordered(stable="false")),
    "results of a barrier exchanged": (barrier(False), barrier(True)),
    "the function called": (called("f"), called("g")),
    "what is written on a call": (called("f"), called("f", '{acme.hint = "x"} ')),
    "the algorithm that draws": (drawn(), drawn("PHILOX")),
    "carries exchanged in a loop of scf": (counted(), counted(wrong=True)),
    "an iteration less in a loop of scf": (counted(), counted("2")),
    "another step in a loop of scf": (counted(), counted(step="2")),
    "no iteration in a loop of scf": (counted(), counted(start="3")),
    "inner iterations that leave numbers out": (within(), within("1")),
    "inner iterations that overlap": (within(), within("3")),
    "the number of another inner iteration": (within(), within(scale="1")),
    "the inner loop starts anew": (within(), within(of="%x")),
    "another end by a float": (going_on(), going_on(limit="3.0")),
    "an end by a float that includes it": (going_on(), going_on("LE")),
    "an end by a total order": (going_on(limit="0.0"), going_on(kind="TOTALORDER", limit="0.0")),
    "a place beyond the border": (row("%i"), row("%m", constant("0") + binary("subtract", "%c", "%i", N, "%m"))),
    "a place one further, moved back at the end": (row("%i"), row("%i1")),
    "written at another place": (kept_twice("%i"), kept_twice("%o")),
    "written beyond the border": (kept_twice("%i"), kept_twice("%i1")),
    "the other one is chosen": (chosen("LT, %h, %x"), chosen("LT, %h, %x", "%n0", "%h")),
    "chosen where it is equal": (chosen("LT, %h, %x"), chosen("LE, %h, %x")),
    "bits of the number": (bits("count_leading_zeros"), bits("popcnt")),
    "shifted with its sign": (integers("shift_right_arithmetic"), integers("shift_right_logical")),
    "a remainder for a quotient": (integers("remainder"), integers("divide")),
    "devices that sum up": (summed(), summed(groups="[[0, 2], [1, 3]]")),
    "how devices sum up": (summed(), summed(by="maximum")),
    "numbers of all devices": (summed(), summed(more=", use_global_device_ids")),
    "among replicas": (summed(), summed(channel=None)),
    "what devices sum up": (summed(), summed(of="%x")),
    "who sends to whom": (permuted("[[0, 1], [1, 0]]"), permuted("[[1, 0], [0, 2]]")),
    "another function on each device": (on_devices(part("sine")), on_devices(part("cosine"))),
    "parts along another axis": (on_devices(part("sine")), on_devices(part("sine"), OTHER)),
    "wholes along another axis": (on_devices(part("sine")), on_devices(part("sine"), A, OTHER)),
    "parts of another mesh": (on_devices(part("sine")), on_devices(part("sine"), *['@turned, [{"a"}]'] * 2)),
    "fewer devices": (on_devices(part("sine")), on_devices(part("sine"), axes='"a"')),
    "which of other devices": (on_devices(WHICH), on_devices(WHICH, axes='"a"')),
    "a constraint of another layout": (constrained(A), constrained(OTHER)),
    "a constraint that is gone": (constrained(A), last(f"    %v = {SINE}")),
    "a constraint of another layout on each device": (constrained_part(OTHER), constrained_part("@mesh, [{?}]")),
    "a constraint on other devices": (constrained_part(OTHER), constrained(OTHER)),
}
EFFECTS = {
    "the name of what is called": (outside(), outside("g")),
    "how it is called": (outside(), outside(version="3")),
    "what it is told": (outside(), outside(config="2")),
    "whether it does something": (outside(), outside(effect="false")),
    "which buffer it takes": (
        outside(),
        outside(
            more=", output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], "
            "operand_index = 0, operand_tuple_indices = []>]"
        ),
    ),
}


def proof(before: str, after: str) -> Proof:
    first, second = (parse_module(text, "loops.mlir") for text in (before, after))
    first.verify()
    second.verify()
    return prove(first, second)


@pytest.mark.parametrize("name", BODIES)
def test_nearly_equal_bodies_are_not_proved(name: str) -> None:
    body, other = BODIES[name]
    for item in (body, other):
        assert proof(looped(item), looped(item, more=True)).tier == 2
    for more in (False, True):
        assert not proof(looped(body), looped(other, more))
        assert not proof(looped(other), looped(body, more))


@pytest.mark.parametrize("name", EFFECTS)
def test_loops_with_different_effects_are_not_proved(name: str) -> None:
    body, other = EFFECTS[name]
    assert proof(looped(body), looped(body))
    assert not proof(looped(body), looped(other))


NOT_SEEN = {
    "the payload of a NaN",  # numpy may keep either
    "what a sum begins with",
    "how a sort breaks ties",
    "what is written on a call",
    *(
        name
        for name, (body, _) in BODIES.items()
        if any(word in body for word in ("scf.", "sdy.", "all_reduce", "permute"))
    ),
}
"""Of numbers of one device nothing can be seen of them, or they are not executed."""


@pytest.mark.parametrize("name", [name for name in BODIES if name not in NOT_SEEN])
def test_rejected_pairs_compute_different_results(name: str) -> None:
    """The two programs of each pair compute different results when executed, so that their rejection is meaningful."""
    before, after = (parse_module(looped(body)) for body in BODIES[name])
    vectors = [np.array([-1.5, 0.75, 0.5, 1.25]), np.zeros(4), np.full(4, -0.0)]
    rest = [np.int32(3), np.array([1, 2], np.uint64)]
    assert not all(compare(before, after, [vector.astype(np.float32), *rest]).equal for vector in vectors)
