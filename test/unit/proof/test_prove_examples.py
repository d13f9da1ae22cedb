"""Training steps as JAX lowers them are proved equal to themselves, also if renamed or with `jax.checkpoint`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.dialects.func import CallOp, FuncOp

from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.proof.prove import prove
from recompute.test.examples import FOLDER, REPRESENTATIVE, original

pytestmark = pytest.mark.slow

TWINS = sorted(path.name.removesuffix(".small.checkpoint.mlir") for path in FOLDER.glob("*.small.checkpoint.mlir"))


def example(name: str) -> ModuleOp:
    return original(f"{name}.mlir")


def renamed(module: ModuleOp) -> ModuleOp:
    """Return the program with other names of functions, values and module, and its functions in reverse order."""
    module = module.clone()
    module.properties["sym_name"] = StringAttr("another_name")
    for op in list(module.walk()):
        for result in op.results:
            result.name_hint = None
        if isinstance(op, CallOp):
            op.callee = SymbolRefAttr(f"x_{op.callee.root_reference.data}")
        if isinstance(op, FuncOp) and op.sym_name.data != "main":
            op.sym_name = StringAttr(f"x_{op.sym_name.data}")
    ops = list(module.ops)
    for op in ops:
        op.detach()
    module.body.block.add_ops(reversed(ops))
    return module


def test_examples_are_found() -> None:
    assert len(TWINS) >= 4


@pytest.mark.parametrize("name", TWINS)
def test_steps_with_jax_checkpoint_are_proved(name: str) -> None:
    before, after = example(f"{name}.small"), example(f"{name}.small.checkpoint")
    proof = prove(before, after)
    assert proof.proved, proof.reason
    assert proof.operations_before < proof.operations_after
    assert prove(after, before).proved


@pytest.mark.parametrize("name", REPRESENTATIVE)
def test_renamed_programs_are_proved(name: str) -> None:
    for variant in ("small", "small.checkpoint"):
        proof = prove(example(f"{name}.{variant}"), renamed(example(f"{name}.{variant}")))
        assert proof.proved, proof.reason


@pytest.mark.parametrize("name", REPRESENTATIVE)
def test_printed_and_parsed_module_is_proved(name: str) -> None:
    module = example(f"{name}.small.checkpoint")
    proof = prove(module, parse_module(print_module(module, debuginfo=True), "printed.mlir"))
    assert proof.proved, proof.reason


def test_steps_of_other_sizes_are_not_proved() -> None:
    proof = prove(example("chain.small"), example("chain.large"))
    assert proof.reason.startswith("@main differs: before function_type = (tensor<8x8xf32>)")


def test_first_difference_is_located_in_the_source() -> None:
    assert difference() == (
        "result #0 of @main differs: stablehlo.dot_general operand 1: "
        "before argument 0 of @main, after argument 2 of @main"
    )


def difference() -> str:
    """Return the reason of the proof where the first layer reads the weights of the second."""
    after = example("mlp.small.checkpoint").clone()
    product = next(op for op in after.walk() if op.name == "stablehlo.dot_general")
    function = product.parent_op()
    assert isinstance(function, FuncOp)
    product.operands[1] = function.args[2]
    return prove(example("mlp.small"), after).reason


@pytest.mark.slow
def test_reason_is_independent_of_the_hash_seed() -> None:
    script = f"import runpy; print(runpy.run_path({str(Path(__file__))!r})['difference']())"
    reasons: set[str] = set()
    for seed in ("0", "1", "2"):
        completed = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": seed}
        )
        assert completed.returncode == 0, completed.stderr
        reasons.add(completed.stdout.strip())
    assert reasons == {difference()}
