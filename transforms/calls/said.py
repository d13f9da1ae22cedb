"""What is said of the operations of a call, on the call: which copy it is, its segment, its phase, and where it comes
from. The functions that are called say nothing of it: originals and copies share them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    LocationAttr,
    NameLoc,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

from ...analysis.step.copied import is_copy
from ...analysis.step.jax_paths import as_backward, path_of
from ...analysis.step.marks import asks_to_recompute
from ...dialects.recompute import Names
from .bodies import LeftInlined
from .origins import Instance

OF_THE_ORIGINAL = frozenset({Names.RECOMPUTE, Names.PHASE, Names.CHECKPOINT})
"""What is not said of a copy."""


def of_others(attributes: Mapping[str, Attribute], function: FuncOp) -> list[str]:
    """Names of attributes, not ours, on a call or on the function that it calls: inlining the call would lose them."""
    end = function.body.block.last_op if function.body.blocks else None
    stated = [attributes, function.attributes, {} if end is None else end.attributes]
    for listed in (function.properties.get("arg_attrs"), function.properties.get("res_attrs")):
        if isa(listed, ArrayAttr[DictionaryAttr]):
            stated += [one.data for one in listed]
    names = dict.fromkeys(name for each in stated for name in each if not name.startswith(Names.PREFIX))
    return [name for name in names if name not in _REPEATS_THE_TYPE]


_REPEATS_THE_TYPE = frozenset({"jax.token"})
"""JAX writes it on each argument and result that is a token, which its type says (jax/_src/interpreters/mlir.py)."""


@dataclass(frozen=True)
class Said:
    """What is written on a call."""

    attributes: Mapping[str, Attribute]
    location: LocationAttr

    @classmethod
    def of(cls, instance: Instance, number: int, members: Sequence[Operation]) -> Said:
        """What the operations of an instance, or of its copy with this number, say.

        Raises `LeftInlined` where they say different things.
        """
        attributes, location = dict(instance.attributes), _location(instance)
        if number:
            attributes = {name: value for name, value in attributes.items() if name not in OF_THE_ORIGINAL}
            location = _backward(location)
        if any(map(is_copy, members)):  # what stands in a loop that is copied is no copy by itself
            attributes |= {Names.COPY: IntegerAttr(number, i64), Names.DUPLICATED: UnitAttr()}
        for name in (Names.SEGMENT, Names.PHASE):
            if (said := _said_by_all(members, name)) is not None:
                attributes[name] = said
        identity = next((op.attributes[Names.ID] for op in members if Names.ID in op.attributes), None)
        return cls(attributes if identity is None else attributes | {Names.ID: identity}, location)

    def write(self, call: CallOp) -> None:
        call.attributes.update(self.attributes)
        call.location = self.location
        marks = call.attributes.get(Names.RECOMPUTE)
        is_of_the_whole = isinstance(marks, ArrayAttr) and len(cast(ArrayAttr[Attribute], marks)) != len(call.results)
        if is_of_the_whole or asks_to_recompute(call):
            # What was asked for is done. It was said of all that the call does, of which something may have stayed:
            # what comes from constants alone, and results whose marks were taken back.
            del call.attributes[Names.RECOMPUTE]


def _said_by_all(members: Sequence[Operation], name: str) -> Attribute | None:
    said = {op.attributes.get(name) for op in members}
    if len(said) == 1:
        return said.pop()
    if None not in said:
        raise LeftInlined(f"its operations do not agree about {name}")
    return None


def _location(instance: Instance) -> LocationAttr:
    """Where it was called, seen from the function that nobody has inlined."""
    around = instance.at.instance
    return instance.location if around is None else called_from(_location(around), instance.location)


def _backward(location: LocationAttr) -> LocationAttr:
    position = location.location if isinstance(location, NameLoc) else location
    return NameLoc(StringAttr(as_backward(path_of(location) or "call")), position)


def called_from(call: LocationAttr, location: LocationAttr) -> LocationAttr:
    """The location of an inlined operation: the call's path, then its own; its own source position."""
    outer, own = path_of(call), path_of(location)
    if not outer:
        return location
    position = location
    while isinstance(position, NameLoc) and isinstance(position.location, LocationAttr):
        position = position.location
    return NameLoc(StringAttr(f"{outer}/{own}" if own else outer), position)


class Inherited:
    """What is said of a call is said of everything in it that does not say otherwise, once it is inlined.

    Each operation of a copy needs an id of its own; the same one for the operation of the original.
    """

    def __init__(self, root: Operation):
        self._root = root
        self._ids = dict[tuple[Attribute, int], IntegerAttr]()
        self._first: int | None = None

    def hand_on(self, call: CallOp, op: Operation, index: int) -> None:
        """`index`: the place of the operation in the body."""
        said = call.attributes
        for name in (Names.RECOMPUTE, Names.SEGMENT, Names.PHASE, Names.COPY, Names.DUPLICATED):
            if name in said and not isinstance(said[name], ArrayAttr):
                op.attributes.setdefault(name, said[name])
        if (identity := said.get(Names.ID)) is not None:
            op.attributes.setdefault(Names.ID, self._id(identity, index))

    def _id(self, identity: Attribute, index: int) -> IntegerAttr:
        if (identity, index) not in self._ids:
            if self._first is None:
                stated = (op.attributes.get(Names.ID) for op in self._root.walk())
                self._first = max((one.value.data for one in stated if isinstance(one, IntegerAttr)), default=-1) + 1
            self._ids[identity, index] = IntegerAttr(self._first + len(self._ids), i64)
        return self._ids[identity, index]
