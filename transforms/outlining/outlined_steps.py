"""The steps of a module that are outlined while passes run: their enclosing functions, their run counts, and the method
that inlines them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp

from ..per_device.outline import DeviceStep
from ..per_device.split import split_device_steps
from ..rolled.carries import Replaced
from ..rolled.joined_branches import JoinedBranches, split_branches
from .nested_steps import NestedStep, put_back


@dataclass(frozen=True)
class OutlinedSteps:
    """The steps that are outlined as functions until `put_back` inlines them.

    Attributes:
        nested: Steps inside loops and branches, and later steps of a block with several gradients.
        per_device: Steps with per-device bodies.
        joined: The conditionals whose branches are joined with their gradients.
    """

    nested: Sequence[NestedStep]
    per_device: Sequence[DeviceStep]
    joined: Sequence[JoinedBranches] = ()

    @property
    def containing_functions(self) -> Mapping[str, str]:
        """The name of the public function around each outlined step, by the name of the outlined function."""
        parents = {outlined.function.sym_name.data: outlined.parent for outlined in (*self.per_device, *self.nested)}
        containing_functions = dict[str, str]()
        for name, parent in parents.items():
            while parent in parents:
                parent = parents[parent]
            containing_functions[name] = parent
        return containing_functions

    @property
    def run_counts(self) -> Mapping[str, int]:
        """The number of times that each outlined step runs in one run of the module, by the name of its function."""
        in_parent = {step.function.sym_name.data: (step.parent, 1) for step in self.per_device}
        in_parent |= {step.function.sym_name.data: (step.parent, step.runs) for step in self.nested}

        def runs(name: str) -> int:
            parent, times = in_parent.get(name, ("", 1))
            return times * runs(parent) if parent else times

        return {name: runs(name) for name in in_parent}

    @property
    def functions(self) -> Sequence[FuncOp]:
        """The outlined functions."""
        return [outlined.function for outlined in (*self.per_device, *self.nested)]

    def put_back(self, delays_later_steps: bool = False) -> Replaced:
        """Inline the functions that were outlined, and split the branches that were joined.

        `delays_later_steps`: whether to insert a barrier that delays each later step until the preceding step has run.

        Returns:
            The replacement of each result of a conditional that was split.
        """
        replaced = Replaced()
        put_back(self.nested, delays_later_steps)
        for joined in reversed(self.joined):
            split_branches(joined, True, replaced)
        split_device_steps(self.per_device)
        return replaced
