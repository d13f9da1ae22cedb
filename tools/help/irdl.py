"""`--emit-irdl`: print this project's dialect in IRDL. `mlir-opt --irdl-file` and C++ compilers load this form.

    irdl.dialect @recompute {
      irdl.operation @token {
        %0 = irdl.any
        %1 = irdl.base @types::@recompute::@token
        irdl.operands(variadic %0)
        irdl.results(%1)
      }
    }

The syntax follows MLIR 19. Types are in a separate module `@types`, since in IRDL the symbols of a type and an
operation of the same name clash. IRDL has no traits, so no operation is a terminator or pure, and all values of a
variadic list must have the same type (docs/driver.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from xdsl.ir import Attribute, Dialect
from xdsl.irdl import (
    BaseAttr,
    EqAttrConstraint,
    IRDLOperation,
    OpDef,
    OperandDef,
    OptOperandDef,
    OptResultDef,
    ParamAttrConstraint,
    RangeLengthConstraint,
    RangeOf,
    ResultDef,
    VarOperandDef,
    VarResultDef,
)

_VARIADICITY: tuple[tuple[type[OperandDef | ResultDef], str], ...] = (
    (OptOperandDef, "optional "),
    (OptResultDef, "optional "),
    (VarOperandDef, "variadic "),
    (VarResultDef, "variadic "),
)


def irdl_of(dialect: Dialect) -> str:
    """Return the definition of a dialect in IRDL. Raises `ValueError` for an attribute with parameters."""
    types = {attribute: _word(attribute.name) for attribute in dialect.attributes}
    lines = [
        "module {",
        "  module @types {",
        f"    irdl.dialect @{dialect.name} {{",
        *(line for attribute, word in types.items() for line in _type(attribute, word)),
        "    }",
        "  }",
        f"  irdl.dialect @{dialect.name} {{",
        *(
            line
            for operation in dialect.operations
            if issubclass(operation, IRDLOperation)
            for line in _operation(operation.get_irdl_definition(), dialect.name, types)
        ),
        "  }",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _word(name: str) -> str:
    """Return the name of an operation or type without its dialect."""
    return name.partition(".")[2]


def _type(attribute: type[Attribute], word: str) -> Iterator[str]:
    if getattr(attribute, "__annotations__", {}):
        raise ValueError(f"{attribute.name} has parameters, and this tool cannot write parameters as IRDL")
    yield from (f"      irdl.type @{word} {{", "      }")


def _operation(definition: OpDef, dialect: str, types: dict[type[Attribute], str]) -> Iterator[str]:
    yield f"    irdl.operation @{_word(definition.name)} {{"
    constraints = list[str]()
    lists = [
        f"irdl.{kind}({', '.join(_value(value, dialect, types, constraints) for _, value in values)})"
        for kind, values in (("operands", definition.operands), ("results", definition.results))
        if values
    ]
    yield from (f"      %{number} = {constraint}" for number, constraint in enumerate(constraints))
    regions = [f"%region{number}" for number, _ in enumerate(definition.regions)]
    yield from (f"      {region} = irdl.region" + " with size 1" for region in regions)
    yield from (f"      {text}" for text in [*lists, *([f"irdl.regions({', '.join(regions)})"] if regions else [])])
    yield "    }"


def _value(
    value: OperandDef | ResultDef, dialect: str, types: dict[type[Attribute], str], constraints: list[str]
) -> str:
    """Return a reference to the constraint of a value. A new constraint is appended to `constraints`."""
    text = _constraint(_of_one(value.constr), dialect, types)
    if text not in constraints:
        constraints.append(text)
    variadicity = next((word for kind, word in _VARIADICITY if isinstance(value, kind)), "")
    return f"{variadicity}%{constraints.index(text)}"


def _of_one(constraint: Any) -> Any:
    """Return the constraint on a single value, given the constraint on a range of values."""
    while type(constraint) in (RangeOf, RangeLengthConstraint):
        constraint = constraint.constr if type(constraint) is RangeOf else constraint.constraint
    return constraint


def _constraint(constraint: object, dialect: str, types: dict[type[Attribute], str]) -> str:
    for kind in _classes(constraint):
        if kind in types:
            return f"irdl.base @types::@{dialect}::@{types[kind]}"
    return "irdl.any"


def _classes(constraint: object) -> Iterable[type[Attribute]]:
    """Return the classes of attributes that satisfy a constraint; empty if the constraint names no class."""
    match constraint:
        case BaseAttr(attr=kind):
            return (kind,)
        case ParamAttrConstraint(base_attr=kind):
            return (kind,)
        case EqAttrConstraint(attr=attribute):
            return (type(attribute),)
        case _:
            return ()
