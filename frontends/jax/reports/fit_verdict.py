"""The one-line answer to whether a step fits, based on the bytes that the compiler reports."""

from __future__ import annotations

from dataclasses import dataclass

from ....support.units import format_bytes, readable_bytes

UNKNOWN_LIMIT = "unknown: {smallest}the device reports no memory limit; give a size such as budget='8GiB'"
UNKNOWN_NEEDS = "unknown: the compiler does not report the memory of the step"


@dataclass(frozen=True)
class FitVerdict:
    """The answer to whether a step fits a memory limit.

    Attributes:
        fits: Whether the step fits, if necessary with recomputation; None if this is unknown.
        text: One line: `fits: needs 5.2 GiB of 8.0 GiB per device; the plain step needs 9.1 GiB`.
    """

    fits: bool | None
    text: str


@dataclass(frozen=True)
class DeviceBytes:
    """The bytes on each device that the verdict compares with the limit.

    Attributes:
        plain: The bytes that the plain step needs; None if the compiler reports no sizes.
        runs: The bytes that are needed by the step that runs.
        fixed: The bytes of arguments and results, which no plan changes.
        least: The bytes that the smallest candidate of a failed search needs; None if no search failed.
        devices: The number of devices.
    """

    plain: int | None
    runs: int | None
    fixed: int
    least: int | None
    devices: int

    @property
    def place(self) -> str:
        """The phrase that says where the bytes are: "per device" for several devices, otherwise "on the device"."""
        return "per device" if self.devices > 1 else "on the device"


def fit_verdict(
    needs: DeviceBytes, limit: int | None, *, has_failed: bool = False, is_minimum: bool = False
) -> FitVerdict:
    """Return the verdict on a step and a limit.

    Args:
        needs: The bytes that the step needs.
        limit: The bytes that the budget allows on each device; None if the device does not report its memory.
        has_failed: Whether a search found no plan within the limit.
        is_minimum: Whether the step that runs is the smallest step that a search without a limit found.
    """
    if needs.runs is None or needs.plain is None:
        return FitVerdict(None, UNKNOWN_NEEDS)
    if limit is None:
        smallest = f"the smallest step found needs {format_bytes(needs.runs)} {needs.place}, and "
        return FitVerdict(None, UNKNOWN_LIMIT.format(smallest=smallest if is_minimum else ""))
    at_most = f"{format_bytes(limit)} {needs.place}"

    def text_above_limit(size: int) -> str:
        """Return the size as text, with the exact bytes if it rounds to the same text as the limit."""
        return format_bytes(size) if format_bytes(size) != format_bytes(limit) else readable_bytes(size)

    if needs.runs <= limit:
        if needs.runs == needs.plain:
            return FitVerdict(True, f"fits: the plain step needs {format_bytes(needs.plain)} of {at_most}")
        needed = f"needs {format_bytes(needs.plain)}"
        plain = f"the plain step {needed if needs.plain > limit else 'also fits'}"
        return FitVerdict(True, f"fits: needs {format_bytes(needs.runs)} of {at_most}; {plain}")
    if needs.fixed > limit:
        fixed = f"arguments and results alone need {text_above_limit(needs.fixed)}, above the limit of {at_most}"
        return FitVerdict(False, f"does not fit: {fixed}")
    if has_failed or is_minimum:
        least = min(size for size in (needs.runs, needs.plain, needs.least) if size is not None)
        needed = f"the smallest step found needs {text_above_limit(least)}"
        kind = "limit" if is_minimum else "budget"
        return FitVerdict(False, f"does not fit: {needed}, above the {kind} of {at_most}")
    return FitVerdict(
        False,
        f"does not fit without a budget: needs {text_above_limit(needs.runs)}, above the limit of {at_most}; "
        'search for plans with budget="device" or a size',
    )
