"""Measure the speed of this machine, and write it as a device file for `cost="roofline(FILE)"`.

    python -m recompute.benchmarks.cost_models.calibrate_device -o mine.json

Results: FLOPs, elements and bytes per second, in the file. Time: about 1 minute.

Numpy runs the measured operations. Matrix products use the threads of its BLAS. Additions and exponentials of arrays
that fit in a cache, and a copy of an array that fits in no cache, run on one thread. The file contains the best rate of
several rounds, since a roofline is a lower bound on time. The median is printed too, since other load on the machine
affects the measurement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

from recompute.benchmarks.harness.command_line import add_rounds, benchmark_parser
from recompute.rules.costs.device import Device, to_json


@dataclass(frozen=True)
class Sizes:
    """The sizes of the operands.

    Attributes:
        matrix: The extent of the matrices.
        cached: The number of elements of the cached array.
        copied: The number of bytes of the copied array.
    """

    matrix: int = 1536
    cached: int = 1 << 14
    copied: int = 1 << 28


@dataclass(frozen=True)
class Rate:
    """The best and the median rate per second of all rounds."""

    best: float
    median: float

    def __str__(self) -> str:
        return f"{self.best:.3g} / s, median {self.median:.3g}"


def rate(work: Callable[[], object], amount: float, rounds: int) -> Rate:
    """Measure the rate of a function after a warm-up call. Each call does `amount` of work."""
    work()
    durations = [seconds(work) for _ in range(rounds)]
    return Rate(amount / min(durations), amount / float(np.median(durations)))


def seconds(work: Callable[[], object]) -> float:
    """Return the seconds of one call, from as many repetitions as the clock's precision requires."""
    times = 1
    while True:
        start = perf_counter()
        for _ in range(times):
            work()
        took = perf_counter() - start
        if took > 0.02:
            return took / times
        times *= 4


def products(element: str, sizes: Sizes, rounds: int) -> Rate:
    """Measure the FLOPs per second of matrix products with the given element type."""
    matrix = np.random.default_rng(0).standard_normal((sizes.matrix, sizes.matrix)).astype(element)
    out = np.empty_like(matrix)
    return rate(lambda: np.matmul(matrix, matrix, out=out), 2.0 * sizes.matrix**3, rounds)


def elementwise(function: Callable[..., object], sizes: Sizes, rounds: int, operands: int) -> Rate:
    """Measure the elements per second of an elementwise operation on arrays that fit in a cache."""
    provided = np.random.default_rng(0).standard_normal(sizes.cached).astype(np.float32)
    out = np.empty_like(provided)
    return rate(lambda: function(*[provided] * operands, out=out), float(sizes.cached), rounds)


def copies(sizes: Sizes, rounds: int) -> Rate:
    """Measure the rate of a copy, in bytes read and written per second."""
    provided, out = np.ones(sizes.copied // 4, np.float32), np.zeros(sizes.copied // 4, np.float32)
    return rate(lambda: np.copyto(out, provided), 2.0 * provided.nbytes, rounds)


def measured(name: str, sizes: Sizes, rounds: int) -> tuple[Device, dict[str, Rate]]:
    """Measure this machine. Return the device, and the measured rates by label."""
    rates = {
        "products f32": products("float32", sizes, rounds),
        "products f64": products("float64", sizes, rounds),
        "elementwise f32": elementwise(np.add, sizes, rounds, 2),
        "transcendentals f32": elementwise(np.exp, sizes, rounds, 1),
        "bytes": copies(sizes, rounds),
    }
    device = Device(
        name,
        {"f32": rates["products f32"].best, "f64": rates["products f64"].best},
        rates["elementwise f32"].best,
        rates["bytes"].best,
        rates["transcendentals f32"].best,
    )
    return device, rates


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the measured rates, and write the device file."""
    parser = benchmark_parser(__doc__)
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="the device file to write, whose name ends in .json"
    )
    parser.add_argument(
        "--name", default="this machine", help="the name of the device in the file (default: %(default)s)"
    )
    add_rounds(parser, 7)
    parser.add_argument(
        "--matrix",
        type=int,
        default=Sizes.matrix,
        metavar="COUNT",
        help="the number of rows and of columns of the multiplied matrices (default: %(default)s)",
    )
    parser.add_argument(
        "--copied",
        type=int,
        default=Sizes.copied,
        metavar="BYTES",
        help="the size of the copied array in bytes (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    if not options.output.endswith(".json"):
        parser.error('FILE must end in .json, since cost="roofline(FILE)" reads any other name as a device')
    sizes = Sizes(matrix=options.matrix, copied=options.copied)
    device, rates = measured(options.name, sizes, options.rounds)
    for label, result in rates.items():
        print(f"{label:<20} {result}")
    Path(options.output).write_text(to_json(device))


if __name__ == "__main__":
    main()
