"""The signature of a program: the attributes of its module, and the types and attributes of its public functions."""

from __future__ import annotations

from xdsl.dialects.builtin import FunctionType, StringAttr, TupleType
from xdsl.ir import Operation

from ..dialects.stablehlo.tuples import leaf_types
from ..support.diagnostics import Refusal
from .expressions.terms import Attributes, Terms
from .operations.operation_parts import attributes_of, entry_functions, position_attributes
from .translation.value_numbering import Numbering
from .verdicts.first_difference import first_attribute

BY_POSITION = ("arg_attrs", "res_attrs")


def signature(numbering: Numbering, flattened_results: bool = False) -> dict[str, Attributes]:
    """Return all attributes of the signature, grouped by the part that carries them, such as "the module" or "argument
    #0 of @main".

    The parts are the module and, for each compared function, the function, its arguments, its results and its return.

    `flattened_results`: whether the signature lists the elements of a result that is a tuple, instead of the tuple.
    """
    module = numbering.module
    of_module = {name: value for name, value in attributes_of(module).items() if name != "sym_name"}
    places = {"the module": numbering.heads.attributes(module, of_module)}
    for name in entry_functions(numbering.functions):
        places |= _of_function(numbering, name, numbering.functions[name], flattened_results)
    return places


def _of_function(
    numbering: Numbering, name: str, function: Operation, flattened_results: bool
) -> dict[str, Attributes]:
    attributes = numbering.heads.attributes
    own = attributes_of(function)
    type_ = own.get("function_type")
    if not isinstance(type_, FunctionType):
        raise Refusal(function, f"@{name} has no function type")
    results = list(type_.outputs)
    if flattened_results and any(isinstance(result, TupleType) for result in results):
        if own.get("res_attrs") is not None:
            subject = f"a result of @{name} is a tuple with attributes"
            raise Refusal(function, f"{subject}, so it cannot be compared with its elements")
        results = leaf_types(results)
        own["function_type"] = FunctionType.from_lists(list(type_.inputs), results)
    if own.get("sym_visibility") == StringAttr("public"):
        del own["sym_visibility"]
    places = {f"@{name}": attributes(function, {key: own[key] for key in own if key not in BY_POSITION})}
    for role, key, types in (("argument", "arg_attrs", type_.inputs), ("result", "res_attrs", results)):
        for index, position in enumerate(position_attributes(function, key, len(types))):
            places[f"{role} #{index} of @{name}"] = attributes(function, position)
    for block in function.regions[0].blocks if function.regions else ():
        if block.last_op is not None:
            places[f"the return of @{name}"] = attributes(block.last_op, attributes_of(block.last_op))
    return places


def signature_difference(before: dict[str, Attributes], after: dict[str, Attributes], terms: Terms) -> str | None:
    """Return a description of the first difference between two signatures, or None if they are equal."""
    for place in before | after:
        if place not in before or place not in after:
            return f"{place} exists only in the {'original' if place in before else 'rewritten'} program"
        if before[place] != after[place]:
            texts = first_attribute(terms, before[place], after[place])
            return f"{place} differs: before {texts[0]}, after {texts[1]}"
    return None
