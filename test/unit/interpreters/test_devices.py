"""Collectives between simulated replicas and partitions, with the values that the specification gives."""

from __future__ import annotations

import numpy as np
import pytest

from recompute.interpreters.devices import run_on_devices
from recompute.interpreters.executor import function_named
from recompute.interpreters.kernels.arrays import Array
from recompute.mlir_io.parser import parse_module
from recompute.support.diagnostics import Refusal

SUM = """({ ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %z = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %z : tensor<f32> })"""
CHANNEL = ", channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
FOUR = "tensor<4xf32>"


def body(name: str, fields: str, region: str = "", result: str = FOUR) -> str:
    return f"""func.func @main(%a: {FOUR}) -> {result} {{
      %r = "stablehlo.{name}"(%a) <{{{fields}}}> {region} : ({FOUR}) -> {result}
      return %r : {result}
    }}"""


def groups(text: str, rows: int, columns: int) -> str:
    return f"replica_groups = dense<{text}> : tensor<{rows}x{columns}xi64>"


def run(text: str, replicas: int, partitions: int) -> list[list[float]]:
    """Return the results per device; the inputs are [0, 1, 2, 3] on the first, [4, 5, 6, 7] on the second, and so
    on."""
    function = function_named(parse_module(text, "f.mlir"))
    inputs: list[list[Array]] = [
        [np.arange(4 * device, 4 * device + 4, dtype=np.float32)] for device in range(replicas * partitions)
    ]
    results = run_on_devices([[function] * partitions] * replicas, inputs)
    return [result[0].tolist() for result in results]


ZERO, ONE, TWO, THREE = ([float(number) for number in range(4 * device, 4 * device + 4)] for device in range(4))


def added(*values: list[float]) -> list[float]:
    return [sum(column) for column in zip(*values, strict=True)]


def test_all_reduce_supports_all_group_modes() -> None:
    fields = groups("[[0, 1]]", 1, 2)
    assert run(body("all_reduce", fields, SUM), 2, 2) == [added(ZERO, TWO), added(ONE, THREE)] * 2
    everything = [added(ZERO, ONE, TWO, THREE)] * 4
    assert run(body("all_reduce", fields + CHANNEL, SUM), 2, 2) == everything
    numbered = groups("[[0, 3], [1, 2]]", 2, 2) + CHANNEL + ", use_global_device_ids"
    expected = [added(ZERO, THREE), added(ONE, TWO), added(ONE, TWO), added(ZERO, THREE)]
    assert run(body("all_reduce", numbered, SUM), 2, 2) == expected
    assert run(body("all_reduce", groups("", 0, 0), SUM), 2, 1) == [added(ZERO, ONE)] * 2


def test_groups_may_differ_in_length() -> None:
    fields = groups("[[0, 2], [1, -1]]", 2, 2)
    assert run(body("all_reduce", fields, SUM), 3, 1) == [added(ZERO, TWO), ONE, added(ZERO, TWO)]


def test_all_gather_follows_the_order_of_the_group() -> None:
    fields = "all_gather_dim = 0 : i64, " + groups("[[1, 0]]", 1, 2)
    assert run(body("all_gather", fields, result="tensor<8xf32>"), 2, 1) == [ONE + ZERO] * 2


def test_reduce_scatter_gives_parts_of_the_sum() -> None:
    fields = "scatter_dimension = 0 : i64, " + groups("[[0, 1]]", 1, 2)
    total = added(ZERO, ONE)
    assert run(body("reduce_scatter", fields, SUM, "tensor<2xf32>"), 2, 1) == [total[:2], total[2:]]


def test_all_to_all_exchanges_slices() -> None:
    fields = "split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, "
    fields += groups("[[0, 1]]", 1, 2)
    expected = [ZERO[:2] + ONE[:2], ZERO[2:] + ONE[2:]]
    assert run(body("all_to_all", fields), 2, 1) == expected
    assert run(body("all_to_all", fields + CHANNEL), 1, 2) == expected


def test_broadcast_gives_first_value_and_zeros_outside() -> None:
    assert run(body("collective_broadcast", groups("[[2, 1]]", 1, 2)), 3, 1) == [[0.0] * 4, TWO, TWO]
    assert run(body("collective_broadcast", groups("[[1, 0]]", 1, 2) + CHANNEL), 1, 2) == [ONE, ONE]


def test_permute_gives_zeros_without_sender() -> None:
    fields = "source_target_pairs = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>"
    assert run(body("collective_permute", fields), 3, 1) == [[0.0] * 4, ZERO, ONE]
    assert run(body("collective_permute", fields + CHANNEL), 1, 3) == [[0.0] * 4, ZERO, ONE]


def test_collective_reduce_gives_sum_to_root_only() -> None:
    fields = groups("[[1, 0]]", 1, 2)
    assert run(body("collective_reduce", fields, SUM), 2, 1) == [[0.0] * 4, added(ZERO, ONE)]


def test_each_device_has_its_ids() -> None:
    text = """func.func @main(%a: tensor<4xf32>) -> tensor<ui32> {
      %p = stablehlo.partition_id : tensor<ui32>
      %r = stablehlo.replica_id : tensor<ui32>
      %c = stablehlo.constant dense<10> : tensor<ui32>
      %t = stablehlo.multiply %r, %c : tensor<ui32>
      %s = stablehlo.add %t, %p : tensor<ui32>
      return %s : tensor<ui32>
    }"""
    assert run(text, 2, 2) == [0, 1, 10, 11]


def test_collectives_of_two_functions_meet_in_order() -> None:
    twice = f"""func.func @main(%a: {FOUR}) -> {FOUR} {{
      %b = "stablehlo.all_reduce"(%a) <{{{groups("[[0, 1]]", 1, 2)}}}> {SUM} : ({FOUR}) -> {FOUR}
      %c = "stablehlo.all_reduce"(%b) <{{{groups("[[0, 1]]", 1, 2)}}}> {SUM} : ({FOUR}) -> {FOUR}
      return %c : {FOUR}
    }}"""
    functions = [function_named(parse_module(text)) for text in (twice, twice.replace("%c :", "%b :"))]
    inputs = [[np.array(value, np.float32)] for value in (ZERO, ONE)]
    results = run_on_devices([[functions[0]], [functions[1]]], inputs)
    total = added(ZERO, ONE)
    assert [result[0].tolist() for result in results] == [added(total, total), total]


def test_absent_device_is_named() -> None:
    reduce = function_named(parse_module(body("all_reduce", groups("[[0, 1]]", 1, 2), SUM), "f.mlir"))
    alone = function_named(parse_module(f"func.func @main(%a: {FOUR}) -> {FOUR} {{\nreturn %a : {FOUR}\n}}"))
    inputs = [[np.array(value, np.float32)] for value in (ZERO, ONE)]
    with pytest.raises(Refusal, match=r"f.mlir:2:.*device 1 finished without taking part in this collective"):
        run_on_devices([[reduce], [alone]], inputs)


@pytest.mark.parametrize("count", [1, 3])
def test_wrong_number_of_device_inputs_is_rejected(count: int) -> None:
    function = function_named(parse_module(body("collective_broadcast", groups("[[0, 1]]", 1, 2))))
    with pytest.raises(ValueError, match=f"inputs: {count} lists? of inputs, expected 2, one for each device"):
        run_on_devices([[function], [function]], [[np.zeros(4, np.float32)]] * count)


def test_async_collective_gives_the_result_of_the_synchronous_one() -> None:
    text = f"""func.func @main(%a: {FOUR}) -> {FOUR} {{
      %f = "stablehlo.async_start"(%a) ({{
      ^bb0(%p: {FOUR}):
        %q = "stablehlo.all_reduce"(%p) <{{{groups("[[0, 1]]", 1, 2)}}}> {SUM} : ({FOUR}) -> {FOUR}
        stablehlo.return %q : {FOUR}
      }}) : ({FOUR}) -> !stablehlo.future<{FOUR}>
      %b = stablehlo.negate %a : {FOUR}
      %c = "stablehlo.async_done"(%f) : (!stablehlo.future<{FOUR}>) -> {FOUR}
      %r = stablehlo.add %b, %c : {FOUR}
      return %r : {FOUR}
    }}"""
    assert run(text, 2, 1) == [ONE, ZERO]
