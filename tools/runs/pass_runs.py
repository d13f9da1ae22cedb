"""Run passes on one module. After each pass, the module is verified, and dumps, timings and remarks are reported. The
proof follows the last pass."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from io import StringIO
from shutil import which

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException
from xdsl.utils.target import Target

from ...analysis.step.jax_paths import path_of
from ...dialects.context import RecomputeContext, make_context
from ...driver.pipelines.pipeline import own_pass_names
from ...driver.pipelines.scheduled_pass import ScheduledPass
from ...driver.verification.assumptions import Assumptions
from ...driver.verification.verified import assumption_remarks, change_in_place
from ...mlir_io.parser import parse_module
from ...mlir_io.printer import print_module
from ...proof.verdicts.verdict import Proof
from ...support.operations import every_operation
from ...support.timing import part, time_parts
from ..arguments.command_line import CommandLine
from ..arguments.usage_error import UsageError
from ..diagnostics.reporting import Diagnostic, InputText, of_remark
from ..file_access.files import FileError, write_text
from ..instrumentation.gains import Totals, brief_gain, gain_remarks, totals_of
from ..instrumentation.ir_dumps import Dumps
from ..instrumentation.reproducer import reproducer
from ..instrumentation.statistics import Counts, Statistics
from ..instrumentation.timings import times, timing_report

LOCATIONS_NOT_PRINTED = "locations are not printed, so later tools lose phases and scopes: use --print-debuginfo"
NOT_INSTALLED = (
    "the pass '{name}' runs the program '{program}', which is not found: install it, or give its path as "
    "{name}{{executable=PATH}}"
)
PROOF = "prove"
SUMMED_UP = "recompute"
"""The name of the pass whose effect is summed up."""
_LOCATION = re.compile(r"\bloc\s*\(")


class PassCrash(DiagnosticException):
    """The error for a pass that has raised an exception other than a diagnostic."""

    def __init__(self, name: str, error: Exception):
        words = " ".join(str(error).split())
        super().__init__(
            f"{name} failed: {type(error).__name__}{f': {words}' if words else ''} (a bug in the pass; "
            "--crash-reproducer=FILE writes a reproducer, --print-stacktrace-on-diagnostic prints the traceback)"
        )


@dataclass
class ModuleRun:
    """A run of the requested passes on one module.

    Attributes:
        request: The command line.
        file: The name of the input file, for diagnostics.
        prefix: The prefix of the names of dump files.
        context: The context of the passes.
        remarks: The remarks of the passes, even if one of them fails.
        result: The effect of the passes, for the last line of a long run; "" if there is none.
        notes: The notes of the tool itself, such as the position of a reproducer, and the summaries of the passes.
            `--verify-diagnostics` ignores them.
    """

    request: CommandLine
    file: str
    prefix: str = ""
    context: RecomputeContext = field(default_factory=make_context)
    remarks: list[Diagnostic] = field(default_factory=list[Diagnostic])
    notes: list[Diagnostic] = field(default_factory=list[Diagnostic])
    result: str = field(default="", init=False)
    _running: ScheduledPass | None = field(default=None, init=False)
    """The current or last pass."""
    _text: str = field(default="", init=False)
    """The text of the module."""
    _input: str = field(default="", init=False)
    """The text of the module for a reproducer: before all passes, or before the current pass."""

    @property
    def pass_name(self) -> str:
        """The name of the current or last pass; "" before the first pass."""
        return "" if self._running is None else self._running.name

    def process(self, text: str) -> str:
        """Run the passes on a module. Return the text of the result.

        Raises `ParseError`, `DiagnosticException`, `UsageError` and `FileError`.
        """
        statistics, timing = self.request.instrumentation.statistics, self.request.instrumentation.timing
        if statistics is None and timing is None:
            return self._process(text)
        with time_parts() as whole:
            result = self._process(text)
        if statistics is not None and (timing is None or (statistics == "json") != (timing == "json")):
            # A report of --timing in the same form already contains the times.
            print(times(whole, statistics), file=sys.stderr)
        if timing is not None:
            print(times(whole, timing) if timing == "json" else timing_report(whole, timing), file=sys.stderr)
        return result

    def _process(self, text: str) -> str:
        request, self._text = self.request, text
        debuginfo = request.bytecode or bool(_LOCATION.search(text)) if request.debuginfo is None else request.debuginfo
        with part("parse"):
            module = parse_module(text, self.file, self.context)
        dumps = Dumps(request.instrumentation.dumps, self.prefix, debuginfo)
        # Locations that only the passes have added repeat the attributes of the copies, and need not be printed.
        loses_paths = not debuginfo and any(path_of(op.location) for op in every_operation(module))
        self._keep_input(module)
        if request.reproducers.always is not None:
            write_text(request.reproducers.always, self._reproducer())
        before = self._totals(module)
        changes = [partial(self._apply, scheduled, dumps) for scheduled in request.passes]
        with self._failures(module, dumps):
            passes = [scheduled.module_pass for scheduled in request.passes]
            assumptions = Assumptions.of_passes(passes, own_pass_names())
            is_proved = request.proof and not request.target
            proof = change_in_place(module, changes, request.verify, is_proved, assumptions=assumptions)
        if request.instrumentation.dumps.is_selective and dumps.files:
            written = f"the IR that --print-ir-* selects is in '{dumps.request.folder}': {', '.join(dumps.files)}"
            self.notes.append(Diagnostic("note", self.file, 1, 1, written))
        self._report_result(module, before, proof)
        if request.target is not None:
            first = len(self.context.remarks)
            text = _emit(request.target, self.context, module)
            self._report(first, request.target.name)
            return text
        if loses_paths:
            self.notes.append(Diagnostic("note", self.file, 1, 1, LOCATIONS_NOT_PRINTED))
        with part("print"):
            # MLIR writes the bytecode, and cannot read the custom forms of this project's dialect.
            return print_module(module, generic=request.generic or request.bytecode, debuginfo=debuginfo)

    def _report_result(self, module: ModuleOp, before: Totals | None, proof: Proof | None) -> None:
        """Report the assumptions of the proof and the effect of the passes. `before`: the totals before the passes."""
        first = len(self.context.remarks)
        if proof is not None:
            self.context.remarks.extend(assumption_remarks(proof, module))
        self._report(first, PROOF)
        first = len(self.context.remarks)
        if before is not None:
            self.context.remarks.extend(gain_remarks(module, before, totals_of(module), proof))
            self.result = "; ".join(remark.reason for remark in self.context.remarks[first:])
        else:
            self.result = brief_gain(module, proof)
            if not self.request.quiet and self.request.target is None:
                source = InputText(self.file, self._text)
                self.notes.extend(of_remark(remark, source, SUMMED_UP) for remark in self.context.summaries)
        self._report(first, "")

    def _totals(self, module: ModuleOp) -> Totals | None:
        """Return the totals of the module before the passes; None if no remark will report their effect."""
        request = self.request
        return totals_of(module) if request.remarks.details and request.passes and request.target is None else None

    def _apply(self, scheduled: ScheduledPass, dumps: Dumps, module: ModuleOp) -> None:
        self._running = scheduled
        if self.request.reproducers.is_local:
            self._keep_input(module)
        form = self.request.instrumentation.statistics
        counts = Counts.of(module) if form is not None else None
        dumps.before(scheduled, module)
        first = len(self.context.remarks)
        try:
            with part(scheduled.name):
                scheduled.apply(self.context, module)
        except (DiagnosticException, UsageError, FileError, OSError, RecursionError):
            raise
        except Exception as error:
            if (program := _missing_program(scheduled.module_pass)) is not None:
                raise UsageError(NOT_INSTALLED.format(name=scheduled.name, program=program)) from error
            raise PassCrash(scheduled.name, error) from error
        finally:
            self._report(first, scheduled.name)
        if form is not None and counts is not None:
            after = Counts.of(module)
            statistics = Statistics(scheduled.name, counts.operations, after.operations, after.copies)
            print(statistics.to_text(form), file=sys.stderr)
        dumps.after(scheduled, module)

    def _report(self, first: int, pass_name: str) -> None:
        """Record the remarks from index `first` on as diagnostics of a pass."""
        source = InputText(self.file, self._text)
        self.remarks.extend(of_remark(remark, source, pass_name) for remark in self.context.remarks[first:])

    @contextmanager
    def _failures(self, module: ModuleOp, dumps: Dumps) -> Generator[None]:
        """Dump the IR and write a reproducer if a pass, the verifier after it or the proof fails within the context."""
        try:
            yield
        except Exception:
            if self._running is not None:
                if self.request.instrumentation.stacktrace:
                    traceback.print_exc()
                dumps.after_failure(self._running, module)
                if self.request.reproducers.on_failure is not None:
                    write_text(self.request.reproducers.on_failure, self._reproducer())
                    self.notes.append(_reproducer_note(self.file, self.request.reproducers.on_failure))
            raise

    def _keep_input(self, module: ModuleOp) -> None:
        if self.request.reproducers.is_requested:
            self._input = print_module(module, debuginfo=True)

    def _reproducer(self) -> str:
        is_local = self.request.reproducers.is_local and self._running is not None
        passes = [self._running] if is_local and self._running is not None else self.request.passes
        return reproducer(self._input, passes, self.request.verify)


def _reproducer_note(file: str, path: str) -> Diagnostic:
    return Diagnostic("note", file, 1, 1, f"a reproducer is in '{path}': recompute-opt --run-reproducer {path}")


def _missing_program(module_pass: ModulePass) -> str | None:
    """Return the program that a pass runs, such as `mlir-opt`, if it is not installed; None otherwise."""
    program = getattr(module_pass, "executable", None)
    return program if isinstance(program, str) and which(program) is None else None


def _emit(target: Target, context: RecomputeContext, module: ModuleOp) -> str:
    stream = StringIO()
    try:
        with part(target.name):
            target.emit(context, module, stream)
    except (ValueError, ImportError) as error:
        raise UsageError(str(error)) from error
    return stream.getvalue()
