"""Running passes on one module: verification between them, what is told about them, and the proof at the end."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, field
from functools import partial
from io import StringIO
from time import perf_counter

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.target import Target

from ..dialects.context import RecomputeContext, make_context
from ..dialects.parser import parse_module
from ..dialects.printer import print_module
from ..dialects.recompute import Names
from ..driver.road import belief, take
from .command_line import Instrumentation, Request, UsageError
from .diagnostics import Diagnostic, of_remark


@dataclass(frozen=True)
class Statistics:
    """One run of one pass. Operations count nested ones too."""

    name: str
    operations_before: int
    operations_after: int
    copies_after: int
    changed: bool
    seconds: float

    def __str__(self) -> str:
        change = f"{self.operations_before} -> {self.operations_after} operations, {self.copies_after} copies"
        return f"{self.name}: {change}, {'changed' if self.changed else 'unchanged'}, {self.seconds:.3f} s"


@dataclass
class Run:
    """One module on its way; `remarks` are those of the passes, also when one of them fails."""

    request: Request
    context: RecomputeContext = field(default_factory=make_context)

    @property
    def remarks(self) -> list[Diagnostic]:
        return [of_remark(remark) for remark in self.context.remarks]

    def process(self, text: str, name: str) -> str:
        """One module in, its text out. Raises `ParseError`, `DiagnosticException` and `UsageError`."""
        module, asked = parse_module(text, name, self.context), self.request
        changes = [partial(_apply, one, self.context, asked.instrumentation) for one in asked.passes]
        proof = take(module, changes, asked.verify, asked.proof and not asked.target)
        if proof is not None:
            self.context.remarks.extend(belief(proof, module))
        if asked.target is not None:
            return _emit(asked.target, self.context, module)
        return print_module(module, generic=asked.generic, debuginfo=asked.debuginfo)


def _apply(one: ModulePass, context: Context, told: Instrumentation, module: ModuleOp) -> None:
    if told == Instrumentation(remarks=told.remarks):
        return one.apply(context, module)
    before, count, start = print_module(module, debuginfo=True), _operations(module), perf_counter()
    one.apply(context, module)
    seconds = perf_counter() - start
    changed = print_module(module, debuginfo=True) != before
    if told.statistics is not None:
        copies = sum(1 for op in module.walk() if Names.COPY in op.attributes)
        found = Statistics(one.name, count, _operations(module), copies, changed, seconds)
        print(json.dumps(asdict(found)) if told.statistics == "json" else found, file=sys.stderr)
    if told.print_after_all or (told.print_after_change and changed):
        print(f"// IR after {one.name}\n{print_module(module)}", file=sys.stderr)
    return None


def _operations(module: ModuleOp) -> int:
    return sum(1 for _ in module.walk())


def _emit(target: Target, context: Context, module: ModuleOp) -> str:
    stream = StringIO()
    try:
        target.emit(context, module, stream)
    except (ValueError, ImportError) as error:
        raise UsageError(str(error)) from error
    return stream.getvalue()
