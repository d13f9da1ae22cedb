"""Gather and scatter."""

from .gather import DynamicGatherOp, GatherOp
from .scatter import ScatterOp

INDEXING = [GatherOp, DynamicGatherOp, ScatterOp]

__all__ = ["INDEXING", "DynamicGatherOp", "GatherOp", "ScatterOp"]
