"""Blocks and their ends: only single blocks that hand on what their terminator reads are compared."""

from __future__ import annotations

from xdsl.ir import Block, Operation, Region

from ..dialects.diagnostics import Refusal
from .anatomy import name_of
from .pure_operations import TERMINATORS


def is_known_end(op: Operation) -> bool:
    """A terminator that hands on what it reads, and nothing else."""
    return name_of(op) in TERMINATORS and not (op.results or op.regions)


def is_function(block: Block) -> bool:
    return block.last_op is not None and name_of(block.last_op) == "func.return"


def refuse_branches(op: Operation) -> None:
    if op.successors:
        raise Refusal(op, f"{name_of(op)} branches: only single blocks are compared")


def single_block(op: Operation, region: Region) -> Block:
    if len(region.blocks) != 1:
        raise Refusal(op, f"{name_of(op)} has a region of {len(region.blocks)} blocks: only single blocks are compared")
    return region.blocks[0]


def body_of(op: Operation) -> Block:
    if len(op.regions) != 1 or not op.regions[0].blocks:
        raise Refusal(op, f"a {name_of(op)} without a body cannot be compared")
    return single_block(op, op.regions[0])
