"""Each invariant of a step with copies: the step that keeps all of them, changed so that it violates one."""

from __future__ import annotations

import pytest

from recompute.analysis.verify.invariants import CHECKS, RecomputedStep, violations
from recompute.support.operations import name_of
from recompute.test.named_steps import named_step

T = "tensor<4xf32>"
ORIGINAL = f"""  %a = stablehlo.sine %x {{recompute.recompute = true, recompute.segment = "p", recompute.id = 0,
    recompute.phase = "primal"}} : {T}
  %b = stablehlo.tanh %a {{recompute.phase = "primal"}} : {T}
"""
GATE = f'  %g = stablehlo.multiply %ct, %b {{recompute.phase = "gradient"}} : {T}\n'
TOKEN = f'  %t = recompute.token %g {{recompute.phase = "gradient"}} : {T}\n'
DELAY = f'  %d = recompute.depend %x after %t {{recompute.phase = "gradient"}} : {T}\n'
COPY = f"""  %c = stablehlo.sine %d {{recompute.segment = "p", recompute.id = 0, recompute.copy = 1,
    recompute.duplicated, recompute.phase = "gradient"}} : {T}
"""
USE = f'  %h = stablehlo.multiply %g, %c {{recompute.phase = "gradient"}} : {T}\n'
KEPT = (ORIGINAL, GATE, TOKEN, DELAY, COPY, USE)


def step_of(*lines: str) -> str:
    body = "".join(lines)
    return f"func.func @f(%x: {T}, %ct: {T}) -> ({T}, {T}) {{\n{body}  func.return %b, %h : {T}, {T}\n}}"


def gradient(text: str) -> str:
    return f'  {text} {{recompute.phase = "gradient"}} : {T}\n'


BARRIER = f"""  %d0, %d = "stablehlo.optimization_barrier"(%g, %x) {{recompute.phase = "gradient"}}
    : ({T}, {T}) -> ({T}, {T})
"""
EARLY = "the gradient values that these copies wait for are available before their originals have run"
VIOLATIONS = {
    "a copy that CSE would merge": (
        (ORIGINAL, GATE, TOKEN, DELAY, COPY.replace("recompute.duplicated, ", ""), USE),
        "stablehlo.sine: this copy of stablehlo.sine lacks the attribute 'recompute.duplicated'",
    ),
    "a copy without the id of its original": (
        (ORIGINAL, GATE, TOKEN, DELAY, COPY.replace(" recompute.id = 0,", ""), USE),
        "stablehlo.sine: this copy of stablehlo.sine lacks the attribute 'recompute.id'",
    ),
    "a gradient operation that reads the original": (
        (*KEPT[:-1], USE.replace("%g, %c", "%c, %a")),
        "stablehlo.multiply: stablehlo.multiply reads the original stablehlo.sine instead of a copy, although it is "
        "marked for recomputation",
    ),
    "a gradient operation that reads the original through a token": (
        (*KEPT[:-1], gradient("%e = recompute.depend %a after %t"), USE.replace("%g, %c", "%c, %e")),
        "stablehlo.multiply: stablehlo.multiply reads the original stablehlo.sine instead of a copy, although it is "
        "marked for recomputation",
    ),
    "two copies of one number": (
        (*KEPT[:-1], COPY.replace("%c =", "%c2 ="), USE.replace("%g, %c", "%c, %c2")),
        "stablehlo.sine: an earlier copy of stablehlo.sine has the same segment, id and copy number",
    ),
    "a copy in the update": (
        (*KEPT[:4], COPY.replace('"gradient"', '"update"'), USE.replace('"gradient"', '"update"')),
        "stablehlo.sine: this copy of stablehlo.sine is in phase 'update', not in phase 'gradient'",
    ),
    "a copy that reads an argument": (
        (ORIGINAL, GATE, COPY.replace("%d", "%x"), USE),
        "stablehlo.sine: this copy of stablehlo.sine reads argument 0 without waiting for a gradient",
    ),
    "a token for a forward value": (
        (*KEPT, gradient("%t2 = recompute.token %b"), gradient("%e = recompute.depend %x after %t2")),
        "recompute.token: this token waits for no gradient value, so the operations that depend on it may run in the "
        "forward pass",
    ),
    "a token without uses": (
        (*KEPT, gradient("%t2 = recompute.token %g")),
        "recompute.token: this token has no uses",
    ),
    "a barrier without a use of its gradient": (
        (ORIGINAL, GATE, BARRIER, COPY, USE),
        "stablehlo.optimization_barrier: the gradient results of this barrier have no uses, so a compiler removes "
        "them, and with them the order of the copies",
    ),
    "a gate that is available before the original": (
        (ORIGINAL, gradient("%g = stablehlo.negate %x"), TOKEN, DELAY, COPY, USE),
        f"recompute.depend: {EARLY}",
    ),
    "a gate that only the original determines": (
        (
            ORIGINAL.replace("recompute.recompute = true, ", ""),
            gradient("%g = stablehlo.negate %a"),
            *(TOKEN, DELAY, COPY, USE),
        ),
        f"recompute.depend: {EARLY}",
    ),
}


def found(*lines: str) -> list[str]:
    step, _ = named_step(step_of(*lines))
    return [f"{name_of(op)}: {message}" for op, message in violations(step)]


def test_step_without_a_violation() -> None:
    assert found(*KEPT) == []
    barrier_is_read = USE.replace("%g, %c", "%d0, %c")
    assert found(ORIGINAL, GATE, BARRIER, COPY, barrier_is_read) == []


@pytest.mark.parametrize("violation", VIOLATIONS)
def test_only_the_violated_invariant_is_reported(violation: str) -> None:
    lines, message = VIOLATIONS[violation]
    assert found(*lines) == [message]


def test_each_check_finds_a_violation() -> None:
    steps = [RecomputedStep(named_step(step_of(*lines))[0]) for lines, _ in VIOLATIONS.values()]
    assert [check.__name__ for check in CHECKS if not any(list(check(step)) for step in steps)] == []


def test_constants_need_no_gate() -> None:
    """A copy may read a constant directly, and a gradient operation may read a marked value that only constants
    determine."""
    constant = f'  %k = stablehlo.constant {{recompute.phase = "primal"}} dense<1.0> : {T}\n'
    original = ORIGINAL.replace("sine %x", "sine %k")
    assert found(constant, original, GATE, COPY.replace("sine %d", "sine %k"), USE.replace("%g, %c", "%a, %c")) == []
