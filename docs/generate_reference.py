"""Write docs/reference.md from the code.

    python docs/generate_reference.py

A test compares the file with the output of this script.
"""

from __future__ import annotations

import inspect
import sys
from argparse import SUPPRESS, Action, ArgumentParser
from collections.abc import Iterator
from pathlib import Path

from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation, VarOperandDef, VarResultDef
from xdsl.passes import ModulePass
from xdsl.utils.target import Target

from recompute.dialects import recompute, structured
from recompute.dialects.discardable import KNOWN
from recompute.dialects.recompute import RECOMPUTE
from recompute.dialects.stablehlo import STABLEHLO
from recompute.tools.arguments.opt_arguments import argument_parser as recompute_opt
from recompute.tools.help.option_help import options_of, summary
from recompute.tools.recompute_check import argument_parser as recompute_check
from recompute.tools.recompute_plan import argument_parser as recompute_plan
from recompute.tools.recompute_run import argument_parser as recompute_run
from recompute.universe import PASSES, TARGETS

OUTPUT = Path(__file__).with_name("reference.md")
HEAD = """# Reference

This page lists the passes, targets, command lines, operations and attributes with all their options. It is generated
from the code by `docs/generate_reference.py`; do not edit.
"""


def reference() -> str:
    """Return the text of the page."""
    return "\n".join([HEAD, *passes(), *targets(), *command_lines(), *operations(), *attributes(), *stablehlo()])


def passes() -> Iterator[str]:
    yield "## Passes\n"
    for name, factory in PASSES.items():
        pass_class = factory()
        yield f"### `{name}`\n"
        yield f"{module_text(pass_class)}\n"
        yield from options(pass_class)


def targets() -> Iterator[str]:
    yield "## Targets\n"
    for name, factory in TARGETS.items():
        target_class = factory()
        yield f"### `{name}`\n"
        yield f"{summary(target_class)}\n"
        yield from options(target_class)


def module_text(pass_class: type[ModulePass]) -> str:
    """Return the docstring of the module of a pass, without the pass name in front.

    Its indented examples are code blocks in Markdown as well.
    """
    module, prefix = inspect.getmodule(pass_class), f"{pass_class.name}: "
    assert module is not None and (module.__doc__ or "").startswith(prefix), (
        f"{pass_class.__module__}: the docstring must begin with '{prefix}', since it is the text of the pass"
    )
    text = inspect.cleandoc(module.__doc__ or "").removeprefix(prefix)
    return text[0].upper() + text[1:]


def options(option_class: type[ModulePass] | type[Target]) -> Iterator[str]:
    if listed := options_of(option_class):
        yield "| option | type | default | meaning |\n|---|---|---|---|"
        for option in listed:
            default = f"`{option.default}`" if option.default else ""
            yield _row(f"`{option.spelling}`", f"`{option.type}`", default, option.meaning)
        yield ""


def _row(*cells: str) -> str:
    escaped = [cell.replace("|", r"\|") for cell in cells]
    return f"| {' | '.join(escaped)} |"


def command_lines() -> Iterator[str]:
    yield "## Command lines\n"
    for parser in (recompute_opt(), recompute_check(), recompute_run(), recompute_plan()):
        yield f"### `{parser.prog}`\n"
        yield "| option | default | meaning |\n|---|---|---|"
        for action in _listed_actions(parser):
            without = action.default is None or action.default is False or action.default in ([], "", SUPPRESS)
            default = "" if without else f"`{action.default}`"
            yield _row(_spelling(action), default, _help_text(parser, action))
        yield ""


def _listed_actions(parser: ArgumentParser) -> list[Action]:
    """Return the arguments of a parser, without `--help`."""
    return [action for action in parser._actions if action.dest != "help"]


def _help_text(parser: ArgumentParser, action: Action) -> str:
    return (action.help or "") % {**vars(action), "prog": parser.prog}


def _spelling(action: Action) -> str:
    """Return an option as the page shows it, `-p PASSES`; for a positional argument, its metavar."""
    choices = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else ""
    value = "" if action.nargs == 0 else str(action.metavar or choices or action.dest.upper())
    shown = f"[={value}]" if action.nargs == "?" and value else f" {value}" if value else ""
    return ", ".join(f"`{name}{shown}`" for name in action.option_strings) or f"`{action.metavar or action.dest}`"


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
    """Yield the lists of the operands, results and regions of an operation."""
    assert issubclass(operation, IRDLOperation), "the operations of this dialect are defined in IRDL"
    definition = operation.get_irdl_definition()
    kinds = {"operands": definition.operands, "results": definition.results, "regions": definition.regions}
    for kind, definitions in kinds.items():
        if definitions:
            listed = ", ".join(f"`{name}`{_quantity(part)}" for name, part in definitions)
            yield f"- {kind}: {listed}"
    yield ""


def _quantity(part: object) -> str:
    return " (any number)" if isinstance(part, VarOperandDef | VarResultDef) else ""


def attributes() -> Iterator[str]:
    yield "## Attributes\n"
    yield "On any operation of any dialect. The driver and `recompute-verify` check them.\n"
    yield "| attribute | on | value | meaning |\n|---|---|---|---|"
    for name, rule in KNOWN.items():
        yield f"| `{name}` | {rule.carrier} | {rule.expected} | {rule.meaning} |"
    yield ""


def stablehlo() -> Iterator[str]:
    yield "## StableHLO operations with a class of their own\n"
    yield "Typed, verified, in pretty and generic form. Others pass through in the generic form.\n"
    yield ", ".join(f"`{name}`" for name in sorted(op.name.removeprefix("stablehlo.") for op in STABLEHLO.operations))
    yield ""


if __name__ == "__main__":
    OUTPUT.write_text(reference())
    sys.exit(0)
