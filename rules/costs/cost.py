"""The cost of the operations of a step, by the name that a user gives it.

flops             FLOPs, a transcendental function for one (`rules/flops.py`); the default
bytes             bytes read and written (`traffic.py`)
roofline          time on the CPU that was measured here, in picoseconds
roofline(h100)    on a device of the table in `device.py`
roofline(d.json)  on a device that a file describes
costs.json        what a file says of each operation (`cost_file.py`)

The roofline of Williams, Waterman and Patterson (2009): an operation takes the longer of its FLOPs at the device's peak
and its bytes at the device's bandwidth. Operations are taken one by one: a compiler that fuses them moves fewer bytes.
Bodies of loops count as often as FLOPs count them, which is once where the trip count is not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import TypeAlias

from xdsl.ir import Operation

from ...dialects.placements import is_from_host, is_offload, speed_of
from ...support.type_guards import is_shaped
from ..facts import Kind
from ..flops import flops, region_runs, work
from ..registry import facts_of
from .bad_cost import BadCost
from .cost_file import SCALE, CostFile
from .device import DEVICES, Device, read_device
from .traffic import is_free, traffic

FLOPS = "flops"
DEFAULT_DEVICE = "cpu"
PICOSECONDS = 1e12
_ROOFLINE = re.compile(r"roofline(?:\((?P<device>[^()]+)\))?")

CostsOf: TypeAlias = Callable[[Sequence[Operation]], tuple[int, ...]]
"""Of the operations of a block, in their order. Raises `Refusal` at an operation that has no cost."""


@dataclass(frozen=True)
class Cost:
    """`said`: what was asked for. `of`: whole numbers, of which `scale` are one `unit`."""

    said: str
    unit: str
    of: CostsOf
    scale: int = 1

    @property
    def is_default(self) -> bool:
        return self.said == FLOPS


def cost_named(said: str) -> Cost:
    """Raises `BadCost` for an unknown name, and for a file that cannot be read or holds no costs."""
    if said == FLOPS:
        return Cost(said, "FLOPs", _each(flops))
    if said == "bytes":
        return Cost(said, "bytes", _each(partial(_in_regions, traffic)))
    if (found := _ROOFLINE.fullmatch(said)) is not None:
        device = _device(found["device"] or DEFAULT_DEVICE)
        return Cost(
            said, f"us on {device.name}", _each(partial(_in_regions, partial(picoseconds, device=device))), 10**6
        )
    if said.endswith(".json"):
        table = CostFile.read(said)
        return Cost(said, table.unit, table.of_step, SCALE)
    known = "flops, bytes, roofline, roofline(DEVICE), a file of costs that ends in .json"
    raise BadCost(f"unknown cost '{said}'; known are {known}")


def _device(name: str) -> Device:
    if name.endswith(".json"):
        return read_device(name)
    if name not in DEVICES:
        raise BadCost(f"unknown device '{name}'; known are {', '.join(DEVICES)}, and files that end in .json")
    return DEVICES[name]


def device_of(said: str) -> Device | None:
    """The device that a cost is for, None where it is for none. Raises `BadCost` as `cost_named` does."""
    found = _ROOFLINE.fullmatch(said)
    return None if found is None else _device(found["device"] or DEFAULT_DEVICE)


def picoseconds(op: Operation, device: Device) -> int:
    """How long one execution takes at least, rounded up. Regions compute scalars. Raises `Refusal`.

    What is fetched from the host is charged for both ways, at its own speed, as if nothing else ran meanwhile.
    """
    if is_offload(op):
        speed = speed_of(op)
        return ceil(PICOSECONDS * traffic(op) / speed) if speed and is_from_host(op) else 0
    moving = traffic(op) / device.bytes_per_second
    return ceil(PICOSECONDS * max(moving, _computing(op, device)))


def _computing(op: Operation, device: Device) -> float:
    """Seconds at the device's peak."""
    if is_free(op):
        return 0.0
    done, facts = work(op), facts_of(op)
    if facts is not None and Kind.PRODUCT in facts.kinds:
        given = op.operands[0].type
        return done.together / device.product_rate(str(given.element_type if is_shaped(given) else given))
    if device.elementwise is None:
        return 0.0
    return done.flops / device.elementwise + done.transcendentals / (device.transcendentals or device.elementwise)


def _each(of_one: Callable[[Operation], int]) -> CostsOf:
    return lambda operations: tuple(map(of_one, operations))


def _in_regions(of_one: Callable[[Operation], int], op: Operation) -> int:
    """Loops and branches are what their regions are: as often as they run, and of branches the dearest."""
    facts = facts_of(op)
    if facts is None or not facts.regions or facts.body_runs is None:
        return of_one(op)
    sums = [sum(_in_regions(of_one, one) for block in region.blocks for one in block.ops) for region in op.regions]
    if facts.alternatives:
        return max(sums, default=0)
    return sum(runs * total for runs, total in zip(region_runs(op, facts), sums, strict=True))


__all__ = ["FLOPS", "BadCost", "Cost", "CostsOf", "cost_named", "device_of", "picoseconds"]
