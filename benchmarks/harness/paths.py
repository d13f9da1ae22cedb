"""Folders of the checkout that benchmarks read and write."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MEASURED_PAGES = ROOT / "docs" / "measured"
"""The pages with tables of measurements, which `--write` updates."""
EXAMPLES = ROOT / "examples" / "stablehlo"
"""The training steps of `examples/` as MLIR, in files `<example>.<size>.mlir`."""
