"""Binomial checkpointing of loops: results are unchanged, and no more iterations are repeated than Revolve needs.

`python -m recompute.test.unit.transforms.rolled.test_binomial` runs the whole grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from typing_extensions import override
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from recompute.dialects.context import make_context
from recompute.driver.api import rewrite
from recompute.interpreters.block_programs import Observer
from recompute.interpreters.executor import execute, function_named
from recompute.mlir_io.parser import parse_module
from recompute.options.recompute_options import RecomputeOptions
from recompute.options.selection import BadSelection
from recompute.planning.binomial import advances
from recompute.search.local_choices.recompute_loops import recompute_loops
from recompute.support.counted import counted

STEP = """
func.func public @main(%x: tensor<5xf32>, %ct: tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>) {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %f = stablehlo.constant dense<0.0> : tensor<f32>
  %empty = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<{n}x5xf32>
  %n, %y, %s = stablehlo.while(%i = %zero, %h = %x, %a = %empty) : tensor<i32>, tensor<5xf32>, tensor<{n}x5xf32>
  cond {{
    %end = stablehlo.constant dense<{n}> : tensor<i32>
    %c = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %o = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %float = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
    %wide = stablehlo.broadcast_in_dim %float, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %p = stablehlo.add %h, %wide : tensor<5xf32>
    %t = stablehlo.cosine %p : tensor<5xf32>
    %t1 = stablehlo.broadcast_in_dim %t, dims = [1] : (tensor<5xf32>) -> tensor<1x5xf32>
    %a1 = stablehlo.dynamic_update_slice %a, %t1, %i, %o : (tensor<{n}x5xf32>, tensor<1x5xf32>, tensor<i32>, tensor<i32>) -> tensor<{n}x5xf32>
    %next = stablehlo.sine %p : tensor<5xf32>
    %i1 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %i1, %next, %a1 : tensor<i32>, tensor<5xf32>, tensor<{n}x5xf32>
  }}
  %m, %g = stablehlo.while(%j = %zero, %d = %ct) : tensor<i32>, tensor<5xf32>
  cond {{
    %end = stablehlo.constant dense<{n}> : tensor<i32>
    %c = stablehlo.compare LT, %j, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %o = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %last = stablehlo.constant dense<{last}> : tensor<i32>
    %at = stablehlo.subtract %last, %j : tensor<i32>
    %t1 = stablehlo.dynamic_slice %s, %at, %o, sizes = [1, 5] : (tensor<{n}x5xf32>, tensor<i32>, tensor<i32>) -> tensor<1x5xf32>
    %t = stablehlo.reshape %t1 : (tensor<1x5xf32>) -> tensor<5xf32>
    %q = stablehlo.multiply %d, %t : tensor<5xf32>
    %j1 = stablehlo.add %j, %one : tensor<i32>
    stablehlo.return %j1, %q : tensor<i32>, tensor<5xf32>
  }}
  func.return %y, %g : tensor<5xf32>, tensor<5xf32>
}}
"""  # noqa: E501
INPUTS = [np.linspace(-1, 1, 5, dtype=np.float32), np.ones(5, np.float32)]


def step(iterations: int) -> ModuleOp:
    return parse_module(STEP.format(n=iterations, last=iterations - 1), "step.mlir", make_context())


class Count(Observer):
    """An observer that counts executions of the operation that makes the next carry."""

    def __init__(self) -> None:
        self.carries = 0

    @override
    def on_yield(self, op: Operation, arrays: Sequence[Any]) -> None:
        pass

    @override
    def on_carry(self, op: Operation, arrays: Sequence[Any]) -> None:
        pass

    @override
    def on_results(self, op: Operation, arrays: Sequence[Any]) -> None:
        self.carries += op.name == "stablehlo.sine"


def check(iterations: int, slots: int) -> None:
    """Compare bit for bit, and count iterations: our first pass runs the last iteration too, which Revolve leaves
    out."""
    module, count = step(iterations), Count()
    expected = execute(function_named(module), INPUTS)
    rolled = recompute_loops(module, loops=f"binomial({slots})")
    module.verify()
    held = f"saves its carries in {counted(slots, 'slot')}"
    assert any(held in str(remark) for remark in rolled.remarks), rolled.remarks
    results = execute(function_named(module), INPUTS, count)
    assert [entry.tobytes() for entry in results] == [item.tobytes() for item in expected]
    assert count.carries == advances(iterations, slots) + 1


@pytest.mark.parametrize(("iterations", "slots"), [(4, 1), (8, 3), (13, 2), (30, 4), (60, 8)])
def test_iterations_are_as_few_as_revolve_needs(iterations: int, slots: int) -> None:
    check(iterations, slots)


def test_byte_limit_determines_the_number_of_slots() -> None:
    """As many slots are used as the byte limit allows; a carry and the slice of an iteration have 20 bytes each."""
    module = step(30)
    rolled = recompute_loops(module, loops="binomial(130B)")
    assert any("in 4 slots, 120 bytes instead of 600 bytes of stacks" in str(remark) for remark in rolled.remarks), (
        rolled.remarks
    )


def test_slots_that_need_more_than_stacks_are_refused() -> None:
    rolled = recompute_loops(step(8), loops="binomial(8)")
    assert not rolled.copies or all("slots" not in str(remark) for remark in rolled.remarks)
    assert any("but its stacks need only 160" in str(remark) for remark in rolled.remarks), rolled.remarks


def test_binomial_loops_require_proof_off() -> None:
    with pytest.raises(BadSelection, match=r"proof=False"):
        rewrite(step(30), RecomputeOptions(loops="binomial(4)"))


def main() -> None:
    grid = [(iterations, slots) for slots in range(1, 9) for iterations in range(slots + 3, 61)]
    for iterations, slots in grid:
        check(iterations, slots)
    print(f"{len(grid)} pairs of iterations and slots: each runs as few iterations as Revolve, and the same bits")


if __name__ == "__main__":
    main()
