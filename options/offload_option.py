"""The option `offload`: the values that may be stored in host memory between the forward pass and their gradient.

- `marked`: the values marked `recompute.recompute = "offload"`, or selected by an offloading policy.
- `auto`: the same values as `marked` and, with a budget, values that are cheaper to move than to recompute. The
    transfer speed is the link speed of the device in the option `cost`.
- `25GB/s`: like `auto`, but with this transfer speed in each direction.
"""

from __future__ import annotations

from ..planning.host_moves import NOTHING_MOVED, Offload
from ..rules.costs.cost import device_of
from ..support.units import parse_bytes
from .selection import BadSelection

MARKED, AUTO_SPEED = "marked", "auto"
OFFLOAD_FORMS = "marked, auto, or a speed such as 25GB/s"


class BadOffload(BadSelection):
    """Raised for an invalid value of the option `offload`."""


def parse_offload(text: str, cost: str) -> Offload:
    """Parse the option `offload`.

    Args:
        text: The option as a string; if it is empty, nothing is offloaded.
        cost: The option `cost`, which names the device.

    Raises:
        BadOffload: For an invalid value, and for a device that is missing or has no known transfer speed.
        BadCost: For an unknown cost.
    """
    if text == "":
        return NOTHING_MOVED
    if text == MARKED:
        return Offload(marked=True, cost=cost)
    stated = None if text == AUTO_SPEED else _parse_speed(text)
    device = device_of(cost)
    if device is None:
        raise BadOffload(
            f"offload={text} compares transfers and work in seconds: give a device, for example cost=roofline(h100)"
        )
    speed = stated or device.host_bytes_per_second
    if speed is None:
        raise BadOffload(
            f"the transfer speed of {device.name} to its host is unknown: give one, such as offload=25GB/s"
        )
    return Offload(True, int(speed), cost=cost)


def _parse_speed(text: str) -> int:
    """Parse a speed such as `25GB/s`, and return it in bytes per second. Raises `BadOffload`."""
    try:
        if not text.endswith("/s") or text[:1].isspace():
            raise ValueError
        return parse_bytes(text.removesuffix("/s"))
    except ValueError:
        raise BadOffload(f"offload must be {OFFLOAD_FORMS}, not '{text}'") from None
