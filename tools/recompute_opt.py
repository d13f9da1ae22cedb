"""recompute-opt: run passes on MLIR, as `mlir-opt` and `xdsl-opt` do, and write only what is proved equal.

    recompute-opt step.mlir -p 'recompute{regions=auto}' -o less_memory.mlir
    recompute-opt step.mlir -t explain

Exit codes: 0 done; 1 bad input, a refused request or a failed proof; 2 wrong usage. Errors are one line on standard
error, `file:line:col: error: ...`; the output file is replaced in one step or left alone.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from importlib.metadata import version
from io import StringIO
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.universe import Universe
from xdsl.utils.arg_spec import ArgSpec, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException, ParseError
from xdsl.utils.target import Target

from ..dialects.context import make_context
from ..dialects.parser import parse_module
from ..dialects.printer import print_module
from ..interpreters.prove import prove
from ..universe import UNIVERSE
from .diagnostics import parse_error_line
from .files import FileError, read_text, write_text
from .verification import verify_module

CHUNK = "// -----"
# An option value that xDSL's lexer takes for punctuation.
_BARE_PATTERN = re.compile(r"""=([^"{},\s]*[^"{},\s\w.+-][^"{},\s]*)""")
MLIR = "mlir"


class UsageError(Exception):
    """The command line is wrong: exit code 2."""


@dataclass(frozen=True)
class Request:
    """What the command line asks for, with passes and target resolved."""

    input: str | None
    output: str | None
    passes: tuple[ModulePass, ...]
    target: Target | None
    split: bool
    generic: bool
    debuginfo: bool
    proof: bool
    verify: bool


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the console script; returns the exit code."""
    try:
        return run(parse_arguments(arguments))
    except UsageError as error:
        print(f"recompute-opt: error: {error}", file=sys.stderr)
        return 2
    except FileError as error:
        print(error, file=sys.stderr)
    except ParseError as error:
        print(parse_error_line(error), file=sys.stderr)
    except DiagnosticException as error:
        print(error, file=sys.stderr)
    except RecursionError:
        print("recompute-opt: error: the input is nested too deeply", file=sys.stderr)
    except BrokenPipeError:
        sys.stderr.close()
    return 1


def run(request: Request) -> int:
    text, name = read_text(request.input)
    chunks = text.split(CHUNK) if request.split else [text]
    results, line = list[str](), 0
    for chunk in chunks:
        # Blank lines in front keep the line numbers of the diagnostics true.
        results.append(process(request, "\n" * line + chunk, name))
        line += chunk.count("\n")
    write_text(request.output, f"{CHUNK}\n".join(results))
    return 0


def process(request: Request, text: str, name: str) -> str:
    """One module in, its text out. Raises what `main` turns into a line."""
    context = make_context()
    module = parse_module(text, name, context)
    if request.verify:
        verify_module(module)
    original = module.clone() if request.passes and request.proof and request.target is None else None
    for one in request.passes:
        one.apply(context, module)
        if request.verify:
            verify_module(module)
    if original is not None:
        _demand_proof(original, module, name)
    if request.target is not None:
        return _emit(request.target, context, module)
    return print_module(module, generic=request.generic, debuginfo=request.debuginfo)


def _emit(target: Target, context: Context, module: ModuleOp) -> str:
    stream = StringIO()
    try:
        target.emit(context, module, stream)
    except (ValueError, ImportError) as error:
        raise UsageError(str(error)) from error
    return stream.getvalue()


def _demand_proof(before: ModuleOp, after: ModuleOp, name: str) -> None:
    proof = prove(before, after)
    if not proof.proved:
        raise DiagnosticException(
            f"{name}:1:1: error: nothing is written: the result is not proved equal to the input: {proof.reason} "
            "(--no-proof writes it all the same)"
        )


def parse_arguments(arguments: Sequence[str] | None) -> Request:
    options = _argument_parser().parse_args(arguments)
    universe = Universe.get_multiverse()
    targets = universe.all_targets | UNIVERSE.all_targets
    passes = universe.all_passes | UNIVERSE.all_passes
    return Request(
        input=options.input_file,
        output=options.output_file,
        passes=tuple(_resolve(spec, passes, "pass") for spec in _specs(options.passes)),
        target=None if options.target == MLIR else _target(options.target, targets),
        split=options.split_input_file,
        generic=options.print_op_generic,
        debuginfo=options.print_debuginfo,
        proof=not options.no_proof,
        verify=not options.disable_verify,
    )


def _argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="recompute-opt", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ours = ", ".join(UNIVERSE.all_passes)
    parser.add_argument("input_file", nargs="?", help="MLIR file; standard input if absent or '-'")
    parser.add_argument("-p", "--passes", default="", help=f"passes as 'a,b{{option=value}}'; ours: {ours}")
    parser.add_argument("-t", "--target", default=MLIR, help=f"{MLIR} or {', '.join(UNIVERSE.all_targets)}")
    parser.add_argument("-o", "--output-file", help="file to write; standard output if absent")
    parser.add_argument("--split-input-file", action="store_true", help=f"treat parts between '{CHUNK}' on their own")
    parser.add_argument("--print-op-generic", action="store_true", help="print the generic form")
    parser.add_argument("--print-debuginfo", action="store_true", help="print locations")
    parser.add_argument("--no-proof", action="store_true", help="write the result without proving it equal")
    parser.add_argument("--disable-verify", action="store_true", help="do not verify between passes")
    own = f"recompute-opt {version('xdsl-recompute')} (xdsl {version('xdsl')})"
    parser.add_argument("-v", "--version", action="version", version=own)
    return parser


def _specs(text: str) -> list[ArgSpec]:
    """Parse `a{x=1},b`. Patterns need no quotes here: `regions=block*` is read as `regions="block*"`."""
    try:
        return list(parse_pipeline(_BARE_PATTERN.sub(r'="\1"', text)))
    except ArgSpecParseError as error:
        raise UsageError(f"cannot read the pipeline '{text}': {str(error).strip().splitlines()[-1].strip()}") from error


def _resolve(spec: ArgSpec, known: dict[str, Callable[[], type[Any]]], kind: str) -> Any:
    """The pass or target that a spec names, with its options. Raises `UsageError`."""
    if spec.name not in known:
        raise UsageError(f"unknown {kind} '{spec.name}'{_did_you_mean(spec.name, known)}")
    found = known[spec.name]()
    spec = spec.normalize_parameter_names()
    options = [field.name for field in fields(found)]
    for given in spec.parameters:
        if given not in options:
            exist = f"; its options are {', '.join(options)}" if options else "; it has no options"
            raise UsageError(f"{kind} '{spec.name}' has no option '{given}'{_did_you_mean(given, options) or exist}")
    try:
        return found.from_spec(spec)
    except ValueError as error:
        raise UsageError(f"{kind} '{spec.name}': {error}; its options are {_typed_options(found)}") from error


def _typed_options(found: type[Any]) -> str:
    return ", ".join(f"{field.name}=<{field.type}>" for field in fields(found))


def _target(text: str, known: dict[str, Callable[..., Any]]) -> Target:
    (spec, *_) = _specs(text) or [ArgSpec(text, {})]
    return _resolve(spec, known, "target")


def _did_you_mean(given: str, known: Sequence[str] | dict[str, Any]) -> str:
    close = get_close_matches(given, known, n=1)
    return f"; did you mean '{close[0]}'?" if close else ""


if __name__ == "__main__":
    sys.exit(main())
