"""The proof preserves the number and order of effects in loops; pure custom calls are functions of their operands."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from recompute.mlir_io.parser import parse_module
from recompute.proof.prove import ProofOptions, prove
from recompute.proof.verdicts.verdict import Proof
from recompute.test.unit.proof.loop_rules.test_prove_loops import CUT, PLAIN, SECOND

V = "tensor<4xf32>"


def call(target: str, operand: str, result: str = "", attributes: str = "has_side_effect = true") -> str:
    """Return a custom call of one operand, with a result if `result` names one."""
    left = f"%{result} = " if result else ""
    type_ = V if result else "()"
    return f"    {left}stablehlo.custom_call @{target}(%{operand}) {{{attributes}}} : ({V}) -> {type_}\n"


def before_first(anchor: str, what: str, text: str) -> str:
    assert anchor in text
    return text.replace(anchor, what + anchor, 1)


NEXT, BACKWARD = "    %next = stablehlo.sine", "    %q = stablehlo.add"
LOG = call("log", "t")


def logged(text: str, *calls: str) -> str:
    """Return the text with these calls added to the body of its first loop."""
    return before_first(NEXT, "".join(calls), text)


def in_second(text: str, what: str) -> str:
    return text[:SECOND] + before_first(BACKWARD, what, text[SECOND:])


def proof(before: str, after: str, repeatable: Collection[str] = ()) -> Proof:
    first, second = (parse_module(text, "loops.mlir") for text in (before, after))
    first.verify()
    second.verify()
    return prove(first, second, ProofOptions(repeatable=repeatable))


READ = "stablehlo.sine %r0 "
"""What an effect returned goes on into the next iteration."""


def reading(text: str) -> str:
    return logged(text, call("read", "t", "r0")).replace("%next = stablehlo.sine %t ", "%next = " + READ)


EQUAL = {
    "an effect in the first loop": (logged(PLAIN, LOG), logged(CUT, LOG)),
    "two effects in their order": (logged(PLAIN, LOG, call("tell", "h")), logged(CUT, LOG, call("tell", "h"))),
    "what an effect returns is carried": (reading(PLAIN), reading(CUT)),
    "an effect in each of the loops": (
        in_second(logged(PLAIN, LOG), call("log", "d")),
        in_second(logged(CUT, LOG), call("log", "d")),
    ),
}
UNEQUAL = {
    "an effect is gone": (logged(PLAIN, LOG), CUT),
    "an effect is new": (PLAIN, logged(CUT, LOG)),
    "an effect runs twice": (logged(PLAIN, LOG), logged(CUT, LOG, LOG)),
    "an effect of another value": (logged(PLAIN, LOG), logged(CUT, call("log", "h"))),
    "another effect": (logged(PLAIN, LOG), logged(CUT, call("tell", "t"))),
    "in another order": (logged(PLAIN, LOG, call("tell", "h")), logged(CUT, call("tell", "h"), LOG)),
    "in the other loop": (logged(PLAIN, LOG), in_second(CUT, LOG)),
    "in the other loop too": (logged(PLAIN, LOG), in_second(logged(CUT, LOG), LOG)),
    "after the loop": (
        logged(PLAIN, LOG),
        before_first("  func.return", call("log", "y"), CUT),
    ),
    "what an effect returned runs again": (
        reading(PLAIN),
        in_second(reading(CUT), call("read", "t", "r0")).replace(
            "%q = stablehlo.add %d, %t", "%q = stablehlo.add %d, %r0"
        ),
    ),
    "once more": (
        logged(PLAIN, LOG),
        logged(CUT, LOG).replace("%end = stablehlo.constant dense<6>", "%end = stablehlo.constant dense<7>", 1),
    ),
}


@pytest.mark.parametrize("name", EQUAL)
def test_unchanged_effects_in_loops_are_proved(name: str) -> None:
    before, after = EQUAL[name]
    result = proof(before, after)
    assert result and result.tier == 2, result.reason
    assert proof(after, before)


@pytest.mark.parametrize("name", UNEQUAL)
def test_effects_in_loops_are_compared(name: str) -> None:
    before, after = UNEQUAL[name]
    assert not proof(before, after)
    assert not proof(after, before)


def straight(*lines: str) -> str:
    body = "".join(lines)
    return (
        f"func.func public @main(%x: {V}, %c: tensor<i1>) -> ({V}, {V}) {{\n{body}  func.return %a, %b : {V}, {V}\n}}"
    )


def twice(target: str, attributes: str = "") -> str:
    return straight(call(target, "x", "a", attributes), call(target, "x", "b", attributes))


def once(target: str, attributes: str = "") -> str:
    return straight(call(target, "x", "a", attributes), f"    %b = stablehlo.optimization_barrier %a : {V}\n")


@pytest.mark.parametrize("target", ["lapack_spotrf_ffi", "__cudnn$convForward", "tpu_custom_call", "Sharding"])
def test_known_targets_are_pure(target: str) -> None:
    assert proof(once(target), twice(target)) and proof(twice(target), once(target))
    assert proof(once(target, "has_side_effect = false"), twice(target, "has_side_effect = false"))
    assert not proof(once(target, "has_side_effect = true"), twice(target, "has_side_effect = true"))
    assert not proof(once(target), twice(target, 'backend_config = "2"'))
    assert not proof(
        once(target),
        once(target).replace("(%x)", "(%a0)").replace("    %a =", f"    %a0 = stablehlo.sine %x : {V}\n    %a =", 1),
    )


@pytest.mark.parametrize("target", ["mine", "xla.sdy.GlobalToLocalShape", "annotate_bundle", "recompute.unknown"])
def test_unknown_targets_are_effects(target: str) -> None:
    assert proof(once(target), once(target))
    assert not proof(once(target), twice(target)) and not proof(twice(target), once(target))


def test_user_may_declare_a_target_pure() -> None:
    declared = once("mine", "recompute.repeatable")
    result = proof(declared, twice("mine"))
    assert result.assumptions == ("assuming, unverified, that these operations are pure: stablehlo.custom_call @mine",)
    assert proof(once("mine"), twice("mine"), repeatable=["mine"])
    assert not proof(once("mine"), twice("mine"), repeatable=["other"])


def test_declaration_in_the_program_after_is_ignored() -> None:
    assert not proof(once("mine"), twice("mine", "recompute.repeatable"))


def test_declaration_does_not_override_side_effects() -> None:
    attributes = "has_side_effect = true, recompute.repeatable"
    assert not proof(once("mine", attributes), twice("mine", attributes), repeatable=["mine"])


def test_kernel_may_not_be_hoisted_out_of_branch() -> None:
    """A kernel that is hoisted out of the branch that guards it is rejected."""
    branch = (
        '    %a = "stablehlo.if"(%c) ({{\n  {call}      stablehlo.return %k : {V}\n    }}, {{\n'
        "      stablehlo.return %x : {V}\n    }}) : (tensor<i1>) -> {V}\n    %b = stablehlo.sine %a : {V}\n"
    )
    kernel = call("tpu_custom_call", "x", "k", "")
    inside = straight(branch.format(call=kernel, V=V))
    hoisted = straight(kernel, branch.format(call="", V=V))
    assert proof(inside, inside) and not proof(inside, hoisted) and proof(hoisted, inside)


def test_token_attribute_is_ignored_on_tokens_only() -> None:
    """The attribute `jax.token` is ignored on a token, whose type it repeats, but compared on any other value."""
    text = """
func.func public @main(%x: tensor<4xf32>, %t: !stablehlo.token) -> tensor<4xf32> {{
  %a, %u = func.call @f(%x, %t) : (tensor<4xf32>, !stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
  func.return %a : tensor<4xf32>
}}
func.func private @f(%x: tensor<4xf32> {on_value}, %t: !stablehlo.token {on_token}) -> (tensor<4xf32>, !stablehlo.token) {{
  %a = stablehlo.sine %x : tensor<4xf32>
  func.return %a, %t : tensor<4xf32>, !stablehlo.token
}}
"""  # noqa: E501
    plain = text.format(on_value="", on_token="")
    message = "{jax.token = true}"
    assert proof(plain, text.format(on_value="", on_token=message))
    assert not proof(plain, text.format(on_value=message, on_token=""))
