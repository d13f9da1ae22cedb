"""Graph files in JSON: the problem read from them, against a count over the nodes, and refusal of invalid files."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from recompute.planning.solvers.graph_file import BadGraph, read_graph
from recompute.planning.solvers.local_search import LocalSearch
from recompute.planning.solvers.sequence import evaluate, order_text, sequence_of
from recompute.planning.solvers.view_copies import with_copies
from recompute.test.unit.planning.solvers.by_hand import peak_of_nodes
from recompute.test.unit.planning.solvers.random_graphs import random_nodes

Node = dict[str, Any]


def text_of(nodes: list[Node]) -> str:
    return json.dumps({"name": "small", "nodes": nodes})


@pytest.mark.parametrize("first", range(0, 300, 100))
def test_peaks_equal_those_counted_over_the_nodes(first: int) -> None:
    for seed in range(first, first + 100):
        nodes, draw = random_nodes(seed), random.Random(seed)
        try:
            problem = read_graph(text_of(nodes))
        except BadGraph as error:
            assert "the graph has no operations" in str(error)
            continue
        plain = evaluate(problem, sequence_of(problem, ())).peak_bytes
        pairs = LocalSearch(problem).repair(draw.randint(plain // 2, plain)) or frozenset()
        sequence = sequence_of(problem, pairs)
        order = [int(label) for label in order_text(problem, sequence.tolist()).split()]
        assert evaluate(problem, sequence).peak_bytes == peak_of_nodes(nodes, order)


def test_some_random_graphs_have_views_to_copy() -> None:
    problems = [read_graph(text_of(random_nodes(seed))) for seed in range(40)]
    with_views = [problem for problem in problems if problem.views]
    assert len(with_views) >= 3
    for problem in with_views:
        copied = with_copies(problem, problem.views)
        assert len(copied) == len(problem) + len(problem.views)
        costs = sum(2 * 16 * view.bytes for view in problem.views)
        assert copied.total_cost == problem.total_cost + costs


A: Node = {"id": 1, "kind": "input", "deps": [], "bytes": 4, "alias": -1}
B: Node = {"id": 2, "kind": "op", "deps": [1], "bytes": 8, "alias": -1, "cost": 3, "name": "b"}
C: Node = {"id": 3, "kind": "op", "deps": [2], "bytes": 8, "alias": -1, "cost": 5, "name": "c"}


def test_graph_file_is_read_into_the_expected_problem() -> None:
    problem = read_graph(text_of([A, B, C, {"id": 4, "kind": "output", "deps": [3]}]))
    assert (problem.names, problem.labels) == (("b", "c"), ("2", "3"))
    assert (problem.storage_bytes.tolist(), problem.is_output.tolist()) == ([8, 8], [0, 1])
    assert problem.costs.tolist() == [3, 5]
    assert problem.operands.tolist() == [0]


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ([A, {**B, "deps": [7]}], "node 2: dep 7 is not an earlier node"),
        ([A, C, B], "node 3: dep 2 is not an earlier node: nodes must be in the order of execution"),
        ([A, B, {**C, "id": 2}], "node 2: an earlier node has the same id"),
        ([A, {**B, "kind": "operation"}], "node 2: kind is 'operation'; expected one of input, tangent, op, output"),
        ([A, {**B, "bytes": None}], "node 2: bytes must be a number"),
        ([A, {**B, "bytes": -1}], "node 2: bytes is -1, expected an integer of at least 0"),
        ([A, {**B, "bytes": True}], "node 2: bytes must be a number"),
        ([A, {key: B[key] for key in B if key != "cost"}], "node 2: cost must be a number"),
        ([A, {**B, "cost": 2.5}], "node 2: cost is 2.5, expected an integer of at least 0"),
        ([A, {**B, "deps": 1}], "node 2: deps must be a list of node ids"),
        ([A, {**B, "deps": ["1"]}], "node 2: dep 1 is not an earlier node"),
        ([A, B, {**C, "alias": 9}], "node 3: alias is 9, but node 9 does not precede this node"),
        ([A, B, {**C, "split": True, "alias": 1}], "node 3: 'split' is set, but 'deps' lacks node 1"),
        ([A, {**B, "bytes": 2**53}], r"node 2: bytes is 9007199254740992, expected less than 2\*\*53"),
        ([A, {**B, "cost": 1e300}], r"node 2: cost is 1e\+300, expected less than 2\*\*53"),
        ([A, {**B, "cost": -0.5}], "node 2: cost is -0.5, expected an integer of at least 0"),
        ([A, {**B, "deps": [[1]]}], r"node 2: dep \[1\] is not an earlier node"),
        ([A, {**B, "deps": [True]}], "node 2: dep True is not an earlier node"),
        ([A, {**B, "again": "no"}], "node 2: again must be true or false"),
        ([A, B, {**C, "alias": [2]}], r"nodes\[2\]: alias must be an integer"),
        ([A, B, C, {**C, "id": 4, "alias": 3}], "node 4: alias is 3, but no node in deps makes or views its storage"),
        (
            [A, B, C, {**C, "id": 4, "deps": [2, 3], "alias": 3}],
            "node 4: a view of node 3 must not depend on another storage",
        ),
        (
            [A, B, {**C, "split": True, "alias": 2, "obytes": 8}, {**C, "id": 4, "alias": 2}],
            "node 4: alias is 2, an operation with several results: a view must alias an operation with one result",
        ),
        (
            [A, B, {**C, "alias": 2}, {**C, "id": 4, "deps": [3], "split": True, "alias": 3, "obytes": 8}],
            "node 4: 'split' is set, but 'alias' 3 is a view, expected the operation that the node splits",
        ),
        ([A, B, {**C, "alias": 2, "split": "no"}], r"nodes\[2\]: split must be true or false"),
        (
            [A, {**B, "cost": 2**52}, {**C, "cost": 2**52}],
            r"the sum of the costs of all operations is 2\*\*53 or more: give all costs in a larger unit",
        ),
        ([A], "the graph has no operations"),
        ([{"kind": "op"}], r"nodes\[0\] must be an object with an integer id"),
    ],
)
def test_invalid_graphs_are_rejected(nodes: list[Node], reason: str) -> None:
    with pytest.raises(BadGraph, match=f"^step.json: error: {reason}"):
        read_graph(text_of(nodes), "step.json")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            '{"nodes": [{"id": 1, "cost": NaN}]}',
            "step.json:1:1: error: the graph is not valid JSON: NaN is not a JSON number",
        ),
        (
            '{"nodes": [{"id": 1, "id": 2}]}',
            "step.json:1:1: error: the graph is not valid JSON: the key 'id' occurs twice",
        ),
        ('{"nodes": [}', "step.json:1:12: error: the graph is not valid JSON: Expecting value"),
        ("[1]", "step.json: error: a graph must be an object with a list of nodes"),
        ('{"nodes": 3}', "step.json: error: a graph must be an object with a list of nodes"),
        ("[" * 100_000, "step.json:1:1: error: the graph is not valid JSON"),
    ],
)
def test_files_that_are_not_graphs_are_rejected(text: str, reason: str) -> None:
    with pytest.raises(BadGraph, match=f"^{reason}"):
        read_graph(text, "step.json")


def test_names_print_on_one_line() -> None:
    """Control characters and surrogates in names are escaped: they could move the cursor of a terminal or fail to
    print."""
    problem = read_graph(text_of([A, {**B, "name": "b\ud800\x1b[31m\n"}, {**C, "name": "größe"}]), "step.json")
    assert problem.names == (r"b\ud800\x1b[31m\n", "größe")
    assert problem.storage_names[0].startswith(r"b\ud800\x1b[31m\n (node")


def test_example_of_the_page_is_a_graph() -> None:
    page = (Path(__file__).resolve().parents[4] / "docs" / "graphs.md").read_text()
    (example,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    problem = read_graph(example, "page")
    assert len(problem) == 2 and evaluate(problem, sequence_of(problem, ())).peak_bytes == 8192
