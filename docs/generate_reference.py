"""Write docs/reference.md from the code.

    python docs/generate_reference.py

A test compares the file with what this script makes of the code.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation, VarOperandDef, VarResultDef
from xdsl.passes import ModulePass
from xdsl.utils.target import Target

from recompute.dialects import recompute, structured
from recompute.dialects.discardable import KNOWN
from recompute.dialects.recompute import RECOMPUTE
from recompute.dialects.stablehlo import STABLEHLO
from recompute.universe import PASSES, TARGETS

OUTPUT = Path(__file__).with_name("reference.md")
HEAD = "# Reference\n\nGenerated from the code by `docs/generate_reference.py`; do not edit.\n"


def reference() -> str:
    return "\n".join([HEAD, *passes(), *targets(), *operations(), *attributes(), *stablehlo()])


def passes() -> Iterator[str]:
    yield "## Passes\n"
    for name, factory in PASSES.items():
        found = factory()
        yield f"### `{name}`\n"
        yield f"{module_text(found)}\n"
        yield from options(found)


def targets() -> Iterator[str]:
    yield "## Targets\n"
    for name, factory in TARGETS.items():
        found = factory()
        yield f"### `{name}`\n"
        yield f"{inspect.getdoc(found)}\n"
        yield from options(found)


def module_text(found: type[ModulePass]) -> str:
    """The module's docstring without the pass name in front. Its indented examples are code in Markdown too."""
    module = inspect.getmodule(found)
    assert module is not None and module.__doc__ is not None, "every pass file explains itself"
    text = module.__doc__.partition(": ")[2].rstrip()
    return text[0].upper() + text[1:]


def options(found: type[ModulePass] | type[Target]) -> Iterator[str]:
    for field in fields(found):
        yield f"- option `{field.name}`: {field.type}, default `{field.default}`"
    if fields(found):
        yield ""


def operations() -> Iterator[str]:
    yield "## The recompute dialect\n"
    for module in (recompute, structured):
        yield f"{inspect.getdoc(module)}\n"
    for attribute in RECOMPUTE.attributes:
        yield f"- {inspect.getdoc(attribute)}"
    yield ""
    for operation in RECOMPUTE.operations:
        yield f"### `{operation.name}`\n"
        yield f"{inspect.getdoc(operation)}\n"
        yield from parts(operation)


def parts(operation: type[Operation]) -> Iterator[str]:
    """What the operation takes, gives back and holds."""
    assert issubclass(operation, IRDLOperation), "ours are defined in IRDL"
    definition = operation.get_irdl_definition()
    kinds = {"operands": definition.operands, "results": definition.results, "regions": definition.regions}
    for kind, named in kinds.items():
        if named:
            yield f"- {kind}: {', '.join(f'`{name}`{_how_many(part)}' for name, part in named)}"
    yield ""


def _how_many(part: object) -> str:
    return " (any number)" if isinstance(part, VarOperandDef | VarResultDef) else ""


def attributes() -> Iterator[str]:
    yield "## Attributes\n"
    yield "On any operation of any dialect. The driver and `recompute-verify` check them.\n"
    yield "| attribute | on | value | meaning |\n|---|---|---|---|"
    for name, known in KNOWN.items():
        yield f"| `{name}` | {known.carrier} | {known.words} | {known.meaning} |"
    yield ""


def stablehlo() -> Iterator[str]:
    yield "## StableHLO operations with a class of their own\n"
    yield "Typed, verified, in pretty and generic form. Others pass through in the generic form.\n"
    yield ", ".join(f"`{name}`" for name in sorted(op.name.removeprefix("stablehlo.") for op in STABLEHLO.operations))
    yield ""


if __name__ == "__main__":
    OUTPUT.write_text(reference())
    sys.exit(0)
