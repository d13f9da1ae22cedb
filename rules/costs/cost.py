"""Cost models, selected by name in the options.

    flops             FLOPs; a transcendental function counts as one (`rules/flops.py`); the default
    bytes             bytes read and written (`traffic.py`)
    roofline          time in picoseconds on the CPU of the table in `device.py`
    roofline(h100)    time on a device of that table
    roofline(d.json)  time on a device that a file describes
    costs.json        costs of operations from a file (`cost_file.py`)

In the roofline model (Williams, Waterman and Patterson, 2009) an operation takes the maximum of the time for its FLOPs
at the device's peak and the time for its bytes at the device's bandwidth. Each operation is counted separately,
although a compiler that fuses operations moves fewer bytes. The body of a loop is counted as often as it runs, or once
if the trip count is unknown.
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
"""A function that returns the costs of a block's operations, in order. It raises `Refusal` at an operation without a
cost."""


@dataclass(frozen=True)
class Cost:
    """Cost model.

    Attributes:
        name: The name in the options.
        unit: The unit that reports use.
        of: Computes the costs of the operations of a block, as integers.
        scale: The number of these integer units in one `unit`.
    """

    name: str
    unit: str
    of: CostsOf
    scale: int = 1

    @property
    def is_default(self) -> bool:
        return self.name == FLOPS


def cost_named(name: str) -> Cost:
    """Return the cost model with this name.

    Raises:
        BadCost: The name is unknown, or the file cannot be read or contains no costs.
    """
    if name == FLOPS:
        return Cost(name, "FLOPs", FLOPS_OF_EACH)
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
    raise BadCost(f"unknown cost '{name}'; expected one of {names}")


def _device(name: str) -> Device:
    if name.endswith(".json"):
        return read_device(name)
    if name not in DEVICES:
        raise BadCost(f"unknown device '{name}'; expected one of {', '.join(DEVICES)}, or a file that ends in .json")
    return DEVICES[name]


def device_of(cost: str) -> Device | None:
    """Return the device of a roofline cost model, or None for any other model. Raises `BadCost` under the same
    conditions as `cost_named`."""
    match = _ROOFLINE.fullmatch(cost)
    return None if match is None else _device(match["device"] or DEFAULT_DEVICE)


def picoseconds(op: Operation, device: Device) -> int:
    """Return a lower bound on the time of one execution on the device, in picoseconds, rounded up.

    Regions are not counted. A fetch from the host is charged for both directions, at the bandwidth of its offload,
    without overlap.

    Raises:
        Refusal: The size of a value is unknown.
    """
    if is_offload(op):
        speed = speed_of(op)
        return ceil(PICOSECONDS * traffic(op) / speed) if speed and is_from_host(op) else 0
    moving = traffic(op) / device.bytes_per_second
    return ceil(PICOSECONDS * max(moving, _computing(op, device)))


def _computing(op: Operation, device: Device) -> float:
    """Return the time of computation at the device's peak, in seconds."""
    if is_free(op):
        return 0.0
    op_work, facts = work(op), facts_of(op)
    if facts is not None and OpClass.PRODUCT in facts.op_classes:
        operand = op.operands[0].type
        return op_work.together / device.product_rate(str(operand.element_type if is_shaped(operand) else operand))
    if device.elementwise is None:
        return 0.0
    transcendental_rate = device.transcendentals or device.elementwise
    return op_work.flops / device.elementwise + op_work.transcendentals / transcendental_rate


def _each(cost_of: Callable[[Operation], int]) -> CostsOf:
    return lambda operations: tuple(map(cost_of, operations))


FLOPS_OF_EACH = _each(flops)
"""The default cost, which graphs already contain."""


def _in_regions(cost_of: Callable[[Operation], int], op: Operation) -> int:
    """Return the cost of an operation. The cost of a loop is the cost of its regions times the number of their runs;
    the cost of a conditional is the cost of its most expensive region."""
    facts = facts_of(op)
    if facts is None or not facts.regions or facts.body_runs is None:
        return cost_of(op)
    sums = [sum(_in_regions(cost_of, inner) for block in region.blocks for inner in block.ops) for region in op.regions]
    if facts.alternatives:
        return max(sums, default=0)
    return sum(runs * total for runs, total in zip(region_runs(op, facts), sums, strict=True))


__all__ = ["FLOPS", "FLOPS_OF_EACH", "BadCost", "Cost", "CostsOf", "cost_named", "device_of", "picoseconds"]
