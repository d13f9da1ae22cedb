"""Transparent operations: operations whose results equal their operands or the values that their body returns.

    %2, %3 = stablehlo.optimization_barrier %0, %1      %2 is %0 and %3 is %1: result i is operand i
    %1 = recompute.segment { … yield %0 }               %1 is %0: it only groups operations
    %2 = @annotate_device_placement("device", %1)       %2 is %0 if %1 is %0 moved to host memory
    %1 = sdy.manual_computation(%0) { … }               parts and wholes (`per_device.py`)

If such an operation or a call has attributes, the values that pass through it are wrapped in terms that contain these
attributes:

    %0:2 = barrier %x, %y {a}           #3: attributed[barrier, a](#x, #y); %0#0 is result 0 of #3, %0#1 result 1

An attribute may refer to a value by its position, or to several values together. Therefore one term wraps all values in
their order, and each value becomes a result of this term. Only the attributes in `_FOR_EACH_VALUE` are known to apply
to each value separately.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects.placements import FRONTEND, HOST, is_from_host, placed_in
from ...support.diagnostics import Refusal
from ...support.operations import name_of
from ..expressions.block_requirements import body_of, is_plain_terminator
from ..expressions.identities import Identities
from ..expressions.memory_spaces import MemorySpaces
from ..expressions.terms import Head, Heads, Side, Terms, result_head
from ..operations.operation_parts import attributes_of, position_attributes
from .per_device import PerDevice
from .scope import RegionScope


class TransparentOperations(ABC):
    """The part of value numbering that handles transparent operations."""

    def __init__(self, side: Side, terms: Terms):
        self.heads = Heads(terms.attributes)
        self._terms = terms
        self._wrapping = Wrapping(terms, self.heads)
        self._memory_spaces = MemorySpaces(terms)
        self._identities = Identities(terms, self.heads)
        self._origins = terms.origins[side]

    @abstractmethod
    def _operands(self, op: Operation, scope: RegionScope) -> tuple[int, ...]: ...

    @abstractmethod
    def _block(self, block: Block, scope: RegionScope) -> tuple[int, tuple[int, ...]]: ...

    def _identity(self, op: Operation, values: Sequence[SSAValue], scope: RegionScope) -> Sequence[int]:
        if op.regions or self.heads.types(values, op) != self.heads.types(op.results, op):
            raise Refusal(op, f"{name_of(op)} must return each of its operands, in order and with the same types")
        around = self._wrapping.around(("barrier", op, attributes_of(op)))
        return self._wrapping.wrap(around, self._operands(op, scope)[: len(values)])

    def _group(self, op: Operation, scope: RegionScope) -> Sequence[int]:
        """Translate the operations of a group in the enclosing scope, and return the terms of the results."""
        block = body_of(op)
        last = block.last_op
        if (
            last is None
            or name_of(last) != "recompute.yield"
            or block.args
            or op.operands
            or not is_plain_terminator(last)
        ):
            raise Refusal(op, f"{name_of(op)} must yield one value for each result, with the same type")
        inner = scope.within()
        around = self._wrapping.around(("group", op, attributes_of(op)), ("yield", last, attributes_of(last)))
        entered = self._wrapping.wrap_state(entry_heads(around), scope.state, ())
        inner.state = entered
        _, numbers = self._block(block, inner)
        if self.heads.types(last.operands, last) != self.heads.types(op.results, op):
            raise Refusal(op, f"{name_of(op)} must yield one value for each result, with the same type")
        if inner.state != entered:
            scope.state = self._wrapping.wrap_state(around, inner.state, numbers)
        return self._wrapping.wrap(around, numbers)

    def _look_through_fetch(self, op: Operation, scope: RegionScope) -> int | None:
        """Return the original value if the operation moves a value from the host back to the device, else None."""
        if not is_from_host(op) or op.regions:
            return None
        (number,) = self._operands(op, scope)
        host_attributes = self.heads.attributes(op, attributes_of(op) | {FRONTEND: placed_in(HOST)})
        move = self._terms.head_of(number)
        if (move.kind, move.name, move.attributes) != ("operation", name_of(op), host_attributes):
            return None
        (source,) = self._terms.operands_of(number)
        is_same = self._terms.types_of(source) == self.heads.types(op.results, op)
        return source if is_same and self._memory_spaces.is_on_device(source) else None

    def _on_each_device(self, body: PerDevice, scope: RegionScope) -> Sequence[int]:
        devices = body.devices(self._terms, scope.device)
        entered = self._terms.term(Head("devices", "entered"), (devices, scope.state))
        inner = replace(scope.for_callee(entered), device=devices, preserved={})
        parts = body.parts(self._terms, self.heads, devices, self._operands(body.op, scope))
        inner.define(body.block.args, parts)
        _, returned = self._block(body.block, inner)
        if inner.state != entered:
            scope.state = self._terms.term(Head("devices", "left"), (devices, inner.state))
        scope.preserved.update(
            (self._terms.term(Head("devices", "kept"), (devices, term)), None) for term in inner.preserved
        )
        results = body.wholes(self._terms, self.heads, devices, returned)
        for result in results:
            self._origins.setdefault(result, body.op)
        return results


_FOR_EACH_VALUE = frozenset({"_xla_compute_type"})
"""Frontend attributes of a call that apply to each of its values separately (XLA: xla/side_effect_util.h)."""
_REPEAT_THE_TYPE = frozenset({"jax.token"})
"""Argument and result attributes of private functions that only repeat the type `_TOKEN`. JAX writes `jax.token` on
each token (jax/_src/interpreters/mlir.py), but reads it only on public functions."""
_TOKEN = "!stablehlo.token"
Part = tuple[str, Operation, Mapping[str, Attribute]]
"""A role (such as "call" or "function"), the operation for error messages, and the attributes to compare."""


class Wrapping:
    """Wraps the values that pass through a transparent operation or a call in terms that contain the operation's
    attributes.
    """

    def __init__(self, terms: Terms, heads: Heads):
        self._terms = terms
        self._heads = heads

    def around(self, *parts: Part, always: bool = False) -> list[Head]:
        """Return the heads of the terms that wrap the values: one head for each part that has attributes or, if
        `always` is set, one for every part."""
        return [
            Head("attributed", role, self._heads.attributes(op, attributes))
            for role, op, attributes in parts
            if attributes or always
        ]

    def wrap(self, around: Sequence[Head], numbers: Sequence[int]) -> list[int]:
        """Wrap the values in terms with these heads: each value becomes the result, at its position, of one term over
        all values."""
        values = tuple(numbers)
        for head in around:
            if self._is_for_each_value(head):
                values = tuple(self._terms.term(head, (value,)) for value in values)
                continue
            term = self._terms.term(head, values)
            values = tuple(self._terms.term(result_head(index), (term,)) for index in range(len(values)))
        return list(values)

    def wrap_state(self, around: Sequence[Head], state: int, numbers: Sequence[int]) -> int:
        """Wrap the state in terms with these heads, so that the attributes also apply to the effects inside.

        An attribute that does not apply to each value separately also wraps the values that are passed into or out of
        the operation, so that the term depends on them.
        """
        for head in around:
            values = () if self._is_for_each_value(head) else numbers
            state = self._terms.term(head, (state, *values))
        return state

    def _is_for_each_value(self, head: Head) -> bool:
        """Return whether the attributes apply to each value separately, regardless of its position."""
        attributes = self._terms.attributes.by_name(head.attributes)
        frontend = attributes.pop(FRONTEND, None)
        is_known = frontend is None or (isinstance(frontend, DictionaryAttr) and set(frontend.data) <= _FOR_EACH_VALUE)
        return is_known and not attributes

    def by_position(self, role: str, function: Operation, name: str, numbers: Sequence[int]) -> list[int]:
        """Wrap the values in a term with the callee's attribute `name`, which is `arg_attrs` or `res_attrs`."""
        extras = position_attributes(function, name, len(numbers))
        attributes = {
            f"{index}: {key}": value
            for index, extra in enumerate(extras)
            for key, value in extra.items()
            if not (key in _REPEAT_THE_TYPE and _is_token(function, name, index))
        }
        return self.wrap(self.around((role, function, attributes)), numbers)


def _is_token(function: Operation, name: str, index: int) -> bool:
    """Return whether an argument (if `name` is `arg_attrs`) or a result of a function is a token."""
    block = function.regions[0].block
    values = block.args if name == "arg_attrs" or block.last_op is None else block.last_op.operands
    return str(values[index].type) == _TOKEN


def entry_heads(around: Sequence[Head]) -> list[Head]:
    """Return the heads of the terms that wrap the values passed into a call. The values returned from the call are
    wrapped in terms with different heads."""
    return [head._replace(name=f"{head.name}, entered") for head in around]


def without_names(attributes: Mapping[str, Attribute], names: Collection[str]) -> dict[str, Attribute]:
    return {name: value for name, value in attributes.items() if name not in names}
