"""MLIR's locations as ours: the same objects that the parser makes, each distinct one once."""

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
    """`metadata`: how an attribute inside of a fused location is read."""

    def __init__(self, metadata: Callable[[ir.Attribute], Attribute]):
        self._metadata = metadata
        # A location of the bindings is hashed by its address in Python; its attribute by its address in MLIR, where
        # equal ones are one.
        self._known: dict[ir.Attribute, LocationAttr] = {}

    def get(self, location: ir.Location) -> LocationAttr:
        key = location.attr
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._anew(location)
        return known

    def _anew(self, location: ir.Location) -> LocationAttr:
        if isinstance(location, ir.NameLoc):
            child = self.get(location.child_loc)
            # `loc("name")`: MLIR has an unknown location inside, and prints none.
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
        raise NotBridged(f"a location of a kind that is not known: {location}")
