"""The command line of recompute-opt, parsed into data, with passes and target resolved."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.passes import ModulePass
from xdsl.universe import Universe
from xdsl.utils.arg_spec import ArgSpec
from xdsl.utils.target import Target

from ..driver.pipeline import BadPipeline, Passes, did_you_mean, passes_known, resolve, specs
from ..universe import UNIVERSE
from .files import demand_different_files
from .options import options_of, spelled
from .rule_files import add_rules_option
from .start import version_of

CHUNK = "// -----"
STATISTICS = "print counts after each pass, then the seconds of each pass and of its parts, to standard error"
CACHED = "reuse the result of an earlier run with the same input, from the folder RECOMPUTE_CACHE_DIR or the user's"
MLIR = "mlir"
_PASS_PIPELINE = re.compile(r"^\s*(?:builtin\.)?module\((.*)\)\s*$", re.DOTALL)
_NESTED_PIPELINE = re.compile(r"(?:^|,)\s*([\w.]+)\(")

Targets = Mapping[str, Callable[[], type[Target]]]


class UsageError(Exception):
    """The command line is wrong: exit code 2."""


@dataclass(frozen=True)
class Instrumentation:
    """Output on standard error while passes run. `statistics` and `remarks`: "text" or "json"."""

    print_after_all: bool = False
    print_after_change: bool = False
    statistics: str | None = None
    remarks: str = "text"


@dataclass(frozen=True)
class CommandLine:
    """The parsed command line. `answer`: a text to print instead of running passes, such as a list of passes."""

    input: str | None
    output: str | None
    passes: tuple[ModulePass, ...]
    target: Target | None
    split: bool
    generic: bool
    debuginfo: bool
    proof: bool
    verify: bool
    verify_diagnostics: bool
    instrumentation: Instrumentation
    emit_plan: str | None = None
    rules: tuple[str, ...] = ()
    cache: bool = False
    answer: str | None = None


def parse_arguments(arguments: Sequence[str] | None) -> CommandLine:
    """Parse the command line. Raises `UsageError`; for unknown options argparse ends the process with exit code 2."""
    options = argument_parser().parse_args(arguments)
    try:
        return _command_line(options)
    except BadPipeline as error:
        raise UsageError(str(error)) from error


def _command_line(options: argparse.Namespace) -> CommandLine:
    targets: Targets = Universe.get_multiverse().all_targets | UNIVERSE.all_targets
    passes = passes_known()
    if options.passes and options.pass_pipeline:
        raise UsageError("give either --passes or --pass-pipeline")
    pipeline = _without_module(options.pass_pipeline) if options.pass_pipeline else options.passes
    return CommandLine(
        input=options.input_file,
        output=options.output_file,
        passes=tuple(resolve(spec, passes, "pass") for spec in specs(pipeline)),
        target=None if options.target == MLIR else _target(options.target, targets),
        split=options.split_input_file,
        generic=options.print_op_generic,
        debuginfo=options.print_debuginfo,
        proof=not options.no_proof,
        verify=not options.disable_verify,
        verify_diagnostics=options.verify_diagnostics,
        instrumentation=Instrumentation(
            options.print_ir_after_all, options.print_ir_after_change, options.pass_statistics, options.remarks
        ),
        emit_plan=_emit_plan(options),
        rules=tuple(options.load_rules),
        cache=options.cache,
        answer=_answer(options, passes),
    )


def argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="recompute-opt",
        description="Run passes on MLIR and write only what is proved equal.",
        epilog="Exit codes: 0 done; 1 bad input, a refused request or a failed proof; 2 wrong usage.",
    )
    ours = ", ".join(UNIVERSE.all_passes)
    add = parser.add_argument
    add("input_file", nargs="?", help="MLIR file; standard input if absent or '-'")
    add("-p", "--passes", default="", help=f"passes as 'a,b{{option=value}}'; ours: {ours}")
    add("--pass-pipeline", default="", help="the same as MLIR spells it, 'builtin.module(a,b{option=value})'")
    add("-t", "--target", default=MLIR, help=f"{MLIR} or {', '.join(UNIVERSE.all_targets)}")
    add("-o", "--output-file", help="file to write; standard output if absent")
    add("--split-input-file", action="store_true", help=f"process the parts between '{CHUNK}' separately")
    add("--print-op-generic", action="store_true", help="print the generic form")
    add("--print-debuginfo", action="store_true", help="print locations")
    add("--print-ir-after-all", action="store_true", help="print the IR after each pass, to standard error")
    add("--print-ir-after-change", action="store_true", help="the same, after passes that changed it")
    add("--pass-statistics", nargs="?", const="text", choices=("text", "json"), help=STATISTICS)
    add("--remarks", choices=("text", "json"), default="text", help="the form of remarks, on standard error")
    add("--verify-diagnostics", action="store_true", help="match `// expected-error {{...}}` comments, and remarks")
    add("--emit-plan", metavar="FILE", help="write the plan of 'recompute', for 'recompute{plan=FILE}'")
    add("--no-proof", action="store_true", help="write the result without proving it equal")
    add("--disable-verify", action="store_true", help="do not verify between passes")
    add("--cache", action="store_true", help=CACHED)
    add_rules_option(parser)
    add("--list-passes", action="store_true", help="name the passes, ours first, and exit")
    add("--help-pass", metavar="NAME", help="explain a pass and its options, and exit")
    add("-v", "--version", action="version", version=version_of("recompute-opt"))
    return parser


def _without_module(pipeline: str) -> str:
    """The passes inside `builtin.module(...)`. Raises `UsageError` for another or a nested pipeline."""
    match = _PASS_PIPELINE.match(pipeline)
    if match is None:
        raise UsageError(f"--pass-pipeline reads 'builtin.module(...)', not '{pipeline}'; see also --passes")
    if (nested := _NESTED_PIPELINE.search(match[1])) is not None:
        raise UsageError(
            f"passes run on the whole module, not on each {nested[1]}: write its passes without '{nested[1]}(...)', "
            "as in 'builtin.module(recompute-mark,recompute-clone)'"
        )
    return match[1]


def _emit_plan(options: argparse.Namespace) -> str | None:
    if options.emit_plan is not None and options.split_input_file:
        raise UsageError("--emit-plan writes the plan of one module, and --split-input-file makes several")
    if options.emit_plan is not None and options.verify_diagnostics:
        raise UsageError("--emit-plan writes a plan beside its program, and --verify-diagnostics writes none")
    if options.emit_plan is not None:
        try:
            demand_different_files({"-o": options.output_file, "--emit-plan": options.emit_plan})
        except ValueError as error:
            raise UsageError(str(error)) from error
    return options.emit_plan


def _target(text: str, targets: Targets) -> Target:
    (spec, *_) = specs(text) or [ArgSpec(text, {})]
    return resolve(spec, targets, "target")


def _answer(options: argparse.Namespace, passes: Passes) -> str | None:
    if options.list_passes:
        ours = list(UNIVERSE.all_passes)
        return "".join(f"{name}\n" for name in [*ours, *sorted(set(passes) - set(ours))])
    if options.help_pass is None:
        return None
    if options.help_pass not in passes:
        raise UsageError(f"unknown pass '{options.help_pass}'{did_you_mean(options.help_pass, passes)}")
    return explain_pass(passes[options.help_pass]())


def explain_pass(pass_class: type[ModulePass]) -> str:
    """The documentation of a pass: the docstring of its module if it is ours, otherwise its own, and its options."""
    module = inspect.getmodule(pass_class)
    ours = module is not None and pass_class.name in UNIVERSE.all_passes
    # Not the docstring of the base class, which describes passes in general.
    own = inspect.cleandoc(pass_class.__doc__) if pass_class.__doc__ else None
    undocumented = f"{pass_class.name}: xDSL says nothing about it."
    text = (module.__doc__ if ours and module is not None else own) or undocumented
    options = list(spelled(options_of(pass_class)))
    return "\n".join([text.rstrip(), *(["", "Options:", *options] if options else []), ""])
