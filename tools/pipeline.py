"""Run passes on one module: verification between them, statistics and remarks, and the proof at the end."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import partial
from io import StringIO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.target import Target

from ..analysis.step.jax_paths import path_of
from ..dialects.context import RecomputeContext, make_context
from ..driver.verified import assumption_remarks, change_in_place
from ..mlir_io.parser import parse_module
from ..mlir_io.printer import print_module
from ..support.timing import part, timed
from ..support.walk import every_operation
from .command_line import CommandLine, Instrumentation, UsageError
from .diagnostics import Diagnostic, of_remark
from .statistics import Counts, Statistics, times

LOST = "locations are not printed, so later tools lose phases and scopes: use --print-debuginfo"


@dataclass
class ModuleRun:
    """The run of one module from `file`. `remarks`: those of the passes, also if one of them fails. `notes`: those of
    the tool itself."""

    request: CommandLine
    file: str
    context: RecomputeContext = field(default_factory=make_context)
    notes: list[Diagnostic] = field(default_factory=list[Diagnostic])

    @property
    def remarks(self) -> list[Diagnostic]:
        return [of_remark(remark, self.file) for remark in self.context.remarks]

    def process(self, text: str) -> str:
        """Run the passes on a module; return its text. Raises `ParseError`, `DiagnosticException` and `UsageError`."""
        form = self.request.instrumentation.statistics
        if form is None:
            return self._process(text)
        with timed() as whole:
            result = self._process(text)
        print(times(whole, form), file=sys.stderr)
        return result

    def _process(self, text: str) -> str:
        request = self.request
        with part("parse"):
            module = parse_module(text, self.file, self.context)
        changes = [
            partial(_apply, module_pass, self.context, request.instrumentation) for module_pass in request.passes
        ]
        proof = change_in_place(module, changes, request.verify, request.proof and not request.target)
        if proof is not None:
            self.context.remarks.extend(assumption_remarks(proof, module))
        if request.target is not None:
            return _emit(request.target, self.context, module)
        if not request.debuginfo and any(path_of(op.location) for op in every_operation(module)):
            self.notes.append(Diagnostic("note", self.file, 1, 1, LOST))
        with part("print"):
            return print_module(module, generic=request.generic, debuginfo=request.debuginfo)


def _apply(module_pass: ModulePass, context: Context, output: Instrumentation, module: ModuleOp) -> None:
    counts = Counts.of(module) if output.statistics is not None else None
    before = print_module(module, debuginfo=True) if output.print_after_change else None
    with part(module_pass.name):
        module_pass.apply(context, module)
    if output.statistics is not None and counts is not None:
        after = Counts.of(module)
        statistics = Statistics(module_pass.name, counts.operations, after.operations, after.copies)
        print(statistics.to_text(output.statistics), file=sys.stderr)
    if output.print_after_all or (before is not None and print_module(module, debuginfo=True) != before):
        print(f"// IR after {module_pass.name}\n{print_module(module)}", file=sys.stderr)


def _emit(target: Target, context: Context, module: ModuleOp) -> str:
    stream = StringIO()
    try:
        with part(target.name):
            target.emit(context, module, stream)
    except (ValueError, ImportError) as error:
        raise UsageError(str(error)) from error
    return stream.getvalue()
