"""Operations that must not run twice (effects, state, unkeyed random numbers), and control flow, which may."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import BoolAttr

from recompute.dialects.names import Names
from recompute.interpreters.execute_check import compare
from recompute.interpreters.executor import execute, function_named
from recompute.interpreters.inputs import random_inputs
from recompute.proof.prove import prove
from recompute.test.conformance.cells import BRANCH, LOOP, RNG, forced, with_effect
from recompute.test.conformance.programs import (
    BEHIND,
    backward,
    check_equal,
    classified,
    cloned,
    copies_in,
    copies_of,
    forward,
    maker,
    names_in,
    net,
    recomputed,
    step,
    undelayed,
)
from recompute.transforms.clone import clone


def test_mindspore_26_copy_reads_parameter_before_update() -> None:
    module = step(
        forward("a", "multiply %x, %w", "cell"),
        forward("e", "exponential %a", "cell"),
        forward("b", "tanh %e", "cell"),
        forward("new", "multiply %w, %w"),
        forward("c", "multiply %b, %new", "next"),
        backward("g", "multiply %ct, %c", "next"),
        backward("k", "multiply %g, %new", "next"),
        backward("h", "multiply %k, %e", "cell"),
        returns="%new, %h",
        arguments="%x: tensor<256xf32>, %ct: tensor<256xf32>, %w: tensor<256xf32>",
    )
    after = cloned(module, "cell")
    (copy,) = copies_of(after, "multiply")
    assert {undelayed(value).name_hint for value in copy.operands} == {"x", "w"}
    check_equal(module, after)


def test_mindspore_27_a_counter_runs_once() -> None:
    line = '  %n = "test.count"(%a) : (tensor<256xf32>) -> tensor<256xf32> loc("jit(f)/jvp(cell)/count")'
    module = with_effect(line, "%n")
    after = cloned(module, "cell")
    assert names_in(after).count("test.count") == 1
    # Its result is saved, and what needs it is recomputed from there.
    assert copies_in(after) == ["sine", "add"]
    assert classified(after).is_forward(maker(after, "n"))
    assert prove(module, after).proved


@pytest.mark.parametrize(
    "line",
    [
        '  "test.print"(%a) : (tensor<256xf32>) -> () loc("jit(f)/jvp(cell)/print")',
        '  "stablehlo.custom_call"(%a) {call_target_name = "print", has_side_effect = true} : '
        '(tensor<256xf32>) -> () loc("jit(f)/jvp(cell)/print")',
    ],
)
def test_mindspore_28_output_is_written_once(line: str) -> None:
    module = with_effect(line)
    name = line.split('"')[1].removeprefix("stablehlo.")
    after = cloned(module, "cell")
    assert names_in(after).count(name) == 1
    assert copies_in(after) == ["sine", "add"]
    assert prove(module, after).proved


def test_mindspore_28_mark_on_write_is_removed_and_reported() -> None:
    line = (
        '  %n = "test.write"(%a) {recompute.recompute = true} : (tensor<256xf32>) -> tensor<256xf32> '
        'loc("jit(f)/jvp(cell)/write")'
    )
    module = with_effect(line, "%n")
    messages = [remark.reason for remark in clone(module).remarks]
    assert messages[0].startswith("test.write is not recomputed: the effects of test.write are unknown")
    assert not any(Names.RECOMPUTE in op.attributes for op in module.walk())


def test_mindspore_29_running_statistics_are_updated_once() -> None:
    module = net("batch_norm")
    result = recomputed(module, "cell")
    assert len(result.copies) > 10
    function = function_named(module)
    inputs = random_inputs(function)
    _, _, mean, variance, _ = execute(function_named(result.after), inputs)
    expected_mean, expected_variance = inputs[0].mean((0, 2, 3)) * 0.1, inputs[0].var((0, 2, 3), ddof=1) * 0.1 + 0.9
    assert np.allclose(mean, expected_mean, rtol=1e-5) and np.allclose(variance, expected_variance, rtol=1e-5)
    assert compare(module, result.after, inputs).equal


def test_mindspore_30_dropout_mask_agrees_in_value_and_gradient() -> None:
    """The mask is the same for 4000 numbers, of which MindSpore's graph mode gets about 2000 wrong."""
    module = net("dropout")
    after = forced(module.clone(), "cell")
    assert "xor" in copies_in(after), "the random bits are drawn again"
    inputs = random_inputs(function_named(module))
    _, value, gradient = execute(function_named(after), inputs)
    assert value.shape == (4000,)
    assert 1800 < int(np.sum(value != 1)) < 2200
    assert int(np.sum((value != 1) != (gradient != 0))) == 0
    check_equal(module, after)


def test_mindspore_30_unseeded_random_is_kept() -> None:
    module = with_effect(RNG.replace("MARK", ""), "%n")
    after = cloned(module, "cell")
    assert names_in(after).count("rng") == 1
    assert copies_in(after) == ["sine", "add"]
    assert prove(module, after).proved


def test_mindspore_30_mark_on_unseeded_random_is_rejected() -> None:
    module = with_effect(RNG.replace("MARK", "recompute.recompute = true, "), "%n")
    result = recomputed(module, "cell")
    assert any("hidden random state: a copy would draw different numbers" in text for text in result.remarks)
    assert "rng" not in result.copies


def test_mindspore_31_random_from_explicit_state_is_copied() -> None:
    module = step(
        "  %s2, %bits = stablehlo.rng_bit_generator %state, algorithm = THREE_FRY : "
        '(tensor<2xui64>) -> (tensor<2xui64>, tensor<256xui32>) loc("jit(f)/jvp(cell)/rng")',
        forward("r", "convert %bits", "cell", types="(tensor<256xui32>) -> tensor<256xf32>"),
        forward("a", "multiply %x, %r", "cell"),
        forward("b", "tanh %a", "cell"),
        *BEHIND,
        backward("h", "multiply %g, %r", "cell"),
        arguments="%x: tensor<256xf32>, %ct: tensor<256xf32>, %state: tensor<2xui64>",
        returns="%d, %h",
    )
    after = cloned(module, "cell")
    (copy,) = copies_of(after, "rng_bit_generator")
    # The same state: the argument, behind the token.
    assert undelayed(copy.operands[0]) is classified(after).order.block.args[2]
    check_equal(module, after)


@pytest.mark.parametrize("name", ["send", "recv"])
def test_mindspore_34_communication_is_never_copied(name: str) -> None:
    line = (
        f'  %n = "stablehlo.{name}"(%a) {{recompute.recompute = true}} : '
        f'(tensor<256xf32>) -> tensor<256xf32> loc("jit(f)/jvp(cell)/{name}")'
    )
    module = with_effect(line, "%n")
    after = module.clone()
    messages = [remark.reason for remark in clone(after).remarks]
    assert messages[:1] == [f"stablehlo.{name} is not recomputed: it communicates with other devices"]
    assert names_in(after).count(name) == 1


@pytest.mark.parametrize(("line", "result", "name"), [(LOOP, "%w#1", "while"), (BRANCH, "%w", "if")])
def test_mindspore_35_control_flow_is_copied_whole(line: str, result: str, name: str) -> None:
    """A loop is copied as a whole; MindSpore silently makes no copy."""
    module = with_effect(line, result)
    after = cloned(module, "cell")
    (copy,) = copies_of(after, name)
    (original,) = [op for op in module.walk() if op.name == copy.name]
    assert [len(list(r.block.ops)) for r in copy.regions] == [len(list(r.block.ops)) for r in original.regions]
    check_equal(module, after)


def test_mindspore_35_control_flow_with_effect_is_rejected() -> None:
    line = LOOP.replace(
        "%s = stablehlo.sine %v : tensor<256xf32>",
        '%s = "test.draw"(%v) : (tensor<256xf32>) -> tensor<256xf32>',
    )
    module = with_effect(line, "%w#1")
    loop = next(op for op in module.walk() if op.name == "stablehlo.while")
    loop.attributes[Names.RECOMPUTE] = BoolAttr.from_bool(True)
    messages = [remark.reason for remark in clone(module).remarks]
    assert any("test.draw inside: the effects of test.draw are unknown" in text for text in messages)
    assert copies_of(module, "while") == []
