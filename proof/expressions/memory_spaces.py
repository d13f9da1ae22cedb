"""Determine whether a value is in device memory. The rule `device(host(x)) = x` requires this.

A value is in the same memory as the operands of its operation, unless the operation moves it (`dialects/placements.py`)
or has an attribute that says where it is computed. A function argument is in device memory unless its attributes name
another memory. An argument with a dialect attribute that is not in the table below is in an unknown memory, and the
rule does not apply to it.

Sources: XLA's host offloading pass (xla/hlo/transforms/host_offloader.cc) moves values at the custom calls MoveToHost,
MoveToDevice and annotate_device_placement; the operations between such calls run in the memory of their operands. JAX
gives the memory of an argument in `mhlo.memory_kind`, and the device that runs an operation in the frontend attribute
`_xla_compute_type`.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import Attribute, Operation

from ...dialects.placements import DEVICE, FRONTEND, PLACEMENT, TARGET
from ...support.operations import every_operation
from ..operations.operation_parts import attributes_of
from .terms import Head, Terms

MEMORY_KIND = "mhlo.memory_kind"
_WITHOUT_MEMORY = frozenset(
    """
    jax.buffer_donor jax.global_constant mhlo.is_same_data_across_replicas mhlo.layout_mode mhlo.sharding sdy.sharding
    tf.aliasing_output
    """.split()
)
"""Attributes with a dialect prefix that do not affect memory spaces."""
_ON_DEVICE_TARGETS = ("Sharding", "__cublas$", "__cudnn$", "cu_", "cublas_", "cusolver_", "lapack_", "tpu_custom_call")
"""Prefixes of the targets of custom calls that compute on the device of their operands (jaxlib, XLA)."""
_EFFECTS_ON_DEVICE = frozenset({"stablehlo.rng"})
_BY_OPERANDS = frozenset({"history", "index", "loop", "part", "result", "whole", "branch", "rows"})


def names_a_memory(module: Operation) -> bool:
    """Return whether an operation of the module moves a value between memories, or has an attribute that names a
    memory."""
    return any(_names_a_memory(op) for op in every_operation(module))


def _names_a_memory(op: Operation) -> bool:
    attributes = attributes_of(op)
    target = attributes.get("call_target_name")
    if FRONTEND in attributes or (isinstance(target, StringAttr) and target.data in _MOVES):
        return True
    return any(MEMORY_KIND in str(attributes[name]) for name in ("arg_attrs", "res_attrs") if name in attributes)


_MOVES = frozenset({TARGET, "MoveToHost", "MoveToDevice"})


class MemorySpaces:
    """Determines and caches whether the terms of one table are in device memory."""

    def __init__(self, terms: Terms):
        self._terms = terms
        self._on_device = dict[int, bool]()
        self._bodies = dict[int, bool]()

    def declare_argument(self, number: int, attributes: Mapping[str, Attribute]) -> None:
        """Record the memory of an argument of a public function, according to its attributes."""
        kind = attributes.get(MEMORY_KIND)
        is_device = kind is None or kind == StringAttr(DEVICE)
        self._on_device[number] = is_device and not set(attributes) - _WITHOUT_MEMORY - {MEMORY_KIND}

    def is_on_device(self, number: int) -> bool:
        """Return whether a term is known to be in device memory."""
        pending = [number]
        while pending:
            term = pending[-1]
            if term in self._on_device:
                pending.pop()
                continue
            verdict = self._by_head(self._terms.head_of(term))
            if verdict is None:
                operands = self._terms.operands_of(term)[1 if self._terms.head_of(term).kind == "effect" else 0 :]
                if missing := [operand for operand in operands if operand not in self._on_device]:
                    pending.extend(missing)
                    continue
                verdict = all(self._on_device[operand] for operand in operands)
            self._on_device[term] = verdict
        return self._on_device[number]

    def _by_head(self, head: Head) -> bool | None:
        """Return whether the value is in device memory, according to the head of its term alone; None if the answer
        depends on the operands."""
        if head.kind in ("devices", "state"):  # These terms do not represent values.
            return True
        if head.kind not in _BY_OPERANDS and head.kind != "operation" and head.name not in _EFFECTS_ON_DEVICE:
            return False
        attributes = self._terms.attributes.by_name(head.attributes)
        if head.name == "stablehlo.custom_call":
            target = attributes.get("call_target_name")
            name = target.data if isinstance(target, StringAttr) else ""
            if name == TARGET:
                return _is_to_device(attributes)
            if not name.startswith(_ON_DEVICE_TARGETS):
                return False
        if any("." in name and name not in _WITHOUT_MEMORY for name in attributes):
            return False
        return None if all(map(self._moves_nothing, head.bodies)) else False

    def _moves_nothing(self, body: int) -> bool:
        """Return whether no operation in the body of a region moves a value between memories."""
        if body not in self._bodies:
            heads = (self._terms.heads[entry[0]] for entry in self._terms.bodies[body].entries if entry is not None)
            self._bodies[body] = all(self._by_head(head) is None or not head.attributes for head in heads)
        return self._bodies[body]


def _is_to_device(attributes: Mapping[str, Attribute]) -> bool:
    frontend = attributes.get(FRONTEND)
    return isinstance(frontend, DictionaryAttr) and frontend.data.get(PLACEMENT) == StringAttr(DEVICE)
