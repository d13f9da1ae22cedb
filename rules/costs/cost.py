"""The cost model of a step, by its name in options.

flops             FLOPs; a transcendental function counts as one (`rules/flops.py`); the default
bytes             bytes read and written (`traffic.py`)
roofline          time on the CPU of the table in `device.py`, in picoseconds
roofline(h100)    on a device of the table in `device.py`
roofline(d.json)  on a device that a file describes
costs.json        costs of operations from a file (`cost_file.py`)

The roofline of Williams, Waterman and Patterson (2009): an operation takes the longer of its FLOPs at the device's peak
and its bytes at the device's bandwidth. Each operation counts by itself: a compiler that fuses them moves fewer bytes.
Loop bodies count as often as for FLOPs: once if the trip count is unknown.
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
from ..facts import OpClass
from ..flops import flops, region_runs, work
from ..registry import facts_of
from .cost_file import SCALE, CostFile
from .device import DEVICES, BadCost, Device, read_device
from .traffic import is_free, traffic

FLOPS = "flops"
DEFAULT_DEVICE = "cpu"
PICOSECONDS = 1e12
_ROOFLINE = re.compile(r"roofline(?:\((?P<device>[^()]+)\))?")

CostsOf: TypeAlias = Callable[[Sequence[Operation]], tuple[int, ...]]
"""Costs of the operations of a block, in their order. Raises `Refusal` at an operation without a cost."""


@dataclass(frozen=True)
class Cost:
    """A cost model. `name`: its name in options. `of`: costs as whole numbers, of which `scale` are one `unit`."""

    name: str
    unit: str
    of: CostsOf
    scale: int = 1

    @property
    def is_default(self) -> bool:
        return self.name == FLOPS


def cost_named(name: str) -> Cost:
    """Return the cost model of this name. Raises `BadCost` for an unknown name, and for a file that cannot be read or
    has no costs."""
    if name == FLOPS:
        return Cost(name, "FLOPs", _each(flops))
    if name == "bytes":
        return Cost(name, "bytes", _each(partial(_in_regions, traffic)))
    if (match := _ROOFLINE.fullmatch(name)) is not None:
        device = _device(match["device"] or DEFAULT_DEVICE)
        return Cost(
            name, f"us on {device.name}", _each(partial(_in_regions, partial(picoseconds, device=device))), 10**6
        )
    if name.endswith(".json"):
        table = CostFile.read(name)
        return Cost(name, table.unit, table.of_step, SCALE)
    names = "flops, bytes, roofline, roofline(DEVICE), a file of costs that ends in .json"
    raise BadCost(f"unknown cost '{name}'; known are {names}")


def _device(name: str) -> Device:
    if name.endswith(".json"):
        return read_device(name)
    if name not in DEVICES:
        raise BadCost(f"unknown device '{name}'; known are {', '.join(DEVICES)}, and files that end in .json")
    return DEVICES[name]


def device_of(cost: str) -> Device | None:
    """Return the device of a roofline cost; None for other costs. Raises `BadCost` as `cost_named` does."""
    match = _ROOFLINE.fullmatch(cost)
    return None if match is None else _device(match["device"] or DEFAULT_DEVICE)


def picoseconds(op: Operation, device: Device) -> int:
    """Return a lower bound on the time of one execution in picoseconds, rounded up. Regions are not counted: they
    compute scalars. Raises `Refusal` for values of unknown size.

    A fetch from the host is charged for both directions, at the speed of its offload, without overlap.
    """
    if is_offload(op):
        speed = speed_of(op)
        return ceil(PICOSECONDS * traffic(op) / speed) if speed and is_from_host(op) else 0
    moving = traffic(op) / device.bytes_per_second
    return ceil(PICOSECONDS * max(moving, _computing(op, device)))


def _computing(op: Operation, device: Device) -> float:
    """Return the seconds of computation at the device's peak."""
    if is_free(op):
        return 0.0
    op_work, facts = work(op), facts_of(op)
    if facts is not None and OpClass.PRODUCT in facts.kinds:
        operand = op.operands[0].type
        return op_work.together / device.product_rate(str(operand.element_type if is_shaped(operand) else operand))
    if device.elementwise is None:
        return 0.0
    transcendental_rate = device.transcendentals or device.elementwise
    return op_work.flops / device.elementwise + op_work.transcendentals / transcendental_rate


def _each(cost_of: Callable[[Operation], int]) -> CostsOf:
    return lambda operations: tuple(map(cost_of, operations))


def _in_regions(cost_of: Callable[[Operation], int], op: Operation) -> int:
    """Return the cost of an operation; of a loop or branch that of its regions, as often as they run, or of the most
    expensive branch."""
    facts = facts_of(op)
    if facts is None or not facts.regions or facts.body_runs is None:
        return cost_of(op)
    sums = [sum(_in_regions(cost_of, inner) for block in region.blocks for inner in block.ops) for region in op.regions]
    if facts.alternatives:
        return max(sums, default=0)
    return sum(runs * total for runs, total in zip(region_runs(op, facts), sums, strict=True))


__all__ = ["FLOPS", "BadCost", "Cost", "CostsOf", "cost_named", "device_of", "picoseconds"]
