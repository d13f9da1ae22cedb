"""Structural requirements of the proof: regions have a single block, terminators only forward operands, and only
operations at the top level define symbols."""

from __future__ import annotations

from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Block, Operation, Region

from ...support.diagnostics import Refusal
from ...support.operations import name_of
from ..operations.operation_parts import attributes_of
from ..operations.pure_operations import TERMINATORS
from .terms import Heads


def is_plain_terminator(op: Operation) -> bool:
    """Return whether the operation is a terminator that only forwards its operands."""
    return name_of(op) in TERMINATORS and not (op.results or op.regions)


def ends_function(block: Block) -> bool:
    return block.last_op is not None and name_of(block.last_op) == "func.return"


def refuse_branches(op: Operation) -> None:
    if op.successors:
        raise Refusal(op, f"{name_of(op)} branches to another block; the proof supports only regions with one block")


def single_block(op: Operation, region: Region) -> Block:
    if len(region.blocks) != 1:
        subject = f"{name_of(op)} has a region with {len(region.blocks)} blocks"
        raise Refusal(op, f"{subject}; the proof supports only regions with one block")
    return region.blocks[0]


def is_declaration(function: Operation) -> bool:
    """Return whether a function has no body."""
    return all(region.first_block is None for region in function.regions)


def body_of(op: Operation) -> Block:
    if len(op.regions) != 1 or not op.regions[0].blocks:
        raise Refusal(op, f"{name_of(op)} has no body; the proof needs one region with one block")
    return single_block(op, op.regions[0])


def function_body(function: Operation, name: str, heads: Heads) -> Block:
    """Return the body of a function. Check that the types of its arguments and returned values match the function type.

    Raises:
        Refusal: The function does not have exactly one block, or its types do not match.
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
        raise Refusal(function, f"@{name} has arguments or returned values that do not match its function type")
    return block


def refuse_symbols(op: Operation, module: Operation) -> None:
    """Raise `Refusal` if an operation defines a symbol but is not at the top level of the module."""
    nested = ("sym_name" in op.attributes or "sym_name" in op.properties) and op.parent_op() is not module
    if name_of(op) == "builtin.module":
        raise Refusal(op, "the proof does not support modules inside other operations")
    if nested or name_of(op) == "func.func":
        raise Refusal(
            op,
            f"{name_of(op)} defines a symbol inside another operation; "
            "the proof supports symbols only at the top level of the module",
        )
