"""Preserve the attributes of calls that are inlined and then re-outlined.

The copy number, segment, phase and location of a call move to its inlined operations, and back to the outlined call.
The called function does not have these attributes, because the call and its copies share the function.

Inlining would lose the foreign attributes of a call or a callee, which belong to other tools:

    %1 = call @f(%0) {mhlo.frontend_attributes = {_xla_compute_type = "host"}}

`recompute` inlines these calls for planning, and then re-outlines them with their attributes. If this fails, the
step is rewritten once more with the called functions marked `recompute.whole`; the inliner skips their calls.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    LocationAttr,
    ModuleOp,
    NameLoc,
    UnitAttr,
    i64,
)
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

from ...analysis.step.jax_paths import backward_path, path_of
from ...analysis.step.marks import asks_to_recompute, is_copy
from ...dialects.making import name_location
from ...dialects.names import Names
from ...support.operations import every_operation, is_private
from .bodies import LeftInlined
from .origins import InlinedCall

OF_THE_ORIGINAL = frozenset({Names.RECOMPUTE, Names.PHASE, Names.CHECKPOINT})
"""Attributes of a call that are not written on its copies."""


def foreign_attributes(attributes: Mapping[str, Attribute], function: FuncOp) -> list[str]:
    """Return the names of the foreign attributes that inlining a call would lose.

    Args:
        attributes: The attributes of the call.
        function: The called function.
    """
    end = function.body.block.last_op if function.body.blocks else None
    stated = [attributes, function.attributes, {} if end is None else end.attributes]
    for listed in (function.properties.get("arg_attrs"), function.properties.get("res_attrs")):
        if isa(listed, ArrayAttr[DictionaryAttr]):
            stated += [dictionary.data for dictionary in listed]
    names = dict.fromkeys(name for dictionary in stated for name in dictionary if not name.startswith(Names.PREFIX))
    return [name for name in names if name not in _REPEATS_THE_TYPE]


_REPEATS_THE_TYPE = frozenset({"jax.token"})
"""Attributes that only repeat the type: JAX writes `jax.token` on each argument and result of token type
(jax/_src/interpreters/mlir.py)."""


_UNIT = UnitAttr()


@cache
def _number(number: int) -> IntegerAttr:
    return IntegerAttr(number, i64)


@dataclass(frozen=True)
class CallAttributes:
    """The attributes and the location of a call."""

    attributes: Mapping[str, Attribute]
    location: LocationAttr

    @classmethod
    def of(cls, instance: InlinedCall, number: int, members: Sequence[Operation]) -> CallAttributes:
        """Derive the attributes of a call from its inlined operations.

        Args:
            instance: The call before inlining.
            number: The number of the copy; 0 for the call itself.
            members: The operations to outline.

        Raises:
            LeftInlined: The operations have different segments or phases.
        """
        attributes = dict(instance.attributes)
        location = _location(instance)
        if number:
            attributes = {name: value for name, value in attributes.items() if name not in OF_THE_ORIGINAL}
            location = _backward(location)
        if any(map(is_copy, members)):  # Operations inside a copied loop have no copy number.
            attributes |= {Names.COPY: _number(number), Names.DUPLICATED: _UNIT}
        for name in (Names.SEGMENT, Names.PHASE):
            if (shared := _shared_attribute(members, name)) is not None:
                attributes[name] = shared
        identity = next((op.attributes[Names.ID] for op in members if Names.ID in op.attributes), None)
        return cls(attributes if identity is None else attributes | {Names.ID: identity}, location)

    def write(self, call: CallOp) -> None:
        """Write the attributes and the location on the call."""
        call.attributes.update(self.attributes)
        call.location = self.location
        marks = call.attributes.get(Names.RECOMPUTE)
        is_of_the_whole = isinstance(marks, ArrayAttr) and len(cast(ArrayAttr[Attribute], marks)) != len(call.results)
        if is_of_the_whole or asks_to_recompute(call):
            # The mark has been applied. On a call, it would also apply to operations that must not be copied: constant
            # expressions, and results whose marks were removed.
            del call.attributes[Names.RECOMPUTE]


def _shared_attribute(members: Sequence[Operation], name: str) -> Attribute | None:
    values = {op.attributes.get(name) for op in members}
    if len(values) == 1:
        return values.pop()
    if None not in values:
        raise LeftInlined(f"the operations of the call have different values of {name}")
    return None


def _location(instance: InlinedCall) -> LocationAttr:
    """Return the location of the call, with a path that begins with the paths of the enclosing inlined calls."""
    outer_call = instance.at.instance
    return instance.location if outer_call is None else location_in_call(_location(outer_call), instance.location)


def _backward(location: LocationAttr) -> LocationAttr:
    position = location.location if isinstance(location, NameLoc) else location
    return name_location(backward_path(path_of(location) or "call"), position)


def location_in_call(call: LocationAttr, location: LocationAttr) -> LocationAttr:
    """Return the location of an inlined operation: its own source position, and its path prefixed with the path of the
    call."""
    outer, own = path_of(call), path_of(location)
    if not outer:
        return location
    position: LocationAttr = location
    while isinstance(position, NameLoc) and isinstance(position.location, LocationAttr):
        position = position.location
    return name_location(f"{outer}/{own}" if own else outer, position)


class AttributePropagator:
    """Propagates call attributes to inlined operations, without replacing existing attributes.

    Each operation of a copied call gets an id that it shares only with its original.
    """

    def __init__(self, root: Operation):
        self._root = root
        self._ids = dict[tuple[Attribute, int], IntegerAttr]()
        self._first: int | None = None

    def propagate(self, call: CallOp, op: Operation, index: int) -> None:
        """Add the attributes of the call to an inlined operation.

        `index`: the position of the operation in the body of the callee.
        """
        attributes = call.attributes
        for name in (Names.RECOMPUTE, Names.SEGMENT, Names.PHASE, Names.COPY, Names.DUPLICATED):
            if name in attributes and not isinstance(attributes[name], ArrayAttr):
                op.attributes.setdefault(name, attributes[name])
        if (identity := attributes.get(Names.ID)) is not None:
            op.attributes.setdefault(Names.ID, self._id(identity, index))

    def _id(self, identity: Attribute, index: int) -> IntegerAttr:
        if (identity, index) not in self._ids:
            if self._first is None:
                stated = (op.attributes.get(Names.ID) for op in self._root.walk())
                self._first = (
                    max((number.value.data for number in stated if isinstance(number, IntegerAttr)), default=-1) + 1
                )
            self._ids[identity, index] = IntegerAttr(self._first + len(self._ids), i64)
        return self._ids[identity, index]


def functions_with_attributes(module: ModuleOp) -> dict[FuncOp, str]:
    """Map each private function to the names of the foreign attributes on the function and its calls.

    Functions without foreign attributes are left out.
    """
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp) and is_private(op)}
    attribute_names = dict[FuncOp, str]()
    for call in every_operation(module):
        callee = functions.get(call.callee.string_value()) if type(call) is CallOp else None
        if callee is not None and (others := foreign_attributes(call.attributes, callee)):
            attribute_names.setdefault(callee, ", ".join(others))
    return attribute_names


@contextmanager
def keep_whole(module: ModuleOp) -> Generator[set[str]]:
    """Mark all functions with foreign attributes as `recompute.whole` within the context.

    Yields the names of the newly marked functions.
    """
    marked = {op.sym_name.data for op in functions_with_attributes(module) if Names.WHOLE not in op.attributes}
    for function in _functions_named(module, marked):
        function.attributes[Names.WHOLE] = UnitAttr()
    try:
        yield marked
    finally:
        remove_whole_marks(module, marked)


def remove_whole_marks(module: ModuleOp | None, names: set[str]) -> None:
    """Remove the mark `recompute.whole` from the functions with these names."""
    for function in _functions_named(module, names) if module is not None else ():
        function.attributes.pop(Names.WHOLE, None)


def _functions_named(module: ModuleOp, names: set[str]) -> list[FuncOp]:
    return [op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data in names]
