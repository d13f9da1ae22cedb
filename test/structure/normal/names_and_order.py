"""Rules for parts without meaning: names, orders, empty lists, marks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..balance import pieces
from ..tree import Operation, Program

PRIVATE = '"private"'
_SYMBOL = re.compile(r'@(?:"([^"]*)"|([\w$.-]+))')
_LISTS = ("arg_attrs", "res_attrs")
_OF_LINALG = frozenset("dim dimensions indexing_maps iterator_types operandSegmentSizes permutation".split())


def name_of(function: Operation) -> str:
    return function.properties.get("sym_name", '""').strip('"')


def callee_of(call: Operation) -> str | None:
    match = _SYMBOL.fullmatch(call.properties.get("callee", ""))
    return (match[1] or match[2]) if match else None


def symbols_in(text: str) -> set[str]:
    return {quoted or plain for quoted, plain in _SYMBOL.findall(text)}


def mentioned(program: Program) -> set[str]:
    """Return the symbols in attributes, except callees: a call means what its function does, wherever that is."""
    result: set[str] = set()
    for op in program.module.walk():
        for key, text in (*op.properties.items(), *op.attributes.items()):
            if op.name != "func.call" or key != "callee" or callee_of(op) is None:
                result |= symbols_in(text)
        for value in op.results:
            result |= symbols_in(value.type)
    return result


def called(program: Program) -> Iterator[str]:
    """Yield callees in the order of the calls, first from public functions, then from the functions that these call."""
    bodies = {name_of(function): function for function in program.functions()}
    pending: list[Operation] = [op for op in program.body.operations if op.properties.get("sym_visibility") != PRIVATE]
    seen: set[str] = set()
    while pending:
        for op in pending.pop(0).walk():
            name = callee_of(op) if op.name == "func.call" else None
            if name is not None and name not in seen:
                seen.add(name)
                yield name
                if name in bodies:
                    pending.append(bodies[name])


def with_properties_of_linalg(program: Program) -> None:
    """Treat the properties of linalg as such in either dictionary, since jaxlib does not know the dialect."""
    for op in program.module.walk():
        if op.name.startswith("linalg."):
            for key in [key for key in op.attributes if key in _OF_LINALG and key not in op.properties]:
                op.properties[key] = op.attributes.pop(key)


def without_marks(program: Program) -> None:
    for op in program.module.walk():
        for key in [key for key in op.attributes if key.strip('"').startswith("recompute.")]:
            del op.attributes[key]
        if op.name == "func.func":
            for name in [name for name in _LISTS if name in op.properties]:
                op.properties[name] = f"[{', '.join(map(_unmarked, pieces(op.properties[name][1:-1])))}]"


def _unmarked(dictionary: str) -> str:
    kept = [entry for entry in pieces(dictionary[1:-1]) if not entry.strip('"').startswith("recompute.")]
    return f"{{{', '.join(kept)}}}"


def without_module_name(program: Program) -> None:
    program.module.properties.pop("sym_name", None)


def without_public(program: Program) -> None:
    for function in program.functions():
        if function.properties.get("sym_visibility") == '"public"':
            del function.properties["sym_visibility"]


def without_empty_lists(program: Program) -> None:
    for function in [op for op in program.module.walk() if op.name == "func.func"]:
        for name in _LISTS:
            if all(piece == "{}" for piece in pieces(function.properties.get(name, "[]")[1:-1])):
                function.properties.pop(name, None)


def without_uncalled(program: Program) -> None:
    """Remove private functions that are not reachable."""
    while True:
        wanted = mentioned(program) | set(called(program))
        kept = [op for op in program.body.operations if not _is_uncalled(op, wanted)]
        if len(kept) == len(program.body.operations):
            return
        program.body.operations[:] = kept


def _is_uncalled(op: Operation, wanted: set[str]) -> bool:
    return op.name == "func.func" and op.properties.get("sym_visibility") == PRIVATE and name_of(op) not in wanted


def with_plain_private_names(program: Program) -> None:
    """Name private functions with a body by the order of their first call."""
    hidden = {
        name_of(function) for function in program.functions() if function.properties.get("sym_visibility") == PRIVATE
    }
    hidden -= {name_of(function) for function in program.functions() if not function.regions or not function.regions[0]}
    hidden -= mentioned(program)
    new = {name: f"private {number}" for number, name in enumerate(item for item in called(program) if item in hidden)}
    for op in program.module.walk():
        if op.name == "func.func" and op in program.body.operations and name_of(op) in new:
            op.properties["sym_name"] = f'"{new[name_of(op)]}"'
        if op.name == "func.call" and (callee := callee_of(op)) in new:
            op.properties["callee"] = f'@"{new[callee]}"'


def in_order_of_names(program: Program) -> None:
    """Sort the functions by name, after all other operations."""
    functions = program.functions()
    others = [op for op in program.body.operations if op not in functions]
    program.body.operations[:] = [*others, *sorted(functions, key=name_of)]
