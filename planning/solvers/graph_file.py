"""Read graphs from JSON files that other tools write, and write the chosen copies as JSON.

A graph lists its nodes in the order of execution, as partitioners of joint graphs do:

    {"name": "gpt", "nodes": [{"id": 7, "kind": "op", "deps": [3, 5], "bytes": 4096, "alias": -1, "cost": 81920}, …]}

- `kind`: `input`, `tangent`, `op` or `output`. Inputs, tangents and views of them do not count towards the peak.
- `deps`: the nodes that the node reads.
- `bytes`: the bytes of its result.
- `cost`: the cost of one execution.
- `alias`: the node whose storage a view shares, or -1. The `shape` of a view and the shape of its storage determine the
  bytes of the view.
- `split`: whether the node selects one result of the operation `alias`, an operation with several results. The storage
    of this result has `obytes` bytes.
- `bwd`: whether the node belongs to the backward pass.
- `again`: false if the node must not run twice.

The result identifies the copies by the ids of their nodes:

    {"recompute_copies": 1, "graph": "gpt", "budget_bytes": …, "peak_bytes": …, "extra_cost": …, "extra_percent": …,
     "bound_percent": …, "bound_by": "…", "solver": "…", "finished": true,
     "copies": [{"operation": "17", "before": "1841"}, …]}

`before` is the node before which the operation is rerun, or `end`. A node `copy:<id>` is the copy of a view.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from math import prod
from typing import Any, cast

from ...support.strict_json import BadJson, parse_strictly, why_no_amount
from .problem import OperationRow, Problem, SmallView, problem_of
from .result import Result

MAX_EXACT = 2**53
"""Sums of bytes and of costs below this limit are exact in floating point."""
KINDS = ("input", "tangent", "op", "output")
JsonNode = dict[str, Any]


class BadGraph(ValueError):
    """The error for a graph that cannot be parsed. The message begins with `file:line:col: error:` if the text is not
    JSON; otherwise it names the node."""


@dataclass
class _ParserState:
    """The state of the parser after it has read the preceding nodes.

    Attributes:
        name: The name of the graph, for messages.
        splits: The split nodes of each operation.
        seen: The preceding nodes, by id.
        storage: For each node, the storage that it makes or views; None if this storage is not part of the peak, or if
            split nodes select the results.
        storage_names: The name of each storage.
        storage_shapes: The bytes and the number of elements of each storage.
        rows: The operations.
        outputs: The storages that are live to the end.
        read_views: The views that are read, by node id: the node, its storage, its bytes, and the operations that read
            it.
        plain_readers: The operations that read each storage directly.
    """

    name: str
    splits: dict[int, list[JsonNode]]
    seen: dict[int, JsonNode] = field(default_factory=dict[int, JsonNode])
    storage: dict[int, int | None] = field(default_factory=dict[int, "int | None"])
    storage_names: list[str] = field(default_factory=list[str])
    storage_shapes: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    rows: list[OperationRow] = field(default_factory=list[OperationRow])
    outputs: list[int] = field(default_factory=list[int])
    read_views: dict[int, tuple[JsonNode, int, int, list[int]]] = field(
        default_factory=dict[int, tuple[JsonNode, int, int, list[int]]]
    )
    plain_readers: dict[int, set[int]] = field(default_factory=dict[int, set[int]])

    def error_at(self, node: JsonNode, problem: str) -> BadGraph:
        """Return the error for a node."""
        return BadGraph(f"{self.name}: error: node {node['id']}: {problem}")


def read_graph(text: str, name: str = "graph") -> Problem:
    """Parse a graph from JSON.

    Args:
        text: The JSON text.
        name: The name of the graph, or of its file, for messages.

    Raises:
        BadGraph: If the text is not a valid graph.
    """
    nodes = _nodes(text, name)
    splits = dict[int, list[JsonNode]]()
    for node in nodes:
        if node.get("split"):
            splits.setdefault(node.get("alias", -1), []).append(node)
    reading = _ParserState(name, splits)
    for node in nodes:
        _read_node(reading, node)
        reading.seen[node["id"]] = node
    if not reading.rows:
        raise BadGraph(f"{name}: error: the graph has no operations")
    for quantity, numbers in (
        ("bytes", (size for size, _ in reading.storage_shapes)),
        ("costs", (row.cost for row in reading.rows)),
    ):
        if sum(numbers) >= MAX_EXACT:
            raise BadGraph(
                f"{name}: error: the sum of the {quantity} of all operations is 2**53 or more: "
                f"give all {quantity} in a larger unit"
            )
    return problem_of(
        reading.rows, reading.outputs, reading.storage_names, views=_views(reading), allows_forward_copies=True
    )


def _nodes(text: str, name: str) -> list[JsonNode]:
    try:
        data = parse_strictly(text)
    except BadJson as error:
        raise BadGraph(
            f"{name}:{error.line}:{error.column}: error: the graph is not valid JSON: {error.reason}"
        ) from error
    entries: object = cast(JsonNode, data).get("nodes") if isinstance(data, dict) else None
    if not isinstance(entries, list):
        raise BadGraph(f'{name}: error: a graph must be an object with a list of nodes: {{"nodes": […]}}')
    nodes = cast(list[object], entries)
    for index, node in enumerate(nodes):
        if not isinstance(node, dict) or type(cast(JsonNode, node).get("id")) is not int:
            raise BadGraph(f"{name}: error: nodes[{index}] must be an object with an integer id")
        if type(cast(JsonNode, node).get("alias", -1)) is not int:
            raise BadGraph(f"{name}: error: nodes[{index}]: alias must be an integer")
        for flag in ("split", "bwd"):
            if not isinstance(cast(JsonNode, node).get(flag, False), bool | None):
                raise BadGraph(f"{name}: error: nodes[{index}]: {flag} must be true or false")
        for text_field in ("name", "target"):
            if not isinstance(cast(JsonNode, node).get(text_field, ""), str | None):
                raise BadGraph(f"{name}: error: nodes[{index}]: {text_field} must be a string")
        if (reason := _why_no_shape(cast(JsonNode, node).get("shape"))) is not None:
            raise BadGraph(f"{name}: error: nodes[{index}]: shape {reason}")
    return cast(list[JsonNode], nodes)


def _why_no_shape(shape: object) -> str | None:
    """Return the reason why the shape of a node is invalid; None for valid and for unknown shapes."""
    if shape is None:
        return None
    if not isinstance(shape, list):
        return "must be a list of extents"
    reasons = map(why_no_amount, cast(list[object], shape))
    return next((f"has an extent that {reason}" for reason in reasons if reason is not None), None)


def _read_node(reading: _ParserState, node: JsonNode) -> None:
    if node["id"] in reading.seen:
        raise reading.error_at(node, "an earlier node has the same id")
    kind = node.get("kind")
    if kind not in KINDS:
        raise reading.error_at(node, f"kind is {kind!r}; expected one of {', '.join(KINDS)}")
    deps = _deps(reading, node)
    alias = node.get("alias", -1)
    if kind == "output":
        reading.outputs += [value for dep in deps for value in _values(reading, dep)]
    elif kind != "op":
        reading.storage[node["id"]] = None
    elif node.get("split"):
        if alias not in deps:
            raise reading.error_at(node, f"'split' is set, but 'deps' lacks node {alias}, which 'alias' names")
        splits = reading.seen[alias]
        if splits["kind"] == "op" and (splits.get("split") or splits.get("alias", -1) != -1):
            raise reading.error_at(
                node, f"'split' is set, but 'alias' {alias} is a view, expected the operation that the node splits"
            )
    elif alias != -1:
        if alias not in reading.seen:
            raise reading.error_at(node, f"alias is {alias}, but node {alias} does not precede this node")
        _demand_view(reading, node, deps, alias)
        reading.storage[node["id"]] = reading.storage.get(alias)
    else:
        _read_operation(reading, node, deps)


def _demand_view(reading: _ParserState, node: JsonNode, deps: list[int], alias: int) -> None:
    """Check that a view depends only on its own storage, and on values that are not part of the peak or have no bytes,
    because a view executes nothing. Raises `BadGraph`."""
    if alias in reading.splits:
        raise reading.error_at(
            node, f"alias is {alias}, an operation with several results: a view must alias an operation with one result"
        )
    viewed = reading.storage.get(alias)
    read = {value for dep in deps for value in _values(reading, dep)}
    if viewed is not None and viewed not in read:
        raise reading.error_at(node, f"alias is {alias}, but no node in deps makes or views its storage")
    if any(reading.storage_shapes[value][0] for value in read - {viewed}):
        raise reading.error_at(node, f"a view of node {alias} must not depend on another storage; make it an operation")


def _deps(reading: _ParserState, node: JsonNode) -> list[int]:
    deps = node.get("deps")
    if not isinstance(deps, list):
        raise reading.error_at(node, "deps must be a list of node ids")
    entries = cast(list[int], deps)
    for dep in entries:
        if type(dep) is not int or dep not in reading.seen:
            raise reading.error_at(node, f"dep {dep} is not an earlier node: nodes must be in the order of execution")
    return entries


def _values(reading: _ParserState, dep: int) -> list[int]:
    """Return the storages that an operation reads if it depends on this node."""
    value = reading.storage.get(dep)
    if value is not None:
        return [value]
    storages = (reading.storage.get(split["id"]) for split in reading.splits.get(dep, ()))
    return [storage for storage in storages if storage is not None]


def _read_operation(reading: _ParserState, node: JsonNode, deps: list[int]) -> None:
    op = len(reading.rows)
    results = reading.splits.get(node["id"])
    sizes = [_amount(reading, result, "obytes") for result in results] if results else [_amount(reading, node, "bytes")]
    for output, size in zip(results or [node], sizes, strict=True):
        reading.storage[output["id"]] = len(reading.storage_names)
        reading.storage_names.append(f"{_escape(output.get('name') or output['id'])} (node {output['id']})")
        reading.storage_shapes.append((size, _elements(output)))
    reading.rows.append(
        OperationRow(
            name=_escape(node.get("name") or node.get("target") or node["id"]),
            cost=_amount(reading, node, "cost"),
            operands=[value for dep in deps for value in _values(reading, dep)],
            result_bytes=sizes,
            may_run_again=_may_run_again(reading, node),
            is_backward=bool(node.get("bwd")),
            label=str(node["id"]),
        )
    )
    for dep in deps:
        _record_read(reading, dep, op)


def _escape(name: object) -> str:
    """Escape control characters and lone surrogates, so that the name prints on one line of a terminal."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in str(name))


def _may_run_again(reading: _ParserState, node: JsonNode) -> bool:
    again = node.get("again", True)
    if not isinstance(again, bool):
        raise reading.error_at(node, "again must be true or false")
    return again


def _amount(reading: _ParserState, node: JsonNode, name: str) -> int:
    amount = node.get(name)
    if isinstance(amount, bool) or not isinstance(amount, int | float):
        raise reading.error_at(node, f"{name} must be a number")
    if amount == amount and amount >= MAX_EXACT:
        raise reading.error_at(node, f"{name} is {amount}, expected less than 2**53")
    if not amount >= 0 or amount != int(amount):
        raise reading.error_at(node, f"{name} is {amount}, expected an integer of at least 0")
    return int(amount)


def _elements(node: JsonNode) -> int:
    shape = node.get("shape")
    names = isinstance(shape, list) and all(type(extent) is int and extent >= 0 for extent in cast(list[object], shape))
    return prod(cast(list[int], shape)) if names else 0


def _record_read(reading: _ParserState, dep: int, op: int) -> None:
    """Record that the operation reads a storage, either through a view that is smaller than the storage, or
    directly."""
    node, value = reading.seen[dep], reading.storage.get(dep)
    if value is None:
        return
    size, elements = reading.storage_shapes[value]
    own = _elements(node)
    if node.get("alias", -1) != -1 and not node.get("split") and 0 < own < elements and size % elements == 0:
        # A view has no position of its own in the order: it exists as soon as its storage has been made.
        reading.read_views.setdefault(dep, (node, value, own * (size // elements), []))[3].append(op)
    else:
        reading.plain_readers.setdefault(value, set()).add(op)


def _views(reading: _ParserState) -> list[SmallView]:
    made_by = [op for op, row in enumerate(reading.rows) for _ in row.result_bytes]
    views = list[SmallView]()
    entries = reading.read_views.values()
    for node, value, size, readers in entries:
        siblings = [ops for other, viewed, _, ops in entries if viewed == value and other is not node]
        others = {op for ops in siblings for op in ops}
        alone = sorted(set(readers) - others - reading.plain_readers.get(value, set()))
        if alone:
            views.append(SmallView(str(node["id"]), value, size, made_by[value], tuple(alone)))
    return views


FORMAT_VERSION = 1
"""The version of the result format."""


def result_text(result: Result, graph: str) -> str:
    """Return a result as JSON text. `graph`: the name of the graph."""
    problem = result.problem
    labels = (*problem.labels, "end")
    head = {
        "recompute_copies": FORMAT_VERSION,
        "graph": graph,
        "budget_bytes": result.budget,
        "peak_bytes": result.peak_bytes,
        "extra_cost": result.extra_cost,
        "extra_percent": result.percent,
        "bound_percent": result.bound_percent,
        "bound_by": result.bound_by,
        "solver": str(result.provenance),
        "finished": result.finished,
    }
    copies = [json.dumps({"operation": labels[op], "before": labels[t]}) for t, op in sorted(result.pairs)]
    return json.dumps(head)[:-1] + ', "copies": [\n' + ",\n".join(copies) + "\n]}\n"
