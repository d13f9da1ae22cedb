"""The parts of an operation, and the treatment of each part in a proof.

    name, attributes, properties, types of the results      the head of its term
    operands                                                the numbers that the term reads
    regions: argument types, operations, terminator         bodies of the head, and their captures
    successors                                              refused: only single blocks are compared
    location, name hints                                    ignored
    everything else that xDSL keeps                         follows from these (uses, parents, neighbours)

A test compares `PARTS` with xDSL's classes, so that a new part fails the test instead of being overlooked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    UnregisteredOp,
)
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

from ..dialects.reserved_names import is_reserved
from ..support.diagnostics import Refusal
from ..support.operations import every_operation

Treatment = Literal["compared", "refused", "ignored", "derived"]

PARTS: dict[str, dict[str, Treatment]] = {
    "Operation": {
        "name": "compared",
        "traits": "derived",
        "attributes": "compared",
        "properties": "compared",
        "results": "compared",
        "_operands": "compared",
        "regions": "compared",
        "_successors": "refused",
        "location": "ignored",
        "_operand_uses": "derived",
        "_successor_uses": "derived",
        "parent": "derived",
        "_next_op": "derived",
        "_prev_op": "derived",
    },
    "Region": {"_first_block": "compared", "_last_block": "derived", "parent": "derived"},
    "Block": {
        "_args": "compared",
        "_first_op": "compared",
        "_last_op": "derived",
        "_next_block": "refused",
        "_prev_block": "derived",
        "first_use": "derived",
        "parent": "derived",
        "_name": "ignored",
    },
}


def name_of(op: Operation) -> str:
    """Return the operation's name, also that of an unregistered operation."""
    return cast(UnregisteredOp, op).op_name.data if _is_unregistered(op) else op.name


def _is_unregistered(op: Operation) -> bool:
    # Not by class: a check against an abstract class costs several times as much, and this runs for every operation.
    return op.name == UnregisteredOp.name


def attributes_of(op: Operation) -> dict[str, Attribute]:
    """Return properties and attributes together, without those of the passes, which no proof relies on. Raises
    `Refusal`."""
    attributes = without_ours(op.attributes)
    if _is_unregistered(op):
        del attributes["op_name__"]
    if both := attributes.keys() & op.properties.keys():
        raise Refusal(op, f"{name_of(op)} has '{min(both)}' both as attribute and as property")
    return attributes | op.properties


def properties_of(op: Operation) -> tuple[str, ...]:
    """Return the names of the properties of an unregistered operation, which distinguishes them from attributes.

    For registered operations xDSL converts attributes to properties where the operation defines these.
    """
    return tuple(sorted(op.properties)) if _is_unregistered(op) else ()


def without_ours(attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    return {name: value for name, value in attributes.items() if not name.startswith("recompute.")}


def functions_of(module: ModuleOp) -> dict[str, Operation]:
    """Return the top-level functions by name. Raises `Refusal` for a function without a name or with one that
    is taken."""
    functions: dict[str, Operation] = {}
    for op in module.ops:
        if name_of(op) != "func.func":
            continue
        name = attributes_of(op).get("sym_name")
        if not isinstance(name, StringAttr) or name.data in functions:
            raise Refusal(op, "a function needs a name of its own")
        functions[name.data] = op
    return functions


def public_functions(functions: Mapping[str, Operation]) -> list[str]:
    """Return the names of the functions that can be called from outside."""
    private = StringAttr("private")
    return [name for name, op in functions.items() if attributes_of(op).get("sym_visibility") != private]


def entry_functions(functions: Mapping[str, Operation]) -> list[str]:
    """Return the names of the functions that are compared as functions: public ones, and those with reserved names."""
    public = frozenset(public_functions(functions))
    return [name for name in functions if name in public or is_reserved(name)]


def result_types(function: Operation) -> tuple[Attribute, ...]:
    """Return the types of the results of a function. Raises `Refusal` if it has no function type."""
    type_ = attributes_of(function).get("function_type")
    if not isinstance(type_, FunctionType):
        raise Refusal(function, "a function needs a function type")
    return type_.outputs.data


def position_attributes(function: Operation, name: str, count: int) -> list[dict[str, Attribute]]:
    """Return `arg_attrs` or `res_attrs` as one dictionary for each position; absent and empty are the same."""
    value = attributes_of(function).get(name)
    if value is None:
        return [{} for _ in range(count)]
    if not isa(value, ArrayAttr[DictionaryAttr]) or len(value.data) != count:
        raise Refusal(function, f"'{name}' needs one dictionary for each of the {count} positions")
    return [without_ours(dictionary.data) for dictionary in value.data]


CALLEES = {"func.call": "callee", "stablehlo.composite": "decomposition"}
"""Operations that compute the same as a function, and the attribute that names the function."""


def callee_of(call: Operation, functions: Mapping[str, Operation]) -> str:
    """Return the top-level function that a call or a composite names. Raises `Refusal` if there is none."""
    callee = attributes_of(call).get(CALLEES[name_of(call)])
    if not isinstance(callee, SymbolRefAttr) or callee.nested_references.data:
        raise Refusal(call, f"{name_of(call)} names no function at the top level")
    name = callee.root_reference.data
    if name not in functions:
        raise Refusal(call, f"{name_of(call)} of @{name}, which does not exist")
    return name


def size_with_calls(functions: Mapping[str, Operation], roots: Iterable[str]) -> int:
    """Return the number of operations of these functions with calls inlined.

    Raises `Refusal` for recursion.
    """
    sizes, active = dict[str, int](), dict[str, list[tuple[Operation, str]]]()
    names = list(roots)
    pending = list(reversed(names))
    while pending:
        name = pending[-1]
        if name in sizes:
            pending.pop()
            continue
        if name not in active:
            calls = [op for op in every_operation(functions[name]) if name_of(op) in CALLEES]
            active[name] = [(op, callee_of(op, functions)) for op in calls]
        for op, callee in active[name]:
            if callee in active:
                raise Refusal(op, f"@{callee} calls itself: recursion is not compared")
        if missing := [callee for _, callee in active[name] if callee not in sizes]:
            pending.extend(missing)
            continue
        inlined = sum(sizes[callee] for _, callee in active.pop(name))
        sizes[name] = len(every_operation(functions[name])) - 1 + inlined
    return sum(sizes[name] for name in names)
