"""Lower an example training step with JAX, and write it as StableHLO text with locations.

    python examples/export.py gpt_train large -o gpt_train.mlir
    python examples/export.py --all

`--all` writes every file of `examples/stablehlo/`, with `jax.checkpoint` at the small size only. Each file is written
by a separate process: JAX numbers the functions of a process, so that an export would change the names in later
exports.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import jax

from recompute.examples.models import (
    branches,
    chain,
    gpt,
    gpt_bf16,
    mindspore_attention,
    mlp,
    mlp20,
    paddle_fc,
    paddle_fleet,
    resnet,
    tied,
    unet,
)
from recompute.examples.models.step import Step

HERE = Path(__file__).resolve().parent
BUILDERS: dict[str, Callable[..., Step]] = {
    "chain": chain.build,
    "mlp": mlp.build,
    "gpt": gpt.build,
    "gpt_train": partial(gpt.build, train=True),
    "gpt_bf16": gpt_bf16.build,
    "resnet": resnet.build,
    "unet": unet.build,
    "mlp20": mlp20.build,
    "mindspore_attention": mindspore_attention.build,
    "paddle_fleet": paddle_fleet.build,
    "paddle_fc": paddle_fc.build,
    "branches": branches.build,
    "tied": tied.build,
}
SIZES = ("small", "large")


def as_text(step: Step) -> str:
    """Return the step as StableHLO text, with file names relative to the repository or to site-packages."""
    folders = rf"^(.*/site-packages/|{re.escape(str(HERE.parent))}/)"
    jax.config.update("jax_hlo_source_file_canonicalization_regex", folders)
    return step.lower().as_text(debug_info=True)


def file_name(example: str, size: str, checkpoint: bool) -> str:
    return f"{example}.{size}{'.checkpoint' if checkpoint else ''}.mlir"


def export_all() -> None:
    folder = HERE / "stablehlo"
    folder.mkdir(exist_ok=True)
    for example in BUILDERS:
        for size in SIZES:
            for checkpoint in (False, True) if size == "small" else (False,):
                target = folder / file_name(example, size, checkpoint)
                print(f"exporting {target.name}", file=sys.stderr)
                options = ["--checkpoint"] if checkpoint else []
                subprocess.run([sys.executable, __file__, example, size, *options, "-o", str(target)], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("example", nargs="?", choices=sorted(BUILDERS))
    parser.add_argument("size", nargs="?", choices=SIZES)
    parser.add_argument("--checkpoint", action="store_true", help="wrap every block in jax.checkpoint")
    parser.add_argument("--all", action="store_true", help="write every file of examples/stablehlo/")
    parser.add_argument("-o", "--output", type=Path, help="the file to write (default: standard output)")
    options = parser.parse_args()
    if options.all:
        return export_all()
    if options.size is None:
        parser.error("expected an example and a size, or --all")
    text = as_text(BUILDERS[options.example](options.size, options.checkpoint))
    if options.output is None:
        sys.stdout.write(text)
    else:
        options.output.write_text(text)


if __name__ == "__main__":
    main()
