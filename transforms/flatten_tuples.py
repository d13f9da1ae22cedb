"""recompute-flatten-tuples: return tuples as separate results, and read their elements directly.

    func.func @main(%a: A, %b: B) -> tuple<A, B> {             func.func @main(%a: A, %b: B) -> (A, B) {
      %t = stablehlo.tuple %a, %b : tuple<A, B>                  %c = stablehlo.add %b, %b : B
      %b1 = stablehlo.get_tuple_element %t[1]           ->       return %a, %c
      %c = stablehlo.add %b1, %b1 : B                          }
      %u = stablehlo.tuple %a, %c : tuple<A, B>
      return %u
    }

Older exporters, such as PyTorch/XLA, return a single tuple. The pass changes the results of all functions that are not
called. The proof treats a tuple as equal to its elements, and reports this.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp, TupleType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ..analysis.step.order import functions_of, single_block
from ..dialects.names import Names
from ..dialects.stablehlo.tuples import GetTupleElementOp, TupleOp
from ..support.diagnostics import Refusal
from ..support.operations import block_of, every_operation, terminator_of


def flatten_tuples(module: ModuleOp) -> int:
    """Flatten the tuples that uncalled functions return. Return the number of changed functions.

    Raises:
        Refusal: Attributes of a tuple would be lost.
    """
    called = {op.callee.string_value() for op in every_operation(module) if isinstance(op, CallOp)}
    flattened = 0
    for function in functions_of(module):
        has_tuple = any(isinstance(type_, TupleType) for type_ in function.function_type.outputs)
        if has_tuple and function.sym_name.data not in called:
            _flatten_results(function)
            flattened += 1
    read_elements(module)
    return flattened


def read_elements(module: ModuleOp) -> None:
    """Replace each extracted tuple element with the value that the tuple was created from, and erase unused tuples."""
    operations = every_operation(module)
    for op in operations:
        if type(op) is GetTupleElementOp and (value := _element(op)) is not None:
            value.name_hint = value.name_hint or op.result.name_hint
            op.result.replace_all_uses_with(value)
            _erase(op)
    for op in reversed(operations):
        if type(op) is TupleOp and not _has_attributes(op) and not op.result.uses:
            _erase(op)


def _erase(op: Operation) -> None:
    Rewriter.erase_op(op)


def _has_attributes(op: Operation) -> bool:
    """Return whether the operation has foreign attributes, which would be lost if the operation were erased."""
    return any(not name.startswith(Names.PREFIX) for name in op.attributes)


def _element(op: GetTupleElementOp) -> SSAValue | None:
    """Return the value that the operation extracts from a tuple; None if it is unknown.

    Also return None if an attribute or a type would be lost.
    """
    owner = op.operand.owner
    if not isinstance(owner, TupleOp) or _has_attributes(op) or _has_attributes(owner):
        return None
    value = owner.operands[op.index.value.data]
    return value if value.type == op.result.type else None


def _flatten_results(function: FuncOp) -> None:
    if any(_result_attributes(function)):
        raise Refusal(
            function, "the function returns a tuple, and its results have attributes that would be lost: remove them"
        )
    return_op = terminator_of(single_block(function))
    returned = [leaf for value in return_op.operands for leaf in _leaves(value, return_op)]
    return_op.operands = returned
    outputs = [value.type for value in returned]
    function.function_type = FunctionType.from_lists(list(function.function_type.inputs), outputs)
    function.properties.pop("res_attrs", None)


def _result_attributes(function: FuncOp) -> Iterator[DictionaryAttr]:
    """Yield the attributes of each result that has attributes."""
    attributes = function.res_attrs
    yield from (entry for entry in attributes or ArrayAttr[DictionaryAttr]([]) if entry.data)


def _leaves(value: SSAValue, return_op: Operation) -> Sequence[SSAValue]:
    """Return the elements of a returned value in order, flattening nested tuples.

    If the tuple is not created by `stablehlo.tuple`, its elements are extracted before `return_op`.
    """
    if not isinstance(value.type, TupleType):
        return [value]
    if isinstance(value, OpResult) and isinstance(value.op, TupleOp):
        if _has_attributes(value.op):
            raise Refusal(
                value.op,
                "the operation that creates a returned tuple has attributes that would be lost: remove them",
            )
        elements: Sequence[SSAValue] = value.op.operands
    else:
        elements = [_extract(value, index, return_op) for index in range(len(value.type.types))]
    return [leaf for element in elements for leaf in _leaves(element, return_op)]


def _extract(value: SSAValue[Attribute], index: int, return_op: Operation) -> SSAValue:
    element = GetTupleElementOp(value, index)
    element.location = return_op.location
    block = block_of(return_op)
    block.insert_op_before(element, return_op)
    return element.result


@dataclass(frozen=True)
class FlattenTuplesPass(ModulePass):
    name = "recompute-flatten-tuples"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        flatten_tuples(op)
