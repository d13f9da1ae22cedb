"""Lower bounds and starts by minimum cuts, for problems that are too large for integer programs.

Each storage that is needed after a cut of the step is saved or recomputed, and a recomputed operation needs its
operands. For a byte price mu the cheapest choice is a minimum cut, and

    mincut(mu) - mu (budget - bytes that the operation at the cut needs)

is a lower bound for every mu (a Lagrangian relaxation). Newton's method on the convex hull finds the best mu
(W. Dinkelbach, "On nonlinear fractional programming", 1967). For starts, never for bounds, costs are perturbed:
otherwise all equal layers would change at one price.
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
from .result import Stop, never

RESOLUTION = 2**30
"""The largest relevant sum of capacities, which are scaled to integers."""
NEWTON_STEPS = 14
"""Maximum number of prices that are tried."""
PERTURBATION = 0.003
"""The largest relative perturbation of a cost."""


@dataclass(frozen=True)
class CutChoice:
    """The cheapest choice at a byte price.

    Attributes:
        saved: The saved storages.
        again: The recomputed operations.
        bytes: The bytes of the saved storages.
        cost: The cost of the recomputed operations.
        value: A lower bound of cost + price * bytes over all choices.
    """

    saved: frozenset[int]
    again: frozenset[int]
    bytes: int
    cost: int
    value: float


class CutNetwork:
    """The choice at one cut as a flow network: its nodes are the source, storages, operations, and the sink."""

    def __init__(self, problem: Problem, cut: int, costs: Ints):
        self.problem, self.cut, self.costs = problem, cut, costs
        made = int(problem.make_start[cut + 1])
        early = problem.maker[problem.reads] <= cut
        needed = np.unique(problem.reads[early & (problem.reader > cut)])
        outputs = np.flatnonzero(problem.output[:made])
        own = np.arange(problem.make_start[cut], made, dtype=np.int64)
        present = np.concatenate([problem.reads[problem.reader == cut], own])
        self.present = np.unique(present)
        self.present_bytes = int(problem.sizes[self.present].sum()) + int(problem.inner[cut])
        free = np.zeros(made, np.bool_)
        free[self.present] = True
        self.needed = np.setdiff1d(np.union1d(needed, outputs), self.present)
        self.free, self.made = free, made
        self._edges()

    def _edges(self) -> None:
        problem, cut, made = self.problem, self.cut, self.made
        count = int(problem.read_start[cut + 1])
        values = np.flatnonzero(~self.free)
        readers, read = problem.reader[:count], problem.reads[:count]
        inner = ~self.free[read] & (problem.again[readers] == 1)
        # Nodes: storages 0 … made - 1, operations after them, source, sink.
        self.source, self.sink = made + cut + 1, made + cut + 2
        operations = np.arange(cut + 1, dtype=np.int64)
        self.tails = np.concatenate(
            [np.full(len(self.needed), self.source), values, made + readers[inner], made + operations]
        )
        self.heads = np.concatenate(
            [self.needed, made + problem.maker[values], read[inner], np.full(cut + 1, self.sink)]
        )
        self.values, self.operations, self.inner_count = values, operations, int(inner.sum())

    def choose(self, price: float) -> CutChoice:
        """Return the cheapest choice if a byte costs `price`."""
        problem = self.problem
        weights = problem.sizes[self.values] * price
        costs = self.costs[self.operations].astype(np.float64)
        unit = self._unit(weights, costs)
        endless = np.int64(2**31 - 2)
        frozen = np.where(problem.again[self.operations] == 1, np.floor(costs / unit), endless)
        capacity = np.concatenate(
            [
                np.full(len(self.needed), endless),
                np.minimum(np.floor(weights / unit), endless),
                np.full(self.inner_count, endless),
                np.minimum(frozen, endless),
            ]
        ).astype(np.int32)
        size = self.sink + 1
        network: Any = _sparse("scipy.sparse").csr_matrix((capacity, (self.tails, self.heads)), shape=(size, size))
        flow: Any = _sparse("scipy.sparse.csgraph").maximum_flow(network, self.source, self.sink)
        side = _reachable(network - flow.flow, self.source, size)
        again = np.flatnonzero(side[self.made : self.made + self.cut + 1])
        needed = side[: self.made] & ~self.free
        saved = np.flatnonzero(needed & ~side[self.made + problem.maker[: self.made]])
        return CutChoice(
            frozenset(saved.tolist()),
            frozenset(again.tolist()),
            int(problem.sizes[saved].sum()),
            int(problem.costs[again].sum()),
            float(flow.flow_value) * unit,
        )

    def _unit(self, weights: Any, costs: Any) -> float:
        """Return the unit of the integer capacities, coarse enough to avoid overflow: a fraction of the total cost, or
        of the price of all storages."""
        reach = float(weights.sum())
        if self.problem.again[: self.cut + 1].all():
            reach = min(reach, float(costs.sum()))
        return max(reach, 1e-9) / RESOLUTION


def available() -> bool:
    """Return whether minimum cuts can be computed."""
    return find_spec("scipy") is not None


def _sparse(module: str) -> Any:
    return import_module(module)


def _reachable(residual: Any, source: int, size: int) -> Any:
    residual.data = np.maximum(residual.data, 0)
    residual.eliminate_zeros()
    order = _sparse("scipy.sparse.csgraph").breadth_first_order(residual, source, return_predecessors=False)
    side = np.zeros(size, np.bool_)
    side[order] = True
    return side


@dataclass
class FlowBounds:
    """The best lower bound so far, by minimum cuts. The attributes are the same as in `CutBounds`; bounds come from
    exact costs, and starts from perturbed ones."""

    problem: Problem
    budget: int
    stop: Stop = never
    percent: float = 0.0
    by: str = "nothing is free"
    infeasible: str = ""
    starts: list[tuple[str, frozenset[Pair]]] = field(default_factory=list[tuple[str, frozenset[Pair]]])
    best_cut: int = -1

    def single_cuts(self) -> None:
        """Compute the bound at the cuts around the start of the backward pass, and starts at the best of them."""
        if not available():
            self.by = "nothing is free; scipy is not installed"
            return
        first = self.problem.earliest if self.problem.earliest > 0 else len(self.problem) // 2
        for cut in (first, first + 1):
            if cut < len(self.problem) and not self.stop():
                self._bound(cut)
        if self.best_cut >= 0 and not self.stop():
            self._start(self.best_cut)

    def _bound(self, cut: int) -> None:
        network = CutNetwork(self.problem, cut, self.problem.costs)
        room = self.budget - network.present_bytes
        for price, choice in _hull(network, room, self.stop):
            percent = self.problem.percent(choice.value - price * room) - 1e-6
            if percent > self.percent:
                self.percent, self.by, self.best_cut = percent, f"cut at {cut}, by prices", cut

    def _start(self, cut: int) -> None:
        ramp = 1.0 + PERTURBATION * np.arange(len(self.problem)) / len(self.problem)
        network = CutNetwork(self.problem, cut, (self.problem.costs * ramp * 64).astype(np.int64))
        room = self.budget - network.present_bytes
        above, below = None, None
        for _, choice in _hull(network, room, self.stop):
            if choice.bytes <= room and (below is None or choice.bytes > below.bytes):
                below = choice
            if choice.bytes > room and (above is None or choice.bytes < above.bytes):
                above = choice
        for name, choice in (("minimum cut", below), ("minimum cut, a little too much", above)):
            if choice is not None:
                alive: Collection[int] = choice.saved | set(network.present.tolist())
                self.starts.append((name, copies_at_first_need(self.problem, cut, alive, choice.again)))


def _hull(network: CutNetwork, room: int, stop: Stop) -> list[tuple[float, CutChoice]]:
    """Return the prices that Newton's method tries, with their choices: at the next price, the best choice above `room`
    bytes and the best within cost the same."""
    scale = 1.0 if network.costs is network.problem.costs else 64.0 * (1 + PERTURBATION / 2)
    whole = float(network.costs[: network.cut + 1].sum())
    cheap, expensive = network.choose(0.0), network.choose(whole)
    choices = [(0.0, cheap), (whole, expensive)]
    low, high = expensive, cheap
    if expensive.bytes > room:
        return choices
    for _ in range(NEWTON_STEPS):
        if stop() or low.bytes == high.bytes:
            break
        price = scale * (low.cost - high.cost) / (high.bytes - low.bytes)
        choice = network.choose(price)
        choices.append((price, choice))
        if choice.bytes in (low.bytes, high.bytes):
            break
        if choice.bytes <= room:
            low = choice
        else:
            high = choice
    return choices
