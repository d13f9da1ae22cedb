"""Modules that cross the bridge in both directions, compared with the same modules by way of text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation

from recompute.dialects.stablehlo.reduction import ReduceOp
from recompute.frontends.jax.bridge import read, write
from recompute.frontends.jax.internals import private
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.support.operations import every_operation
from recompute.test.imports import ROOT
from recompute.test.unit.frontends.jax.steps import jax

assert jax, "the bridge is one to JAX"
_NOTHING = re.compile(
    r"(?:(?:arg|res)_attrs = \[\{\}(?:, \{\})*\]|has_side_effect = false|api_version = 1 : i32"
    r"|called_computations = \[\]|is_stable = true"
    r"|result_accuracy = #stablehlo.result_accuracy<mode = .*?<DEFAULT>>)(?:, )?"
)
"""Lists in which no argument of a function, or result, has an attribute, and defaults: the text leaves them out."""
_SPLIT = re.compile(r"^// -----.*$", re.MULTILINE)


def theirs(text: str) -> Any:
    """Return MLIR's module of a text. Raises what MLIR raises."""
    return private.parse_mlir(text)


def generic(module: Any) -> str:
    """Return the module in generic form with locations: all that MLIR knows about it."""
    return module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True)


def text_of(module: Any) -> str:
    """Return the module as JAX prints it for this compiler."""
    return module.operation.get_asm(enable_debug_info=True)


def crosses(module: Any, in_generic_form: bool = False) -> ModuleOp:
    """Check that reading equals parsing, and that writing the result gives the original, with locations.

    `in_generic_form`: compare in generic form, the only one in which our parser reads unknown operations.
    """
    text = generic(module) if in_generic_form else text_of(module)
    ours = read(module)
    printed = print_module(ours, debuginfo=True)
    parsed = parse_module(text)
    assert print_module(_as_in_text(ours, parsed, in_generic_form), debuginfo=True) == print_module(
        parsed, debuginfo=True
    )
    # What the text does not show, the order of properties aside. xDSL makes a class for each unknown attribute that it
    # reads, so that even two readings of one text may differ.
    again = parse_module(text)
    assert ours.is_structurally_equivalent(parsed) or not again.is_structurally_equivalent(parsed)
    assert crosses_back(ours, module) is not None
    assert print_module(ours, debuginfo=True) == printed, "writing changes nothing"
    return ours


def _as_in_text(ours: ModuleOp, parsed: ModuleOp, in_generic_form: bool) -> ModuleOp:
    """Return the module without what the text omits: locations of the operation that `applies` denotes, and names in
    generic form."""
    copied = ours.clone()
    for mine, read_from_text in zip(every_operation(copied), every_operation(parsed), strict=True):
        if isinstance(mine, ReduceOp) and all(
            entry.location == read_from_text.location for entry in _inside(read_from_text)
        ):
            for item in _inside(mine):
                item.location = mine.location
        if in_generic_form:
            for result in mine.results:
                result.name_hint = None
    return copied


def _inside(op: Operation) -> list[Any]:
    return [item for block in op.regions[0].blocks for item in (*block.args, *block.ops)]


def crosses_back(ours: ModuleOp, module: Any) -> str:
    """Check that the written module equals the original, and return its description by MLIR."""
    back = _normalized(write(ours, private.mlir_context()))
    assert back == _normalized(module)
    return back


def _normalized(module: Any) -> str:
    return _NOTHING.sub("", generic(module)).replace(", }>", "}>").replace(" <{}>", "")


def examples() -> list[Path]:
    return sorted((ROOT / "examples" / "stablehlo").glob("*.mlir"))


@cache
def lit_inputs() -> tuple[tuple[str, str], ...]:
    """Return the name and text of each module in the lit tests."""
    files = sorted((ROOT / "test" / "filecheck").rglob("*.mlir"))
    return tuple((f"{file.stem}-{index}", part) for file in files for index, part in parts(file))


def parts(file: Path) -> Iterator[tuple[int, str]]:
    return enumerate(_SPLIT.split(file.read_text()))


def kinds_in(module: ModuleOp) -> set[str]:
    """Return the names of the operations, attributes and types in a module."""
    result, known = set[str](), set[int]()
    for op in every_operation(module):
        result.add(op.name)
        held = [*op.properties.values(), *op.attributes.values(), *op.result_types, op.location]
        for block in (block for region in op.regions for block in region.blocks):
            held += block.arg_types
        for attribute in held:
            _collect(attribute, result, known)
    return result


def _collect(attribute: Any, actual: set[str], known: set[int]) -> None:
    if isinstance(attribute, Attribute) and id(attribute) not in known:
        known.add(id(attribute))
        actual.add(attribute.name)
        for part in getattr(attribute, "parameters", ()) or _inner(getattr(attribute, "data", ())):
            _collect(part, actual, known)


def _inner(data: Any) -> Any:
    # pyright knows no members of a dictionary or tuple that it has only heard of.
    held: Any = data
    return held.values() if isinstance(data, dict) else held if isinstance(data, tuple) else ()
