"""Run programs on inputs from a file or a seed, and compare their results. The command-line tools use this module."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ..interpreters.execute_check import Equality, compare
from ..interpreters.execution_monitor import ExecutionMonitor, TimeLimitReached
from ..interpreters.executor import function_named
from ..interpreters.inputs import INPUT_KINDS, InputKind, check_inputs, load_inputs, random_inputs
from ..interpreters.kernels.arrays import Array
from .file_access.files import FileError

EXECUTION_SECONDS = 300.0
"""The default time limit of the executions of `recompute-check`, in seconds."""


def add_input_options(parser: argparse.ArgumentParser, default_kind: str) -> None:
    """Add `--inputs`, `--seed`, `--kind` and `--function`.

    `default_kind`: the meaning of an absent `--kind`, for the help.
    """
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--inputs", metavar="IN.npz", help="run on the arrays in this file, one for each argument, in order"
    )
    source.add_argument("--seed", type=int, metavar="N", help="run on inputs generated from this seed (default: 0)")
    parser.add_argument(
        "--kind",
        choices=INPUT_KINDS,
        help="the inputs to generate: small floats of both signs, small floats that are not negative, or floats "
        f"that include zeros, infinities, NaN and extreme values (default: {default_kind})",
    )
    parser.add_argument(
        "--function", metavar="NAME", help="the function to run; by default 'main' or the only public function"
    )


def check_input_options(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """End the tool with an error if options for inputs exclude one another."""
    if options.inputs is not None and options.kind is not None:
        parser.error("argument --kind: not allowed with argument --inputs")


def inputs_from(path: str, function: FuncOp) -> list[Array]:
    """Read the inputs of a function from a file. Raises `FileError` if the file cannot be read, or if its arrays do not
    match the arguments."""
    try:
        return check_inputs(function, load_inputs(path, function))
    except OSError as error:
        raise FileError(f"{path}: error: cannot read the file: {error.strerror or error}") from error
    except ValueError as error:
        raise FileError(f"{path}: error: {error}") from error


@dataclass(frozen=True)
class Execution:
    """The comparisons of two programs' results, one for each kind of input. The comparisons end at the first
    difference, or at the time limit.

    Attributes:
        runs: The kind of inputs and the result of each completed comparison.
        stopped_after: The time limit in seconds, if it ended the executions; otherwise None.
    """

    runs: tuple[tuple[str, Equality], ...]
    stopped_after: float | None = None

    @property
    def equal(self) -> bool:
        return all(equality.equal for _, equality in self.runs)

    def __str__(self) -> str:
        if self.runs and (last := self.runs[-1][1]).difference is not None:
            return f"different: {last.difference}; on {self.runs[-1][0]} inputs"
        kinds = ", ".join(kind for kind, _ in self.runs)
        equal = f"equal bit for bit on {kinds} inputs"
        if self.stopped_after is None:
            return f"executed: {equal}"
        outcome = f"the results are {equal}, the others were not compared" if kinds else "nothing was compared"
        return f"the execution was stopped after {self.stopped_after:g} s (--time-limit): {outcome}"


@dataclass(frozen=True)
class ExecutionRequest:
    """The inputs on which to run two programs, from the command line.

    Attributes:
        path: The file with the inputs; None to draw them.
        seed: The seed from which inputs are drawn.
        kind: The kind of inputs to draw; None for each kind.
        function: The name of the function; None for `main` or the only public function.
        seconds: The time limit of all executions together.
    """

    path: str | None = None
    seed: int = 0
    kind: InputKind | None = None
    function: str | None = None
    seconds: float = EXECUTION_SECONDS

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of inputs, in order; only `"given"` if the inputs come from a file."""
        if self.path is not None:
            return ("given",)
        return INPUT_KINDS if self.kind is None else (self.kind,)

    def inputs(self, function: FuncOp) -> Iterator[list[Array]]:
        """Yield the inputs of each kind. Raises `FileError` and `Refusal`."""
        if self.path is not None:
            yield inputs_from(self.path, function)
            return
        for kind in INPUT_KINDS if self.kind is None else (self.kind,):
            yield random_inputs(function, self.seed, kind)


def run_both(
    before: ModuleOp,
    after: ModuleOp,
    request: ExecutionRequest,
    report: Callable[[str, float], None] = lambda phase, share: None,
) -> Execution:
    """Run two programs on each kind of input, and compare their results.

    Args:
        before: The first program.
        after: The second program.
        request: The inputs and the time limit.
        report: Called with each phase of the work, and with the share that is done.

    Raises:
        FileError: For a file that cannot be read, or whose arrays do not match the arguments.
        Refusal: For a program that cannot be executed.
    """
    kinds, runs = request.kinds, list[tuple[str, Equality]]()

    def report_run(run: int, share: float) -> None:
        program = "second" if run % 2 else "first"
        report(f"executing the {program} program on {kinds[run // 2]} inputs", (run + share) / (2 * len(kinds)))

    monitor = ExecutionMonitor(request.seconds, report_run)
    function = function_named(before, request.function)
    try:
        for kind, inputs in zip(kinds, request.inputs(function), strict=True):
            runs.append((kind, compare(before, after, inputs, request.function, monitor)))
            if not runs[-1][1].equal:
                break
    except TimeLimitReached:
        return Execution(tuple(runs), request.seconds)
    return Execution(tuple(runs))
