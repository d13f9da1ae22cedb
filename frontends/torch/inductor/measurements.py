"""Measurements of the steps that were compiled in this process. All budgets for a step share its measurements.

A candidate that was measured for one budget is available to every other budget. If the candidate chosen for a larger
budget is within a smaller budget, it is used without a further search, so peaks never rise when budgets fall. A refusal
reports the lowest measured peak.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import sha256

import torch
import torch._functorch.config as functorch_config
import torch._inductor.config as inductor_config

from ....driver.cache.cache_keys import options_key
from ....support.fingerprint import NoFingerprint
from ..partition.joint_graph_step import JointStep
from ..partition.options import Options
from .candidates import Candidate

MAX_STEPS = 64
"""The maximum number of steps whose measurements are stored. The least recently used step is dropped first."""
_OWN_SETTING = "custom_partitioner_fn"
"""The Inductor setting that is not part of a step's key, because this frontend changes it for each budget."""


@dataclass(frozen=True)
class Measurement:
    """A candidate that was compiled and run, with its measured peak in bytes."""

    candidate: Candidate
    peak_bytes: int


@dataclass(frozen=True)
class Measurements:
    """The measurements of one step. All budgets for the step share them, unless the options have no key.

    Attributes:
        measured: The measurements in chronological order.
        choices: Pairs of a limit in bytes and the peak of the step that was chosen for it.
    """

    measured: list[Measurement] = field(default_factory=list[Measurement])
    choices: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    @classmethod
    def of(cls, step: JointStep, options: Options) -> Measurements:
        """Return the step's measurements. Options that differ only in the budget share them."""
        try:
            key = _key_of(step, options)
        except NoFingerprint:
            return cls()
        measurements = _BY_STEP.setdefault(key, cls())
        _BY_STEP.move_to_end(key)
        if len(_BY_STEP) > MAX_STEPS:
            _BY_STEP.popitem(last=False)
        return measurements

    def add(self, measurement: Measurement) -> None:
        self.measured.append(measurement)

    def find(self, candidate: Candidate) -> Measurement | None:
        """Return the measurement of a candidate, or None if it has not been measured yet."""
        return next((each for each in self.measured if each.candidate == candidate), None)

    @property
    def plain_bytes(self) -> int | None:
        """The peak of the plain step in bytes; None if it has not been measured yet."""
        return next((each.peak_bytes for each in self.measured if each.candidate.is_plain), None)

    def within(self, limit: int) -> Iterator[Measurement]:
        """Yield the measurements whose peaks are within the limit, ordered by FLOPs, then by peak."""
        fitting = [each for each in self.measured if each.peak_bytes <= limit]
        yield from sorted(fitting, key=lambda each: (each.candidate.flops, each.peak_bytes))

    def is_settled(self, limit: int) -> bool:
        """Return whether the candidate chosen for an equal or larger budget is within the limit."""
        return any(larger >= limit >= peak for larger, peak in self.choices)

    @property
    def least_bytes(self) -> int | None:
        return min((each.peak_bytes for each in self.measured), default=None)


_BY_STEP: OrderedDict[str, Measurements] = OrderedDict()


def _key_of(step: JointStep, options: Options) -> str:
    """Return the key of a step, from its graph, its sizes, Inductor's settings, and all options except the budget.

    Raises `NoFingerprint` for options that have no key.
    """
    sizes = [node.meta["val"].size() for node in step.joint.graph.find_nodes(op="placeholder") if _is_tensor(node)]
    hints = [[size.node.hint if isinstance(size, torch.SymInt) else size for size in shape] for shape in sizes]
    settings = {name: value for name, value in inductor_config.get_config_copy().items() if name != _OWN_SETTING}
    settings |= functorch_config.get_config_copy()
    parts = (step.text, hints, options_key(replace(options.rewrite, budget=None)), settings, torch.get_num_threads())
    return sha256(repr(parts).encode()).hexdigest()


def _is_tensor(node: torch.fx.Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)
