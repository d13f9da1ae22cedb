"""recompute-opt: run passes on MLIR, as `mlir-opt` and `xdsl-opt` do, and write only results that are proved equal.

    recompute-opt step.mlir -p 'recompute{segments=auto}' -o less_memory.mlir
    recompute-opt step.mlir -p recompute --emit-plan plan.json
    recompute-opt step.mlir -p 'recompute{plan=plan.json}'
    recompute-opt step.mlir -t explain

Exit codes: 0 success; 1 bad input, a refused request or a failed proof; 2 wrong usage. Errors are printed to standard
error as `file:line:col: error: ...`, followed by the line of the input and a caret. The output file is replaced
atomically or stays unchanged.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from xdsl.utils.exceptions import DiagnosticException, ParseError

from ..driver.pipelines.scheduled_pass import pipeline_text
from ..frontends.bytecode import BytecodeError, bytecode_of_text
from ..support.counted import counted
from ..support.garbage import rare_collections
from ..support.interface import command_line
from ..support.progress import ProgressLine, progress
from .arguments.command_line import CommandLine, parse_arguments, passes_to_run
from .arguments.usage_error import UsageError
from .diagnostics.expected_diagnostics import mismatches
from .diagnostics.reporting import (
    Diagnostic,
    InputText,
    format_diagnostic,
    merge_remarks,
    of_exception,
    remarks_of_categories,
)
from .file_access.files import FileError, chunks, demand_writable, read_text, write_outputs, write_text
from .file_access.rule_files import load_rules
from .instrumentation.reproducer import pipeline_in
from .runs.pass_runs import ModuleRun
from .runs.run_cache import Answer, RunCache


class Failed(Exception):
    """The error that ends a run, with its diagnostics. `main` prints them."""

    def __init__(self, diagnostics: Iterable[Diagnostic], form: str = "text"):
        self.diagnostics = list(diagnostics)
        self.form = form
        super().__init__(*map(str, self.diagnostics))


@rare_collections()
@command_line()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the console script. Return the exit code."""
    try:
        return run(parse_arguments(arguments))
    except UsageError as error:
        print(f"recompute-opt: error: {error}", file=sys.stderr)
        return 2
    except FileError as error:
        print(error, file=sys.stderr)
    except Failed as error:
        for diagnostic in error.diagnostics:
            print(format_diagnostic(diagnostic, error.form), file=sys.stderr)
    except RecursionError:
        print("recompute-opt: error: the input is nested too deeply", file=sys.stderr)
    except BrokenPipeError:
        sys.stderr.close()
    return 1


def run(request: CommandLine) -> int:
    """Execute a parsed command line. Return the exit code. Raises `UsageError`, `FileError` and `Failed`."""
    if request.answer is not None:
        write_text(request.output, request.answer)
        return 0
    text, name = read_text(request.input)
    request = replace(request, passes=passes_to_run(request, pipeline_in(text)))
    if request.instrumentation.pipeline:
        print(f"Pass Manager with {counted(len(request.passes), 'pass', 'passes')}:", file=sys.stderr)
        print(pipeline_text(request.passes), file=sys.stderr)
    demand_writable(_written_files(request))
    with load_rules(request.rules):
        modules = [process(request, chunk, name, number) for number, chunk in enumerate(chunks(text, request.split))]
    _write_remarks(request, modules)
    for warning in request.instrumentation.dumps.without_effect(scheduled.name for scheduled in request.passes):
        print(f"recompute-opt: warning: {warning}", file=sys.stderr)
    if errors := [error for module in modules for error in module.errors]:
        raise Failed(errors, "text" if request.verify_diagnostics else request.remarks.form)
    if not request.verify_diagnostics:
        written = f"{request.output_split_marker}\n".join(module.text for module in modules)
        output = _bytecode(written) if request.bytecode else written.encode()
        plans = [(request.emit_plan, module.plan.encode()) for module in modules if module.plan is not None]
        write_outputs([(request.output, output), *plans])
    return 0


def _written_files(request: CommandLine) -> Iterator[str | None]:
    """Yield the files that the run may write. The file of `--crash-reproducer` is omitted, because it is written only
    after a failure."""
    yield request.remarks.file
    yield request.reproducers.always
    if not request.verify_diagnostics:
        yield request.output
        yield request.emit_plan


def _bytecode(text: str) -> bytes:
    """Convert the text of a module to bytecode. Raises `FileError`."""
    try:
        return bytecode_of_text(text)
    except BytecodeError as error:
        raise FileError(f"recompute-opt: error: --emit-bytecode: {error}") from error


@dataclass(frozen=True)
class Processed:
    """The output for one module: its text, its plan if `--emit-plan` is given, and its diagnostics."""

    text: str = ""
    plan: str | None = None
    remarks: tuple[Diagnostic, ...] = ()
    errors: tuple[Diagnostic, ...] = ()


def process(request: CommandLine, text: str, name: str, number: int) -> Processed:
    """Process one module of the input. With `--verify-diagnostics`, each missing or unexpected diagnostic is an error.

    Args:
        request: The command line.
        text: The module.
        name: The name of the file.
        number: The index of the module in the file.
    """
    cache = RunCache.for_module(request, text, name)
    if (answer := cache.get()) is not None:
        return Processed(answer.text, _plan_of(request, answer.plan), answer.diagnostics)
    module_run = ModuleRun(request, name, prefix=f"{number:02}_" if request.split else "")
    result, errors = "", list[Diagnostic]()
    try:
        shown = progress("recompute-opt", only_on_terminal=request.writes_data_to_stderr)
        with nullcontext(ProgressLine("")) if request.quiet else shown as line:
            result = module_run.process(text)
            line.result = module_run.result
    except (ParseError, DiagnosticException) as error:
        errors.append(of_exception(error, InputText(name, text), module_run.pass_name))
    if request.verify_diagnostics is not None:
        only_expected = request.verify_diagnostics == "only-expected"
        details = request.remarks.details
        reported = [*(remark for remark in module_run.remarks if details or not remark.is_detail), *errors]
        return Processed(errors=tuple(mismatches(text, name, reported, only_expected=only_expected)))
    selected = remarks_of_categories(module_run.remarks, request.remarks.categories, details=request.remarks.details)
    remarks = (*selected, *module_run.notes)
    if errors:
        return Processed(result, None, remarks, tuple(errors))
    plan = module_run.context.plans[-1] if module_run.context.plans else None
    cache.put(Answer(result, plan, remarks))
    return Processed(result, _plan_of(request, plan), remarks)


def _write_remarks(request: CommandLine, modules: Sequence[Processed]) -> None:
    """Write the remarks of all modules to standard error, or to the file of `--remarks-file`."""
    remarks = merge_remarks(remark for module in modules for remark in module.remarks)
    lines = [format_diagnostic(remark, request.remarks.form) for remark in remarks]
    if request.remarks.file is not None:
        write_text(request.remarks.file, "".join(f"{line}\n" for line in lines))
        return
    for line in lines:
        print(line, file=sys.stderr)


def _plan_of(request: CommandLine, plan: str | None) -> str | None:
    """Return the plan if `--emit-plan` is given, otherwise None. Raises `UsageError` if no pass has made a plan."""
    if request.emit_plan is not None and plan is None:
        raise UsageError("--emit-plan: none of the passes makes a plan; use the pass 'recompute'")
    return None if request.emit_plan is None else plan


if __name__ == "__main__":
    sys.exit(main())
