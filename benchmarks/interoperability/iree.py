"""Run the plain and the recomputed step of each example in IREE, and compare results and allocator peaks with XLA.

    python -m recompute.benchmarks.interoperability.iree  # all examples with small shapes, and numpy
    python -m recompute.benchmarks.interoperability.iree mlp20 gpt --size large --no-numpy
    python -m recompute.benchmarks.interoperability.iree --iree /path/to/venv/bin

Results: bytes, ratios and distances in units of rounding, in docs/measured/iree.md. Time: about 10 minutes.

The extra `iree` (`python -m pip install '.[iree]'` in a checkout) installs `iree-compile` and `iree-run-module`.
`--iree` names the folder of other builds of these programs. Both steps are compiled for the CPU and run on the same
random inputs.

A peak is the sum of the allocator's peaks in host-local and in device-local memory, because a step with loops uses
both. The columns list:

- both peaks, and the bytes of inputs and results, which both peaks include;
- the ratio of the peaks, with and without these bytes;
- the ratio of XLA:CPU's temporaries, which exclude inputs and results;
- the distances from the recomputed to the plain step, in IREE and in XLA;
- the distances from the plain step in IREE to the plain step in XLA and in numpy.

Each distance is the maximum over all results, in multiples of the unit roundoff.

The exit status is 1 if a requirement is not met. The peak must be at most 1.02 times the plain peak. Without inputs and
results, it must be at most 0.6 times the plain peak, provided that XLA's temporaries are reduced to that share. The
recomputed results must be as close to the plain results as they are in XLA, or as close as IREE's plain results are to
XLA's plain results.
"""

# pyright: basic

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from recompute.benchmarks.harness.command_line import add_names, add_size, benchmark_parser, report_missed
from recompute.benchmarks.harness.compiled_cost import temporary_bytes
from recompute.benchmarks.harness.markdown import table_head, table_row
from recompute.driver.api import rewrite
from recompute.examples.closeness import Closeness
from recompute.examples.export import BUILDERS
from recompute.examples.models.step import Step, random_inputs
from recompute.examples.with_jax import PIPELINE, compile_keeping_barriers, with_module
from recompute.interpreters.executor import execute, function_named
from recompute.mlir_io.parser import parse_module
from recompute.options.recompute_options import RecomputeOptions

TOOLS = ("iree-compile", "iree-run-module")
MAX_PEAK_RATIO = 1.02
"""The largest allowed peak with recomputation, as a multiple of the plain peak."""
GAINED = 0.6
"""The share of the plain temporaries that IREE must not exceed if XLA does not exceed it."""
TARGET = (
    "--iree-input-type=stablehlo",
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)


@dataclass(frozen=True)
class Tools:
    """The paths of IREE's command-line programs."""

    compile: str
    run: str

    @classmethod
    def in_folder(cls, folder: str | None) -> Tools:
        """Find the programs in the folder, or by default next to this Python or on the PATH.

        Raises:
            SystemExit: The programs are not installed.
        """
        folders = folder or os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        paths = [shutil.which(name, path=folders) for name in TOOLS]
        if None in paths:
            raise SystemExit("IREE is not installed: run `python -m pip install '.[iree]'` in a checkout")
        return cls(*(str(path) for path in paths))


class NotRun(Exception):
    """The error for a program that IREE rejects."""


@dataclass(frozen=True)
class IreeRun:
    """The results of a run in IREE, and the sum of the allocator's peaks."""

    results: list[np.ndarray]
    peak_bytes: int


def run_in_iree(tools: Tools, text: str, inputs: list[np.ndarray], likes: list[Any]) -> IreeRun:
    """Compile and run a step in IREE. Raises `NotRun` if IREE rejects it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program, module = folder / "step.mlir", folder / "step.vmfb"
        program.write_text(text)
        _call(tools.compile, *TARGET, str(program), "-o", str(module))
        arguments = list[str]()
        for number, value in enumerate(inputs):
            raw = folder / f"in{number}.bin"
            value.tofile(raw)
            arguments.append(f"--input={_type(value)}=@{raw}")
        outputs = [folder / f"out{number}.bin" for number in range(len(likes))]
        arguments += [f"--output=@{path}" for path in outputs]
        report = _call(
            tools.run, "--device=local-sync", f"--module={module}", "--function=main", "--print_statistics", *arguments
        )
        peaks = [int(peak) for peak in re.findall(r"(?:HOST|DEVICE)_LOCAL:\s*(\d+)B peak", report)]
        assert peaks, f"iree-run-module printed no peak: {report[-500:]}"
        results = [np.fromfile(path, like.dtype).reshape(like.shape) for path, like in zip(outputs, likes, strict=True)]
        return IreeRun(results, sum(peaks))


def _call(*command: str) -> str:
    process = subprocess.run(command, capture_output=True, text=True)
    if process.returncode:
        (first,) = [line for line in process.stderr.splitlines() if "error:" in line][:1] or [process.stderr[-200:]]
        raise NotRun(f"{Path(command[0]).name}: {first[:300]}")
    return process.stdout + process.stderr


def _type(value: np.ndarray) -> str:
    kinds = {"float32": "f32", "bfloat16": "bf16", "float16": "f16", "float64": "f64", "bool": "i1"}
    element = kinds.get(value.dtype.name) or value.dtype.name.replace("uint", "i").replace("int", "i")
    return "x".join((*map(str, value.shape), element))


@dataclass(frozen=True)
class IreeRow:
    """The measurement of an example. Each distance is the maximum over all results, in multiples of the unit roundoff.

    Attributes:
        name: The name of the example.
        plain_bytes: The sum of the allocator's peaks for the plain step.
        ours_bytes: The same sum for the recomputed step.
        fixed_bytes: The bytes of inputs and results, which are included in both peaks.
        xla_ratio: The temporaries of the recomputed step in XLA:CPU, as a multiple of the plain step's.
        recomputed: The distance from the recomputed to the plain step in IREE.
        in_xla: The distance from the recomputed to the plain step in XLA.
        xla: The distance from the plain step in IREE to the plain step in XLA.
        numpy: The distance from the plain step in IREE to the plain step in numpy, or None if numpy did not run.
    """

    name: str
    plain_bytes: int
    ours_bytes: int
    fixed_bytes: int
    xla_ratio: float
    recomputed: float
    in_xla: float
    xla: float
    numpy: float | None

    @property
    def ratio(self) -> float:
        """The peak with recomputation, as a multiple of the plain peak."""
        return self.ours_bytes / self.plain_bytes

    @property
    def ratio_of_temporaries(self) -> float:
        """The ratio of the peaks, without inputs and results."""
        return (self.ours_bytes - self.fixed_bytes) / max(self.plain_bytes - self.fixed_bytes, 1)

    def missed(self) -> list[str]:
        """Return a message for each requirement that is not met."""
        bars = list[str]()
        if self.ratio > MAX_PEAK_RATIO:
            bars.append(f"the peak is {self.ratio:.3f} × the plain peak, above the limit of {MAX_PEAK_RATIO}")
        if self.xla_ratio <= GAINED < self.ratio_of_temporaries:
            ratio = self.ratio_of_temporaries
            bars.append(f"the temporaries are {ratio:.3f} × the plain ones, but {self.xla_ratio:.3f} × in XLA")
        if self.recomputed > max(self.in_xla, self.xla, 1.0):
            bars.append(f"the distance is {self.recomputed:.2g} units of rounding, but {self.in_xla:.2g} in XLA")
        return bars

    def cells(self) -> list[str]:
        """Return the cells of the row, in the order of `HEADER`."""
        numpy = "not executed" if self.numpy is None else f"{self.numpy:.2g}"
        sizes = (f"{size:,}" for size in (self.plain_bytes, self.ours_bytes, self.fixed_bytes))
        ratios = (f"{ratio:.3f}" for ratio in (self.ratio, self.ratio_of_temporaries, self.xla_ratio))
        return [self.name, *sizes, *ratios, f"{self.recomputed:.2g}", f"{self.in_xla:.2g}", f"{self.xla:.2g}", numpy]


HEADER = [
    "example",
    "plain, bytes",
    "recomputed, bytes",
    "inputs, results",
    "ratio",
    "without them",
    "XLA",
    "from plain",
    "in XLA",
    "from XLA",
    "from numpy",
]


def measure(tools: Tools, name: str, step: Step, in_numpy: bool) -> IreeRow:
    """Run both steps in IREE and in XLA, and the plain step also in numpy if `in_numpy` is true."""
    lowered = step.lower()
    text = lowered.as_text(debug_info=True)
    changed = str(rewrite(text, RecomputeOptions(pipeline=PIPELINE)).text)
    inputs = [np.asarray(leaf) for leaf in jax.tree.leaves(random_inputs(step))]
    argument_indices = sorted(lowered._lowering.compile_args["kept_var_idx"])
    inputs = [inputs[index] for index in argument_indices]
    likes = jax.tree.leaves(lowered.out_info)
    plain, ours = (run_in_iree(tools, program, inputs, likes) for program in (text, changed))
    compiled = [compile_keeping_barriers(form) for form in (lowered, with_module(lowered, changed))]
    temporaries = [temporary_bytes(form) for form in compiled]
    of_xla, ours_of_xla = (form(*random_inputs(step)) for form in compiled)
    of_numpy = None
    if in_numpy:
        expected = execute(function_named(parse_module(text), "main"), inputs)
        of_numpy = Closeness.of(expected, plain.results).units
    return IreeRow(
        name,
        plain.peak_bytes,
        ours.peak_bytes,
        sum(value.nbytes for value in (*inputs, *plain.results)),
        temporaries[1] / max(temporaries[0], 1),
        Closeness.of(plain.results, ours.results).units,
        Closeness.of(of_xla, ours_of_xla).units,
        Closeness.of(of_xla, plain.results).units,
        of_numpy,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table row for each example, and return 1 if a requirement is not met or IREE rejects a program."""
    parser = benchmark_parser(__doc__)
    add_names(parser, "example", BUILDERS)
    add_size(parser, "small")
    folder = "the folder of iree-compile and iree-run-module (default: next to this Python, or on the PATH)"
    parser.add_argument("--iree", metavar="FOLDER", help=folder)
    parser.add_argument("--no-numpy", action="store_true", help="do not execute the plain step in numpy, which is slow")
    options = parser.parse_args(arguments)
    tools = Tools.in_folder(options.iree)
    missed = list[str]()
    print(table_head(HEADER))
    for name in options.names or BUILDERS:
        try:
            row = measure(tools, name, BUILDERS[name](options.size), not options.no_numpy)
        except NotRun as error:
            missed.append(f"{name}: {error}")
            continue
        print(table_row(row.cells()), flush=True)
        missed += (f"{name}: {bar}" for bar in row.missed())
    return report_missed(missed)


if __name__ == "__main__":
    sys.exit(main())
