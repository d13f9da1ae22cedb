"""The option `offload`: the values that may lie on the host between the forward pass and their gradient.

marked       the values marked `recompute.recompute = "offload"`, or selected by an offloading policy auto         under
a budget, also values for which this is cheaper, at the speed of the device of the cost 25GB/s       likewise at this
speed, which is that of one direction
"""

from __future__ import annotations

from ..planning.host_moves import NOTHING_MOVED, Offload
from ..rules.costs.cost import device_of
from ..support.units import parse_bytes
from .selection import BadSelection

MARKED, AUTO_SPEED = "marked", "auto"
POSSIBLE = "marked, auto, or a speed such as 25GB/s"


class BadOffload(BadSelection):
    """An invalid value of the option `offload`."""


def offload_named(text: str, cost: str) -> Offload:
    """Parse the option `offload`; an empty text offloads nothing. Raises `BadOffload`, and `BadCost` for an unknown
    cost."""
    if text == "":
        return NOTHING_MOVED
    if text == MARKED:
        return Offload(marked=True, cost=cost)
    stated = None if text == AUTO_SPEED else _stated(text)
    device = device_of(cost)
    if device is None:
        raise BadOffload(
            f"offload={text} weighs moves against work in seconds: give cost=roofline(h100), or another device"
        )
    speed = stated or device.host_bytes_per_second
    if speed is None:
        raise BadOffload(f"how fast {device.name} moves bytes to its host is not known: give it, as offload=25GB/s")
    return Offload(True, int(speed), cost=cost)


def _stated(text: str) -> int:
    """Return the bytes per second of a speed such as `25GB/s`. Raises `BadOffload`."""
    try:
        if not text.endswith("/s") or text[:1].isspace():
            raise ValueError
        return parse_bytes(text.removesuffix("/s"))
    except ValueError:
        raise BadOffload(f"offload is {POSSIBLE}, not '{text}'") from None
