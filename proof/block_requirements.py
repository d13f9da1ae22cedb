"""Structural requirements of the proof on blocks: regions with a single block, plain terminators, no nested symbols."""

from __future__ import annotations

from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Block, Operation, Region

from ..support.diagnostics import Refusal
from ..support.operations import name_of
from .operation_parts import attributes_of
from .pure_operations import TERMINATORS
from .terms import Heads


def is_plain_terminator(op: Operation) -> bool:
    """Return whether the operation is a terminator that only forwards its operands."""
    return name_of(op) in TERMINATORS and not (op.results or op.regions)


def ends_function(block: Block) -> bool:
    return block.last_op is not None and name_of(block.last_op) == "func.return"


def refuse_branches(op: Operation) -> None:
    if op.successors:
        raise Refusal(op, f"{name_of(op)} branches to another block: the proof compares regions of one block only")


def single_block(op: Operation, region: Region) -> Block:
    if len(region.blocks) != 1:
        subject = f"{name_of(op)} has a region of {len(region.blocks)} blocks"
        raise Refusal(op, f"{subject}: the proof compares regions of one block only")
    return region.blocks[0]


def body_of(op: Operation) -> Block:
    if len(op.regions) != 1 or not op.regions[0].blocks:
        raise Refusal(op, f"a {name_of(op)} without a body cannot be compared")
    return single_block(op, op.regions[0])


def function_body(function: Operation, name: str, heads: Heads) -> Block:
    """Return the block of a function, after checking that its arguments and returned values match the function type.

    Raises:
        Refusal: The function has no body, several blocks, or mismatched types.
    """
    block = body_of(function)
    type_ = attributes_of(function).get("function_type")
    last = block.last_op
    if (
        not isinstance(type_, FunctionType)
        or heads.types(block.args, function) != heads.numbers(type_.inputs, function)
        or last is None
        or not ends_function(block)
        or not is_plain_terminator(last)
        or heads.types(last.operands, last) != heads.numbers(type_.outputs, function)
    ):
        raise Refusal(function, f"@{name} has arguments or returned values that do not match its type")
    return block


def refuse_symbols(op: Operation, module: Operation) -> None:
    """Raise `Refusal` for an operation that defines a symbol below the top level of the module."""
    nested = ("sym_name" in op.attributes or "sym_name" in op.properties) and op.parent_op() is not module
    if nested or name_of(op) in ("builtin.module", "func.func"):
        raise Refusal(op, f"{name_of(op)}: only symbols at the top level of the module are compared")
