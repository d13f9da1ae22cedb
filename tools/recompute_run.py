"""recompute-run: run a program on numpy arrays, operation by operation, and measure the memory that it uses.

    recompute-run step.mlir --seed 1
    recompute-run step.mlir --inputs in.npz --results out.npz --trace trace.json

The output gives the type and the checksum of each result, the peak of temporaries as measured in allocated buffers, and
the peak that the static timeline predicts. Exit codes: 0 success; 1 bad input or a program that cannot be executed; 2
wrong usage. An error is a single line on standard error, `file:line:col: error: ...`. Files are replaced atomically or
stay unchanged.
"""

from __future__ import annotations

import argparse
import json
import sys
import zlib
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import DiagnosticException, ParseError

from ..analysis.memory.timeline import Timeline, timeline
from ..driver.verification.verified import parse_and_verify
from ..interpreters.executor import function_named
from ..interpreters.inputs import random_inputs
from ..interpreters.kernels.arrays import Array
from ..interpreters.meter import Metering, meter
from ..support.counted import counted
from ..support.interface import command_line
from ..support.nested_modules import modules_with_functions
from ..support.units import readable_bytes
from ..transforms.inline import inline
from ..transforms.inline_gradient import inline_gradient
from ..transforms.inline_segments import inline_segments
from .arguments.opt_arguments import as_argparse_expects
from .arguments.tool_parser import ToolParser
from .diagnostics.reporting import Diagnostic, InputText, of_exception
from .execution import add_input_options, check_input_options, inputs_from
from .file_access.files import (
    FileError,
    add_split_option,
    chunks,
    demand_different_files,
    demand_writable,
    read_text,
    write_outputs,
)
from .file_access.rule_files import add_rules_option, load_rules
from .help.version import version_of


@command_line()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the console script. Return the exit code."""
    parser = argument_parser()
    options = parser.parse_args(as_argparse_expects(parser, arguments))
    check_input_options(parser, options)
    if options.split_input_file and (options.results is not None or options.trace is not None):
        parser.error("--results and --trace write a file for a single program: remove --split-input-file")
    if options.results is not None and options.trace is not None:
        try:
            demand_different_files({"--results": options.results, "--trace": options.trace})
        except ValueError as error:
            parser.error(str(error))
    try:
        return run(options)
    except FileError as error:
        print(error, file=sys.stderr)
    except _Failed as error:
        print(error.diagnostic.to_text(), file=sys.stderr)
    except RecursionError:
        print(f"{options.module}: error: the program is nested too deeply to be read", file=sys.stderr)
    except BrokenPipeError:
        sys.stderr.close()
    return 1


def run(options: argparse.Namespace) -> int:
    """Execute a parsed command line. Return the exit code. Raises `FileError`."""
    with load_rules(options.load_rules):
        text, name = read_text(options.module)
        demand_writable((options.results, options.trace))
        for chunk in chunks(text, options.split_input_file):
            try:
                _run(options, load_function(chunk, name, options.function))
            except (ParseError, DiagnosticException) as error:
                raise _Failed(of_exception(error, InputText(name, chunk))) from error
    return 0


class _Failed(Exception):
    """The error that ends a run, with its diagnostic."""

    def __init__(self, diagnostic: Diagnostic):
        self.diagnostic = diagnostic
        super().__init__(str(diagnostic))


def _run(options: argparse.Namespace, function: FuncOp) -> None:
    if options.inputs is not None:
        inputs = inputs_from(options.inputs, function)
    else:
        inputs = random_inputs(function, options.seed or 0, options.kind or "random")
    results, metered = meter(function, inputs)
    modelled = timeline(function)
    files = list[tuple[str | None, bytes]]()
    if options.results is not None:
        files.append((options.results, archive(results)))
    if options.trace is not None:
        files.append((options.trace, trace(function, metered, modelled).encode()))
    write_outputs([*files, (None, summary(function, results, metered, modelled).encode())])


def load_function(text: str, file_name: str, name: str | None) -> FuncOp:
    """Parse and verify a module, and return one of its functions with all calls inlined.

    Args:
        text: The module.
        file_name: The name of the file.
        name: The name of the function; None for `main` or the only public function.

    Raises:
        ParseError, DiagnosticException: For a module or a function that cannot be executed.
    """
    module = parse_and_verify(text, file_name)
    for inner in modules_with_functions(module):
        inline(inner)
        inline_gradient(inner)
        inline_segments(inner)
    return function_named(module, name)


def summary(function: FuncOp, results: Sequence[Array], metered: Metering, modelled: Timeline) -> str:
    """Return the output of a run: the type and the checksum of each result, and the measured and modelled peaks."""
    types = [str(type_) for type_ in function.function_type.outputs]
    width = max(map(len, types), default=0)
    counts = f"{counted(len(metered.operations), 'operation')}, {counted(len(results), 'result')}"
    lines = [f"@{function.sym_name.data}: {counts}"]
    for number, (type_, result) in enumerate(zip(types, results, strict=True)):
        lines.append(f"  #{number:<3} {type_:<{width}}  crc32 {checksum(result)}")
    place = f"at operation {metered.peak_index}, {metered.operations[metered.peak_index]}"
    peak, forecast = readable_bytes(metered.peak_bytes), readable_bytes(modelled.peak_bytes)
    constants = readable_bytes(metered.constant_peak_bytes)
    lines.append(f"peak of temporaries: {peak} metered, {forecast} modelled, {place}")
    lines.append(f"not counted: at most {constants} of constants and of values computed only from them")
    return "\n".join(lines) + "\n"


def checksum(array: Array) -> str:
    """Return the CRC-32 of the elements' bits in row-major order, little-endian."""
    return f"{zlib.crc32(array.tobytes()):08x}"


def archive(results: Sequence[Array]) -> bytes:
    """Return the contents of an `.npz` file that stores the results as `result_0`, `result_1`, and so on."""
    stream = BytesIO()
    named: dict[str, Any] = {f"result_{number}": result for number, result in enumerate(results)}
    np.savez(stream, **named)
    return stream.getvalue()


def trace(function: FuncOp, metered: Metering, modelled: Timeline) -> str:
    """Return the live bytes after each operation as JSON."""
    columns = (metered.operations, metered.live_bytes, modelled.live_bytes, metered.constant_bytes)
    names = ("operation", "metered_bytes", "modelled_bytes", "constant_bytes")
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    content = {
        "function": function.sym_name.data,
        "metered_peak_bytes": metered.peak_bytes,
        "modelled_peak_bytes": modelled.peak_bytes,
        "constant_peak_bytes": metered.constant_peak_bytes,
        "operations": rows,
    }
    return json.dumps(content, indent=1) + "\n"


def argument_parser() -> argparse.ArgumentParser:
    parser = ToolParser(prog="recompute-run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module", metavar="A.mlir", help="the program to run; '-' is standard input")
    add_input_options(parser, default_kind="random")
    add_split_option(parser)
    add_rules_option(parser)
    parser.add_argument("--results", metavar="OUT.npz", help="write the results to this file, as result_0, result_1, …")
    parser.add_argument(
        "--trace", metavar="TRACE.json", help="write the live bytes after each operation to this file, as JSON"
    )
    parser.add_argument("-v", "--version", action="version", version=version_of("recompute-run"))
    return parser


if __name__ == "__main__":
    sys.exit(main())
