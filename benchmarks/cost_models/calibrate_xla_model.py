"""Compare the memory model `xla` with the temporaries of XLA:CPU, on all examples, and on one of them for several
choices of segments.

    python -m recompute.benchmarks.cost_models.calibrate_xla_model          # measure, compare, print
    python -m recompute.benchmarks.cost_models.calibrate_xla_model resnet unet
    python -m recompute.benchmarks.cost_models.calibrate_xla_model --write  # also write test/xla_temporaries.json

Results: bytes of temporaries, in test/xla_temporaries.json. Time: about 10 minutes.

Each example of `examples/stablehlo/` is compiled plain and recomputed, with barriers kept, from the text that the model
reads. Nothing is executed. The exit status is 1 if a ratio is outside its bounds.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from hashlib import sha256

import jax
import jaxlib.version
from xdsl.dialects.builtin import ModuleOp

from recompute.benchmarks.harness.command_line import add_names, benchmark_parser
from recompute.benchmarks.harness.compiled_cost import temporary_bytes
from recompute.benchmarks.harness.paths import EXAMPLES, ROOT
from recompute.benchmarks.harness.predicted_memory import predicted_temporary_bytes
from recompute.examples.export import BUILDERS
from recompute.examples.with_jax import compile_keeping_barriers, with_module
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.options.recompute_options import RecomputeOptions
from recompute.options.selection import Selection
from recompute.rewriting.rewrite import rewrite_in_place

CORPUS = ROOT / "test" / "xla_temporaries.json"
SLACK = 0.15
"""The largest allowed relative error of the model."""
RANKED = "unet"
"""The example that is also compiled with each of `MARKINGS`, which the model must rank as XLA does. Its segments differ
in size."""
MARKINGS = ("down0", "down1", "down2", "bottom", "up0", "up1", "up2", "down*", "up[01]", "[!u]*")


@dataclass(frozen=True)
class VariantTemporaries:
    """The temporaries of one compiled step.

    Attributes:
        segments: The option `segments` of the pass `recompute`; "" for the plain step.
        digest: The digest of the measured program text.
    """

    example: str
    segments: str
    digest: str
    xla_bytes: int


def variants(example: str) -> tuple[str, ...]:
    """Return the values of the option `segments` with which an example is measured; "" is the plain step."""
    return ("", "auto", *(MARKINGS if example == RANKED else ()))


def prepared(example: str, segments: str) -> ModuleOp:
    """Parse an example, and rewrite it unless `segments` is empty."""
    name = f"{example}.large.mlir"
    module = parse_module((EXAMPLES / name).read_text(), name)
    if segments:
        # The model inlines calls. XLA inlines them too, but schedules inlined operations in a different order.
        rewrite_in_place(module, RecomputeOptions(Selection(segments=segments), calls=False))
    return module


def xla_bytes(example: str, module: ModuleOp) -> int:
    """Return the bytes of temporaries that XLA:CPU allocates for a module, with barriers kept."""
    lowered = with_module(BUILDERS[example]("large").lower(), print_module(module))
    return temporary_bytes(compile_keeping_barriers(lowered))


def main() -> None:
    """Print XLA's size and the model's ratio to it for each variant. Exit with 1 if a ratio is outside its bounds."""
    parser = benchmark_parser(__doc__)
    add_names(parser, "example", BUILDERS)
    parser.add_argument("--write", action="store_true", help=f"write {CORPUS.relative_to(ROOT)}, which the tests read")
    options = parser.parse_args()
    if options.write and options.names:
        parser.error("--write cannot be combined with examples: the file contains all of them")
    result: list[VariantTemporaries] = []
    outside = 0
    for example in options.names or BUILDERS:
        for segments in variants(example):
            module = prepared(example, segments)
            digest = sha256(print_module(module).encode()).hexdigest()
            result.append(VariantTemporaries(example, segments, digest, xla_bytes(example, module)))
            ratio = predicted_temporary_bytes(module) / result[-1].xla_bytes
            outside += abs(ratio - 1) > SLACK
            print(f"{example:20} {segments or 'plain':8} {result[-1].xla_bytes / 2**20:8.1f} MiB  model {ratio:.3f}")
    if options.write:
        versions = {"jax": jax.__version__, "jaxlib": jaxlib.version.__version__}
        data = {"versions": versions, "measured": [asdict(entry) for entry in result]}
        CORPUS.write_text(json.dumps(data, indent=1) + "\n")
    sys.exit(outside > 0)


if __name__ == "__main__":
    main()
