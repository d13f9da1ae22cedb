"""Execution of functions on several simulated devices. The devices exchange values through collectives.

    results = run_on_devices([[f, f], [f, f]], inputs)        # two replicas of two partitions each

The id of a device is `replica * partitions + partition`. Each device runs in its own thread. Within a group and
channel, the n-th collective of a device exchanges values with the n-th collective of every other device. If a device
finishes without taking part in a collective, the devices that wait for it raise an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Condition, Thread
from typing import Any

import numpy as np
from xdsl.dialects.func import FuncOp

from ..support.counted import counted
from .block_compiler import BlockCompiler
from .inputs import check_inputs
from .kernels.arrays import Array
from .kernels.collectives_run import Group, SimulatedDevice, Values


@dataclass
class _Meetings:
    """The state of all collectives, by group, channel and sequence number: the values that devices have contributed so
    far."""

    condition: Condition = field(default_factory=Condition)
    values: dict[Any, dict[int, Values]] = field(default_factory=dict[Any, dict[int, Values]])
    ended: set[int] = field(default_factory=set[int])

    def exchange(self, device: int, key: Any, group: Group, values: Values) -> list[Values]:
        """Contribute the values of one device to a collective, and wait for the other devices of the group.

        Returns:
            The values of all devices, in the order of the group.

        Raises:
            ValueError: A device of the group finishes without taking part.
        """
        with self.condition:
            arrived = self.values.setdefault(key, {})
            arrived[device] = values
            self.condition.notify_all()
            while len(arrived) < len(group):
                if missing := [other for other in group if other not in arrived and other in self.ended]:
                    raise _PeerEnded(f"device {missing[0]} finished without taking part in this collective")
                self.condition.wait()
            return [arrived[other] for other in group]

    def end(self, device: int) -> None:
        with self.condition:
            self.ended.add(device)
            self.condition.notify_all()


class _PeerEnded(ValueError):
    """Raised on a device when its collective waits for a device that has already finished."""


class _Meeting(SimulatedDevice):
    """A simulated device whose collectives wait for the other devices of their group."""

    def __init__(self, number: int, replicas: int, partitions: int, meetings: _Meetings):
        super().__init__(number, replicas, partitions)
        self._meetings = meetings
        self._counts = Counter[tuple[Group, int]]()

    def exchange(self, group: Group, channel: int, values: Values) -> list[Values]:
        number = self._counts[group, channel]
        self._counts[group, channel] += 1
        return self._meetings.exchange(self.number, (group, channel, number), group, values)


def run_on_devices(programs: Sequence[Sequence[FuncOp]], inputs: Sequence[Sequence[Any]]) -> list[tuple[Array, ...]]:
    """Run a function on each device. All devices run concurrently.

    Args:
        programs: The functions of the partitions of each replica. All replicas have the same number of partitions.
        inputs: The inputs of each device, in the order of the device ids.

    Returns:
        The results of each device, in the same order.

    Raises:
        ValueError: The number of functions does not match the number of inputs, or an input does not match a signature.
        Refusal: A device cannot execute an operation.
    """
    functions = [function for replica in programs for function in replica]
    partitions = len(programs[0]) if programs else 0
    if any(len(replica) != partitions for replica in programs):
        raise ValueError("all replicas must have the same number of partitions")
    if len(inputs) != len(functions):
        given = counted(len(inputs), "list of inputs", "lists of inputs")
        raise ValueError(f"inputs: {given}, expected {len(functions)}, one for each device")
    meetings = _Meetings()
    runs = [
        _Run(function, values, _Meeting(number, len(programs), partitions, meetings), meetings)
        for number, (function, values) in enumerate(zip(functions, inputs, strict=True))
    ]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    # A device that fails causes errors on the devices that wait for it, so its own error is raised first.
    failures = [run.failure for run in runs if run.failure is not None]
    for failure in sorted(failures, key=lambda error: isinstance(error, _PeerEnded)):
        raise failure
    return [run.results for run in runs]


class _Run(Thread):
    """A thread that runs the function of one device."""

    def __init__(self, function: FuncOp, inputs: Sequence[Any], device: _Meeting, meetings: _Meetings):
        super().__init__(daemon=True)
        self._function, self._inputs, self._device, self._meetings = function, inputs, device, meetings
        self.results: tuple[Array, ...] = ()
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            program = BlockCompiler(device=self._device).function(self._function)
            arrays = check_inputs(self._function, self._inputs)
            with np.errstate(all="ignore"):
                self.results = program.run(*arrays)
        except Exception as error:
            self.failure = error
        finally:
            self._meetings.end(self._device.number)
