"""Convert MLIR's locations to xDSL's: the same attributes as the parser creates, each distinct one once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxlib.mlir import ir
from xdsl.dialects.builtin import UNKNOWN_LOC, CallSiteLoc, FusedLoc, LocationAttr, NoneAttr
from xdsl.ir import Attribute

from ....support.locations import file_range
from .making import name_location
from .not_bridged import NotBridged


class LocationsIn:
    """Converts and caches. `metadata`: converts the attribute inside a fused location."""

    def __init__(self, metadata: Callable[[ir.Attribute], Attribute]):
        self._metadata = metadata
        # The bindings hash a location by its address in Python, and its attribute by its address in MLIR, which is
        # the same for equal locations.
        self._locations: dict[ir.Attribute, LocationAttr] = {}

    def get(self, location: ir.Location) -> LocationAttr:
        key = location.attr
        converted = self._locations.get(key)
        if converted is None:
            converted = self._locations[key] = self._convert(location)
        return converted

    def _convert(self, location: ir.Location) -> LocationAttr:
        if isinstance(location, ir.NameLoc):
            child = self.get(location.child_loc)
            # `loc("name")` has an unknown location inside, which MLIR does not print.
            return name_location(location.name_str, NoneAttr() if child is UNKNOWN_LOC else child)
        if isinstance(location, ir.CallSiteLoc):
            return CallSiteLoc(self.get(location.callee), self.get(location.caller))
        if isinstance(location, ir.FileLineColLoc):
            start, end = (location.start_line, location.start_col), (location.end_line, location.end_col)
            return file_range(location.filename, start, end)
        if isinstance(location, ir.UnknownLoc):
            return UNKNOWN_LOC
        if isinstance(location, ir.FusedLoc):
            metadata = NoneAttr() if location.metadata is None else self._metadata(location.metadata)
            parts: list[Any] = list(location.locations)
            return FusedLoc(tuple(self.get(part) for part in parts), metadata)
        raise NotBridged(f"unsupported kind of location: {location}")
