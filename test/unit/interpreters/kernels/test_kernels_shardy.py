"""Shardy's operations on whole values, against the same operations on the parts of simulated devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from recompute.interpreters.executor import execute, function_named
from recompute.mlir_io.parser import parse_module
from recompute.proof.prove import prove
from recompute.support.diagnostics import Refusal

MESH = {"x": 2, "y": 4}
VALUE = np.random.default_rng(0).normal(size=(16, 8))
Part = NDArray[np.float64]
Device = tuple[int, int]
DEVICES: list[Device] = list(product(range(2), range(4)))
REDUCE = {"sum": np.sum, "max": np.max, "min": np.min}


def spelled(dimensions: Sequence[str], unreduced: str = "", reduction: str = "") -> str:
    lists = ", ".join("{" + ", ".join(f'"{axis}"' for axis in axes) + "}" for axes in dimensions)
    axes = ", ".join(f'"{axis}"' for axis in unreduced)
    return f"@mesh, [{lists}]" + (f", unreduced={reduction}{{{axes}}}" if unreduced else "")


def lists(dimensions: Sequence[str]) -> str:
    return "[" + ", ".join("{" + ", ".join(f'"{axis}"' for axis in axes) + "}" for axes in dimensions) + "]"


def box(device: Device, dimensions: Sequence[str]) -> tuple[slice, ...]:
    """Return the slices of the value that a device holds."""
    place = dict(zip(MESH, device, strict=True))
    slices: list[slice] = []
    for extent, axes in zip(VALUE.shape, dimensions, strict=True):
        index, count = 0, 1
        for axis in axes:
            index, count = index * MESH[axis] + place[axis], count * MESH[axis]
        slices.append(slice(index * extent // count, (index + 1) * extent // count))
    return tuple(slices)


def spread(value: Part, dimensions: Sequence[str]) -> dict[Device, Part]:
    return {device: value[box(device, dimensions)] for device in DEVICES}


def whole(parts: dict[Device, Part], dimensions: Sequence[str]) -> Part:
    """Assemble the value from the parts of the devices; replicated parts must agree."""
    value = np.full(VALUE.shape, np.nan)
    for device, part in parts.items():
        place = value[box(device, dimensions)]
        assert place.shape == part.shape
        assert np.all(np.isnan(place) | (place == part))
        value[box(device, dimensions)] = part
    return value


def along(device: Device, axes: str) -> Iterator[Device]:
    """Return the devices that differ from `device` only along these axes, the last axis fastest."""
    for places in product(*(range(MESH[axis]) for axis in axes)):
        other = dict(zip(MESH, device, strict=True)) | dict(zip(axes, places, strict=True))
        yield other["x"], other["y"]


def gathered(parts: dict[Device, Part], axes: str, dimension: int) -> dict[Device, Part]:
    return {
        device: np.concatenate([parts[other] for other in along(device, axes)], axis=dimension) for device in DEVICES
    }


def sliced(parts: dict[Device, Part], axes: str, dimension: int) -> dict[Device, Part]:
    result: dict[Device, Part] = {}
    for device, part in parts.items():
        group = list(along(device, axes))
        result[device] = np.split(part, len(group), axis=dimension)[group.index(device)]
    return result


def reduced(parts: dict[Device, Part], axes: str, reduction: str) -> dict[Device, Part]:
    return {device: REDUCE[reduction]([parts[other] for other in along(device, axes)], axis=0) for device in DEVICES}


def run(op: str, sharding: str, value: Part = VALUE) -> Part:
    type_ = "tensor<16x8xf64>"
    text = (
        f'sdy.mesh @mesh = <["x"=2, "y"=4]>\nfunc.func @main(%a: {type_} {{sdy.sharding = #sdy.sharding<{sharding}>}}) '
        f"-> {type_} {{\n%r = {op} : {type_}\nreturn %r : {type_}\n}}"
    )
    module = parse_module(text, "f.mlir")
    module.verify()
    (result,) = execute(function_named(module), [value])
    return result


@pytest.mark.parametrize(
    ("before", "axes", "after"), [(["y", "x"], ["", "x"], ["y", ""]), (["xy", ""], ["xy", ""], ["", ""])]
)
def test_gather_and_slice_equal_those_of_the_parts(before: list[str], axes: list[str], after: list[str]) -> None:
    parts = spread(VALUE, before)
    for dimension, removed in enumerate(axes):
        parts = gathered(parts, removed, dimension) if removed else parts
    expected = whole(parts, after)
    op = f"sdy.all_gather {lists(axes)} %a out_sharding=<{spelled(after)}>"
    np.testing.assert_array_equal(run(op, spelled(before)), expected, strict=True)
    parts = spread(VALUE, after)
    for dimension, added in enumerate(axes):
        parts = sliced(parts, added, dimension) if added else parts
    expected = whole(parts, before)
    op = f"sdy.all_slice {lists(axes)} %a out_sharding=<{spelled(before)}>"
    np.testing.assert_array_equal(run(op, spelled(after)), expected, strict=True)


def test_all_to_all_equals_that_of_the_parts() -> None:
    parts = sliced(gathered(spread(VALUE, ["xy", ""]), "y", 0), "y", 1)
    op = f'sdy.all_to_all [{{"y"}}: 0->1] %a out_sharding=<{spelled(["x", "y"])}>'
    np.testing.assert_array_equal(run(op, spelled(["xy", ""])), whole(parts, ["x", "y"]), strict=True)


def test_permute_moves_parts_between_devices() -> None:
    """The part of the device at (x, y) moves to the device whose position in the order y, x has the same number."""
    sent = {DEVICES[number]: DEVICES[(number % 2) * 4 + number // 2] for number in range(8)}
    before = spread(VALUE, ["xy", ""])
    parts = {target: before[source] for source, target in sent.items()}
    op = f"sdy.collective_permute %a out_sharding=<{spelled(['yx', ''])}>"
    np.testing.assert_array_equal(run(op, spelled(["xy", ""])), whole(parts, ["yx", ""]), strict=True)


@pytest.mark.parametrize("reduction", ["sum", "max", "min"])
def test_reductions_of_unreduced_values(reduction: str) -> None:
    """A reduction over x combines the terms that the devices hold."""
    first = np.round(VALUE * 64) / 64
    second = np.round(np.cos(VALUE) * 64) / 64
    terms = {device: (first, second)[device[0]][box(device, ["", ""])] for device in DEVICES}
    value = REDUCE[reduction]([first, second], axis=0)
    word = "" if reduction == "sum" else reduction
    before = spelled(["", ""], "x", word)
    op = f'sdy.all_reduce {word} {{"x"}} %a out_sharding=<{spelled(["", ""])}>'
    np.testing.assert_array_equal(run(op, before, value), whole(reduced(terms, "x", reduction), ["", ""]))
    op = f'sdy.reduce_scatter {word} [{{"x"}}, {{}}] %a out_sharding=<{spelled(["x", ""])}>'
    scattered = sliced(reduced(terms, "x", reduction), "x", 0)
    np.testing.assert_array_equal(run(op, before, value), whole(scattered, ["x", ""]))


def test_unreduced_parts_sum_to_the_value() -> None:
    """A value becomes unreduced so that the sum over the axes restores it: all parts but the device's own are zero."""
    parts = spread(VALUE, ["y", ""])
    padded = {device: np.zeros_like(VALUE) for device in DEVICES}
    for device, part in parts.items():
        padded[device][box(device, ["y", ""])] = part
    op = f'sdy.sharded_to_unreduced [{{"y"}}, {{}}] %a out_sharding=<{spelled(["", ""], "y")}>'
    np.testing.assert_array_equal(run(op, spelled(["y", ""])), whole(reduced(padded, "y", "sum"), ["", ""]))
    first = {device: VALUE if device[1] == 0 else np.zeros_like(VALUE) for device in DEVICES}
    op = f'sdy.replicated_to_unreduced {{"y"}} %a out_sharding=<{spelled(["", ""], "y")}>'
    np.testing.assert_array_equal(run(op, spelled(["", ""])), whole(reduced(first, "y", "sum"), ["", ""]))


def test_sum_of_replicated_copies_is_refused() -> None:
    op = f'sdy.all_reduce {{"x"}} %a out_sharding=<{spelled(["", ""])}>'
    with pytest.raises(Refusal, match=r'reduces along "x", but its operand is unreduced along \{\} only'):
        run(op, spelled(["", ""]))


@pytest.mark.parametrize(
    "op",
    [
        f"sdy.reshard %a <{spelled(['x', ''])}>",
        "sdy.propagation_barrier %a allowed_direction=FORWARD",
        "sdy.func_data_flow_edge %a",
        f"sdy.data_flow_edge %a sharding=<{spelled(['', 'y'])}>",
    ],
)
def test_other_operations_return_their_operand(op: str) -> None:
    np.testing.assert_array_equal(run(op, spelled(["y", ""])), VALUE, strict=True)


def test_computations_constants_and_groups_are_executed() -> None:
    text = """
    func.func @main(%a: tensor<4xf64>, %b: tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>) {
      %c = sdy.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf64>
      sdy.sharding_group %c group_id=3 : tensor<4xf64>
      %r:2 = sdy.named_computation<"f">(%a, %b, %c) (%x: tensor<4xf64>, %y: tensor<4xf64>, %z: tensor<4xf64>) {
        %p = stablehlo.multiply %x, %z : tensor<4xf64>
        sdy.return %p, %y : tensor<4xf64>, tensor<4xf64>
      } : (tensor<4xf64>, tensor<4xf64>, tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>)
      return %r#0, %r#1 : tensor<4xf64>, tensor<4xf64>
    }
    """
    a, b = VALUE[0, :4], VALUE[1, :4]
    scaled, same = execute(function_named(parse_module(text, "f.mlir")), [a, b])
    np.testing.assert_array_equal(scaled, a * np.array([1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_array_equal(same, b)


T = "tensor<16x8xf32>"


def sharded(*lines: str, result: str = "%1") -> str:
    body = "\n".join(f"{line} : {T}" for line in lines)
    return f'sdy.mesh @mesh = <["x"=2, "y"=4]>\nfunc.func @main(%a: {T}) -> {T} {{\n{body}\nreturn {result} : {T}\n}}'


RESHARD = f"%0 = sdy.reshard %a <{spelled(['x', ''])}>"
BARRIER = "%0 = sdy.propagation_barrier %a allowed_direction=NONE"
GROUP = "sdy.sharding_group %a group_id={}"
SINE, OF_INPUT = "%1 = stablehlo.sine %0", "%1 = stablehlo.sine %a"


def is_proved(before: str, after: str) -> bool:
    return prove(parse_module(before), parse_module(after)).proved


def test_proof_allows_repeated_pure_operations() -> None:
    for op in (RESHARD, BARRIER):
        twice = sharded(op, op.replace("%0", "%2"), "%1 = stablehlo.sine %2")
        assert is_proved(sharded(op, SINE), twice)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (sharded(RESHARD, SINE), sharded(OF_INPUT)),
        (sharded(OF_INPUT), sharded(RESHARD, SINE)),
        (sharded(RESHARD, SINE), sharded(RESHARD.replace('"x"', '"y"'), SINE)),
        (sharded(BARRIER, SINE), sharded(OF_INPUT)),
        (sharded(BARRIER, SINE), sharded(BARRIER.replace("NONE", "FORWARD"), SINE)),
        (sharded(GROUP.format(1), OF_INPUT), sharded(OF_INPUT)),
        (sharded(GROUP.format(1), OF_INPUT), sharded(GROUP.format(2), OF_INPUT)),
        (sharded(GROUP.format(1), OF_INPUT), sharded(GROUP.format(1), GROUP.format(1), OF_INPUT)),
    ],
)
def test_shardy_operation_differs_from_its_operand(before: str, after: str) -> None:
    assert not is_proved(before, after)
    assert is_proved(before, before)
