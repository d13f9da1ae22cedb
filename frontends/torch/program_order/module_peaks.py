"""Compute peaks of imported and rewritten steps in program order, with storages as PyTorch allocates them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from ....analysis.step.graph_of import graph_of
from ....analysis.step.marks import is_copy
from ....analysis.step.order import Order, functions_of, single_block
from ....analysis.step.phase_sources import stated_phase
from ....analysis.step.views import value_bytes
from ....dialects.torch import SEEDED
from ....planning.liveness import live_bytes
from ....support.phase import FORWARD_PHASES
from ..fx.schemas import STATE_BYTES


@dataclass(frozen=True)
class Peak:
    """The memory that a step needs in program order, in bytes.

    Attributes:
        argument_bytes: The bytes of weights, buffers, inputs and tangents.
        temporary_bytes: The peak of the operations' results.
        bytes_with_states: The peak including generator states: while a copy regenerates random numbers, the current
            state is saved, and it is restored afterwards.
    """

    argument_bytes: int
    temporary_bytes: int
    bytes_with_states: int

    @classmethod
    def of(cls, module: ModuleOp) -> Peak:
        """Compute the peak of an imported or a rewritten step."""
        (function,) = functions_of(module)
        order = Order.of(single_block(function))
        graph = graph_of(order, bare=True).graph
        live: list[int] = live_bytes(graph).tolist()
        draws_again = [
            name.startswith(SEEDED) and (is_copy(op) or stated_phase(op) not in FORWARD_PHASES)
            for name, op in zip(graph.names, order.operations, strict=True)
        ]
        held = [bytes_ + STATE_BYTES["cpu"] * is_again for bytes_, is_again in zip(live, draws_again, strict=True)]
        arguments = sum(value_bytes(argument) for argument in order.block.args)
        return cls(arguments, max(live, default=0), max(held, default=0))
