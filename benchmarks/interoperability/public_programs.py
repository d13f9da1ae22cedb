"""Count how many public MLIR programs are read, printed, rejected and executed, compared with jaxlib.

    python -m recompute.benchmarks.interoperability.public_programs CHECKOUT  # all *.mlir files of a checkout
    python -m recompute.benchmarks.interoperability.public_programs CHECKOUT --files 'stablehlo/tests/**/*.mlir' --list

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
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, NoReturn

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Dialect, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, opt_prop_def, var_operand_def
from xdsl.parser import Parser
from xdsl.utils.exceptions import DiagnosticException, ParseError, VerifyException

from recompute.benchmarks.harness.command_line import benchmark_parser
from recompute.dialects.context import make_context
from recompute.dialects.dense import parse_constant
from recompute.dialects.stablehlo.creation import ConstantOp
from recompute.driver.verified import verify_module
from recompute.interpreters.devices import run_on_devices
from recompute.interpreters.executor import execute
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.support.diagnostics import Refusal
from recompute.support.operations import name_of
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
        """Count a program in a row, and add a line with its place and the last line of the reason."""
        self.counts[row] += 1
        last = [line.strip() for line in str(reason).strip().splitlines() if line.strip(" ^|")]
        self.lines.append(f"{row}: {place}: {(last or [''])[-1][:200]}")


class Hang(Exception):
    """Raised if a program exceeds the time limit."""


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


def parts_of(path: Path) -> list[str]:
    """Split a file into its programs, and leave out parts that contain only comments."""
    parts = re.split(r"^// -----.*$", path.read_text(errors="replace"), flags=re.MULTILINE)
    return [part for part in parts if re.search(r"^\s*[^/\s]", part, re.MULTILINE)]


def read(text: str, name: str) -> ModuleOp:
    """Parse and verify a module. Raises one of `REFUSALS` for an invalid program."""
    module = parse_module(text, name)
    verify_module(module)
    return module


def refuse(text: str, place: str, table: Table, is_read_by_jaxlib: bool) -> None:
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
    """Compares how this project and jaxlib read and print programs."""

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


class ExpectOp(IRDLOperation):
    """An expectation of StableHLO's interpreter tests: a value, and a constant or a second value.

    `kind`: the part of the operation's name after `expect_`.
    """

    values = var_operand_def()
    kind = opt_prop_def()
    constant = opt_prop_def()
    ulps = opt_prop_def()


def _expect(kind: str) -> type[Operation]:
    class Expect(ExpectOp):
        name = f"check.expect_{kind}"

        @classmethod
        def parse(cls, parser: Parser) -> ExpectOp:
            start = parser.pos
            operands, properties = [parser.parse_unresolved_operand()], dict[str, Attribute]()
            while parser.parse_optional_punctuation(",") is not None:
                if (operand := parser.parse_optional_unresolved_operand()) is not None:
                    operands.append(operand)
                elif (key := parser.parse_optional_identifier()) is not None and key != "dense":
                    parser.parse_punctuation("=")
                    properties["ulps" if key == "max_ulp_difference" else "kind"] = parser.parse_attribute()
                else:
                    properties["constant"] = parse_constant(parser)
            if "constant" in properties:
                types: list[Any] = [properties["constant"].type]  # pyright: ignore
            else:
                parser.parse_punctuation(":")
                types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
            resolved = parser.resolve_operands(operands, types * (len(operands) // len(types)), start)
            return cls.create(operands=resolved, properties=properties)

    return irdl_op_definition(Expect)


KINDS = ("eq", "almost_eq", "eq_const", "almost_eq_const", "close", "serialized_eq")
EXPECTATIONS = Dialect("check", [_expect(kind) for kind in KINDS])


def agree(kind: str, actual: Any, expected: Any, ulps: int) -> bool:
    """Return whether a value is as expected: exactly, within a relative error of 1e-4, or within `ulps` ulps."""
    if kind.startswith(("eq", "serialized")) or actual.dtype.kind in "biu":
        return np.array_equal(actual, expected, equal_nan=actual.dtype.kind in "fc")
    wide = np.complex128 if actual.dtype.kind == "c" else np.float64
    first, second = actual.astype(wide), expected.astype(wide)
    tolerance = 1e-4
    if kind == "close":
        tolerance = float(np.finfo(actual.real.dtype).eps) * max(ulps, 1) if actual.dtype.kind in "fc" else 0
    return bool(np.allclose(first, second, rtol=tolerance, atol=tolerance * 1e-3, equal_nan=True))


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
                executed = _executed(module, function, expectations)
        except Exception as error:
            for _ in expectations:
                table.note("not executed", place, f"{type(error).__name__}: {error}")
            continue
        for kind, actual, expected, ulps in executed:
            if agree(kind, actual, expected, ulps):
                table.counts["as expected"] += 1
            else:
                table.note("WRONG VALUE", place, f"{kind}: {actual!r} instead of {expected!r}".replace("\n", " "))


class Expectation(NamedTuple):
    """An expectation of a test, on SSA values of the program or on computed arrays.

    Attributes:
        kind: The part of the operation's name after `expect_`.
        actual: The value that the program computes.
        expected: The value that the test expects.
        ulps: The accepted difference for the kind `close`, in units in the last place.
    """

    kind: str
    actual: Any
    expected: Any
    ulps: int


def _executed(module: ModuleOp, function: FuncOp, expectations: Sequence[ExpectOp]) -> list[Expectation]:
    """Run the operations that the expectations need, and return the expectations on the computed arrays."""
    block = function.body.block
    on_values = list[Expectation]()
    for op in expectations:
        second = op.values[1] if len(op.values) > 1 else op.values[0]
        if op.constant is not None:
            constant = ConstantOp.create(properties={"value": op.constant}, result_types=[op.values[0].type])
            block.insert_op_before(constant, op)
            second = constant.results[0]
        ulps = getattr(getattr(op.ulps, "value", None), "data", 1)
        on_values.append(Expectation(op.name.removeprefix("check.expect_"), op.values[0], second, ulps))
        op.detach()
    probed = [op for op in function.walk() if name_of(op) == "interpreter.probe"]
    for op in probed:
        op.results[0].replace_all_uses_with(op.operands[0])
        op.detach()
    on_values = [
        entry._replace(actual=_unprobed(entry.actual, probed), expected=_unprobed(entry.expected, probed))
        for entry in on_values
    ]
    computed = dict[SSAValue, Any]()
    parallel = [op for op in block.ops if name_of(op) == "interpreter.run_parallel"]
    for op in parallel:
        inputs = _run(block, op.operands, computed)
        computed.update(zip(op.results, _run_in_parallel(module, op, inputs), strict=True))
    arrays = iter(_run(block, [value for entry in on_values for value in (entry.actual, entry.expected)], computed))
    return [entry._replace(actual=next(arrays), expected=next(arrays)) for entry in on_values]


def _unprobed(value: SSAValue, probed: Sequence[Operation]) -> SSAValue:
    return next((op.operands[0] for op in probed if op.results[0] is value), value)


def _run_in_parallel(module: ModuleOp, op: Operation, inputs: Sequence[Any]) -> list[Any]:
    """Run `interpreter.run_parallel` on simulated devices, and return the results device by device."""
    grid = op.properties.get("programs") or op.attributes["programs"]
    if "infeed" in op.attributes or "infeed" in op.properties:
        raise Refusal(op, "the interpreter does not support infeed")
    functions = {f.sym_name.data: f for f in module.walk() if isinstance(f, FuncOp)}
    assert isinstance(grid, ArrayAttr)
    programs = [[functions[name.string_value()] for name in row if isinstance(name, SymbolRefAttr)] for row in grid]  # pyright: ignore
    remaining = iter(inputs)
    inputs_of_devices = [
        list(islice(remaining, len(program.function_type.inputs))) for row in programs for program in row
    ]
    return [value for results in run_on_devices(programs, inputs_of_devices) for value in results]


def _run(block: Block, values: Sequence[SSAValue], computed: dict[SSAValue, Any]) -> list[Any]:
    """Compute values of a block, by running the operations that they need in a separate function.

    `computed`: the arrays of the values that are already computed.
    """
    from xdsl.dialects.func import ReturnOp

    needed, stack = set[Operation](), [value for value in values if value not in computed]
    while stack:
        owner = stack.pop().owner
        assert isinstance(owner, Operation), "a function with expectations must have no arguments"
        if owner not in needed:
            needed.add(owner)
            reads = [*owner.operands, *(value for op in owner.walk() for value in op.operands)]
            stack += [
                value
                for value in reads
                if value not in computed and isinstance(value.owner, Operation) and value.owner.parent is block
            ]
    inner = Block(arg_types=[value.type for value in computed])
    mapping: dict[SSAValue, SSAValue] = dict(zip(computed, inner.args, strict=True))
    for op in block.ops:
        if op in needed:
            inner.add_op(op.clone(mapping))
    results = [mapping[value] for value in values]
    inner.add_op(ReturnOp(*results))
    types = [value.type for value in computed], [value.type for value in results]
    function = FuncOp("expectation", types, Region(inner))
    parent = block.parent_op()
    assert parent is not None and parent.parent is not None, "the function must be inside a module"
    parent.parent.add_op(function)
    try:
        return list(execute(function, list(computed.values())))
    finally:
        function.detach()


def measure(
    checkout: Path, globs: Sequence[str], *, dialects: frozenset[str] = frozenset(), with_checks: bool = False
) -> Table:
    """Count the programs of a checkout.

    Args:
        checkout: The folder of the checkout.
        globs: The patterns of file names, relative to the checkout.
        dialects: The dialects whose programs are counted; empty to count all programs.
        with_checks: Whether to run the expectations of interpreter tests.
    """
    table = Table()
    comparison = PrintComparison(table, dialects)
    for path in sorted({path for glob in globs for path in checkout.glob(glob)}):
        for number, part in enumerate(parts_of(path)):
            place = f"{path.relative_to(checkout)}#{number}"
            if "expected-error" in part:
                refuse(part, place, table, comparison.printed_by_jaxlib(part) is not None)
                continue
            comparison.compare(CHECK.sub("", part), place)
            if with_checks and "check.expect" in part:
                with suppress(*REFUSALS):
                    execute_checks(part, place, table)
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
