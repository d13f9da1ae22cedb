"""The tables of facts are complete: a missing entry fails here, rather than as a silent refusal to recompute."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import UnregisteredOp
from xdsl.dialects.func import Func
from xdsl.dialects.linalg import Linalg
from xdsl.dialects.math import Math
from xdsl.dialects.memref import MemRef
from xdsl.dialects.scf import Scf
from xdsl.dialects.tensor import Tensor
from xdsl.irdl import IRDLOperation
from xdsl.traits import MemoryAllocEffect, MemoryFreeEffect, MemoryReadEffect, MemoryWriteEffect

from recompute.dialects.arith import ARITH
from recompute.dialects.chlo import CHLO
from recompute.dialects.recompute import RECOMPUTE
from recompute.dialects.sdy import SDY
from recompute.dialects.stablehlo import STABLEHLO
from recompute.dialects.stablehlo.binary import BINARY
from recompute.dialects.stablehlo.compare_select import ELEMENTWISE
from recompute.dialects.stablehlo.unary import UNARY
from recompute.mlir_io.parser import parse_module
from recompute.proof.operations.pure_operations import PURE_OPERATIONS
from recompute.rules import pure, register, registrations_undone
from recompute.rules.effects import IMPURE, PURE, PURE_IF_BODY_IS, TERMINATORS, reads_memory, why_impure, writes_memory
from recompute.rules.facts import COMMUNICATION_REASON, Effect, OpClass
from recompute.rules.fusion import EXPENSIVE, FUSIBLE
from recompute.rules.registry import facts_by_name, facts_of

TABLES = {"PURE": PURE, "PURE_IF_BODY_IS": PURE_IF_BODY_IS, "TERMINATORS": TERMINATORS, "IMPURE": IMPURE}


OUR_KINDS = [op for dialect in (STABLEHLO, CHLO, SDY, RECOMPUTE) for op in dialect.operations]
OURS = sorted(op.name for op in OUR_KINDS)


@pytest.mark.parametrize("name", OURS)
def test_each_operation_class_is_in_one_effect_table(name: str) -> None:
    assert len([table for table, names in TABLES.items() if name in names]) == 1


COLLECTIVES = """
all_gather all_reduce all_to_all collective_broadcast collective_permute collective_reduce reduce_scatter
"""
SHARDY_COLLECTIVES = """
all_gather all_reduce all_slice all_to_all collective_permute reduce_scatter replicated_to_unreduced
sharded_to_unreduced
"""
# By the specifications of StableHLO, Shardy and MLIR, written out by hand, so that a change of the tables is noticed.
NOT_TWICE = {
    "it draws from a hidden random state": "stablehlo.rng",
    "the effects of a custom call are unknown": "stablehlo.custom_call",
    "it receives data from outside the program": "stablehlo.infeed",
    "it sends data out of the program": "stablehlo.outfeed",
    "it communicates with other devices": "stablehlo.send stablehlo.recv",
    "it is a collective, and": " ".join(f"stablehlo.{name}" for name in COLLECTIVES.split()),
    "it is a Shardy collective": " ".join(f"sdy.{name}" for name in SHARDY_COLLECTIVES.split()),
    "its operand owns a Shardy edge": "sdy.data_flow_edge sdy.func_data_flow_edge",
    "it adds its operand to a sharding group": "sdy.sharding_group",
    "it orders effects": "stablehlo.after_all stablehlo.create_token",
    "it runs asynchronously": "stablehlo.async_start stablehlo.async_done",
    "a composite can be recomputed only after inlining: run recompute-inline-composites": "stablehlo.composite",
    "its iterations are combined in an unspecified order": "scf.parallel scf.forall scf.reduce",
    "a call can be recomputed only after inlining: run recompute-inline": "func.call",
    "its callee is unknown": "func.call_indirect",
    "it allocates memory, and a copy would allocate different memory": "memref.alloc memref.alloca",
    "it refers to memory, which may change": "memref.subview memref.get_global memref.dim memref.transpose",
    "it declares memory": "memref.global",
    "it reads memory that may be overwritten before the copy runs": "memref.load",
    "it writes memory": "memref.store memref.realloc memref.generic_atomic_rmw memref.prefetch",
}


@pytest.mark.parametrize("reason", NOT_TWICE)
def test_impure_operations_give_their_reason(reason: str) -> None:
    for name in NOT_TWICE[reason].split():
        message = why_impure(UnregisteredOp.with_name(name).create())
        assert message is not None and message.startswith(reason), name


# The proof sees through these, or never meets them in a function.
OF_THE_PASSES = """
func.constant recompute.depend recompute.gradient recompute.segment sdy.mesh stablehlo.optimization_barrier
"""


def test_passes_and_proof_agree_on_pure_operations() -> None:
    """Compare two independently written lists of pure operations, so that an error in one shows against the other.

    For the operations of PyTorch, of which the rules have more, see `test_pure_operations.py`.
    """
    ours = {*PURE, *PURE_IF_BODY_IS}
    assert {name for name in ours - PURE_OPERATIONS if not name.startswith("torch.")} == set(OF_THE_PASSES.split())
    assert ours >= PURE_OPERATIONS


@pytest.mark.parametrize("kind", [*UNARY, *BINARY, *ELEMENTWISE], ids=lambda kind: kind.name)
def test_xla_model_fuses_each_elementwise_operation(kind: type[IRDLOperation]) -> None:
    assert kind.name in FUSIBLE


def test_fusions_duplicate_arithmetic_but_not_functions() -> None:
    cheap = {"stablehlo.add", "stablehlo.cosine", "stablehlo.sine", "stablehlo.transpose"}
    expensive = {"stablehlo.divide", "stablehlo.exponential", "stablehlo.pad", "stablehlo.remainder", "stablehlo.tanh"}
    assert cheap <= FUSIBLE - EXPENSIVE and expensive <= EXPENSIVE


OTHER_KINDS = [op for dialect in (ARITH, Math, Tensor, Linalg, Scf, MemRef, Func) for op in dialect.operations]
OTHERS = sorted(op.name for op in OTHER_KINDS)


@pytest.mark.parametrize("name", OTHERS)
def test_other_dialect_operations_are_in_one_effect_table(name: str) -> None:
    listed = [table for table, names in TABLES.items() if name in names]
    assert len(listed) == (0 if name == "func.func" else 1)


ON_MEMORY = (MemoryReadEffect, MemoryWriteEffect, MemoryAllocEffect, MemoryFreeEffect)


@pytest.mark.parametrize("kind", [*OUR_KINDS, *OTHER_KINDS], ids=lambda kind: kind.name)
def test_effects_of_bodies_and_memory_are_considered(kind: type[IRDLOperation]) -> None:
    """The tables agree with the traits of xDSL's classes, which follow MLIR."""
    if kind.get_irdl_definition().regions:
        assert kind.name not in PURE
    if any(kind.has_trait(effect) for effect in ON_MEMORY):
        assert kind.name not in PURE and kind.name not in PURE_IF_BODY_IS


def test_registration_extends_effect_tables() -> None:
    with registrations_undone():
        register("acme.swish", pure())
        assert "acme.swish" in PURE and "acme.swish" in list(PURE) and "acme.swish" not in PURE_IF_BODY_IS
        assert "acme.swish" in PURE - TERMINATORS and "acme.swish" not in {"acme.swish"} - PURE
    assert "acme.swish" not in PURE and len(PURE) == len(list(PURE)) and set(PURE) == PURE


def test_collectives_and_communication_are_listed() -> None:
    """Collectives and communication are listed explicitly, since other code relies on these classes."""
    for name in COLLECTIVES.split():
        facts = facts_by_name(f"stablehlo.{name}")
        assert facts is not None and facts.op_classes == {OpClass.COLLECTIVE}
    for name in ("send", "recv"):
        facts = facts_by_name(f"stablehlo.{name}")
        assert facts is not None and (facts.effect, facts.reason) == (Effect.IMPURE, COMMUNICATION_REASON)


def test_random_bits_from_explicit_state_are_pure() -> None:
    text = """func.func @f(%state: tensor<2xui64>) {
      %next, %bits = stablehlo.rng_bit_generator %state, algorithm = THREE_FRY
        : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
      return
    }"""
    (op,) = [op for op in parse_module(text, "f.mlir").walk() if op.name == "stablehlo.rng_bit_generator"]
    facts = facts_of(op)
    assert facts is not None and facts.state == 0 and why_impure(op) is None


MEMORY = """
func.func @f(%m: memref<4xf32>, %x: tensor<4xf32>, %f: f32, %p: i1, %o: memref<4xf32>) {
  %i = arith.constant 0 : index
  %load = memref.load %m[%i] : memref<4xf32>
  memref.store %f, %m[%i] : memref<4xf32>
  linalg.fill ins(%f : f32) outs(%m : memref<4xf32>)
  %tensor = linalg.fill ins(%f : f32) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  %which = arith.select %p, %m, %o : memref<4xf32>
  %if = scf.if %p -> (f32) {
    %inner = memref.load %m[%i] : memref<4xf32>
    scf.yield %inner : f32
  } else {
    scf.yield %f : f32
  }
  %for = scf.for %j = %i to %i step %i iter_args(%acc = %f) -> (f32) {
    %next = math.exp %acc : f32
    scf.yield %next : f32
  }
  func.return
}
"""
ON_A_MEMREF = (
    "it operates on a memref, whose contents may change before the copy runs: "
    "recompute on tensors, before bufferization"
)
REASONS = {
    "memref.load": "it reads memory that may be overwritten before the copy runs",
    "memref.store": "it writes memory",
    "linalg.fill on a memref": ON_A_MEMREF,
    "linalg.fill": None,
    "arith.select": ON_A_MEMREF,
    "scf.if": "memref.load inside: it reads memory that may be overwritten before the copy runs",
    "scf.for": None,
}


def test_memory_is_not_read_or_written_twice() -> None:
    (function,) = parse_module(MEMORY, "f.mlir").ops
    result = dict[str, str | None]()
    for op in function.regions[0].block.ops:
        on_memory = op.name == "linalg.fill" and not op.results
        result[op.name + (" on a memref" if on_memory else "")] = why_impure(op)
    assert {name: result[name] for name in REASONS} == REASONS


def test_memory_operations_have_the_expected_kind() -> None:
    operations = {op.name: op for op in parse_module(MEMORY, "f.mlir").walk()}
    assert reads_memory(operations["memref.load"]) and not writes_memory(operations["memref.load"])
    assert writes_memory(operations["memref.store"])
