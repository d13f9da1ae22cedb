"""recompute-check: check that two programs compute the same numbers, bit for bit.

    recompute-check step.mlir less_memory.mlir
    recompute-check step.mlir less_memory.mlir --execute

The output is one line: `proved equal: ...`, or `not proved: ...` with the first difference. "Not proved" means that no
proof was found, not that the programs differ. With `--execute`, both programs are also run, on inputs drawn from a seed
or read from a file, and a second line gives the result: `executed: equal bit for bit ...` or `different: result #0
[index]: ...`. The executions stop after 300 seconds, or after `--time-limit`. `--json` prints one JSON object for each
pair instead.

The verdict has a direction: the second program may do less. It may lack operations whose results are not read, even if
they may fail or not terminate, such as an endless loop; if only the second program has such an operation, the answer is
`not proved`. Swap the programs, or use `--execute`, to check the other direction.

Exit codes:

    0   proved, and equal if executed; with `--expect equal`: equal if executed, proved or not
    1   not proved, or different
    2   wrong usage, invalid input, or a program that cannot be executed, with one line on standard error,
        `file:line:col: error: ...`
    3   the verdict is as expected, but the execution reached its time limit without a difference
    130 interrupted

`proof/prove.py` lists the rules of the proof; `interpreters/execute_check.py` runs the programs and compares their
results.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.utils.exceptions import DiagnosticException, ParseError

from ..driver.verification.verified import verify_module
from ..mlir_io.parser import parse_module
from ..proof.operations.declarations import registered_pure
from ..proof.operations.pure_operations import CUSTOM_CALL, is_listed, target_of
from ..proof.prove import ProofOptions, prove
from ..proof.verdicts.verdict import Proof, proof_of_identity
from ..support.counted import counted
from ..support.diagnostics import BadRequest, Refusal
from ..support.garbage import rare_collections
from ..support.interface import command_line
from ..support.operations import name_of, root_of
from ..support.progress import ProgressLine, progress
from .arguments.opt_arguments import as_argparse_expects
from .arguments.tool_parser import ToolParser
from .check_json import json_verdict
from .diagnostics.reporting import InputText, of_exception
from .execution import EXECUTION_SECONDS, Execution, ExecutionRequest, add_input_options, check_input_options, run_both
from .file_access.files import FileError, add_split_option, chunks, read_text
from .file_access.rule_files import add_rules_option, load_rules
from .help.version import version_of

_OPERATION = re.compile(r"\w[\w$-]*(?:\.[\w$-]+)+", re.ASCII)
PROVED, UNPROVED, BAD_INPUT, STOPPED, INTERRUPTED = 0, 1, 2, 3, 130
_ACCEPTED: dict[str, Callable[[Proof], bool]] = {
    "proved": lambda proof: proof.proved,
    "not-proved": lambda proof: not proof.proved,
    "equal": lambda proof: True,
}
"""For each value of `--expect`, a predicate that the proof must satisfy. If the programs are executed, their results
must also be equal."""


@rare_collections()
@command_line()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the console script. Return the exit code."""
    parser = argument_parser()
    options = parser.parse_args(as_argparse_expects(parser, arguments))
    if options.before == options.after == "-":
        parser.error("only one of the programs can come from standard input")
    options.execute = options.execute or options.inputs is not None or options.expect == "equal"
    check_input_options(parser, options)
    _check_execution_options(parser, options)
    try:
        with load_rules(options.load_rules):
            return _check(options)
    except FileError as error:
        print(error, file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("recompute-check: interrupted", file=sys.stderr)
        return INTERRUPTED


def _check(options: argparse.Namespace) -> int:
    """Print the verdict on each pair of programs. Return the highest exit code of all pairs."""
    (before, before_name), (after, after_name) = (read_text(path) for path in (options.before, options.after))
    parts = [list(chunks(text, options.split_input_file)) for text in (before, after)]
    if len(parts[0]) != len(parts[1]):
        counts = f"{counted(len(parts[0]), 'program')} in {before_name}, {len(parts[1])} in {after_name}"
        print(f"{before_name}, {after_name}: error: {counts}", file=sys.stderr)
        return BAD_INPUT
    names = before_name, after_name
    return max(_check_pair(options, texts, names) for texts in zip(*parts, strict=True))


def _check_pair(options: argparse.Namespace, texts: tuple[str, str], names: tuple[str, str]) -> int:
    """Print the verdict on a pair of programs. Return the exit code."""
    sources = [InputText(name, text) for text, name in zip(texts, names, strict=True)]
    modules = _load_all(options, sources)
    if modules is None:
        return BAD_INPUT
    before, after = modules
    proof = _prove(options, before, after, is_same_text=texts[0] == texts[1])
    is_accepted = _ACCEPTED[options.expect](proof)
    hint = undeclared_hint(proof, before, after)
    if not options.json:
        print(f"{verdict(proof)}{hint}", flush=True)
    if not options.execute:
        code = PROVED if is_accepted else UNPROVED
        if options.json:
            print(json_verdict(proof, _without_parentheses(hint), None, code))
        return code
    execution = _execute_both(options, before, after, sources)
    if execution is None:
        return BAD_INPUT
    code = PROVED if execution.stopped_after is None else STOPPED
    if not (is_accepted and execution.equal):
        code = UNPROVED
    print(json_verdict(proof, _without_parentheses(hint), execution, code) if options.json else execution)
    return code


def _without_parentheses(hint: str) -> str:
    return hint.strip().removeprefix("(").removesuffix(")")


def _load_all(options: argparse.Namespace, sources: Sequence[InputText]) -> list[ModuleOp] | None:
    """Parse the programs. Return None if one of them is invalid, after printing the error."""
    modules = list[ModuleOp]()
    try:
        for source in sources:
            modules.append(load_module(source.text, source.file))
    except (ParseError, DiagnosticException) as error:
        print(of_exception(error, sources[len(modules)]).to_text(), file=sys.stderr)
        return None
    except RecursionError:
        print(
            f"{options.before}, {options.after}: error: the programs are nested too deeply to be read", file=sys.stderr
        )
        return None
    return modules


def _execute_both(
    options: argparse.Namespace, before: ModuleOp, after: ModuleOp, sources: Sequence[InputText]
) -> Execution | None:
    """Run both programs and compare their results. Return None if they cannot be executed, after printing the
    error."""
    try:
        with _progress(options) as line:
            return run_both(before, after, _execution_request(options), line.set_phase)
    except FileError as error:
        print(error, file=sys.stderr)
        return None
    except DiagnosticException as error:
        is_after = isinstance(error, Refusal) and root_of(error.operation) is after
        diagnostic = of_exception(error, sources[is_after])
        if not isinstance(error, BadRequest):
            message = f"{diagnostic.message}; without --execute, the verdict depends only on the proof"
            diagnostic = replace(diagnostic, message=message)
        print(diagnostic.to_text(), file=sys.stderr)
        return None


def _prove(options: argparse.Namespace, before: ModuleOp, after: ModuleOp, *, is_same_text: bool) -> Proof:
    # The texts are compared first, since a resource gets a different name in each module that is parsed.
    if is_same_text:
        return proof_of_identity(before)
    assumed = ProofOptions(
        added_constraints=options.added_constraints,
        flattened_results=options.flattened_results,
        repeatable=options.repeatable,
    )
    with _progress(options) as line:
        line.set_phase("proving")
        return prove(before, after, assumed)


def _progress(options: argparse.Namespace) -> AbstractContextManager[ProgressLine]:
    """Return a context that shows the progress of long work on standard error, unless `--quiet` is given."""
    return nullcontext(ProgressLine("")) if options.quiet else progress("recompute-check", has_parts=False)


def _execution_request(options: argparse.Namespace) -> ExecutionRequest:
    seconds = EXECUTION_SECONDS if options.time_limit is None else options.time_limit
    return ExecutionRequest(options.inputs, options.seed or 0, options.kind, options.function, seconds)


def _check_execution_options(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """End the tool with an error for an option that has no effect without `--execute`, and for an invalid time
    limit."""
    ignored = [name for name in ("seed", "kind", "function", "time_limit") if getattr(options, name) is not None]
    if ignored and not options.execute:
        parser.error(f"--{ignored[0].replace('_', '-')} has an effect only with --execute")
    if options.time_limit is not None and not options.time_limit >= 0:
        parser.error(f"--time-limit must be at least 0 seconds, not {options.time_limit:g}")


def load_module(text: str, name: str) -> ModuleOp:
    """Parse and verify a module. Raises `ParseError` or `DiagnosticException`."""
    module = parse_module(text, name)
    verify_module(module)
    return module


def verdict(proof: Proof) -> str:
    """Return the verdict of a proof as one line."""
    if not proof.proved:
        return f"not proved: {proof.reason}"
    results = f"{proof.results} result{'' if proof.results == 1 else 's'}"
    rules = ", by the rules for loops and conditionals" if proof.tier == 2 else ""
    counts = f"{counted(proof.operations_before, 'operation')} before, {proof.operations_after} after"
    text = f"proved equal{rules}: {results}, {counts}"
    text = f"{text}; the text is the same" if proof.identical else text
    return "; ".join((text, *proof.assumptions))


def undeclared_hint(proof: Proof, before: ModuleOp, after: ModuleOp) -> str:
    """Return a hint to declare the unregistered operations or the custom calls that the reason for a failed proof
    names; "" if it names none."""
    if proof.proved:
        return ""
    words = set(_OPERATION.findall(proof.reason))
    targets = _repeated_targets(before, after) if CUSTOM_CALL in words and "--repeatable" not in proof.reason else []
    if targets:
        names = ", ".join(f"@{target}" for target in targets)
        flags = " ".join(f"--repeatable {target}" for target in targets)
        return f" (calls to {names} may have effects, and B contains more of them; if they have none, give {flags})"
    unregistered = {name_of(op) for module in (before, after) for op in module.walk() if isinstance(op, UnregisteredOp)}
    names = ", ".join(sorted((unregistered & words) - registered_pure()))
    remedy = "declare it with recompute.proof.register_pure in a file for --load-rules"
    return f" (the proof assumes that {names} may have effects; if it is pure, {remedy})" if names else ""


def _repeated_targets(before: ModuleOp, after: ModuleOp) -> list[str]:
    """Return the custom-call targets that occur more often in `after`, among the targets that a user may declare
    pure."""
    calls_before, calls_after = (
        Counter(target for op in module.walk() if (target := target_of(op)) is not None and not is_listed(op))
        for module in (before, after)
    )
    return sorted(calls_after - calls_before)


def argument_parser() -> argparse.ArgumentParser:
    parser = ToolParser(
        prog="recompute-check", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", metavar="A.mlir", help="the original program; '-' is standard input")
    parser.add_argument("after", metavar="B.mlir", help="the program that should compute the same")
    _add_assumption_options(parser)
    _add_execution_options(parser)
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object for each pair of programs on standard output"
    )
    add_split_option(parser)
    add_rules_option(parser)
    parser.add_argument(
        "--expect", choices=_ACCEPTED, default="proved", help="the verdict for which the exit code is 0"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="do not print progress on standard error")
    parser.add_argument("-v", "--version", action="version", version=version_of("recompute-check"))
    return parser


def _add_assumption_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for differences and assumptions that the verdict lists."""
    parser.add_argument(
        "--added-constraints",
        action="store_true",
        help="assume that sharding constraints that only B has change no value; the verdict counts them",
    )
    parser.add_argument(
        "--flattened-results",
        action="store_true",
        help="accept that B returns the elements of a tuple that A returns; the verdict counts them",
    )
    parser.add_argument(
        "--repeatable",
        metavar="PATTERN",
        action="append",
        default=[],
        help="assume that custom calls to these targets (my_kernel, other_*) are functions of their operands, like "
        "the option repeatable of recompute-opt; the attribute recompute.repeatable has an effect only in A; the "
        "verdict lists the targets",
    )


def _add_execution_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for running both programs."""
    parser.add_argument("--execute", action="store_true", help="run both programs and compare the bits of the results")
    add_input_options(parser, default_kind="each of them, one after another")
    parser.add_argument(
        "--time-limit",
        type=float,
        metavar="SECONDS",
        help=f"seconds after which the executions of --execute stop, checked after each operation "
        f"({EXECUTION_SECONDS:g})",
    )


if __name__ == "__main__":
    sys.exit(main())
