"""Count how many public MLIR programs are read, printed, rejected and executed, compared with jaxlib.

    python -m recompute.benchmarks.interoperability.public_programs CHECKOUT  # all *.mlir files of a checkout
    python -m recompute.benchmarks.interoperability.public_programs CHECKOUT --files 'stablehlo/tests/**/*.mlir' --list

Results: numbers of programs, in docs/measured/public_programs.md. Time: about 10 minutes.

A file is split into programs at lines `// -----`. Programs with `expected-error` are invalid. They must be rejected
with the label of the violated constraint of the specification (`C3`, `I1`). They are counted separately if jaxlib reads
them, since their error then comes from a pass or a test dialect.

Every other program that jaxlib reads must be read as written and in generic form, and jaxlib must print our output like
the original. This comparison leaves out the statements `check.expect_…` of StableHLO's interpreter tests. With
`--execute`, the functions with such statements run in numpy (`interpreter.run_parallel` on simulated devices), and
their expectations are checked.

`--list` prints a line for each program that fails a criterion.
"""

from __future__ import annotations

import re
import signal
import sys
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import NoReturn

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import DiagnosticException, ParseError, VerifyException

from recompute.benchmarks.harness.command_line import benchmark_parser
from recompute.benchmarks.interoperability.expectations import (
    EXPECTATIONS,
    ExpectOp,
    agree,
    executed_expectations,
)
from recompute.dialects.context import make_context
from recompute.driver.verification.verified import verify_module
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.test.mlir_judge import Judge

LIMIT_SECONDS = 60
"""The time limit of each program."""
OPERATION = re.compile(r'^[ \t]*(?:%[^=]*= )?"(\w+)\.[\w.]+"\(', re.MULTILINE)
RESOURCE = re.compile(r"(dense_resource<\w+?|^ +\w+?)(?:_\d+)*(>|: \"0x)", re.MULTILINE)
LABEL = re.compile(r"\b[CI]\d+: ")
CHECK = re.compile(
    r"^[ \t]*check\.expect_(?:[^\n<]|<[^\n>]*>)*(?:dense<.*?>[ \t]*)?[^\n]*:[^\n]*\n", re.MULTILINE | re.DOTALL
)
REFUSALS = (ParseError, VerifyException, DiagnosticException)


@dataclass
class Table:
    """The number of programs in each row, and a line for each program that fails."""

    counts: Counter[str] = field(default_factory=Counter[str])
    lines: list[str] = field(default_factory=list[str])

    def note(self, row: str, place: str, reason: object) -> None:
        """Count a program in a row of the table. Add a line with its position and the last line of `reason`."""
        self.counts[row] += 1
        last = [line.strip() for line in str(reason).strip().splitlines() if line.strip(" ^|")]
        self.lines.append(f"{row}: {place}: {(last or [''])[-1][:200]}")


class Hang(Exception):
    """The error for a program that exceeds the time limit."""


@contextmanager
def time_limit() -> Generator[None]:
    """Provide a context that raises `Hang` after `LIMIT_SECONDS`."""

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        raise Hang(f"the program took more than {LIMIT_SECONDS} s")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)


def programs_of(checkout: Path, globs: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the programs in the files that match, each with its place: the file, and the program's number in it."""
    for path in sorted({path for glob in globs for path in checkout.glob(glob)}):
        for number, text in enumerate(programs_in(path)):
            yield text, f"{path.relative_to(checkout)}#{number}"


def programs_in(path: Path) -> list[str]:
    """Split a file into its programs, and leave out parts that contain only comments."""
    parts = re.split(r"^// -----.*$", path.read_text(errors="replace"), flags=re.MULTILINE)
    return [part for part in parts if re.search(r"^\s*[^/\s]", part, re.MULTILINE)]


def read(text: str, name: str) -> ModuleOp:
    """Parse and verify a module. Raises one of `REFUSALS` for an invalid program."""
    module = parse_module(text, name)
    verify_module(module)
    return module


def count_rejection(text: str, place: str, table: Table, is_read_by_jaxlib: bool) -> None:
    """Record in `table` whether an invalid program is rejected. A program that jaxlib reads is only counted, since its
    error comes from a pass or a test dialect."""
    if is_read_by_jaxlib:
        table.counts["annotated with an error, read by jaxlib"] += 1
        return
    table.counts["bad"] += 1
    try:
        with time_limit():
            read(text, place)
    except REFUSALS as error:
        table.counts["refused"] += 1
        if isinstance(error, ParseError):
            table.note("refused as syntax", place, error)
        elif LABEL.search(str(error)):
            table.counts["refused with a label"] += 1
        else:
            table.note("refused without a label", place, error)
    except Exception as error:
        table.note("traceback or hang", place, repr(error))
    else:
        expected = re.findall(r"\{\{(.*)\}\}", text)
        table.note("accepted", place, (expected or [""])[0])


@dataclass
class PrintComparison:
    """A comparison of this project with jaxlib, by the programs that they read and print."""

    table: Table
    dialects: frozenset[str] = frozenset()
    """The dialects whose programs are counted; empty to count all programs."""
    judge: Judge = field(default_factory=lambda: Judge(allow_unregistered=True))

    def printed_by_jaxlib(self, text: str, generic: bool = False) -> str | None:
        """Return the program as jaxlib prints it, or None if jaxlib rejects it."""
        try:
            return self.judge.print(text, generic=generic, debuginfo=False)
        except AssertionError as error:
            if "crashed" in str(error):
                self.judge = Judge(allow_unregistered=True)
            return None

    def compare(self, text: str, place: str) -> None:
        """Count a valid program, and compare our output with the original, both printed by jaxlib."""
        table, printed = self.table, self.printed_by_jaxlib(text)
        if printed is None:
            table.counts["not read by jaxlib"] += 1
            return
        generic = self.printed_by_jaxlib(text, generic=True)
        assert generic is not None, "jaxlib must print in generic form every program that it prints"
        if self.dialects and not self.dialects.issuperset(OPERATION.findall(generic)):
            table.counts["uses other dialects"] += 1
            return
        table.counts["good"] += 1
        for row, form in (("read as written", text), ("read in generic form", generic)):
            try:
                with time_limit():
                    again = self.printed_by_jaxlib(print_module(read(form, place)))
            except REFUSALS as error:
                table.note(f"not {row}", place, error)
            except Exception as error:
                table.note("traceback or hang", place, repr(error))
            else:
                table.counts[row] += 1
                if again is not None and _unnumbered(again) == _unnumbered(printed):
                    table.counts[f"{row}, printed the same"] += 1
                else:
                    table.note(f"{row}, printed otherwise", place, "not read again" if again is None else "")


def _unnumbered(text: str) -> str:
    """Return the text without the numbers in resource names, which jaxlib increments with every program."""
    return RESOURCE.sub(r"\1\2", text)


def execute_checks(text: str, place: str, table: Table) -> None:
    """Run the functions of a program that contain expectations, and count those that are met."""
    context = make_context()
    context.load_dialect(EXPECTATIONS)
    module = parse_module(text, place, context)
    for function in [op for op in module.walk() if isinstance(op, FuncOp)]:
        expectations = [op for op in function.walk() if isinstance(op, ExpectOp)]
        if not expectations:
            continue
        table.counts["expectations"] += len(expectations)
        try:
            with time_limit():
                executed = executed_expectations(module, function, expectations)
        except Exception as error:
            for _ in expectations:
                table.note("not executed", place, f"{type(error).__name__}: {error}")
            continue
        for kind, actual, expected, ulps in executed:
            if agree(kind, actual, expected, ulps):
                table.counts["as expected"] += 1
            else:
                table.note("WRONG VALUE", place, f"{kind}: {actual!r} instead of {expected!r}".replace("\n", " "))


def measure(
    checkout: Path, globs: Sequence[str], *, dialects: frozenset[str] = frozenset(), with_checks: bool = False
) -> Table:
    """Count the programs of a checkout.

    Args:
        checkout: The folder of the checkout.
        globs: The patterns of file names, relative to the checkout.
        dialects: The dialects whose programs are counted; empty to count all programs.
        with_checks: Whether to also run the checks in interpreter tests.
    """
    table = Table()
    comparison = PrintComparison(table, dialects)
    for text, place in programs_of(checkout, globs):
        if "expected-error" in text:
            count_rejection(text, place, table, comparison.printed_by_jaxlib(text) is not None)
            continue
        comparison.compare(CHECK.sub("", text), place)
        if with_checks and "check.expect" in text:
            with suppress(*REFUSALS):
                execute_checks(text, place, table)
    comparison.judge.close()
    return table


def main() -> int:
    """Print the counts, and return 1 if a criterion is violated."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("checkout", type=Path, help="the folder of the checkout")
    parser.add_argument(
        "--files", action="append", metavar="GLOB", help="files, relative to the checkout; may be repeated"
    )
    parser.add_argument("--execute", action="store_true", help="execute interpreter tests and compare their results")
    parser.add_argument("--dialects", metavar="A,B", help="count only the valid programs of these dialects")
    parser.add_argument("--list", action="store_true", help="print a line for each program that fails")
    options = parser.parse_args()
    sys.setrecursionlimit(10_000)
    dialects = frozenset(("builtin", *options.dialects.split(",")) if options.dialects else ())
    globs = options.files or ["**/*.mlir"]
    table = measure(options.checkout, globs, dialects=dialects, with_checks=options.execute)
    if options.list:
        print("\n".join(sorted(table.lines)))
    for row, count in sorted(table.counts.items()):
        print(f"{count:6}  {row}")
    return 1 if table.counts["WRONG VALUE"] or table.counts["traceback or hang"] else 0


if __name__ == "__main__":
    sys.exit(main())
