"""recompute-opt: run passes on MLIR, as `mlir-opt` and `xdsl-opt` do, and write only what is proved equal.

    recompute-opt step.mlir -p 'recompute{segments=auto}' -o less_memory.mlir
    recompute-opt step.mlir -p recompute --emit-plan plan.json
    recompute-opt step.mlir -p 'recompute{plan=plan.json}'
    recompute-opt step.mlir -t explain

Exit codes: 0 done; 1 bad input, a refused request or a failed proof; 2 wrong usage. Errors are one line on standard
error, `file:line:col: error: ...`; the output file is replaced in one step or left alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence

from xdsl.utils.exceptions import DiagnosticException, ParseError

from ..support.progress import progress
from .collection import rare_collections
from .command_line import CHUNK, CommandLine, UsageError, parse_arguments
from .diagnostics import Diagnostic, of_exception
from .expected_diagnostics import mismatches
from .files import FileError, read_text, write_outputs, write_text
from .pipeline import ModuleRun
from .rule_files import loaded_rules


class Failed(Exception):
    """Diagnostics that end the run; `main` prints them."""

    def __init__(self, diagnostics: Iterable[Diagnostic]):
        self.diagnostics = list(diagnostics)
        super().__init__(*map(str, self.diagnostics))


@rare_collections()
def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the console script; returns the exit code."""
    try:
        return run(parse_arguments(arguments))
    except UsageError as error:
        print(f"recompute-opt: error: {error}", file=sys.stderr)
        return 2
    except FileError as error:
        print(error, file=sys.stderr)
    except Failed as error:
        for diagnostic in error.diagnostics:
            print(diagnostic, file=sys.stderr)
    except RecursionError:
        print("recompute-opt: error: the input is nested too deeply", file=sys.stderr)
    except BrokenPipeError:
        sys.stderr.close()
    return 1


def run(request: CommandLine) -> int:
    if request.answer is not None:
        write_text(request.output, request.answer)
        return 0
    text, name = read_text(request.input)
    with loaded_rules(request.rules):
        results = [process(request, chunk, name) for chunk in chunks(request, text)]
    if not request.verify_diagnostics:
        written = f"{CHUNK}\n".join(result for result, _ in results)
        plans = [(request.emit_plan, plan.encode()) for _, plan in results if plan is not None]
        write_outputs([(request.output, written.encode()), *plans])
    return 0


def chunks(request: CommandLine, text: str) -> Iterator[str]:
    """The parts of the input, with blank lines in front so that line numbers in diagnostics are right."""
    line = 0
    for chunk in text.split(CHUNK) if request.split else [text]:
        yield "\n" * line + chunk
        line += chunk.count("\n")


def process(request: CommandLine, text: str, name: str) -> tuple[str, str | None]:
    """Process one module; return its text, and its plan with --emit-plan.

    Raises `Failed`; with --verify-diagnostics if the diagnostics are not the expected ones.
    """
    module_run, result, errors = ModuleRun(request, name), "", list[Diagnostic]()
    try:
        with progress("recompute-opt", only_on_terminal=True):
            result = module_run.process(text)
    except (ParseError, DiagnosticException) as error:
        errors.append(of_exception(error, name))
    if request.verify_diagnostics:
        errors = mismatches(text, name, [*module_run.remarks, *errors])
    else:
        for remark in (*module_run.remarks, *module_run.notes):
            print(remark.to_json() if request.instrumentation.remarks == "json" else remark, file=sys.stderr)
    if errors:
        raise Failed(errors)
    return result, None if request.emit_plan is None else _plan_of(module_run)


def _plan_of(module_run: ModuleRun) -> str:
    """The plan of the last pass that made one."""
    if not module_run.context.plans:
        raise UsageError("--emit-plan: none of the passes makes a plan; 'recompute' does")
    return module_run.context.plans[-1]


if __name__ == "__main__":
    sys.exit(main())
