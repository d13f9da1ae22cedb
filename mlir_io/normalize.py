"""Normalize parsed operations, and check the invariants that xDSL's printer assumes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.arith import CmpfOp, CmpiOp, IntegerOverflowAttr, TruncIOp
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, i64
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.scf import ForOp, WhileOp
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation
from xdsl.utils.exceptions import VerifyException

from ..support.type_guards import is_integer_attribute
from .function_syntax import verify_function
from .xdsl_syntax import OVERFLOW

UNKNOWN_PROPERTIES: dict[type[Operation], tuple[str, ...]] = {
    FuncOp: ("no_inline",),
    CallOp: ("arg_attrs", "no_inline", "res_attrs"),
    ModuleOp: ("sym_visibility",),
    TruncIOp: (OVERFLOW,),
}
"""MLIR properties that xDSL does not know. They are stored and printed as attributes. MLIR converts these back to
properties."""


def normalize(op: Operation) -> None:
    """Move properties to the dictionary where xDSL expects them, and verify the operation.

    Raises:
        VerifyException: The operation is malformed.
    """
    if op.attributes and isinstance(op, IRDLOperation):
        _move_to_properties(op)
    for name in UNKNOWN_PROPERTIES.get(type(op), ()):
        if name in op.properties:
            op.attributes[name] = op.properties.pop(name)
    if (check := CHECKS.get(type(op))) is not None:
        check(op)


def _move_to_properties(op: IRDLOperation) -> None:
    for name in op.get_irdl_definition().properties.keys() & op.attributes.keys():
        if name in op.properties:
            raise VerifyException(f"'{name}' is given both as a property and as an attribute")
        op.properties[name] = op.attributes.pop(name)


def _normalize_function(op: FuncOp) -> None:
    verify_function(op)
    for name in ("arg_attrs", "res_attrs"):
        # A list of empty dictionaries has no meaning, and the custom form does not print it.
        match op.properties.get(name):
            case ArrayAttr(data=entries) if not any(
                entry.data for entry in entries if isinstance(entry, DictionaryAttr)
            ):
                del op.properties[name]
            case _:
                pass


def _check_module(op: ModuleOp) -> None:
    if len(op.body.blocks) == 1 and op.body.block.args:
        raise VerifyException("a module must not have arguments")


def _check_for(op: ForOp) -> None:
    if [value.type for value in op.iter_args] != [value.type for value in op.results]:
        raise VerifyException("the result types of scf.for must match the types of its iter_args")


def _check_while(op: WhileOp) -> None:
    for region, values in ((op.before_region, op.arguments), (op.after_region, op.res)):
        if [argument.type for argument in region.block.args] != [value.type for value in values]:
            raise VerifyException(
                "the arguments of a loop's regions must match the types of its operands (before) and results (after)"
            )


def _normalize_truncation(op: TruncIOp) -> None:
    # MLIR does not distinguish the default value from a missing property.
    if op.attributes.get(OVERFLOW) == IntegerOverflowAttr("none"):
        del op.attributes[OVERFLOW]


def _checks_predicate(predicates: int) -> Callable[[Operation], None]:
    def check(op: Operation) -> None:
        predicate = op.properties.get("predicate")
        if predicate is None or not is_integer_attribute(predicate) or predicate.type != i64:
            actual = "missing" if predicate is None else predicate
            raise VerifyException(f"the predicate of a comparison is {actual}, expected an integer of type i64")
        if predicate.value.data not in range(predicates):
            raise VerifyException(f"the predicate is {predicate.value.data}, expected 0 to {predicates - 1}")

    return check


CHECKS: dict[type[Operation], Callable[[Any], None]] = {
    FuncOp: _normalize_function,
    ModuleOp: _check_module,
    ForOp: _check_for,
    WhileOp: _check_while,
    CmpiOp: _checks_predicate(10),
    TruncIOp: _normalize_truncation,
    CmpfOp: _checks_predicate(16),
}
"""The additional check for each class of operations."""
