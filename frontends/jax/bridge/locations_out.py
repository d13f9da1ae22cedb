"""Convert xDSL's locations to MLIR's."""

from __future__ import annotations

from collections.abc import Callable

from jaxlib.mlir import ir
from xdsl.dialects.builtin import ArrayAttr, CallSiteLoc, FileLineColLoc, FusedLoc, NameLoc, NoneAttr, UnknownLoc
from xdsl.ir import Attribute

from ....support.locations import RangeEnd
from .building import build
from .not_bridged import NotBridged


class LocationsOut:
    """Converts in the current MLIR context, and caches. `metadata`: converts the attribute inside a fused location."""

    def __init__(self, metadata: Callable[[Attribute], ir.Attribute]):
        self._metadata = metadata
        # Keyed by identity: nested locations are slow to hash. The value keeps the key alive.
        self._locations: dict[int, tuple[Attribute, ir.Location]] = {}

    def get(self, location: Attribute) -> ir.Location:
        entry = self._locations.get(id(location))
        if entry is None:
            entry = self._locations[id(location)] = location, self._convert(location)
        return entry[1]

    def _convert(self, location: Attribute) -> ir.Location:
        if type(location) is NameLoc:
            # First, since nearly every location is one.
            child = location.location
            return build.NameLoc.get(location.desc.data, None if type(child) is NoneAttr else self.get(child))
        match location:
            case CallSiteLoc():
                return build.CallSiteLoc.get(self.get(location.callee), [self.get(location.caller)])
            case FileLineColLoc():
                line, column = location.line.data, location.column.data
                return build.FileLineColLoc.get(location.filename.data, line, column)
            case FusedLoc(locations=ArrayAttr(data=[FileLineColLoc() as start]), metadata=RangeEnd() as end):
                positions = start.line.data, start.column.data, end.line.data, end.column.data
                return build.FileLineColLoc.get(start.filename.data, *positions)
            case FusedLoc(locations=ArrayAttr() as parts, metadata=metadata):
                inner = None if isinstance(metadata, NoneAttr) else self._metadata(metadata)
                return build.Location.fused([self.get(part) for part in parts.data], inner)
            case UnknownLoc():
                return build.UnknownLoc.get()
            case _:
                raise NotBridged(f"unsupported kind of location: {location}")
