"""Compute lower bounds and starting solutions with minimum cuts, for problems that are too large for integer programs.

Each storage that is needed after a cut of the step is saved or recomputed, and a recomputed operation needs its
operands. For a byte price mu the cheapest choice is a minimum cut, and

    mincut(mu) - mu (budget - bytes that the operation at the cut needs)

is a lower bound for every mu (a Lagrangian relaxation). Newton's method on the convex hull finds the best mu (W.
Dinkelbach, "On nonlinear fractional programming", 1967). Starting solutions use perturbed costs, because otherwise all
equal layers would change at the same price. Bounds use the exact costs.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from .first_need import copies_at_first_need
from .problem import Ints, Pair, Problem
from .result import Stop, never_stop

RESOLUTION = 2**30
"""The largest relevant sum of capacities after they are scaled to integers. The solver of `scipy` has 32-bit
capacities, below 2 ** 31."""
MAX_NEWTON_STEPS = 14
"""Maximum number of prices that are tried at one cut. Each price costs a maximum-flow computation. Beyond the limit,
the bound of the best price so far is used. It is valid but may be weaker."""
MAX_PERTURBATION_SHARE = 0.003
"""The largest perturbation of a cost, as a share of the cost. It only decides between plans of nearly equal cost."""
COST_SCALE = 64
"""Perturbed costs are multiplied by this factor before they are rounded to integers, so that small costs are also
perturbed."""


@dataclass(frozen=True)
class CutChoice:
    """The cheapest choice of saved storages and recomputed operations at a byte price.

    Attributes:
        saved: The saved storages.
        recomputed: The recomputed operations.
        bytes: The bytes of the saved storages.
        cost: The cost of the recomputed operations.
        value: A lower bound on cost + price * bytes over all choices.
    """

    saved: frozenset[int]
    recomputed: frozenset[int]
    bytes: int
    cost: int
    value: float


class CutNetwork:
    """The choice at one cut, expressed as a flow network.

    Its nodes are the storages that are made up to the cut, the operations up to the cut, the source and the sink. Edges
    lead from the source to needed storages, from a storage to its maker, from an operation to its operands, and from an
    operation to the sink. The capacity of an edge from a storage is the price of saving it, and the capacity of an edge
    to the sink is the cost of recomputing.

    Args:
        problem: The problem.
        cut: The operation of the cut.
        costs: The cost of one execution of each operation.
    """

    def __init__(self, problem: Problem, cut: int, costs: Ints):
        self.problem, self.cut, self.costs = problem, cut, costs
        # Storages 0 … storage_count - 1 are made up to the cut.
        self.storage_count = int(problem.result_start[cut + 1])
        is_made = problem.makers[problem.operands] <= cut
        read_later = np.unique(problem.operands[is_made & (problem.readers > cut)])
        outputs = np.flatnonzero(problem.is_output[: self.storage_count])
        results = np.arange(problem.result_start[cut], self.storage_count, dtype=np.int64)
        self.present = np.unique(np.concatenate([problem.operands[problem.readers == cut], results]))
        self.present_bytes = int(problem.storage_bytes[self.present].sum()) + int(problem.inner_bytes[cut])
        self.is_present = np.zeros(self.storage_count, np.bool_)
        self.is_present[self.present] = True
        self.needed = np.setdiff1d(np.union1d(read_later, outputs), self.present)
        self._add_edges()

    def _add_edges(self) -> None:
        problem, cut, first_operation = self.problem, self.cut, self.storage_count
        read_count = int(problem.operand_start[cut + 1])
        storages = np.flatnonzero(~self.is_present)
        operations = np.arange(cut + 1, dtype=np.int64)
        readers, read = problem.readers[:read_count], problem.operands[:read_count]
        is_edge = ~self.is_present[read] & (problem.may_run_again[readers] == 1)
        self.source, self.sink = first_operation + cut + 1, first_operation + cut + 2
        self.tails = np.concatenate(
            [
                np.full(len(self.needed), self.source),
                storages,
                first_operation + readers[is_edge],
                first_operation + operations,
            ]
        )
        self.heads = np.concatenate(
            [self.needed, first_operation + problem.makers[storages], read[is_edge], np.full(cut + 1, self.sink)]
        )
        self.storages, self.operations, self.operand_edges = storages, operations, int(is_edge.sum())

    def choose(self, price: float) -> CutChoice:
        """Return the cheapest choice if a byte costs `price`."""
        problem = self.problem
        prices = problem.storage_bytes[self.storages] * price
        costs = self.costs[self.operations].astype(np.float64)
        unit = self._unit(prices, costs)
        infinite = np.int64(2**31 - 2)
        run_costs = np.where(problem.may_run_again[self.operations] == 1, np.floor(costs / unit), infinite)
        capacity = np.concatenate(
            [
                np.full(len(self.needed), infinite),
                np.minimum(np.floor(prices / unit), infinite),
                np.full(self.operand_edges, infinite),
                np.minimum(run_costs, infinite),
            ]
        ).astype(np.int32)
        size = self.sink + 1
        network: Any = _sparse("scipy.sparse").csr_matrix((capacity, (self.tails, self.heads)), shape=(size, size))
        flow: Any = _sparse("scipy.sparse.csgraph").maximum_flow(network, self.source, self.sink)
        is_reachable = _reachable(network - flow.flow, self.source, size)
        recomputed = np.flatnonzero(is_reachable[self.storage_count : self.storage_count + self.cut + 1])
        is_needed = is_reachable[: self.storage_count] & ~self.is_present
        is_recomputed = is_reachable[self.storage_count + problem.makers[: self.storage_count]]
        saved = np.flatnonzero(is_needed & ~is_recomputed)
        return CutChoice(
            frozenset(saved.tolist()),
            frozenset(recomputed.tolist()),
            int(problem.storage_bytes[saved].sum()),
            int(problem.costs[recomputed].sum()),
            float(flow.flow_value) * unit,
        )

    def _unit(self, prices: Any, costs: Any) -> float:
        """Return the unit of the integer capacities: a fixed fraction of an upper bound on the cut, which avoids
        integer overflow."""
        largest_cut = float(prices.sum())
        if self.problem.may_run_again[: self.cut + 1].all():
            largest_cut = min(largest_cut, float(costs.sum()))
        return max(largest_cut, 1e-9) / RESOLUTION


def is_installed() -> bool:
    """Return whether SciPy is installed. SciPy computes the minimum cuts."""
    return find_spec("scipy") is not None


def _sparse(module: str) -> Any:
    return import_module(module)


def _reachable(residual: Any, source: int, size: int) -> Any:
    """Return, for each node, whether the source reaches it in the residual network."""
    residual.data = np.maximum(residual.data, 0)
    residual.eliminate_zeros()
    order = _sparse("scipy.sparse.csgraph").breadth_first_order(residual, source, return_predecessors=False)
    is_reachable = np.zeros(size, np.bool_)
    is_reachable[order] = True
    return is_reachable


@dataclass
class FlowBounds:
    """The best lower bound so far, from minimum cuts. The attributes have the same meaning as in `CutBounds`. Bounds
    are computed with exact costs, and starts with perturbed costs."""

    problem: Problem
    budget: int
    stop: Stop = never_stop
    percent: float = 0.0
    bound_by: str = "costs are not negative"
    infeasible: str = ""
    starts: list[tuple[str, frozenset[Pair]]] = field(default_factory=list[tuple[str, frozenset[Pair]]])
    best_cut: int = -1

    def solve_single_cuts(self) -> None:
        """Compute bounds at the cuts around the start of the backward pass, and starting solutions at the best of these
        cuts."""
        if not is_installed():
            self.bound_by = "costs are not negative; scipy is not installed"
            return
        for cut in (self.problem.cut_center, self.problem.cut_center + 1):
            if cut < len(self.problem) and not self.stop():
                self._update_bound(cut)
        if self.best_cut >= 0 and not self.stop():
            self._add_starts(self.best_cut)

    def _update_bound(self, cut: int) -> None:
        network = CutNetwork(self.problem, cut, self.problem.costs)
        room = self.budget - network.present_bytes
        for price, choice in _hull(network, room, self.stop):
            percent = self.problem.percent(choice.value - price * room) - 1e-6
            if percent > self.percent:
                self.percent, self.bound_by, self.best_cut = percent, f"cut at {cut}, by prices", cut

    def _add_starts(self, cut: int) -> None:
        perturbation = 1.0 + MAX_PERTURBATION_SHARE * np.arange(len(self.problem)) / len(self.problem)
        network = CutNetwork(self.problem, cut, (self.problem.costs * perturbation * COST_SCALE).astype(np.int64))
        room = self.budget - network.present_bytes
        above, below = None, None
        for _, choice in _hull(network, room, self.stop):
            if choice.bytes <= room and (below is None or choice.bytes > below.bytes):
                below = choice
            if choice.bytes > room and (above is None or choice.bytes < above.bytes):
                above = choice
        for name, choice in (("minimum cut", below), ("minimum cut slightly above the budget", above)):
            if choice is not None:
                alive: Collection[int] = choice.saved | set(network.present.tolist())
                self.starts.append((name, copies_at_first_need(self.problem, cut, alive, choice.recomputed)))


def _hull(network: CutNetwork, room: int, stop: Stop) -> list[tuple[float, CutChoice]]:
    """Return the prices that Newton's method tries, with the choice at each price.

    Each iteration takes the best choice so far that exceeds `room` bytes, and the best one within `room` bytes. The
    next price is the price at which both cost the same.
    """
    scale = 1.0 if network.costs is network.problem.costs else COST_SCALE * (1 + MAX_PERTURBATION_SHARE / 2)
    highest_price = float(network.costs[: network.cut + 1].sum())
    above, within = network.choose(0.0), network.choose(highest_price)
    choices = [(0.0, above), (highest_price, within)]
    if within.bytes > room:
        return choices
    for _ in range(MAX_NEWTON_STEPS):
        if stop() or within.bytes == above.bytes:
            break
        price = scale * (within.cost - above.cost) / (above.bytes - within.bytes)
        choice = network.choose(price)
        choices.append((price, choice))
        if choice.bytes in (within.bytes, above.bytes):
            break
        if choice.bytes <= room:
            within = choice
        else:
            above = choice
    return choices
