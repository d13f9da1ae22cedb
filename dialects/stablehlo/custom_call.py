"""`stablehlo.custom_call`, a call to a function outside the program.

Errors begin with the label of the input in StableHLO's specification (I4, I5, …). The specification defines no
constraints on layouts, so errors about layouts have no such label.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    BytesAttr,
    DictionaryAttr,
    IndexType,
    StringAttr,
    SymbolRefAttr,
    TupleType,
)
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def, var_operand_def, var_result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ...support.counted import counted
from ...support.type_guards import is_shaped, is_standard_dense
from ..constants.dense import to_numpy
from .attributes import OutputOperandAliasAttr
from .checks import Constraint, check_count, verify_constraints
from .formats import I32_ATTR, FunctionTypeOp, parse_all_operands, print_attributes


@irdl_op_definition
class CustomCallOp(FunctionTypeOp):
    """Call an external function with unknown effects: `stablehlo.custom_call @target(%a) {…}`"""

    name = "stablehlo.custom_call"

    inputs = var_operand_def()
    call_target_name = prop_def(StringAttr)
    has_side_effect = opt_prop_def(BoolAttr)
    backend_config = opt_prop_def(StringAttr | BytesAttr | DictionaryAttr)
    api_version = opt_prop_def(I32_ATTR)
    called_computations = opt_prop_def(ArrayAttr[SymbolRefAttr])
    operand_layouts = opt_prop_def(ArrayAttr)
    result_layouts = opt_prop_def(ArrayAttr)
    output_operand_aliases = opt_prop_def(ArrayAttr[OutputOperandAliasAttr])
    result_tilings = opt_prop_def()
    result = var_result_def()

    SPELLED: ClassVar[tuple[str, ...]] = ("call_target_name",)

    def verify_(self) -> None:
        verify_constraints(self, CONSTRAINTS)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        target = parser.parse_symbol_name()
        start = parser.pos
        with parser.in_parens():
            operands = parse_all_operands(parser)
        op = cls.parse_rest(parser, operands, start)
        op.call_target_name = target
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.call_target_name.data)
        with printer.in_parens():
            printer.print_list(self.operands, printer.print_operand)
        print_attributes(printer, self, self.SPELLED)
        printer.print_string(" : ")
        self.print_types(printer)


TYPED_FFI = 4
"""The API version in which `backend_config` is a dictionary. In all earlier versions it is a string."""


def _version(op: CustomCallOp) -> int:
    return op.api_version.value.data if op.api_version is not None else 1


def _check_version(op: CustomCallOp) -> None:
    if not 0 <= _version(op) <= TYPED_FFI:
        raise VerifyException(f"api_version is {_version(op)}, expected 0 to {TYPED_FFI}")


def _check_config(op: CustomCallOp) -> None:
    # xDSL parses a string that is not UTF-8 as bytes.
    is_dictionary = isinstance(op.backend_config, DictionaryAttr)
    takes_dictionary = _version(op) == TYPED_FFI
    words = "dictionary" if takes_dictionary else "string"
    if op.backend_config is not None and is_dictionary != takes_dictionary:
        raise VerifyException(f"backend_config must be a {words} for api_version = {_version(op)}")


def _check_both_layouts(op: CustomCallOp) -> None:
    if (op.operand_layouts is None) != (op.result_layouts is None):
        raise VerifyException("operand_layouts and result_layouts must be given together, or not at all")


def _result_types(op: CustomCallOp) -> Sequence[Attribute]:
    """Return the types to which layouts apply: the result types or, if the only result is a tuple, its element
    types."""
    types = op.result_types
    return types[0].types.data if len(types) == 1 and isinstance(types[0], TupleType) else types


def _check_layouts(name: str, layouts: ArrayAttr[Attribute] | None, types: Sequence[Attribute]) -> None:
    if layouts is None:
        return
    check_count(name, len(layouts), len(types))
    for layout, type_ in zip(layouts, types, strict=True):
        _check_layout(layout, type_)


def _check_layout(layout: Attribute, type_: Attribute) -> None:
    """Check that a layout is a permutation of the dimensions of a tensor. For other types it must be empty."""
    if isinstance(type_, TupleType):
        raise VerifyException(f"a value of type {type_} cannot have a layout")
    if (
        not is_standard_dense(layout)
        or not isinstance(layout.get_element_type(), IndexType)
        or len(layout.get_shape()) != 1
    ):
        raise VerifyException(f"a layout must be a constant of type tensor<Nxindex>, not {layout}")
    rank = len(type_.get_shape()) if is_shaped(type_) else 0
    (count,) = layout.get_shape()
    if count != rank:
        raise VerifyException(
            f"a layout has {counted(count, 'entry', 'entries')}, expected one for each dimension of {type_}"
        )
    order = [int(dimension) for dimension in to_numpy(layout)]
    if sorted(order) != list(range(rank)):
        raise VerifyException(f"the layout {order} is not a permutation of the dimensions of {type_}")


def _selected_type(subject: str, type_: Attribute, indices: Sequence[int]) -> Attribute:
    """Return the type that `indices` selects from nested tuple types."""
    root = type_
    for index in indices:
        if not isinstance(type_, TupleType) or not 0 <= index < len(type_.types):
            raise VerifyException(f"{subject} {list(indices)} do not select an element of {root}")
        type_ = type_.types.data[index]
    return type_


def _selected_result_type(op: CustomCallOp, indices: Sequence[int]) -> Attribute:
    """Return the type that `indices` selects from the results. Several results are treated as a tuple."""
    if len(op.results) == 1:
        return _selected_type("output_tuple_indices", op.result_types[0], indices)
    if not indices or not 0 <= indices[0] < len(op.results):
        raise VerifyException(f"output_tuple_indices {list(indices)} do not select one of {len(op.results)} results")
    return _selected_type("output_tuple_indices", op.result_types[indices[0]], indices[1:])


def _check_aliases(op: CustomCallOp) -> None:
    """Check that the result and the operand of each alias, which may be elements of tuples, have the same type."""
    for alias in op.output_operand_aliases or ():
        index = alias.data.operand_index
        if not 0 <= index < len(op.inputs):
            raise VerifyException(
                f"operand_index is {index}, expected the index of one of the {len(op.inputs)} operands"
            )
        operand = _selected_type("operand_tuple_indices", op.operand_types[index], alias.data.operand_tuple_indices)
        result = _selected_result_type(op, alias.data.output_tuple_indices)
        if operand != result:
            raise VerifyException(f"a result of type {result} cannot alias an operand of type {operand}")


CONSTRAINTS: tuple[Constraint[CustomCallOp], ...] = (
    Constraint("I5", _check_version),
    Constraint("I4", _check_config),
    Constraint("layouts", _check_both_layouts),
    Constraint("layouts", lambda op: _check_layouts("operand_layouts", op.operand_layouts, op.operand_types)),
    Constraint("layouts", lambda op: _check_layouts("result_layouts", op.result_layouts, _result_types(op))),
    Constraint("I7", _check_aliases),
)
