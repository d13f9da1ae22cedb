"""Verify that every operand is defined before it is read. xDSL's verifier does not check this."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import IsolatedFromAbove

from ...rules.effects import is_ordering
from ...support.diagnostics import Refusal
from ...support.operations import name_of


def verify_dominance(module: ModuleOp) -> None:
    """Verify that operations read only values that are defined before them and are visible.

    Blocks are checked in the order of their region, and values of earlier blocks are visible. This is exact for regions
    with one block, and the passes accept no others.

    Raises:
        Refusal: An operation reads an undefined or invisible value. The error is reported at the first such operation.
    """
    _check_operation(module, set())


def _check_operation(op: Operation, visible: set[int]) -> None:
    """Check the operands in the regions of an operation.

    `visible`: the ids of the visible values. Looking up ids is several times as fast as looking up values.
    """
    isolated = op.has_trait(IsolatedFromAbove, value_if_unregistered=False)
    for region in op.regions:
        _check_region(region, set() if isolated else visible)


def _check_region(region: Region, visible: set[int]) -> None:
    added: list[int] = []
    for block in region.blocks:
        _check_block(block, visible, added)
    visible.difference_update(added)


def _check_block(block: Block, visible: set[int], added: list[int]) -> None:
    argument_ids = [id(argument) for argument in block.args]
    visible.update(argument_ids)
    added.extend(argument_ids)
    op: Any = block.first_op
    while op is not None:
        # Read private fields: xDSL's properties would take as long as the rest of the function, which runs for every
        # operation.
        for operand in op._operands:
            if id(operand) not in visible:
                raise _refusal(op, operand)
        if op.regions:
            _check_operation(op, visible)
        for result in op.results:
            visible.add(id(result))
            added.append(id(result))
        op = op._next_op


def _refusal(op: Operation, operand: SSAValue) -> Refusal:
    cycle = "; a token must not wait for an operation that waits for the token" if is_ordering(op) else ""
    index = next(index for index, value in enumerate(op.operands) if value is operand)
    return Refusal(op, f"operand {index} of {name_of(op)} is read before it is defined{cycle}")
