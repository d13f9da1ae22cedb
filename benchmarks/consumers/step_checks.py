"""Measure one step with each set of options: rewrite it, prove it equal, execute it in numpy, and run it with XLA."""

# pyright: basic

from __future__ import annotations

import re
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import jax
from xdsl.utils.exceptions import DiagnosticException

from recompute.benchmarks.consumers.case import ConsumerCase, plain
from recompute.benchmarks.consumers.round_trip import INLINABLE, round_trip
from recompute.benchmarks.harness.result_arrays import arrays_of
from recompute.examples.closeness import Closeness
from recompute.examples.with_jax import compile_keeping_barriers, with_module
from recompute.interpreters.execute_check import PreparedPair
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.tools import recompute_check, recompute_opt

PASSES = {
    "plain": "recompute",
    "auto": 'recompute{loops="periodic(auto)"}',
    "periodic": 'recompute{loops="periodic(2)"}',
    "outputs": "recompute{outputs=true}",
    "collectives": "recompute{collectives=true}",
    "inline": "recompute-inline",
}
"""The pass of each set of options. `collectives` is only for steps with collectives, and `inline` for round trips."""
ALWAYS = ("plain", "auto", "periodic", "outputs")
COLLECTIVES = re.compile(r"stablehlo\.(all_reduce|all_gather|reduce_scatter|collective_permute|all_to_all)\b")
LOCATED = re.compile(r"\S+:\d+:\d+: error: ")
UNCHANGED, WRITTEN, REFUSED, BUG = "unchanged", "written", "refused", "bug"


@dataclass(frozen=True)
class CheckRow:
    """The result of one step with one set of options.

    Attributes:
        outcome: `written`, `unchanged` (written, with nothing recomputed), `refused`, or `bug`.
        reason: The reason why the step was not rewritten or not executed.
        proof: The tier of the proof, `text` if both programs have the same text, or the failed verdict.
        numpy: `equal`, `cannot` if numpy cannot execute the step, or the first difference.
        xla: `ok`, or the error of XLA.
        ours: The distance from the plain step under XLA, in rounding units and as a relative distance; `-` if the step
            did not run.
        theirs: The distance of the step with `jax.checkpoint` from the plain step, in the units of `ours`.
        far: Whether `ours` exceeds its limit.
    """

    step: str
    options: str
    outcome: str
    reason: str = ""
    proof: str = "-"
    numpy: str = "-"
    xla: str = "-"
    ours: str = "-"
    theirs: str = "-"
    far: bool = False

    @property
    def is_bug(self) -> bool:
        """Whether the row violates the guarantees in the documentation."""
        if self.outcome == REFUSED:
            return False
        is_equal = self.proof in ("1", "2", "text") and self.numpy in ("equal", "cannot")
        return self.outcome == BUG or not is_equal or self.far or self.xla != "ok"

    def as_data(self) -> dict[str, Any]:
        """Return the row as a dictionary, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class ToolRun:
    """The output of `recompute-opt` and `recompute-check` for a step.

    Attributes:
        written: The rewritten program, or None if `recompute-opt` failed.
        output: The remarks or errors of `recompute-opt`.
        verdict: The verdict of `recompute-check` or, without a verdict, its error.
    """

    written: str | None
    output: str
    verdict: str = ""


def run_tools(name: str, text: str, passes: str) -> ToolRun:
    """Rewrite a program with `recompute-opt -p PASSES`, and compare the result with the program using
    `recompute-check`.
    """
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder, f"{name}.mlir"), Path(folder, "less.mlir")
        before.write_text(text)
        arguments = [str(before), "-p", passes, "--print-debuginfo", "-o", str(after)]
        code, _, output = _called(recompute_opt, arguments)
        output = output.replace(f"{folder}/", "")
        if code:
            return ToolRun(None, output)
        _, verdict, complaint = _called(recompute_check, [str(before), str(after)])
        return ToolRun(after.read_text(), output, verdict or complaint.strip())


class LoweredCase:
    """A lowered case, with the results of its plain step, and their distance from the results with `jax.checkpoint`."""

    def __init__(self, case: ConsumerCase):
        self.case = case
        jax.config.update("jax_use_shardy_partitioner", case.shardy)
        self.lowered = self._lower(plain)
        self.text = self.lowered.as_text(debug_info=True)
        if case.round_trip:
            self.text = _crossed(self.text, case.round_trip)
            self.lowered = with_module(self.lowered, self.text)
        self.results = self._run(self.lowered)
        self.theirs = Closeness.of(self.results, self._run(self._lower(jax.checkpoint))) if case.twin else None

    def _lower(self, around: Any) -> jax.stages.Lowered:
        function = jax.jit(self.case.build(around), keep_unused=True, **self.case.jit())
        return function.lower(*self.case.arguments())

    def _run(self, lowered: jax.stages.Lowered) -> Any:
        return jax.block_until_ready(compile_keeping_barriers(lowered)(*self.case.arguments()))

    def options(self) -> Sequence[str]:
        """Return the names in `PASSES` of the sets of options that apply to the step."""
        result = [*ALWAYS]
        if COLLECTIVES.search(self.text):
            result.append("collectives")
        if self.case.round_trip:
            result.append("inline")
        return result

    def row(self, options: str) -> CheckRow:
        """Measure the step with one set of options.

        If a tool raises an exception, `rows_of` reports the exception as a bug.
        """
        name, tools = self.case.name, run_tools(self.case.name, self.text, PASSES[options])
        if tools.written is None:
            error = tools.output.strip().splitlines()[-1]
            is_refused = LOCATED.match(error) and "not proved" not in error
            return CheckRow(name, options, REFUSED if is_refused else BUG, error)
        changed = "recompute.copy" in tools.written or _has_changed(tools.verdict) or options == "inline"
        proof = _tier(tools.verdict)
        numpy, reason = self._executed(tools.written)
        try:
            ours = Closeness.of(self.results, self._run(with_module(self.lowered, tools.written)))
        except Exception as error:
            return CheckRow(name, options, BUG, reason, proof, numpy, f"failed: {str(error).splitlines()[0]}")
        return CheckRow(
            name,
            options,
            WRITTEN if changed else UNCHANGED,
            reason if changed else _why_unchanged(tools.output) or reason,
            proof,
            numpy,
            "ok",
            _distance(ours),
            _distance(self.theirs) if self.theirs is not None else "-",
            _is_far(ours, self.theirs),
        )

    def _executed(self, written: str) -> tuple[str, str]:
        try:
            pair = PreparedPair.of(parse_module(self.text), parse_module(written))
            result = pair.compare(arrays_of(self.case.arguments()))
        except DiagnosticException as error:
            return "cannot", str(error).partition("error: ")[2]
        return ("equal" if result.equal else f"different: {result.difference}"), ""


def _crossed(text: str, form: str) -> str:
    """Return the program in the form that the round trip through HLO requires."""
    if form == "inlinable":  # Only the name of the body changes: the GSPMD partitioner writes the other parts.
        return text.replace("@shmap_body", f"@{INLINABLE}")
    return print_module(round_trip(parse_module(text), stay=form == "stay"), debuginfo=True)


def rows_of(case: ConsumerCase, options: Sequence[str] = ()) -> Iterator[CheckRow]:
    """Yield a row for each of the given sets of options, or for all sets that apply. An exception is reported as a
    bug."""
    measured = LoweredCase(case)
    for name in options or measured.options():
        try:
            yield measured.row(name)
        except Exception:
            yield CheckRow(case.name, name, BUG, traceback.format_exc().strip().replace("\n", " | ")[-600:])


def _called(tool: Any, arguments: Sequence[str]) -> tuple[int, str, str]:
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = tool.main(arguments)
    return code, out.getvalue(), err.getvalue()


def _tier(verdict: str) -> str:
    if not verdict.startswith("proved equal"):
        return verdict.strip()
    if "the text is the same" in verdict:
        return "text"
    return "2" if "by the rules for loops" in verdict else "1"


def _has_changed(verdict: str) -> bool:
    """Return whether the rewrite changed the number of operations, for example by removing carries of a loop."""
    counts = re.search(r"(\d+) operations? before, (\d+) after", verdict)
    return counts is not None and counts[1] != counts[2]


def _why_unchanged(output: str) -> str:
    remarks = [line.partition("remark: ")[2] for line in output.splitlines() if "remark: " in line]
    return "; ".join(dict.fromkeys(remarks))


def _distance(result: Closeness) -> str:
    return f"{result.units:.2g} / {result.relative:.1e}" if result.differing else "0"


def _is_far(ours: Closeness, theirs: Closeness | None) -> bool:
    """Return whether the distance of the rewritten step exceeds both 64 rounding units and four times the distance with
    `jax.checkpoint`."""
    bound = max(64.0, 4 * theirs.units if theirs is not None else 0.0)
    return bool(ours.differing) and not ours.units <= bound
