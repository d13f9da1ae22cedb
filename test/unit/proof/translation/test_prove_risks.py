"""Operations that may fail may be removed or repeated, but not moved to where they would not have run."""

from __future__ import annotations

import pytest

from recompute.mlir_io.parser import parse_module
from recompute.proof.prove import Proof, prove

DIVIDE = "%q = arith.divsi %x, %y : i32"
EXTRACT = "%q = tensor.extract %t[%i] : tensor<4xi32>"


def step(before: str, inside: str, result: str = "%q", after: str = "") -> str:
    return f"""
func.func @f(%c: i1, %x: i32, %y: i32, %t: tensor<4xi32>, %i: index) -> i32 {{
  {before}
  %r = scf.if %c -> (i32) {{
    {inside}
    scf.yield {result} : i32
  }} else {{
    scf.yield %x : i32
  }}
  {after}
  return %r : i32
}}"""


def proof(before: str, after: str) -> Proof:
    return prove(parse_module(before), parse_module(after))


@pytest.mark.parametrize("risky", [DIVIDE, EXTRACT])
def test_risky_operation_may_enter_but_not_leave_branch(risky: str) -> None:
    inside, outside = step("", risky), step(risky, "")
    assert not proof(inside, outside)
    assert proof(outside, inside)


@pytest.mark.parametrize("risky", [DIVIDE, EXTRACT])
def test_executed_operation_may_repeat_in_branch(risky: str) -> None:
    again = risky.replace("%q", "%p")
    assert proof(step(risky, again, "%p"), step(risky, "")) and proof(step(risky, ""), step(risky, again, "%p"))
    # Undefined behavior has no order: the division runs in any case.
    assert proof(step("", risky, after=again), step(again, "", "%p"))


def test_safe_operation_may_leave_branch() -> None:
    add = DIVIDE.replace("divsi", "addi")
    assert proof(step("", add), step(add, ""))


@pytest.mark.parametrize("risky", [DIVIDE, EXTRACT])
@pytest.mark.parametrize("place", ["before", "inside", "after"])
def test_risky_operation_may_vanish_but_not_appear(risky: str, place: str) -> None:
    risks = {name: risky if name == place else "" for name in ("before", "inside", "after")}
    with_it = step(risks["before"], risks["inside"], "%y", risks["after"])
    without = step("", "", "%y")
    assert proof(with_it, without) and proof(with_it, with_it)
    message = proof(without, with_it)
    assert not message and "may fail and runs only in the rewritten program" in message.reason


@pytest.mark.parametrize("risky", [DIVIDE, EXTRACT])
def test_executed_risky_operation_may_repeat_and_move(risky: str) -> None:
    again = risky.replace("%q", "%p")
    assert proof(step(risky, "", "%y"), step(f"{risky}\n  {again}", "", "%y", risky.replace("%q", "%s")))
    assert proof(step("", risky), step("", f"{again}\n    {risky}", "%q"))


def test_risky_operation_may_not_appear_in_another_branch() -> None:
    """One of two divisions may be removed from a branch, but none added to the other branch."""
    other = step("", DIVIDE).replace("else {", f"else {{\n    {DIVIDE}")
    assert not proof(step("", DIVIDE), other) and proof(other, step("", DIVIDE))


def test_call_runs_risky_operation_at_call_site() -> None:
    called = """
func.func private @g(%x: i32, %y: i32) -> i32 {
  %q = arith.divsi %x, %y : i32
  return %q : i32
}
func.func @f(%c: i1, %x: i32, %y: i32) -> i32 {
  %q = call @g(%x, %y) : (i32, i32) -> i32
  %r = scf.if %c -> (i32) {
    BODY
    scf.yield %q : i32
  } else {
    scf.yield %x : i32
  }
  return %r : i32
}"""
    plain = called.replace("BODY", "").replace("call @g(%x, %y) : (i32, i32) -> i32", "arith.divsi %x, %y : i32")
    inside = called.replace("BODY", "%s = call @g(%x, %x) : (i32, i32) -> i32")
    assert proof(called.replace("BODY", ""), plain) and proof(plain, called.replace("BODY", ""))
    assert not proof(plain, inside) and proof(inside, plain)


def test_last_region_runs_for_too_large_indices() -> None:
    """Of two regions, the last one runs for the index 2 as well."""

    def case(count: int) -> str:
        value = "stablehlo.constant dense<1> : tensor<i32>"
        plain = f"{{\n%v = {value}\nstablehlo.return %v : tensor<i32>\n}}"
        divided = f"{{\n%q = stablehlo.divide %x, %y : tensor<i32>\n%v = {value}\nstablehlo.return %v : tensor<i32>\n}}"
        regions = ", ".join([plain, divided, plain][:count])
        body = f'%r = "stablehlo.case"(%i) ({regions}) : (tensor<i32>) -> tensor<i32>'
        arguments = "%i: tensor<i32>, %x: tensor<i32>, %y: tensor<i32>"
        return f"func.func @f({arguments}) -> tensor<i32> {{\n%o = {value}\n{body}\nreturn %o : tensor<i32>\n}}"

    assert proof(case(2), case(2)) and proof(case(3), case(3))
    assert not proof(case(3), case(2))
