"""Cost models by name: bytes, the roofline of a device, cost files, and refusal of unknown names."""

from __future__ import annotations

import json
from math import ceil
from pathlib import Path

import pytest
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from recompute.mlir_io.parser import parse_module
from recompute.rules.costs.cost import BadCost, cost_named
from recompute.rules.costs.device import DEVICES, ELEMENTS, Device, device_from, read_device, to_json
from recompute.support.diagnostics import Refusal
from recompute.test.imports import ROOT

STEP = """
func.func @step(%a: tensor<64x32xf32>, %b: tensor<32x16xf32>, %p: tensor<i1>) -> tensor<64x16xf32> {
  %0 = stablehlo.tanh %a : tensor<64x32xf32>
  %1 = stablehlo.dot_general %0, %b, contracting_dims = [1] x [0]
    : (tensor<64x32xf32>, tensor<32x16xf32>) -> tensor<64x16xf32>
  %2 = stablehlo.reshape %1 : (tensor<64x16xf32>) -> tensor<1024xf32>
  %3 = "stablehlo.if"(%p) ({
    %4 = stablehlo.add %1, %1 : tensor<64x16xf32>
    stablehlo.return %4 : tensor<64x16xf32>
  }, {
    %5 = stablehlo.add %1, %1 : tensor<64x16xf32>
    %6 = stablehlo.multiply %5, %5 : tensor<64x16xf32>
    stablehlo.return %6 : tensor<64x16xf32>
  }) : (tensor<i1>) -> tensor<64x16xf32>
  return %3 : tensor<64x16xf32>
}
func.func @other() {
  return
}
"""
TANH, DOT, IF = 2 * 64 * 32 * 4, (64 * 32 + 32 * 16 + 64 * 16) * 4, 2 * 3 * 64 * 16 * 4
"""Bytes; of the branches the second one counts."""


def operations() -> list[Operation]:
    (step, _) = parse_module(STEP).ops
    assert isinstance(step, FuncOp)
    return list(step.body.block.ops)


def costs(message: str) -> tuple[int, ...]:
    return cost_named(message).of(operations())


def written(folder: Path, data: object) -> str:
    path = folder / "costs.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return str(path)


def test_flops_are_the_default() -> None:
    assert costs("flops") == (64 * 32, 2 * 64 * 32 * 16, 0, 2 * 64 * 16, 0) and cost_named("flops").is_default


def test_bytes_cost_counts_reads_and_writes_and_no_views() -> None:
    assert costs("bytes") == (TANH, DOT, 0, IF, 0)


def test_roofline_is_the_longer_of_computing_and_moving(tmp_path: Path) -> None:
    device = Device("d", {"f32": 1e9}, 1e9, 1e9, 1e6)
    path = written(tmp_path, to_json(device))
    seconds = 64 * 32 / 1e6, 2 * 64 * 32 * 16 / 1e9, 0, IF / 1e9, 0
    assert costs(f"roofline({path})") == tuple(ceil(1e12 * second) for second in seconds)
    assert read_device(path) == device


def test_products_take_the_rate_of_their_elements() -> None:
    rate = DEVICES["h100"].product_rate
    assert (
        rate("bf16") == 989.4e12
        and rate("complex<f64>") == rate("f64") == 67e12
        and rate("f8E4M3FN") == rate("i8") == 1978.9e12
    )
    assert DEVICES["a100"].product_rate("f8E5M2") == 312e12 and rate("i32") == rate("tf32") == rate("f32")


def test_missing_elementwise_rate_counts_bytes() -> None:
    assert costs("roofline(tpuv5e)")[0] == ceil(1e12 * TANH / 0.819e12)


@pytest.mark.parametrize("name", DEVICES)
def test_device_table_round_trips_with_plausible_rates(name: str) -> None:
    device = DEVICES[name]
    assert device_from(json.loads(to_json(device)), "file") == device
    assert set(device.products) <= set(ELEMENTS) and device.products["f32"] <= device.product_rate("bf16")
    assert all(cost > 0 for cost in costs(f"roofline({name})")[:2])


@pytest.mark.parametrize("name", DEVICES)
def test_page_has_the_table_of_devices(name: str) -> None:
    page = (ROOT / "docs" / "costs.md").read_text()
    (row,) = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
    _, _, _, f32, bf16, _, elementwise, speed, _ = (cell.strip() for cell in row.split("|"))
    device = DEVICES[name]
    assert (f32, speed) == (f"{device.products['f32'] / 1e12:g} T", f"{device.bytes_per_second / 1e9:g}")
    assert bf16 == (f"{device.products['bf16'] / 1e12:g} T" if "bf16" in device.products else "as f32")
    assert device.elementwise is None or elementwise.startswith(f"{device.elementwise / 1e12:g} T")


def test_roofline_without_a_device_is_that_of_the_cpu() -> None:
    assert costs("roofline") == costs("roofline(cpu)")


def test_cost_file_gives_costs_by_name_and_number(tmp_path: Path) -> None:
    message = {"unit": "us", "operations": {"stablehlo.tanh": 1.5, "stablehlo.reshape": 2}, "otherwise": 7}
    assert costs(written(tmp_path, message)) == (1500, 7000, 2000, 7000, 0)
    numbered = {**message, "steps": {"step": {"0": 4, "4": 1}, "other": {}}}
    assert costs(written(tmp_path, numbered)) == (4000, 7000, 2000, 7000, 1000)
    assert cost_named(written(tmp_path, message)).unit == "us"


REFUSED: dict[str, object] = {
    "has no cost for stablehlo.dot_general, operation 1 of @step: add it": {"operations": {"stablehlo.tanh": 1}},
    "has a cost for stablehlo.dott, which is not a known operation": {
        "operations": {"stablehlo.dott": 1},
        "otherwise": 1,
    },
    "has a cost for operation 5, but the last operation of @step is 4": {"steps": {"step": {"5": 1}}, "otherwise": 1},
    "has costs for @stepp, but the module has no function with this name": {
        "steps": {"stepp": {"1": 1}},
        "otherwise": 1,
    },
}


@pytest.mark.parametrize("reason", REFUSED)
def test_costs_not_matching_the_step_are_rejected(reason: str, tmp_path: Path) -> None:
    with pytest.raises(Refusal) as refused:
        costs(written(tmp_path, REFUSED[reason]))
    assert reason in str(refused.value)


BAD_FILES: dict[str, object] = {
    "is not valid JSON": "{",
    "must be a JSON object": "[1]",
    "has an unknown field 'operation'; expected one of unit, operations": {"operation": {}},
    "has no costs: expected a field 'operations', 'otherwise' or 'steps'": {"unit": "us"},
    "unit must be a string": {"unit": 1, "otherwise": 1},
    "operations must be a JSON object": {"operations": [1]},
    "operations.a.b must be a non-negative number, not -1": {"operations": {"a.b": -1}},
    "otherwise must be a non-negative number, not True": {"otherwise": True},
    "otherwise must be a non-negative number, not None": {"otherwise": None},
    "is not valid JSON: the number 1e999 is too large": '{"otherwise": 1e999}',
    "steps.main contains 'x', which is not the index of an operation": {"steps": {"main": {"x": 1}}},
}


@pytest.mark.parametrize("reason", BAD_FILES)
def test_invalid_cost_files_are_rejected(reason: str, tmp_path: Path) -> None:
    with pytest.raises(BadCost) as refused:
        cost_named(written(tmp_path, BAD_FILES[reason]))
    assert reason in str(refused.value)


DEVICE = {"name": "d", "products": {"f32": 1}, "bytes_per_second": 1}
BAD_DEVICES: dict[str, object] = {
    "device must be a JSON object": {},
    "device.name must be a string": {"device": {**DEVICE, "name": 1}},
    "device has an unknown field 'flops'": {"device": {**DEVICE, "flops": 1}},
    "device.products has an unknown element type 'f31'; expected one of f64, f32": {
        "device": {**DEVICE, "products": {"f31": 1, "f32": 1}}
    },
    "device.products needs a rate for f32": {"device": {**DEVICE, "products": {"bf16": 1}}},
    "device.products.f32 must be a positive number, not 0": {"device": {**DEVICE, "products": {"f32": 0}}},
    "device.elementwise must be a positive number, not 'x'": {"device": {**DEVICE, "elementwise": "x"}},
    "is not valid JSON: NaN is not a JSON number": '{"device": {"name": "d", "products": {"f32": 1}, '
    '"bytes_per_second": NaN}}',
    "is not valid JSON": "{",
}


@pytest.mark.parametrize("reason", BAD_DEVICES)
def test_invalid_device_files_are_rejected(reason: str, tmp_path: Path) -> None:
    with pytest.raises(BadCost) as refused:
        cost_named(f"roofline({written(tmp_path, BAD_DEVICES[reason])})")
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("flop", "unknown cost 'flop'; expected one of flops, bytes, roofline"),
        ("", "unknown cost ''"),
        ("roofline()", "unknown cost 'roofline()'"),
        ("roofline(gpu)", "unknown device 'gpu'; expected one of a100, h100"),
        ("roofline(no.json)", "the device file no.json cannot be read: No such file"),
        ("no.json", "the cost file no.json cannot be read: No such file"),
    ],
)
def test_unknown_costs_are_rejected(message: str, reason: str) -> None:
    with pytest.raises(BadCost) as refused:
        cost_named(message)
    assert reason in str(refused.value)


def test_bytes_cost_rejects_dynamic_shapes() -> None:
    module = parse_module("func.func @f(%a: tensor<?xf32>) {\n %r = stablehlo.tanh %a : tensor<?xf32>\n return\n}")
    tanh = [op for op in module.walk() if op.name == "stablehlo.tanh"]
    with pytest.raises(Refusal, match="is unknown, so no cost in bytes or time can be computed"):
        cost_named("bytes").of(tanh)
