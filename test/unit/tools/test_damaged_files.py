"""Damaged plan, graph and cost files: one error line that names the culprit, and no output.

Every leaf of a valid file is replaced by each bad value in turn, every key is removed, renamed and duplicated, and the
text is truncated. A changed file may be accepted only where the change is harmless (`HARMLESS`).
"""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from recompute.planning.plan_file import BadPlan, from_json
from recompute.planning.solvers.graph_file import BadGraph, read_graph
from recompute.rules.costs.cost_file import CostFile
from recompute.rules.costs.device import BadCost, read_device
from recompute.test.excerpts import diagnostics_of
from recompute.tools.recompute_opt import main as recompute_opt
from recompute.tools.recompute_plan import main as recompute_plan

EXAMPLE = Path(__file__).parents[3] / "examples" / "stablehlo" / "chain.small.mlir"
BAD_NUMBERS = ["-1", "-0.5", "1e30", "1e400", "NaN", "Infinity", "-Infinity", "9007199254740992", "1" + "0" * 30]
BAD_TYPES = ["true", "null", '"7"', "[7]", '{"a": 7}']
HUGE = "1" * 5000
GRAPH = {
    "name": "four",
    "nodes": [
        {"id": 0, "kind": "input", "deps": [], "bytes": 64, "alias": -1, "cost": 0},
        {"id": 1, "kind": "op", "deps": [0], "bytes": 64, "alias": -1, "cost": 3, "shape": [4, 4], "again": True},
        {"id": 2, "kind": "op", "deps": [1], "bytes": 64, "alias": 1, "cost": 0, "shape": [2, 4]},
        {"id": 3, "kind": "op", "deps": [2], "bytes": 64, "alias": -1, "cost": 5, "bwd": True},
        {"id": 4, "kind": "output", "deps": [3], "bytes": 0, "alias": -1, "cost": 0},
    ],
}
COSTS = {
    "unit": "us",
    "operations": {"stablehlo.tanh": 2, "stablehlo.sine": 1.5},
    "otherwise": 1,
    "steps": {"main": {"1": 3}},
}
DEVICE = {"device": {"name": "d", "products": {"f32": 1e12}, "elementwise": 1e11, "bytes_per_second": 1e12}}

Path_ = tuple[str | int, ...]


def leaves(data: Any, path: Path_ = ()) -> Iterator[Path_]:
    if isinstance(data, dict | list):
        pairs = data.items() if isinstance(data, dict) else enumerate(data)
        for key, value in pairs:
            yield from leaves(value, (*path, key))
    else:
        yield path


def keys(data: Any, path: Path_ = ()) -> Iterator[Path_]:
    if isinstance(data, dict):
        for key in data:
            yield (*path, key)
    if isinstance(data, dict | list):
        pairs = data.items() if isinstance(data, dict) else enumerate(data)
        for key, value in pairs:
            yield from keys(value, (*path, key))


def element_at(data: Any, path: Path_) -> Any:
    for key in path:
        data = data[key]
    return data


MARK = "@@damage@@"


def replaced(data: Any, path: Path_, text: str) -> str:
    """Return the file with `text`, inserted literally, in place of a leaf."""
    copy = json.loads(json.dumps(data))
    element_at(copy, path[:-1])[path[-1]] = MARK
    return json.dumps(copy).replace(f'"{MARK}"', text)


def without_key(data: Any, path: Path_) -> str:
    copy = json.loads(json.dumps(data))
    del element_at(copy, path[:-1])[path[-1]]
    return json.dumps(copy)


def with_duplicate_key(data: Any, path: Path_) -> str:
    """Return the file with one key written twice, with the same value."""
    copy = json.loads(json.dumps(data))
    owner = element_at(copy, path[:-1])
    value = json.dumps(owner[path[-1]])
    owner[MARK] = 0
    return json.dumps(copy).replace(f'"{MARK}": 0', f'"{path[-1]}": {value}')


def damaged(data: Any, numbers_only: bool = False) -> Iterator[tuple[str, str]]:
    """Generate damaged files, each with a description of the damage."""
    for path in leaves(data):
        value = element_at(data, path)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        same = '"7"' if isinstance(value, str) else "true" if isinstance(value, bool) else json.dumps(value)
        for bad in [*(BAD_NUMBERS if is_number else []), *([] if numbers_only else BAD_TYPES), HUGE]:
            if bad == same:
                continue
            yield f"{'.'.join(map(str, path))} = {bad[:30]}", replaced(data, path, bad)
    for path in keys(data):
        yield f"twice: {'.'.join(map(str, path))}", with_duplicate_key(data, path)
    text = json.dumps(data)
    for end in range(0, len(text) - 1, max(1, len(text) // 40)):
        yield f"cut off at {end}", text[:end]
    yield "nested deeply", "[" * 10_000 + "]" * 10_000
    yield "not an object", "[]"


def accepted(files: Iterator[tuple[str, str]], read: Callable[[str], object], error: type[Exception]) -> list[str]:
    """Return the damaged files that are read without an error; assert that each error is a single line."""
    items = list[str]()
    for what, text in files:
        try:
            read(text)
        except error as reason:
            assert str(reason).strip() and "\n" not in str(reason), (what, str(reason))
        else:
            items.append(what)
    return items


def plan_data(tmp_path: Path) -> Any:
    plan = tmp_path / "plan.json"
    assert recompute_opt([str(EXAMPLE), "-p", "recompute", "--emit-plan", str(plan), "-o", "/dev/null"]) == 0
    return json.loads(plan.read_text())


def shortened(data: Any) -> Any:
    """Return the data with every list cut to two elements, which is enough to damage."""
    if isinstance(data, list):
        return [shortened(each) for each in data[:2]]
    return {key: shortened(value) for key, value in data.items()} if isinstance(data, dict) else data


def test_damaged_plans_are_rejected(tmp_path: Path) -> None:
    data = shortened(plan_data(tmp_path))
    from_json(json.dumps(data))
    result = accepted(damaged(data), from_json, BadPlan)
    assert [what for what in result if not what.endswith(HARMLESS_PLANS)] == []
    required = [path for path in keys(data) if path[-1] not in ("recompute", "segment", "checkpoint", "offload")]
    missing = ((f"without {path}", without_key(data, path)) for path in required)
    assert accepted(missing, from_json, BadPlan) == []


HARMLESS_PLANS = ('recompute = "7"', "recompute = true")
"""Marks are compared with those that exist when the plan is carried out."""


def test_damaged_plan_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, plan, out = plan_data(tmp_path), tmp_path / "damaged.json", tmp_path / "out.mlir"
    group = data["steps"][0]["groups"][0]
    for name in ("pinned_bytes", "freed_bytes", "extra_flops"):
        for bad in (-1, 10**30):
            plan.write_text(json.dumps({**data, "steps": [{**data["steps"][0], "groups": [{**group, name: bad}]}]}))
            assert recompute_opt([str(EXAMPLE), "-p", f"recompute{{plan={plan}}}", "-o", str(out)]) != 0
            lines = diagnostics_of(capsys.readouterr().err)
            assert any(name in line for line in lines) and not out.exists()


def test_damaged_graphs_are_rejected() -> None:
    read_graph(json.dumps(GRAPH))
    result = accepted(damaged(GRAPH), read_graph, BadGraph)
    # An id, and what no operation has: of inputs and outputs neither bytes nor cost count.
    assert [what for what in result if not what.startswith(HARMLESS_GRAPHS)] == []


HARMLESS_GRAPHS = (
    "name",
    "nodes.0.bytes",
    "nodes.0.cost",
    "nodes.4.id",
    "nodes.4.bytes",
    "nodes.4.cost",
    "nodes.4.alias",
    "nodes.2.alias = -1",
    "nodes.2.bytes",
    "nodes.2.cost",
    "nodes.0.alias",
    "nodes.1.shape.0 = null",
    "nodes.3.bwd = null",
)


def test_error_in_a_damaged_graph_is_located(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "graph.json"
    for what, text in damaged(GRAPH, numbers_only=True):
        path.write_text(text)
        if what.startswith(HARMLESS_GRAPHS):
            continue
        assert recompute_plan([str(path), "--budget", "100", "-o", str(tmp_path / "plan")]) == 2, what
        lines = diagnostics_of(capsys.readouterr().err)
        assert len(lines) == 1 and str(path) in lines[0] and "error:" in lines[0], (what, lines)
        assert not (tmp_path / "plan").exists()


@pytest.mark.parametrize(("data", "read"), [(COSTS, CostFile.read), (DEVICE, read_device)], ids=["costs", "device"])
def test_damaged_cost_files_are_rejected(data: Any, read: Callable[[str], object], tmp_path: Path) -> None:
    path = tmp_path / "costs.json"

    def read_text(text: str) -> object:
        path.write_text(text)
        return read(str(path))

    read_text(json.dumps(data))
    assert [what for what in accepted(damaged(data), read_text, BadCost) if not what.startswith(HARMLESS_COSTS)] == []
    path.write_bytes(json.dumps(data).encode("utf-16"))
    with pytest.raises(BadCost):
        read(str(path))


HARMLESS_COSTS = (
    "device.elementwise = null",
    *(f"device.{rate} = 9007199254740992" for rate in ("products.f32", "elementwise", "bytes_per_second")),
)
