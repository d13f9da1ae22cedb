"""Options of `recompute-clone` that permit operations to run twice, and nothing beyond these."""

from __future__ import annotations

import pytest

from recompute.mlir_io.parser import parse_module
from recompute.rules import collective, register, registrations_undone
from recompute.rules.effects import NO_PERMISSION, Permission

PROGRAM = """
func.func @f(%x: tensor<4xf32>, %p: tensor<i1>, %n: tensor<1xi64>, %z: tensor<f32>, %m: memref<4xf32>) {
  %sine = stablehlo.sine %x : tensor<4xf32>
  %rng = "stablehlo.rng"(%z, %z, %n) {rng_distribution = #stablehlo<rng_distribution UNIFORM>}
    : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
  %gather = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %sum = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  %foreign_sum = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = "acme.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  %sum_in_memory = "acme.sum"(%m) : (memref<4xf32>) -> f32
  %branch = "stablehlo.if"(%p) ({
    %c = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
    stablehlo.return %c : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  %call = stablehlo.custom_call @g(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %unknown = "acme.add"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %received = "stablehlo.recv"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}
"""
ALLOWED = [
    (NO_PERMISSION, {"sine"}),
    (Permission(preserve_rng_state=False), {"sine", "rng"}),
    (Permission(collectives=True), {"sine", "gather", "sum"}),
    (Permission(collectives=True, preserve_rng_state=False), {"sine", "rng", "gather", "sum"}),
]


@pytest.mark.parametrize(("permission", "allowed"), ALLOWED)
def test_permission_controls_recomputation(permission: Permission, allowed: set[str]) -> None:
    """Permit a collective, but no communication inside a branch, in which some devices might not take part again.

    The other conditions on a collective remain: no unknown operation in its body, and no access to memory.
    """
    (function,) = parse_module(PROGRAM, "f.mlir").ops
    ops = [op for op in function.regions[0].block.ops if op.results]
    with registrations_undone():
        register("acme.sum", collective())
        name_hints = {op.results[0].name_hint for op in ops if permission.why_not(op) is None}
    assert name_hints == allowed
