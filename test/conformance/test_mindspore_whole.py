"""Whole nets: equal bits, equal bytes, and no change by a second run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from recompute.dialects.names import Names
from recompute.interpreters.execute_check import compare
from recompute.interpreters.executor import execute, function_named
from recompute.interpreters.inputs import random_inputs
from recompute.interpreters.kernels.arrays import Array
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.options.recompute_options import RecomputeOptions
from recompute.options.selection import Selection
from recompute.proof.prove import prove
from recompute.rewriting.rewrite import rewrite_in_place
from recompute.test.conformance.programs import (
    NETS,
    backward,
    chain,
    check_equal,
    cloned,
    copies_in,
    forward,
    net,
    recomputed,
    same_bits,
    step,
)

pytestmark = pytest.mark.slow

REGIONS = {
    "attention": "auto",
    "batch_norm": "cell",
    "branches": "*",
    "exp_sqrt_exp_tanh": "auto",
    "fleet": "block[12]",
    "gumbel": "segment*",
    "layers": "segment*",
    "layers_dropout": "segment*",
    "rrelu": "segment*",
    "sin_exp_cos_tanh": "auto",
}
CHAINS: dict[str, Callable[[], ModuleOp]] = {
    name: lambda name=name: net(name) for name in ("attention", "layers_dropout", "fleet")
}


@pytest.mark.parametrize("name", sorted(CHAINS))
def test_mindspore_23_a_second_run_changes_nothing(name: str) -> None:
    once = recomputed(CHAINS[name](), REGIONS[name]).after
    text = print_module(once, debuginfo=True)
    assert rewrite_in_place(once, RecomputeOptions(Selection(REGIONS[name]))).copies == 0
    assert print_module(once, debuginfo=True) == text


@pytest.mark.parametrize("name", sorted(CHAINS))
def test_mindspore_24_compiling_twice_gives_the_same_bytes(name: str) -> None:
    source = (NETS / f"{name}.mlir").read_text()
    texts = list[str]()
    for _ in range(2):
        module = parse_module(source, name)
        assert rewrite_in_place(module, RecomputeOptions(Selection(REGIONS[name]))).copies > 0
        texts.append(print_module(module, debuginfo=True))
        numbers = [op.attributes[Names.ID] for op in module.walk() if Names.COPY in op.attributes]
        assert len(set(numbers)) == len(numbers) and min(int(n.value.data) for n in numbers) == 0  # pyright: ignore
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", sorted(REGIONS))
def test_mindspore_39_equal_bits_and_a_lower_peak(name: str) -> None:
    result = recomputed(net(name), REGIONS[name])
    assert result.copies and result.saving < 1
    assert prove(result.before, result.after).proved
    assert compare(result.before, result.after, random_inputs(function_named(result.before))).equal


def train(module: ModuleOp, steps: int) -> list[Array]:
    """Return the losses of some steps of gradient descent on the parameters, which are the first inputs."""
    function = function_named(module)
    inputs = [np.asarray(array * 10) for array in random_inputs(function)]
    losses = list[Array]()
    for _ in range(steps):
        loss, *gradients = execute(function, inputs)
        losses.append(loss)
        for index, gradient in enumerate(gradients):
            inputs[index] = np.asarray(inputs[index] - np.float32(0.1) * gradient)
    return losses


def test_mindspore_39_five_steps_of_training_are_the_same() -> None:
    result = recomputed(net("layers"), "segment*")
    assert result.copies
    before, after = train(result.before, 5), train(result.after, 5)
    assert same_bits(before, after)
    assert len({float(loss) for loss in before}) == 5


def test_mindspore_39_gradient_inside_loss_is_forward() -> None:
    """The outermost differentiation determines the phases, as for a gradient penalty."""
    inner = "jit(f)/jvp(transpose(jvp(cell)))"
    module = step(
        forward("a", "exponential %x", "cell"),
        forward("b", "sqrt %a", "cell"),
        f'  %i = stablehlo.multiply %b, %a : tensor<256xf32> loc("{inner}/mul")',
        f'  %j = stablehlo.exponential %i : tensor<256xf32> loc("{inner}/exp")',
        forward("c", "tanh %j", "loss"),
        backward("h", "multiply %ct, %c", "loss"),
        '  %k = stablehlo.multiply %h, %j : tensor<256xf32> loc("jit(f)/transpose(jvp(transpose(jvp(cell))))/mul")',
        '  %l = stablehlo.multiply %k, %b : tensor<256xf32> loc("jit(f)/transpose(jvp(jvp(cell)))/mul")',
        backward("m", "multiply %l, %a", "cell"),
        returns="%c, %m",
    )
    after = cloned(module, "cell")
    assert {"exponential", "sqrt"} <= set(copies_in(after))
    check_equal(module, after)


def test_mindspore_39_a_wrong_copy_is_seen() -> None:
    """The comparison detects a wrong copy."""
    result = recomputed(chain(["exponential", "sqrt", "exponential", "tanh"], 4))
    copy = next(op for op in result.after.walk() if Names.COPY in op.attributes and op.name == "stablehlo.sqrt")
    copy.results[0].replace_all_uses_with(copy.operands[0])
    assert not prove(result.before, result.after).proved
    assert not compare(result.before, result.after, random_inputs(function_named(result.before))).equal
