"""recompute-check: check that two programs compute the same numbers, bit for bit.

    recompute-check step.mlir less_memory.mlir
    recompute-check step.mlir less_memory.mlir --execute

The output is one line: `proved equal: ...`, or `not proved: ...` with the first difference. "Not proved" means that no
proof was found, not that the programs differ. With `--execute` both programs also run, on inputs drawn from a seed or
read from a file, and the line continues: `executed: equal bit for bit ...` or `different: result #0 [index]: ...`.

Exit codes:

    0   proved, and equal if executed; with `--expect equal`: equal if executed, proved or not
    1   not proved, or different
    2   wrong usage or invalid input, with one line on standard error, `file:line:col: error: ...`

`proof/prove.py` states the rules of the proof; `interpreters/execute_check.py` runs the programs and compares their
results.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.utils.exceptions import DiagnosticException, ParseError

from ..driver.verified import verify_module
from ..mlir_io.parser import parse_module
from ..proof.operations.declarations import registered_pure
from ..proof.prove import ProofOptions, prove
from ..proof.verdicts.verdict import Proof, proof_of_identity
from ..support.counted import counted
from ..support.diagnostics import Refusal
from ..support.garbage import rare_collections
from ..support.interface import command_line
from ..support.operations import name_of, root_of
from .arguments.opt_arguments import as_argparse_expects
from .arguments.tool_parser import ToolParser
from .diagnostics.reporting import InputText, of_exception
from .execution import add_input_options, run_both
from .file_access.files import FileError, add_split_option, chunks, read_text
from .file_access.rule_files import add_rules_option, load_rules
from .start import version_of

_OPERATION = re.compile(r"\w[\w$-]*(?:\.[\w$-]+)+", re.ASCII)
PROVED, UNPROVED, BAD_INPUT = 0, 1, 2
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
    """Run the console script, and return the exit code."""
    parser = argument_parser()
    options = parser.parse_args(as_argparse_expects(parser, arguments))
    if options.before == options.after == "-":
        parser.error("only one of the programs can come from standard input")
    try:
        with load_rules(options.load_rules):
            return _check(options)
    except FileError as error:
        print(error, file=sys.stderr)
        return BAD_INPUT


def _check(options: argparse.Namespace) -> int:
    """Print the verdict on each pair of programs, and return the highest exit code of all pairs."""
    (before, before_name), (after, after_name) = (read_text(path) for path in (options.before, options.after))
    parts = [list(chunks(text, options.split_input_file)) for text in (before, after)]
    if len(parts[0]) != len(parts[1]):
        counts = f"{counted(len(parts[0]), 'program')} in {before_name}, {len(parts[1])} in {after_name}"
        print(f"{before_name}, {after_name}: error: {counts}", file=sys.stderr)
        return BAD_INPUT
    names = before_name, after_name
    return max(_check_pair(options, texts, names) for texts in zip(*parts, strict=True))


def _check_pair(options: argparse.Namespace, texts: tuple[str, str], names: tuple[str, str]) -> int:
    """Print the verdict on a pair of programs, and return the exit code."""
    sources = [InputText(name, text) for text, name in zip(texts, names, strict=True)]
    modules = list[ModuleOp]()
    try:
        for source in sources:
            modules.append(load_module(source.text, source.file))
    except (ParseError, DiagnosticException) as error:
        print(of_exception(error, sources[len(modules)]).to_text(), file=sys.stderr)
        return BAD_INPUT
    except RecursionError:
        print(
            f"{options.before}, {options.after}: error: the programs are nested too deeply to be read", file=sys.stderr
        )
        return BAD_INPUT
    before, after = modules
    # Compare the texts first, since a resource gets a different name in each module that is parsed.
    proof = (
        proof_of_identity(before)
        if texts[0] == texts[1]
        else prove(
            before,
            after,
            ProofOptions(
                added_constraints=options.added_constraints,
                flattened_results=options.flattened_results,
                repeatable=options.repeatable,
            ),
        )
    )
    is_accepted = _ACCEPTED[options.expect](proof)
    if not (options.execute or options.inputs is not None or options.expect == "equal"):
        print(f"{verdict(proof)}{undeclared_hint(proof, before, after)}")
        return PROVED if is_accepted else UNPROVED
    try:
        execution = run_both(before, after, options.inputs, options.seed, options.function)
    except FileError as error:
        print(error, file=sys.stderr)
        return BAD_INPUT
    except DiagnosticException as error:
        print(f"{verdict(proof)}{undeclared_hint(proof, before, after)}", flush=True)
        is_after = isinstance(error, Refusal) and root_of(error.operation) is after
        print(of_exception(error, sources[is_after]).to_text(), file=sys.stderr)
        return BAD_INPUT
    print(f"{verdict(proof)}{undeclared_hint(proof, before, after)}; {execution}")
    return PROVED if is_accepted and execution.equal else UNPROVED


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
    rules = ", by the rules for loops" if proof.tier == 2 else ""
    counts = f"{counted(proof.operations_before, 'operation')} before, {proof.operations_after} after"
    text = f"proved equal{rules}: {results}, {counts}"
    text = f"{text}; the text is the same" if proof.identical else text
    return "; ".join((text, *proof.assumptions))


def undeclared_hint(proof: Proof, before: ModuleOp, after: ModuleOp) -> str:
    """Return a hint to declare the unregistered operations that the reason for a failed proof names; "" if it names
    none."""
    if proof.proved:
        return ""
    words = set(_OPERATION.findall(proof.reason))
    unregistered = {name_of(op) for module in (before, after) for op in module.walk() if isinstance(op, UnregisteredOp)}
    names = ", ".join(sorted((unregistered & words) - registered_pure()))
    remedy = "declare it with recompute.proof.register_pure in a file for --load-rules"
    return f" (the proof assumes that {names} may have effects; if it is pure, {remedy})" if names else ""


def argument_parser() -> argparse.ArgumentParser:
    parser = ToolParser(
        prog="recompute-check", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", metavar="A.mlir", help="the original program; '-' is standard input")
    parser.add_argument("after", metavar="B.mlir", help="the program that should compute the same")
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
        help="assume that custom calls of these targets (my_kernel, other_*) are functions of their operands, like "
        "the option repeatable of recompute-opt; the attribute recompute.repeatable counts only in A; the verdict "
        "lists the targets",
    )
    parser.add_argument("--execute", action="store_true", help="run both programs and compare the bits of the results")
    add_input_options(parser)
    add_split_option(parser)
    add_rules_option(parser)
    parser.add_argument(
        "--expect", choices=_ACCEPTED, default="proved", help="the verdict for which the exit code is 0"
    )
    parser.add_argument("-v", "--version", action="version", version=version_of("recompute-check"))
    return parser


if __name__ == "__main__":
    sys.exit(main())
