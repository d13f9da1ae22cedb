"""Facts as tables: a missing entry shows here, not as a silent refusal to recompute."""

from __future__ import annotations

import pytest
from xdsl.dialects.arith import Arith
from xdsl.dialects.func import Func
from xdsl.dialects.linalg import Linalg
from xdsl.dialects.math import Math
from xdsl.dialects.memref import MemRef
from xdsl.dialects.scf import Scf
from xdsl.dialects.tensor import Tensor

from recompute.dialects.chlo import CHLO
from recompute.dialects.parser import parse_module
from recompute.dialects.recompute import RECOMPUTE
from recompute.dialects.sdy import SDY
from recompute.dialects.stablehlo import STABLEHLO
from recompute.rules import pure, register, registrations_undone
from recompute.rules.effects import IMPURE, PURE, PURE_IF_BODY_IS, TERMINATORS, why_impure
from recompute.rules.facts import Kind
from recompute.rules.kinds import reads_memory, writes_memory
from recompute.rules.registry import facts_named

TABLES = {"PURE": PURE, "PURE_IF_BODY_IS": PURE_IF_BODY_IS, "TERMINATORS": TERMINATORS, "IMPURE": IMPURE}


OURS = sorted(op.name for dialect in (STABLEHLO, CHLO, SDY, RECOMPUTE) for op in dialect.operations)


@pytest.mark.parametrize("name", OURS)
def test_every_operation_with_a_class_is_in_one_table_of_effects(name: str) -> None:
    assert len([table for table, names in TABLES.items() if name in names]) == 1


@pytest.mark.parametrize("name", ["stablehlo.rng", "stablehlo.custom_call", "stablehlo.send", "stablehlo.all_reduce"])
def test_what_must_not_run_twice(name: str) -> None:
    """Written out by hand, so that nobody moves them by accident."""
    assert name in IMPURE
    assert name not in PURE and name not in PURE_IF_BODY_IS


OTHERS = sorted(op.name for dialect in (Arith, Math, Tensor, Linalg, Scf, MemRef, Func) for op in dialect.operations)


@pytest.mark.parametrize("name", OTHERS)
def test_every_operation_of_the_other_dialects_is_in_one_table_of_effects(name: str) -> None:
    listed = [table for table, names in TABLES.items() if name in names]
    assert len(listed) == (0 if name == "func.func" else 1)


def test_the_tables_grow_with_what_is_registered() -> None:
    with registrations_undone():
        register("acme.swish", pure())
        assert "acme.swish" in PURE and "acme.swish" in list(PURE) and "acme.swish" not in PURE_IF_BODY_IS
    assert "acme.swish" not in PURE and len(PURE) == len(list(PURE))


def test_collectives_and_communication() -> None:
    """Written out by hand: others rely on these kinds."""
    collectives = "all_gather all_reduce all_to_all collective_broadcast collective_permute reduce_scatter"
    for name in collectives.split():
        facts = facts_named(f"stablehlo.{name}")
        assert facts is not None and Kind.COLLECTIVE in facts.kinds
    for name in ("send", "recv"):
        facts = facts_named(f"stablehlo.{name}")
        assert facts is not None and Kind.COMMUNICATION in facts.kinds


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
ON_A_MEMREF = "it works on a memref, whose memory may change in between: recompute tensors, and bufferize afterwards"
REASONS = {
    "memref.load": "it reads memory that may have been written in between",
    "memref.store": "it writes memory",
    "linalg.fill on a memref": ON_A_MEMREF,
    "linalg.fill": None,
    "arith.select": ON_A_MEMREF,
    "scf.if": "memref.load inside: it reads memory that may have been written in between",
    "scf.for": None,
}


def test_memory_is_not_read_or_written_twice() -> None:
    (function,) = parse_module(MEMORY, "f.mlir").ops
    found = dict[str, str | None]()
    for op in function.regions[0].block.ops:
        on_memory = op.name == "linalg.fill" and not op.results
        found[op.name + (" on a memref" if on_memory else "")] = why_impure(op)
    assert {name: found[name] for name in REASONS} == REASONS


def test_kinds_of_memory_operations() -> None:
    operations = {op.name: op for op in parse_module(MEMORY, "f.mlir").walk()}
    assert reads_memory(operations["memref.load"]) and not writes_memory(operations["memref.load"])
    assert writes_memory(operations["memref.store"])
