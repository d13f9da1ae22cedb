"""Run programs on inputs that come from a file or a seed, and compare their results, for the command-line tools."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ..interpreters.execute_check import Equality, compare
from ..interpreters.executor import function_named
from ..interpreters.inputs import INPUT_KINDS, check_inputs, load_inputs, random_inputs
from ..interpreters.kernels.arrays import Array
from .file_access.files import FileError


def add_input_options(parser: argparse.ArgumentParser) -> None:
    """Add `--inputs`, `--seed` and `--function`."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--inputs", metavar="IN.npz", help="run on the arrays in this file, one for each argument, in order"
    )
    source.add_argument(
        "--seed", type=int, default=0, metavar="N", help="run on inputs generated from this seed (default: 0)"
    )
    parser.add_argument(
        "--function", metavar="NAME", help="the function to run; by default 'main' or the only public function"
    )


def inputs_from(path: str, function: FuncOp) -> list[Array]:
    """Read the inputs of a function from a file. Raises `FileError` if the file cannot be read, or if its arrays do not
    match the arguments."""
    try:
        return check_inputs(function, load_inputs(path, function))
    except OSError as error:
        raise FileError(f"{path}: error: cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise FileError(f"{path}: error: {error}") from error


@dataclass(frozen=True)
class Execution:
    """The results of two programs compared, once for each kind of input. The comparisons end at the first
    difference."""

    runs: tuple[tuple[str, Equality], ...]

    @property
    def equal(self) -> bool:
        return all(equality.equal for _, equality in self.runs)

    def __str__(self) -> str:
        kind, last = self.runs[-1]
        if last.difference is not None:
            return f"different: {last.difference}; on {kind} inputs"
        return f"executed: equal bit for bit on {', '.join(kind for kind, _ in self.runs)} inputs"


def run_both(before: ModuleOp, after: ModuleOp, path: str | None, seed: int, name: str | None) -> Execution:
    """Run two programs and compare their results.

    Args:
        before: The first program.
        after: The second program.
        path: The file with the inputs; None to generate each kind of input from the seed.
        seed: The seed.
        name: The name of the function; None for `main` or the only public function.

    Raises:
        FileError: For a file that cannot be read, or whose arrays do not match the arguments.
        Refusal: For a program that cannot be executed.
    """
    runs = list[tuple[str, Equality]]()
    for kind, inputs in _inputs(function_named(before, name), path, seed):
        runs.append((kind, compare(before, after, inputs, name)))
        if not runs[-1][1].equal:
            break
    return Execution(tuple(runs))


def _inputs(function: FuncOp, path: str | None, seed: int) -> Iterator[tuple[str, list[Array]]]:
    if path is not None:
        yield "given", inputs_from(path, function)
        return
    for kind in INPUT_KINDS:
        yield kind, random_inputs(function, seed, kind)
