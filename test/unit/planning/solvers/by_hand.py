"""Peaks of an order of execution, counted step by step from the nodes of a graph file or the rows of a problem.

The evaluator and the reader of graph files are compared with this count, which shares only the conventions with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recompute.planning.solvers.problem import Problem

Node = dict[str, Any]


def peak_of(problem: Problem, sequence: Sequence[int]) -> int:
    """Return the peak in bytes: a value is alive while a later read precedes its next computation, outputs to the
    end."""
    peak = 0
    for at in range(len(sequence)):
        alive = sum(int(size) for v, size in enumerate(problem.storage_bytes) if _is_alive(problem, sequence, v, at))
        peak = max(peak, alive + int(problem.inner_bytes[sequence[at]]))
    return peak


def _is_alive(problem: Problem, sequence: Sequence[int], v: int, at: int) -> bool:
    maker = int(problem.makers[v])
    if sequence[at] == maker or v in problem.operands_of(sequence[at]):
        return True
    if maker not in sequence[:at]:
        return False
    for op in sequence[at + 1 :]:
        if v in problem.operands_of(op):
            return True
        if op == maker:
            return False
    return bool(problem.is_output[v])


def peak_of_nodes(nodes: Sequence[Node], order: Sequence[int]) -> int:
    """Return the peak in bytes over the nodes of a graph file, executed in this `order` of ids."""
    by_id = {node["id"]: node for node in nodes}
    splits = {n["id"]: [s for s in nodes if s.get("split") and s["alias"] == n["id"]] for n in nodes}

    def storages(dep: int) -> set[int]:
        node = by_id[dep]
        if node["kind"] != "op":
            return set()
        if node.get("split") or (node["alias"] == -1 and not splits[dep]):
            return {dep}
        if node["alias"] != -1:
            return storages(node["alias"])
        return {split["id"] for split in splits[dep]}

    def bytes_of(storage: int) -> int:
        return by_id[storage]["obytes" if by_id[storage].get("split") else "bytes"]

    def maker(storage: int) -> int:
        return by_id[storage]["alias"] if by_id[storage].get("split") else storage

    def reads(op: int) -> set[int]:
        return {s for dep in by_id[op]["deps"] for s in storages(dep)}

    outputs = {s for n in nodes if n["kind"] == "output" for dep in n["deps"] for s in storages(dep)}
    peak = 0
    all_storages = {s for op in order for s in storages(op)}
    for at, op in enumerate(order):
        alive = 0
        for s in all_storages:
            behind = [item for item in order[at + 1 :]]
            end = next((k for k, first in enumerate(behind) if first == maker(s)), len(behind))
            used = any(s in reads(item) for item in behind[: end + 1]) or (end == len(behind) and s in outputs)
            result = maker(s) in order[: at + 1]
            if s in reads(op) or maker(s) == op or (result and used):
                alive += bytes_of(s)
        peak = max(peak, alive)
    return peak
