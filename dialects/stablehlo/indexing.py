"""Gather and scatter."""

from .gather import GatherOp
from .scatter import ScatterOp

INDEXING = [GatherOp, ScatterOp]

__all__ = ["INDEXING", "GatherOp", "ScatterOp"]
