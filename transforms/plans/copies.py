"""Clone an operation as a copy: the attributes that link it to its original, and its source location."""

from __future__ import annotations

from functools import lru_cache

from xdsl.dialects.builtin import IntegerAttr, LocationAttr, NameLoc, StringAttr, UnitAttr, i64
from xdsl.ir import Operation, SSAValue

from ...analysis.step.jax_paths import as_backward, as_read_by, path_of, split_path
from ...dialects.names import Names
from ...rules.names import name_of
from ...support.walk import every_operation


@lru_cache(maxsize=10_000)
def _number(number: int) -> IntegerAttr:
    return IntegerAttr(number, i64)


def copy_of_original(
    op: Operation, identity: int, number: int, mapping: dict[SSAValue, SSAValue], reader: str = ""
) -> Operation:
    """Clone an operation, map its operands and write ids and locations; the clone is not inserted.

    `reader`: the path of the loop that executes the copy, or "".
    """
    op.attributes[Names.ID] = _number(identity)
    copy = op.clone(mapping)
    for name in (Names.RECOMPUTE, Names.PHASE, Names.CHECKPOINT):
        copy.attributes.pop(name, None)
    copy.attributes |= {Names.COPY: _number(number), Names.DUPLICATED: UnitAttr(), Names.NEED_CSE: UnitAttr()}
    for inner in every_operation(copy):
        path = path_of(inner.location) or name_of(inner)
        inner.location = _at(inner.location, as_read_by(path, reader) if reader else as_backward(path))
    return copy


def beside(location: LocationAttr, word: str) -> LocationAttr:
    """The location of a token: the same scope as the copies that wait for it."""
    return _at(location, as_backward("/".join([*split_path(path_of(location))[:-1], word])))


def _at(location: LocationAttr, path: str) -> LocationAttr:
    """The same source position under another path."""
    position = location.location if isinstance(location, NameLoc) else location
    return NameLoc(StringAttr(path), position)
