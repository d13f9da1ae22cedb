"""The parts of an operation, and how the proof treats each of them.

    name, attributes, properties, result types              part of the head of its term
    operands                                                operands of the term
    regions: argument types, operations, terminator         bodies in the head, and captures as operands
    successors                                              refused: the proof supports only regions with one block
    location, name hints                                    ignored
    other fields of xDSL's classes                          ignored: derived from these (uses, parents, neighbours)

A test compares `PARTS` with xDSL's classes, and fails if xDSL adds a field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    UnregisteredOp,
)
from xdsl.ir import Attribute, Operation, Region
from xdsl.utils.hints import isa

from ...dialects.reserved_names import is_reserved
from ...support.diagnostics import Refusal
from ...support.operations import every_operation, name_of

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


def _is_unregistered(op: Operation) -> bool:
    # This runs for every operation, and a check against an abstract class takes several times as long as a comparison
    # of names.
    return op.name == UnregisteredOp.name


def attributes_of(op: Operation) -> dict[str, Attribute]:
    """Return the properties and attributes of an operation in one dictionary. Omit the attributes of the recompute
    passes.

    Raises:
        Refusal: An attribute and a property have the same name.
    """
    attributes = without_ours(op.attributes)
    if _is_unregistered(op):
        del attributes["op_name__"]
    if both := attributes.keys() & op.properties.keys():
        raise Refusal(op, f"{name_of(op)} has both an attribute and a property named '{min(both)}'")
    return attributes | op.properties


def properties_of(op: Operation) -> tuple[str, ...]:
    """Return the names of the properties of an unregistered operation; empty for a registered one.

    A registered operation needs no such names: xDSL turns an attribute into a property if the operation defines that
    property.
    """
    return tuple(sorted(op.properties)) if _is_unregistered(op) else ()


def without_ours(attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    return {name: value for name, value in attributes.items() if not name.startswith("recompute.")}


def key_of_head(op: Operation) -> tuple[object, ...] | None:
    """Return a key of all compared parts except the operands, or None if the operation has no key. Unregistered
    operations and operations with successors have no key. An operation with regions has a key only if the operation is
    in `WITH_SCALAR_BODIES` and its regions capture no values.

    The key contains Python ids of attributes and types, so it is valid only while the program keeps them alive.
    """
    # Private fields are read because this runs for every operation, and xDSL's properties would double its time.
    untyped: Any = op
    if untyped._successors or _is_unregistered(op):
        return None
    bodies: tuple[object, ...] = ()
    if op.regions:
        if op.name not in WITH_SCALAR_BODIES:
            return None
        bodies = tuple([_key_of_body(region) for region in op.regions])
        if None in bodies:
            return None
    attributes: list[object] = []
    if op.attributes:
        attributes = [
            part
            for name, value in op.attributes.items()
            if not name.startswith("recompute.")
            for part in (name, id(value))
        ]
    operands, properties = untyped._operands, op.properties
    return (
        op.name,
        len(attributes),
        len(operands),
        *attributes,
        *properties,
        *map(id, properties.values()),
        *[id(value._type) for value in operands],
        *[id(result._type) for result in untyped.results],
        *bodies,
    )


WITH_SCALAR_BODIES = frozenset(
    f"stablehlo.{name}" for name in ("reduce", "reduce_window", "scatter", "select_and_scatter", "sort", "map")
)
"""Operations whose regions are short and often repeated, such as the addition in a sum."""


def _key_of_body(region: Region) -> tuple[object, ...] | None:
    """Return a key of a region: the keys of its operations, with the positions of the values that they read. Return
    None if the region does not have one block or reads values from outside it."""
    block = region.first_block
    if block is None or block.next_block is not None:
        return None
    positions = {id(argument): index for index, argument in enumerate(block.args)}
    key: list[object] = [id(argument.type) for argument in block.args]
    for op in block.ops:
        head = key_of_head(op)
        read = [positions.get(id(operand)) for operand in op.operands]
        if head is None or None in read:
            return None
        key.append((head, *read))
        for result in op.results:
            positions[id(result)] = len(positions)
    return tuple(key)


def functions_of(module: ModuleOp) -> dict[str, Operation]:
    """Return the top-level functions by name.

    Raises:
        Refusal: A function has no name, or two functions have the same name.
    """
    functions: dict[str, Operation] = {}
    for op in module.ops:
        if name_of(op) != "func.func":
            continue
        name = attributes_of(op).get("sym_name")
        if not isinstance(name, StringAttr):
            raise Refusal(op, "a function has no name")
        if name.data in functions:
            raise Refusal(op, f"two functions are named @{name.data}")
        functions[name.data] = op
    return functions


def public_functions(functions: Mapping[str, Operation]) -> list[str]:
    """Return the names of the functions that are not private."""
    private = StringAttr("private")
    return [name for name, op in functions.items() if attributes_of(op).get("sym_visibility") != private]


def entry_functions(functions: Mapping[str, Operation]) -> list[str]:
    """Return the names of the functions that the proof compares separately: public functions and functions with
    reserved names."""
    public = frozenset(public_functions(functions))
    return [name for name in functions if name in public or is_reserved(name)]


def result_types(function: Operation) -> tuple[Attribute, ...]:
    """Return the result types of a function. Raises `Refusal` if it has no function type."""
    type_ = attributes_of(function).get("function_type")
    if not isinstance(type_, FunctionType):
        raise Refusal(function, "the function has no function type")
    return type_.outputs.data


def position_attributes(function: Operation, name: str, count: int) -> list[dict[str, Attribute]]:
    """Return the attributes of each argument or result of a function; empty dictionaries if there are none.

    Args:
        function: The function.
        name: `arg_attrs` or `res_attrs`.
        count: The number of arguments or results.
    """
    value = attributes_of(function).get(name)
    if value is None:
        return [{} for _ in range(count)]
    if not isa(value, ArrayAttr[DictionaryAttr]) or len(value.data) != count:
        raise Refusal(function, f"'{name}' must be a list of {count} dictionaries, one for each position")
    return [without_ours(dictionary.data) for dictionary in value.data]


CALLEES = {"func.call": "callee", "stablehlo.composite": "decomposition"}
"""Call operations, each with the attribute that names the called function."""


def callee_of(call: Operation, functions: Mapping[str, Operation]) -> str:
    """Return the name of the function that a call or composite refers to.

    Raises:
        Refusal: The operation does not name a function at the top level of the module.
    """
    callee = attributes_of(call).get(CALLEES[name_of(call)])
    if not isinstance(callee, SymbolRefAttr) or callee.nested_references.data:
        raise Refusal(call, f"{name_of(call)} does not name a function at the top level of the module")
    name = callee.root_reference.data
    if name not in functions:
        raise Refusal(call, f"{name_of(call)} refers to @{name}, but the module has no function with this name")
    return name


def size_with_calls(functions: Mapping[str, Operation], roots: Iterable[str]) -> int:
    """Return the number of operations that the functions `roots` would have with all calls inlined.

    Raises:
        Refusal: A function calls itself, directly or through others.
    """
    sizes = dict[str, int]()
    active = dict[str, list[tuple[Operation, str]]]()
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
                raise Refusal(op, f"@{callee} calls itself; the proof does not support recursion")
        if missing := [callee for _, callee in active[name] if callee not in sizes]:
            pending.extend(missing)
            continue
        inlined = sum(sizes[callee] for _, callee in active.pop(name))
        sizes[name] = len(every_operation(functions[name])) - 1 + inlined
    return sum(sizes[name] for name in names)
