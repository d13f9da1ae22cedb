"""Colours of the memory charts.

The colours differ in lightness as well as in hue, so that they can be told apart by colour-blind readers and in
greyscale.
"""

from __future__ import annotations

from .memory_layers import BandKind

BAND_COLOURS = {BandKind.RECOMPUTED: "#e69f00", BandKind.GRADIENT: "#8a8a8a", BandKind.OTHER: "#d4d4d4"}
LIGHT, DARK = (0.74, 0.85, 0.94), (0.05, 0.25, 0.48)
"""The ends of the scale for saved values: segments go from light to dark in program order."""

Colour = tuple[float, float, float]
"""The red, green and blue components, from 0 to 1."""


def blend(share: float) -> Colour:
    """Return the colour between `LIGHT` (share 0) and `DARK` (share 1)."""
    red, green, blue = (light + share * (dark - light) for light, dark in zip(LIGHT, DARK, strict=True))
    return red, green, blue


def as_hexadecimal(colour: Colour) -> str:
    red, green, blue = (round(255 * part) for part in colour)
    return f"#{red:02x}{green:02x}{blue:02x}"
