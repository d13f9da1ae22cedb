"""The options of recompute-opt, in its own spelling or in the spelling of `mlir-opt`, which is converted to a form that
argparse accepts."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence

from typing_extensions import override

from ...driver.pipelines.pipeline import known_passes
from ...universe import UNIVERSE
from ..diagnostics.reporting import CATEGORIES, FORMATS
from ..file_access.files import add_split_options
from ..file_access.rule_files import add_rules_option
from ..help.completion import add_completion_option
from ..help.version import version_of
from .tool_parser import Flag, ToolParser

_ONE_DASH = re.compile(r"-([a-z][\w-]+)(=.*)?", re.DOTALL)


def as_argparse_expects(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> list[str]:
    """Return the arguments with two dashes before long options, and with explicit values for options whose value is
    optional.

    For example, `-verify-diagnostics step.mlir` becomes `--verify-diagnostics=all step.mlir`, so that the file is not
    taken as the option's value.

    Args:
        parser: The parser of the arguments.
        arguments: The arguments; None for the arguments of the process.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    end = words.index("--") if "--" in words else len(words)
    return [*_normalize(parser, words[:end]), *words[end:]]


def _normalize(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> Iterator[str]:
    options = {name: action for action in parser._actions for name in action.option_strings}
    for argument in arguments:
        match = _ONE_DASH.fullmatch(argument)
        if match is not None and f"--{match[1]}" in options:
            argument = f"-{argument}"
        action = options.get(argument)
        yield argument if action is None or action.nargs != "?" else f"{argument}={action.const}"


MLIR = "mlir"
EPILOG = (
    "Exit codes: 0 done; 1 bad input, a refused request or a failed proof; 2 wrong usage. The pages that messages "
    "name, such as docs/driver.md, are in the directory that `python -m recompute docs` prints."
)
CACHED = (
    "reuse the result of an earlier run with the same input, from RECOMPUTE_CACHE_DIR or the user's cache directory"
)
STATISTICS = "print counts after each pass, then the seconds of each pass and of its parts, to standard error"
DISPLAYS = ("tree", "list", "json")


class _OptParser(ToolParser):
    """The parser of recompute-opt. For a flag with the name of a pass, as in `mlir-opt`, its error suggests `-p
    NAME`."""

    @override
    def remedy_for(self, option: str) -> str:
        name = option.lstrip("-")
        return f"; run the pass with -p {name}" if name in known_passes() else super().remedy_for(option)


def argument_parser() -> argparse.ArgumentParser:
    """Return the command-line parser of recompute-opt."""
    parser = _OptParser(
        prog="recompute-opt",
        description="Run passes on MLIR, and write only results that are proved equal.",
        epilog=EPILOG,
    )
    _add_input_and_output(parser)
    _add_passes(parser)
    _add_printing(parser)
    _add_diagnostics(parser)
    _add_reproducers(parser)
    _add_information(parser)
    return parser


def _add_input_and_output(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("input_file", nargs="?", help="the input, MLIR text or bytecode; by default, or with '-', standard input")
    add(
        "-t",
        "--target",
        default=MLIR,
        help=f"the output: {MLIR}, {', '.join(UNIVERSE.all_targets)}; --help-pass explains them",
    )
    add("-o", "--output-file", help="the file to write; standard output by default")
    add_split_options(parser)
    add(
        "--print-op-generic",
        "--mlir-print-op-generic",
        action="store_true",
        help="print all operations in their generic form",
    )
    add(
        "--print-debuginfo",
        "--mlir-print-debuginfo",
        action=Flag,
        help="print locations; the default is to print them if the input has locations",
    )
    add("--emit-bytecode", action="store_true", help="write MLIR bytecode, with locations; needs jaxlib")
    add("--emit-plan", metavar="FILE", help="write the plan of 'recompute', for 'recompute{plan=FILE}'")
    add("--allow-unregistered-dialect", action="store_true", help="always on; accepted for mlir-opt scripts")
    add(
        "--mlir-disable-threading",
        nargs="?",
        const=True,
        type=_truth,
        metavar="BOOL",
        help="no effect, because passes run in one thread; accepted for mlir-opt scripts",
    )


def _add_passes(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "-p",
        "--passes",
        action="append",
        default=[],
        help="passes as 'a,b{option=value}', see --list-passes; if repeated, the passes run in the given order",
    )
    add("--pass-pipeline", default="", help="the passes in MLIR's syntax: 'builtin.module(a,func.func(cse))'")
    add("--no-proof", action="store_true", help="write the result without proving it equal")
    add("--disable-verify", action="store_true", help="do not verify between passes")
    add(
        "--verify-each",
        nargs="?",
        const=True,
        default=True,
        type=_truth,
        metavar="BOOL",
        help="verify after each pass; 'false' is --disable-verify",
    )
    add("--cache", action="store_true", help=CACHED)
    add_rules_option(parser)


def _add_printing(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    group = "print the IR to standard error"
    add(
        "--print-ir-before", "--mlir-print-ir-before", metavar="PASSES", default="", help=f"{group} before these passes"
    )
    add("--print-ir-before-all", "--mlir-print-ir-before-all", action="store_true", help=f"{group} before each pass")
    add("--print-ir-after", "--mlir-print-ir-after", metavar="PASSES", default="", help=f"{group} after these passes")
    add("--print-ir-after-all", "--mlir-print-ir-after-all", action="store_true", help=f"{group} after each pass")
    change, failure = "--print-ir-after-change", "--print-ir-after-failure"
    add(change, f"--mlir{change[1:]}", action="store_true", help=f"{group} after each pass that changed it")
    add(failure, f"--mlir{failure[1:]}", action="store_true", help=f"{group} after a pass that failed")
    tree = "--mlir-print-ir-tree-dir"
    add(
        "--dump-dir",
        tree,
        metavar="DIR",
        help="write the IR that --print-ir-* selects to files in this directory instead of standard error; without "
        "--print-ir-*, write the IR after each pass",
    )
    add(
        "--timing",
        "--mlir-timing",
        nargs="?",
        const="tree",
        choices=DISPLAYS,
        help="print the time of each pass and of its parts, as a tree, a list by time, or JSON",
    )
    add(
        "--pass-statistics",
        "--mlir-pass-statistics",
        nargs="?",
        const="text",
        choices=("text", "json"),
        help=STATISTICS,
    )
    add("--dump-pass-pipeline", action="store_true", help="print the pipeline to standard error before it runs")


def _add_diagnostics(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--remarks",
        choices=FORMATS,
        help="print all remarks to standard error in this form (json: one object per line); by default, remarks are "
        "text, without the remarks on recomputed segments and the summary of each function (peak, FLOPs, proof)",
    )
    add("--remarks-filter", metavar="KINDS", help=f"report only these kinds of remarks: {', '.join(CATEGORIES)}")
    add("--remarks-file", metavar="FILE", help="write remarks to this file instead")
    add(
        "--verify-diagnostics",
        nargs="?",
        const="all",
        choices=("all", "only-expected"),
        help="match `// expected-error {{...}}` comments with errors and remarks; "
        "'only-expected' ignores diagnostics without a comment",
    )
    add("-q", "--quiet", action="store_true", help="do not print progress and the summary on standard error")
    stacktrace = "--print-stacktrace-on-diagnostic"
    add(stacktrace, f"--mlir{stacktrace[1:]}", action="store_true", help="print Python's traceback before an error")


def _add_reproducers(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--crash-reproducer",
        "--mlir-pass-pipeline-crash-reproducer",
        metavar="FILE",
        help="if a pass fails, write a reproducer for --run-reproducer: the original IR with the names of the passes",
    )
    local = "--local-reproducer"
    add(
        local,
        "--mlir-pass-pipeline-local-reproducer",
        action="store_true",
        help="write only the failing pass, and the IR before it, to reproducers",
    )
    add(
        "--generate-reproducer",
        "--mlir-generate-reproducer",
        metavar="FILE",
        help="write a reproducer whether or not a pass fails",
    )
    add("--run-reproducer", action="store_true", help="run the passes that the input names in its reproducer section")


def _add_information(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--list-passes",
        action="store_true",
        help="list the passes, one per line, with the passes of this project first, and exit",
    )
    add("--show-dialects", action="store_true", help="list the dialects that define operations, and exit")
    add("--emit-irdl", action="store_true", help="print the dialect 'recompute' for mlir-opt --irdl-file, and exit")
    add("--help-pass", metavar="NAME", help="explain a pass or a target and its options, and exit")
    add_completion_option(parser)
    add("-v", "--version", action="version", version=version_of("recompute-opt"))


def _truth(text: str) -> bool:
    words = {"1": True, "true": True, "0": False, "false": False}
    if text.lower() not in words:
        raise argparse.ArgumentTypeError(f"expected 'true' or 'false', not '{text}'")
    return words[text.lower()]
