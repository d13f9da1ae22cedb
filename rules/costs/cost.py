"""Cost models. The options select them by name.

    flops             FLOPs, with one for each transcendental function (`rules/flops.py`); the default
    bytes             bytes read and written (`traffic.py`)
    roofline          time on the CPU in the table of `device.py`
    roofline(h100)    time on another device in this table
    roofline(d.json)  time on a device that the file describes
    costs.json        costs of operations from the file (`cost_file.py`)

In the roofline model (Williams, Waterman and Patterson, 2009), the time of an operation is the maximum of two times:
the time for its FLOPs at the peak rate of the device, and the time for its bytes at the bandwidth of the device. Each
operation is counted separately, although a compiler that fuses operations moves fewer bytes. The cost of a loop body is
multiplied by the trip count, or by 1 if the trip count is unknown.
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
from ...support.units import PICOSECONDS
from ..facts import OpClass
from ..flops import flops, region_runs, work
from ..registry import facts_of
from .cost_file import SCALE, CostFile
from .device import DEVICES, BadCost, Device, read_device
from .traffic import is_free, traffic

FLOPS = "flops"
DEFAULT_DEVICE = "cpu"
_ROOFLINE = re.compile(r"roofline(?:\((?P<device>[^()]+)\))?")

CostsOf: TypeAlias = Callable[[Sequence[Operation]], tuple[int, ...]]
"""A function that returns the costs of a block's operations, in order. It raises `Refusal` at an operation without a
cost."""


@dataclass(frozen=True)
class Cost:
    """A cost model.

    Attributes:
        name: The name that the options use.
        unit: The unit that reports use.
        of: Returns the costs of a block's operations, as integers.
        scale: The integer that represents one `unit`.
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
        BadCost: The name is unknown, or the file that it names is invalid or cannot be read.
    """
    if name == FLOPS:
        return Cost(name, "FLOPs", FLOPS_OF_EACH)
    if name == "bytes":
        return Cost(name, "bytes", _for_each(partial(_total_cost, traffic)))
    if (match := _ROOFLINE.fullmatch(name)) is not None:
        device = _device(match["device"] or DEFAULT_DEVICE)
        return Cost(
            name, f"us on {device.name}", _for_each(partial(_total_cost, partial(picoseconds, device=device))), 10**6
        )
    if name.endswith(".json"):
        table = CostFile.read(name)
        return Cost(name, table.unit, table.of_step, SCALE)
    names = "flops, bytes, roofline, roofline(DEVICE), or a cost file whose name ends in .json"
    raise BadCost(f"unknown cost '{name}'; expected one of {names}")


def _device(name: str) -> Device:
    if name.endswith(".json"):
        return read_device(name)
    if name not in DEVICES:
        raise BadCost(
            f"unknown device '{name}'; expected one of {', '.join(DEVICES)}, or a device file whose name ends in .json"
        )
    return DEVICES[name]


def device_of(cost: str) -> Device | None:
    """Return the device of a roofline cost model, or None for any other model. Raises `BadCost` like `cost_named`."""
    match = _ROOFLINE.fullmatch(cost)
    return None if match is None else _device(match["device"] or DEFAULT_DEVICE)


def picoseconds(op: Operation, device: Device) -> int:
    """Return a lower bound on the time of one execution on the device, in picoseconds.

    The bound does not include regions. The cost of a fetch from the host covers the transfers in both directions, at
    the bandwidth of the offload and without overlap, so the copy to the host costs nothing.

    Raises:
        Refusal: The size of a value is unknown.
    """
    if is_offload(op):
        speed = speed_of(op)
        return ceil(PICOSECONDS * traffic(op) / speed) if speed and is_from_host(op) else 0
    moving = traffic(op) / device.bytes_per_second
    return ceil(PICOSECONDS * max(moving, _compute_seconds(op, device)))


def _compute_seconds(op: Operation, device: Device) -> float:
    """Return the time, in seconds, of the computation at the peak rate of the device."""
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


def _for_each(cost_of: Callable[[Operation], int]) -> CostsOf:
    return lambda operations: tuple(map(cost_of, operations))


FLOPS_OF_EACH = _for_each(flops)
"""The default cost model, whose costs graphs already contain."""


def _total_cost(cost_of: Callable[[Operation], int], op: Operation) -> int:
    """Return the cost of an operation, including its regions. The cost of a loop is the cost of its regions times the
    number of their runs. The cost of a conditional is the cost of its most expensive region."""
    facts = facts_of(op)
    if facts is None or not facts.regions or facts.body_runs is None:
        return cost_of(op)
    sums = [sum(_total_cost(cost_of, inner) for block in region.blocks for inner in block.ops) for region in op.regions]
    if facts.alternatives:
        return max(sums, default=0)
    return sum(runs * total for runs, total in zip(region_runs(op, facts), sums, strict=True))


__all__ = ["FLOPS", "FLOPS_OF_EACH", "BadCost", "Cost", "CostsOf", "cost_named", "device_of", "picoseconds"]
