"""The step on which the time of the compiler is measured: a 12-layer GPT with dropout and Adam, in plain JAX."""

from __future__ import annotations

import argparse

from recompute.examples.models import gpt
from recompute.examples.models.step import Step

LAYERS = 12


def gpt_step(width: int) -> Step:
    """Return the training step of a GPT with `LAYERS` layers, batch 2, and 128 tokens of `width` features."""
    gpt.LAYERS = LAYERS
    gpt.SIZES["small"] = gpt.Config(batch=2, length=128, width=width, heads=width // 64, vocabulary=2048)
    return gpt.build("small", train=True)


def add_width(parser: argparse.ArgumentParser) -> None:
    """Add the option `--width`, the number of features of each token."""
    text = "the number of features of each token, a multiple of 64 (default: %(default)s)"
    parser.add_argument("--width", type=int, default=768, metavar="COUNT", help=text)
