"""How a copy is written: which copy of which original it is, and where in the source it comes from."""

from __future__ import annotations

from functools import lru_cache

from xdsl.dialects.builtin import IntegerAttr, LocationAttr, NameLoc, StringAttr, UnitAttr, i64
from xdsl.ir import Operation, SSAValue

from ...analysis.step.jax_paths import as_backward, path_of, split_path
from ...dialects.every import every_operation
from ...dialects.names import Names
from ...rules.names import name_of


@lru_cache(maxsize=10_000)
def _number(number: int) -> IntegerAttr:
    return IntegerAttr(number, i64)


def copy_of_original(op: Operation, identity: int, number: int, mapping: dict[SSAValue, SSAValue]) -> Operation:
    op.attributes[Names.ID] = _number(identity)
    copy = op.clone(mapping)
    for name in (Names.RECOMPUTE, Names.PHASE, Names.CHECKPOINT):
        copy.attributes.pop(name, None)
    copy.attributes |= {Names.COPY: _number(number), Names.DUPLICATED: UnitAttr(), Names.NEED_CSE: UnitAttr()}
    for inner in every_operation(copy):
        inner.location = _backward(inner.location, path_of(inner.location) or name_of(inner))
    return copy


def beside(location: LocationAttr, word: str) -> LocationAttr:
    """The place of a token: in the same scope as the copies that wait for it."""
    return _backward(location, "/".join([*split_path(path_of(location))[:-1], word]))


def _backward(location: LocationAttr, path: str) -> LocationAttr:
    """The same place in the source, as a recomputation in the backward pass."""
    position = location.location if isinstance(location, NameLoc) else location
    return NameLoc(StringAttr(as_backward(path)), position)
