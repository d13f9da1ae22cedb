"""Parse the command line of recompute-opt into data classes, in which passes and the target are resolved."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Protocol, runtime_checkable

from xdsl.utils.arg_spec import ArgSpec
from xdsl.utils.target import Target

from ...driver.pipelines.pipeline import (
    Passes,
    known_passes,
    parse_module_schedule,
    parse_passes,
    resolve,
    unknown_name,
)
from ...driver.pipelines.pipeline_syntax import BadPipeline, specs
from ...driver.pipelines.plugins import installed_universe
from ...driver.pipelines.scheduled_pass import ScheduledPass
from ...universe import UNIVERSE
from ..diagnostics.reporting import CATEGORIES
from ..file_access.files import demand_different_files
from ..instrumentation.ir_dumps import DumpRequest
from .information import TargetClasses, information
from .opt_arguments import MLIR, argument_parser, as_argparse_expects
from .usage_error import UsageError


@runtime_checkable
class ChecksOptions(Protocol):
    """A target that validates its options before any work is done."""

    def check_options(self) -> None: ...


@dataclass(frozen=True)
class Instrumentation:
    """The output that is printed on standard error while passes run.

    Attributes:
        dumps: The IR before and after passes.
        statistics: The form of the statistics of each pass, "text" or "json"; None to print none.
        timing: The form of the execution times, "tree", "list" or "json"; None to print none.
        pipeline: Whether to print the pipeline.
        stacktrace: Whether to print the traceback of a pass that fails.
    """

    dumps: DumpRequest = field(default_factory=DumpRequest)
    statistics: str | None = None
    timing: str | None = None
    pipeline: bool = False
    stacktrace: bool = False


@dataclass(frozen=True)
class RemarkOutput:
    """The form and the destination of remarks, and the kinds to report.

    Attributes:
        form: One of `FORMATS`.
        categories: The kinds of remarks to report; None to report all kinds.
        details: Whether to also report the remarks on recomputed operations. They are reported only if an option
            requests remarks.
        file: The file to which remarks are written; None for standard error.
    """

    form: str = "text"
    categories: tuple[str, ...] | None = None
    file: str | None = None
    details: bool = False


@dataclass(frozen=True)
class Reproducers:
    """The reproducers to write.

    Attributes:
        on_failure: The file to which a reproducer is written if a pass fails; None to write none.
        always: The file to which a reproducer is written in any case; None to write none.
        is_local: Whether a reproducer contains only the failing pass.
    """

    on_failure: str | None = None
    always: str | None = None
    is_local: bool = False

    @property
    def is_requested(self) -> bool:
        return self.on_failure is not None or self.always is not None


@dataclass(frozen=True)
class CommandLine:
    """The parsed command line of recompute-opt.

    Attributes:
        input: The input file; None for standard input.
        output: The output file; None for standard output.
        passes: The passes to run.
        target: The target that writes the output; None for MLIR.
        split: The marker between the modules of the input; None if the input is a single module.
        output_split_marker: The marker between the modules of the output.
        generic: Whether to print the generic form.
        debuginfo: Whether to print locations; None to print them if the input has locations.
        proof: Whether to prove that the result equals the input.
        verify: Whether to verify the module after each pass.
        verify_diagnostics: The diagnostics to compare with the comments of the input, "all" or "only-expected";
            None to report diagnostics instead.
        instrumentation: The output on standard error while passes run.
        remarks: The form and the destination of remarks.
        reproducers: The reproducers to write.
        runs_reproducer: Whether to run the passes that the input names.
        emit_plan: The file to which the plan is written; None to write no plan.
        bytecode: Whether to write MLIR bytecode.
        rules: The files that declare operations.
        cache: Whether to use the disk cache.
        quiet: Whether to show no progress.
        answer: The output of an option that prints information instead of running passes, such as a list of passes;
            None to run passes.
    """

    input: str | None
    output: str | None
    passes: tuple[ScheduledPass, ...]
    target: Target | None
    split: str | None
    output_split_marker: str
    generic: bool
    debuginfo: bool | None
    proof: bool
    verify: bool
    verify_diagnostics: str | None
    instrumentation: Instrumentation
    remarks: RemarkOutput
    reproducers: Reproducers
    runs_reproducer: bool = False
    emit_plan: str | None = None
    bytecode: bool = False
    rules: tuple[str, ...] = ()
    cache: bool = False
    quiet: bool = False
    answer: str | None = None

    @property
    def writes_data_to_stderr(self) -> bool:
        """Whether standard error carries data that other lines would corrupt, such as JSON or IR."""
        remarks, printed = self.remarks, self.instrumentation
        has_remarks = remarks.form != "text" and remarks.file is None
        has_ir = not printed.dumps.is_empty and printed.dumps.folder is None
        return has_remarks or has_ir or "json" in (printed.statistics, printed.timing)


def parse_arguments(arguments: Sequence[str] | None) -> CommandLine:
    """Parse the command line of recompute-opt.

    Raises `UsageError`. For unknown options, argparse ends the process with exit code 2.
    """
    parser = argument_parser()
    options = parser.parse_args(as_argparse_expects(parser, arguments))
    try:
        return _command_line(parser, options)
    except BadPipeline as error:
        raise UsageError(str(error)) from error


def _command_line(parser: argparse.ArgumentParser, options: argparse.Namespace) -> CommandLine:
    targets: TargetClasses = installed_universe().all_targets | UNIVERSE.all_targets
    passes = known_passes()
    if options.passes and options.pass_pipeline:
        raise UsageError("give either --passes or --pass-pipeline, not both")
    if options.run_reproducer and (options.passes or options.pass_pipeline):
        raise UsageError("--run-reproducer runs the passes of the input: remove --passes and --pass-pipeline")
    pipeline = parse_module_schedule(options.pass_pipeline, passes) if options.pass_pipeline else ()
    _check_names_of_dumped_passes(options, passes)
    _check_options_that_exclude_each_other(options)
    return CommandLine(
        input=options.input_file,
        output=options.output_file,
        passes=pipeline or tuple(chain.from_iterable(parse_passes(text, passes) for text in options.passes)),
        target=None if options.target == MLIR else _target(options.target, targets),
        split=options.split_input_file,
        output_split_marker=options.output_split_marker,
        generic=options.print_op_generic,
        debuginfo=options.print_debuginfo,
        proof=not options.no_proof,
        verify=not options.disable_verify and options.verify_each,
        verify_diagnostics=options.verify_diagnostics,
        instrumentation=_instrumentation(options),
        remarks=_remark_output(options),
        reproducers=Reproducers(options.crash_reproducer, options.generate_reproducer, options.local_reproducer),
        runs_reproducer=options.run_reproducer,
        emit_plan=options.emit_plan,
        bytecode=options.emit_bytecode,
        rules=tuple(options.load_rules),
        cache=options.cache,
        quiet=options.quiet,
        answer=information(parser, options, passes, targets),
    )


def passes_to_run(request: CommandLine, pipeline: str | None) -> tuple[ScheduledPass, ...]:
    """Return the passes to run: from the command line, or from the pipeline that the input names.

    Raises `UsageError` if the input must name a pipeline but names none or an invalid one.
    """
    if not request.runs_reproducer:
        return request.passes
    if pipeline is None:
        raise UsageError("--run-reproducer: the input has no section 'mlir_reproducer' with a pipeline")
    try:
        return parse_module_schedule(pipeline, known_passes())
    except BadPipeline as error:
        raise UsageError(str(error)) from error


def _instrumentation(options: argparse.Namespace) -> Instrumentation:
    dumps = DumpRequest(
        before=frozenset(_names(options.print_ir_before)),
        before_all=options.print_ir_before_all,
        after=frozenset(_names(options.print_ir_after)),
        after_all=options.print_ir_after_all,
        after_change=options.print_ir_after_change,
        after_failure=options.print_ir_after_failure,
        folder=options.dump_dir,
    )
    return Instrumentation(
        dumps,
        options.pass_statistics,
        options.timing,
        options.dump_pass_pipeline,
        options.print_stacktrace_on_diagnostic,
    )


def _check_names_of_dumped_passes(options: argparse.Namespace, passes: Passes) -> None:
    """Raise `UsageError` for a name that is not a pass."""
    for option in ("print_ir_before", "print_ir_after"):
        for name in _names(getattr(options, option)):
            if name not in passes:
                raise UsageError(f"--{option.replace('_', '-')}: {unknown_name(name, passes, 'pass')}")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _remark_output(options: argparse.Namespace) -> RemarkOutput:
    requests = options.remarks, options.remarks_filter, options.remarks_file
    form = options.remarks or "text"
    details = any(request is not None for request in requests)
    if options.remarks_filter is None:
        return RemarkOutput(form, None, options.remarks_file, details)
    categories = _names(options.remarks_filter)
    for category in categories:
        if category not in CATEGORIES:
            raise UsageError(f"--remarks-filter: unknown kind '{category}'; expected one of {', '.join(CATEGORIES)}")
    return RemarkOutput(form, tuple(categories), options.remarks_file, details)


def _check_options_that_exclude_each_other(options: argparse.Namespace) -> None:
    if options.emit_plan is not None and options.split_input_file:
        raise UsageError("--emit-plan cannot be combined with --split-input-file: it writes the plan of one module")
    if options.emit_plan is not None and options.verify_diagnostics:
        raise UsageError(
            "--emit-plan cannot be combined with --verify-diagnostics, because the latter writes no program"
        )
    if options.emit_bytecode and (options.split_input_file or options.target != MLIR):
        raise UsageError("--emit-bytecode cannot be combined with --split-input-file or --target: it writes one module")
    outputs = {
        "-o": options.output_file,
        "--emit-plan": options.emit_plan,
        "--remarks-file": options.remarks_file,
        "--crash-reproducer": options.crash_reproducer,
        "--generate-reproducer": options.generate_reproducer,
    }
    try:
        demand_different_files({name: path for name, path in outputs.items() if path is not None or name == "-o"})
    except ValueError as error:
        raise UsageError(str(error)) from error


def _target(text: str, targets: TargetClasses) -> Target:
    """Construct the target, and validate its options before any work is done."""
    (spec, *_) = specs(text) or [ArgSpec(text, {})]
    target: Target = resolve(spec, targets, "target")
    if isinstance(target, ChecksOptions):
        try:
            target.check_options()
        except (ValueError, ImportError) as error:
            raise UsageError(str(error)) from error
    return target
