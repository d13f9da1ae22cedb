"""Measure how time and memory of `recompute-check` grow with nesting, aliases, functions or constants.

    python -m recompute.benchmarks.compile_time.growth_by_shape
    python -m recompute.benchmarks.compile_time.growth_by_shape constants functions

Results: CPU seconds, MiB and exponents, printed only. Time: about 5 minutes.

Each program is proved equal to itself (parse, verify, prove) in a separate process. The columns list the size of the
shape, the bytes of text, the CPU seconds minus those of a single function, the peak memory of the process, and the
exponent of the seconds relative to the previous size (1 is linear). The exit status is 1 if an exponent is above its
limit.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from recompute.benchmarks.harness.command_line import add_names, benchmark_parser
from recompute.benchmarks.harness.growth_exponent import growth_exponent
from recompute.benchmarks.harness.processes import run_python

BAR = 1.15
"""The largest allowed exponent."""
NOISE = 0.1
"""The smallest meaningful difference between two processes, in seconds."""
TYPE = "tensor<4xf32>"


def _main(body: str, result: str = "%x", before: str = "", after: str = "") -> str:
    return f"{before}func.func @main(%x: {TYPE}) -> {TYPE} {{\n{body}\nfunc.return {result} : {TYPE}\n}}\n{after}"


def nesting(levels: int) -> str:
    """Return a program with nested counted loops, each of which passes its carry to the next inner loop."""
    opened, closed = list[str](), list[str]()
    for level in range(levels):
        value = f"%c{level - 1}" if level else "%x"
        opened.append(
            f"%r{level}:2 = stablehlo.while(%i{level} = %zero, %c{level} = {value}) : tensor<i32>, {TYPE} cond {{\n"
            f"%p{level} = stablehlo.compare LT, %i{level}, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
            f"stablehlo.return %p{level} : tensor<i1>\n}} do {{\n"
        )
        inner = f"%r{level + 1}#1" if level + 1 < levels else f"%s{level}"
        sine = "" if level + 1 < levels else f"%s{level} = stablehlo.sine %c{level} : {TYPE}\n"
        closed.append(
            f"{sine}%n{level} = stablehlo.add %i{level}, %one : tensor<i32>\n"
            f"stablehlo.return %n{level}, {inner} : tensor<i32>, {TYPE}\n}}\n"
        )
    numbers = "".join(
        f"%{name} = stablehlo.constant dense<{value}> : tensor<i32>\n"
        for name, value in (("zero", 0), ("one", 1), ("three", 3))
    )
    return _main(numbers + "".join(opened) + "".join(reversed(closed)), "%r0#1")


def aliases(count: int) -> str:
    """Return a program with a chain of attribute aliases, each of which one operation uses."""
    definitions = [
        "#a0 = 1 : i32\n",
        *(f"#a{n} = [#a{n - 1}]\n" if n % 8 else f"#a{n} = {n}\n" for n in range(1, count)),
    ]
    uses = "".join(f"%v{n} = stablehlo.sine %x {{of = #a{n}}} : {TYPE}\n" for n in range(count))
    return _main(uses, before="".join(definitions))


def functions(count: int) -> str:
    """Return a program with a chain of functions, each of which calls the next function."""
    call = f"%0 = func.call @f{{}}(%x) : ({TYPE}) -> {TYPE}"
    bodies = [*(call.format(n + 1) for n in range(count - 1)), f"%0 = stablehlo.sine %x : {TYPE}"]
    others = "".join(
        f"func.func private @f{n}(%x: {TYPE}) -> {TYPE} {{\n{body}\nfunc.return %0 : {TYPE}\n}}\n"
        for n, body in enumerate(bodies)
    )
    return _main(call.format(0), "%0", after=others)


def constants(mebibytes: int) -> str:
    """Return a program with one constant in hexadecimal notation, whose text takes the given number of MiB."""
    elements = mebibytes << 17
    digits = "".join(f"{n & 0xFFFFFFFF:08X}" for n in range(0, elements * 2654435761, 2654435761))
    constant = f'%c = stablehlo.constant dense<"0x{digits}"> : tensor<{elements}xf32>\n'
    return _main(constant + f"%s = stablehlo.slice %c [0:4] : (tensor<{elements}xf32>) -> {TYPE}", "%s")


SHAPES: dict[str, tuple[Callable[[int], str], tuple[int, ...]]] = {
    "nesting": (nesting, (8, 16, 32, 48)),
    "aliases": (aliases, (2_000, 8_000, 32_000)),
    "functions": (functions, (1_250, 5_000, 20_000)),
    "constants": (constants, (25, 50, 100)),
}


def _write(name: str, size: int, path: Path) -> None:
    shape, _ = SHAPES[name]
    path.write_text(shape(size))


def measure(name: str, size: int) -> tuple[int, float, int]:
    """Prove a program equal to itself in a new process, and return the bytes of text, CPU seconds, and peak bytes.

    Another process writes the program, because the peak of a child process includes its parent's memory before `exec`.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.mlir"
        writer = multiprocessing.get_context("spawn").Process(target=_write, args=(name, size, path))
        writer.start()
        writer.join()
        length = path.stat().st_size
        check = run_python(("-m", "recompute.tools.recompute_check", str(path), str(path)))
    if not check.output.startswith("proved equal"):
        raise SystemExit(f"the program was not proved equal to itself: {check.output[:400]}")
    return length, check.cpu_seconds, check.peak_bytes


def report(name: str, idle: float) -> bool:
    """Print the measurements of one shape, and return whether every exponent is within its limit."""
    before, fits = None, True
    for size in SHAPES[name][1]:
        length, seconds, peak = measure(name, size)
        seconds = max(seconds - idle, NOISE)
        line = f"{name:<11}{size:>8,}{length:>14,} B{seconds:>8.2f} s{peak / 2**20:>9.0f} MiB"
        if before is not None:
            exponent = growth_exponent((before[0], size), (before[1], seconds))
            fits = fits and exponent <= BAR
            line += f"{exponent:>7.2f}{'  <-- above' * (exponent > BAR)}"
        before = size, seconds
        print(line, flush=True)
    return fits


def main() -> int:
    """Print the measurements of each shape, and return 1 if an exponent is above its limit."""
    parser = benchmark_parser(__doc__)
    add_names(parser, "shape", SHAPES)
    names = parser.parse_args().names or SHAPES
    _, idle, _ = measure("functions", 1)
    print(f"one function: {idle:.2f} s")
    return not all([report(name, idle) for name in names])


if __name__ == "__main__":
    sys.exit(main())
