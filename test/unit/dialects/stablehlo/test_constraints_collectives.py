"""Constraints of collectives and of operations with tokens, each violated separately."""

from __future__ import annotations

import pytest
from xdsl.utils.exceptions import VerifyException

from recompute.mlir_io.parser import parse_module
from recompute.test.mlir_judge import Judge
from recompute.test.unit.dialects.stablehlo.constraints import Template

GATHER = Template(
    '%r = "stablehlo.all_gather"(%0) <{all_gather_dim = {dim} : i64, replica_groups = {groups}{more}}>'
    " : ({operand}) -> {result}",
    {
        "dim": "1",
        "groups": "dense<[[0, 1]]> : tensor<1x2xi64>",
        "more": "",
        "operand": "tensor<4x8xf32>",
        "result": "tensor<4x16xf32>",
    },
    ("operand",),
)
GLOBAL = ", use_global_device_ids"
CHANNEL = ", channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"


@pytest.mark.parametrize(
    ("label", "changed", "words"),
    [
        ("C1", {"dim": "2"}, r"all_gather_dim \[2\] must be non-negative and less than rank 2"),
        ("I3", {"groups": "dense<0> : tensor<1xi64>"}, "replica_groups have rank 1, expected 2"),
        ("C4", {"groups": "dense<[[0, -1]]> : tensor<1x2xi64>"}, "groups of different sizes"),
        ("C2", {"groups": "dense<[[0, 0]]> : tensor<1x2xi64>"}, "replica_groups contain device 0 more than once"),
        ("C4", {"groups": "dense<[[0, 2]]> : tensor<1x2xi64>"}, "contain 2 devices, but device 1 is missing"),
        (
            "C4",
            {"groups": "dense<> : tensor<0x2xi64>", "more": GLOBAL + CHANNEL},
            "are empty, but with global device ids they must contain all devices",
        ),
        ("C5", {"more": GLOBAL}, "the channel has id 0, expected at least 1"),
        ("C6", {"result": "tensor<4x16xf64>"}, "elements of type f64, expected f32"),
        ("C6", {"result": "tensor<5x16xf32>"}, r"shape \[5, 16\], expected \[4, 16\]"),
        ("C6", {"result": "tensor<4x15xf32>"}, "an extent of 15, expected a multiple of 8"),
        ("C6", {"operand": "tensor<4x0xf32>"}, "no elements along all_gather_dim"),
        ("C6", {"result": "tensor<16xf32>"}, "there are 1 dimensions of a result, expected 2"),
    ],
)
def test_all_gather_constraints_are_checked(label: str, changed: dict[str, str], words: str) -> None:
    GATHER.refuse(label, words, **changed)


@pytest.mark.parametrize(
    "changed",
    [
        {"more": GLOBAL + CHANNEL},
        {"groups": "dense<[[0, 2], [3, 1]]> : tensor<2x2xi64>"},
        {"operand": "tensor<4x?xf32>", "result": "tensor<?x16xf32>"},
    ],
)
def test_valid_all_gathers_are_accepted(changed: dict[str, str], judge: Judge) -> None:
    GATHER.accept(judge, **changed)


BODY = "%x: tensor<f32>, %y: tensor<f32>"
REDUCE = Template(
    '%r = "stablehlo.all_reduce"(%0) <{replica_groups = {groups}{more}}> ({\n^bb0({body}):\n'
    "  stablehlo.return {returned}\n}) : ({operand}) -> {result}",
    {
        "groups": "dense<[[0, 1]]> : tensor<1x2xi64>",
        "more": "",
        "body": BODY,
        "returned": "%x : tensor<f32>",
        "operand": "tensor<4x8xf32>",
        "result": "tensor<4x8xf32>",
    },
    ("operand",),
)


@pytest.mark.parametrize(
    ("label", "changed", "words"),
    [
        ("C1", {"groups": "dense<[[0, 0]]> : tensor<1x2xi64>"}, "device 0 more than once"),
        ("C3", {"groups": "dense<[[0, 2]]> : tensor<1x2xi64>"}, "device 1 is missing"),
        ("C4", {"more": GLOBAL}, "the channel has id 0"),
        ("C5", {"body": "%x: tensor<f32>"}, "the number of arguments of the region is 1, expected 2"),
        ("C5", {"operand": "tensor<4x8xi32>"}, "elements of type i32, but they cannot be promoted to f32"),
        (
            "C5",
            {"body": "%x: tensor<2xf32>, %y: tensor<2xf32>", "returned": "%x : tensor<2xf32>"},
            "the region must take scalars",
        ),
        ("C6", {"result": "tensor<8x4xf32>"}, r"a result has shape \[8, 4\], expected \[4, 8\]"),
        ("C7", {"result": "tensor<4x8xf64>"}, "elements of type f64, expected f32"),
    ],
)
def test_all_reduce_constraints_are_checked(label: str, changed: dict[str, str], words: str) -> None:
    REDUCE.refuse(label, words, **changed)


def test_reduction_groups_may_differ_in_length(judge: Judge) -> None:
    REDUCE.accept(judge, groups="dense<[[0, 1], [2, -1]]> : tensor<2x2xi64>")


SCATTER = Template(
    '%r = "stablehlo.reduce_scatter"(%0) <{scatter_dimension = {dim} : i64, replica_groups = {groups}{more}}> ({\n'
    "^bb0({body}):\n  stablehlo.return %x : tensor<f32>\n}) : ({operand}) -> {result}",
    {
        "dim": "1",
        "groups": "dense<[[0, 1]]> : tensor<1x2xi64>",
        "more": "",
        "body": BODY,
        "operand": "tensor<4x8xf32>",
        "result": "tensor<4x4xf32>",
    },
    ("operand",),
)


@pytest.mark.parametrize(
    ("label", "changed", "words"),
    [
        (
            "C1",
            {"groups": "dense<[[0, 1, 2]]> : tensor<1x3xi64>"},
            "an extent of 8 cannot be divided evenly among 3 devices",
        ),
        ("C2", {"dim": "2"}, "must be non-negative and less than rank 2"),
        ("C3", {"groups": "dense<[[0, 0]]> : tensor<1x2xi64>"}, "device 0 more than once"),
        ("C5", {"groups": "dense<[[0, 2]]> : tensor<1x2xi64>"}, "device 1 is missing"),
        ("C6", {"more": GLOBAL}, "the channel has id 0"),
        ("C7", {"body": "%x: tensor<f32>"}, "the number of arguments of the region is 1, expected 2"),
        ("C8", {"result": "tensor<3x4xf32>"}, r"shape \[3, 4\], expected \[4, 4\]"),
        ("C8", {"result": "tensor<4x3xf32>"}, "the operand has an extent of 8, expected a multiple of 3"),
        ("C9", {"result": "tensor<4x4xf64>"}, "elements of type f64, expected f32"),
    ],
)
def test_reduce_scatter_constraints_are_checked(label: str, changed: dict[str, str], words: str) -> None:
    SCATTER.refuse(label, words, **changed)


def test_valid_reduce_scatters_are_accepted(judge: Judge) -> None:
    SCATTER.accept(judge, operand="tensor<4x?xf32>", more=GLOBAL + CHANNEL)


TO_ALL = Template(
    '%r = "stablehlo.all_to_all"(%0) <{split_dimension = {split} : i64, concat_dimension = {concat} : i64,'
    " split_count = {count} : i64, replica_groups = {groups}}> : ({operand}) -> {result}",
    {
        "split": "1",
        "concat": "0",
        "count": "2",
        "groups": "dense<[[0, 1]]> : tensor<1x2xi64>",
        "operand": "tensor<4x8xf32>",
        "result": "tensor<8x4xf32>",
    },
    ("operand",),
)


@pytest.mark.parametrize(
    ("label", "changed", "words"),
    [
        ("C1", {"split": "2"}, "split_dimension .* less than rank 2"),
        ("C2", {"operand": "tensor<4x7xf32>"}, "an extent of 7 cannot be divided evenly into 2 slices"),
        ("C3", {"concat": "-1"}, "concat_dimension .* less than rank 2"),
        ("C4", {"count": "0"}, "split_count is 0, expected a positive number"),
        ("C5", {"groups": "dense<[[0, 0]]> : tensor<1x2xi64>"}, "device 0 more than once"),
        ("C7", {"groups": "dense<[[0, 2]]> : tensor<1x2xi64>"}, "device 1 is missing"),
        ("C8", {"count": "4"}, r"the number of devices in a group is 2, expected 4 \(split_count\)"),
        ("C9", {"result": "tensor<4x8xf32>"}, r"shape \[4, 8\], expected \[8, 4\]"),
    ],
)
def test_all_to_all_constraints_are_checked(label: str, changed: dict[str, str], words: str) -> None:
    TO_ALL.refuse(label, words, **changed)


def test_all_to_all_may_use_one_dimension(judge: Judge) -> None:
    TO_ALL.accept(judge, concat="1", result="tensor<4x8xf32>")


BROADCAST = Template(
    '%r = "stablehlo.collective_broadcast"(%0) <{replica_groups = {groups}}> : ({operand}) -> {result}',
    {"groups": "dense<[[0, 1]]> : tensor<1x2xi64>", "operand": "tensor<4xf32>", "result": "tensor<4xf32>"},
    ("operand",),
)
PERMUTE = Template(
    '%r = "stablehlo.collective_permute"(%0) <{source_target_pairs = {pairs}}> : ({operand}) -> {result}',
    {"pairs": "dense<[[0, 1]]> : tensor<1x2xi64>", "operand": "tensor<4xf32>", "result": "tensor<4xf32>"},
    ("operand",),
)


@pytest.mark.parametrize(
    ("template", "label", "changed", "words"),
    [
        (BROADCAST, "I2", {"groups": "dense<0> : tensor<1xi64>"}, "rank 1, expected 2"),
        (BROADCAST, "C1", {"groups": "dense<[[1, 1]]> : tensor<1x2xi64>"}, "device 1 more than once"),
        (BROADCAST, "C2", {"groups": "dense<[[0, -1]]> : tensor<1x2xi64>"}, "must not contain negative ids"),
        (BROADCAST, "C3", {"result": "tensor<5xf32>"}, "type tensor<5xf32>, expected tensor<4xf32>"),
        (PERMUTE, "C1", {"pairs": "dense<0> : tensor<1x3xi64>"}, r"shape \[1, 3\], expected rank 2 with two columns"),
        (
            PERMUTE,
            "C2",
            {"pairs": "dense<[[0, 1], [0, 2]]> : tensor<2x2xi64>"},
            "the sources contain device 0 more than once",
        ),
        (
            PERMUTE,
            "C3",
            {"pairs": "dense<[[0, 1], [2, 1]]> : tensor<2x2xi64>"},
            "the targets contain device 1 more than once",
        ),
        (PERMUTE, "C4", {"pairs": "dense<[[0, -1]]> : tensor<1x2xi64>"}, "must not contain negative ids"),
        (PERMUTE, "C5", {"result": "tensor<5xf32>"}, "type tensor<5xf32>, expected tensor<4xf32>"),
    ],
)
def test_broadcast_and_permute_constraints_are_checked(
    template: Template, label: str, changed: dict[str, str], words: str
) -> None:
    template.refuse(label, words, **changed)


INFEED = Template(
    '%r:{count} = "stablehlo.infeed"(%0) <{infeed_config = ""{more}}> : ({token}) -> ({results})',
    {"count": "2", "more": "", "token": "!stablehlo.token", "results": "tensor<4xf32>, !stablehlo.token"},
    ("token",),
)
RECEIVE = Template(
    '%r:2 = "stablehlo.recv"(%0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = {type}>,'
    " is_host_transfer = {host}{more}}> : ({token}) -> ({results})",
    {
        "type": "3",
        "host": "true",
        "more": "",
        "token": "!stablehlo.token",
        "results": "tensor<4xf32>, !stablehlo.token",
    },
    ("token",),
)
SEND = Template(
    '%r = "stablehlo.send"(%0, %1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = {type}>,'
    " is_host_transfer = {host}}> : ({operand}, {token}) -> {token}",
    {"type": "2", "host": "true", "operand": "tensor<4xf32>", "token": "!stablehlo.token"},
    ("operand", "token"),
)
START = Template(
    '%r = "stablehlo.async_start"(%0) ({\n^bb0(%x: {argument}):\n{inner}\n  stablehlo.return {returned}\n})'
    " : ({operand}) -> {future}",
    {
        "argument": "tensor<4xf32>",
        "inner": "%y = stablehlo.slice %x [0:2] : (tensor<4xf32>) -> tensor<2xf32>",
        "returned": "%y : tensor<2xf32>",
        "operand": "tensor<4xf32>",
        "future": "!stablehlo.future<tensor<2xf32>>",
    },
    ("operand",),
)
DONE = Template(
    '%r = "stablehlo.async_done"(%0) : ({future}) -> {result}',
    {"future": "!stablehlo.future<tensor<4xf32>>", "result": "tensor<4xf32>"},
    ("future",),
)
PAIRS = ", source_target_pairs = dense<[[0, 1], [0, 2]]> : tensor<2x2xi64>"
NEGATED = {"inner": "%y = stablehlo.negate %x : tensor<4xf32>", "returned": "%y : tensor<4xf32>"}
TWICE = START.values["inner"] + "\n%z = stablehlo.slice %x [0:2] : (tensor<4xf32>) -> tensor<2xf32>"


@pytest.mark.parametrize(
    ("template", "label", "changed", "words"),
    [
        (INFEED, "C2", {"results": "!stablehlo.token, !stablehlo.token"}, "a result has type !stablehlo.token"),
        (INFEED, "C3", {"results": "tensor<4xf32>, tensor<4xf32>"}, "the last result has type tensor<4xf32>"),
        (INFEED, "layout", {"more": ", layout = [[0], [0]]"}, "the number of layouts is 2, expected 1"),
        (INFEED, "layout", {"more": ", layout = [0]"}, "is not an array of integers"),
        (RECEIVE, "results", {"results": "tensor<4xf32>, tensor<4xf32>"}, "the last result has type tensor<4xf32>"),
        (RECEIVE, "C2", {"more": PAIRS}, "the sources contain device 0 more than once"),
        (RECEIVE, "C5", {"type": "1"}, "the channel has type 1, expected 3"),
        (RECEIVE, "C5", {"host": "false"}, "the channel has type 3, expected 1"),
        (SEND, "C5", {"type": "3"}, "the channel has type 3, expected 2"),
        (START, "C1", {"inner": TWICE}, "the region must consist of one operation, followed by stablehlo.return"),
        (START, "C2", NEGATED, "the region contains stablehlo.negate"),
        (START, "C3", {"operand": "tensor<5xf32>"}, "type tensor<4xf32>, expected tensor<5xf32>"),
        (START, "C4", {"future": "!stablehlo.future<tensor<3xf32>>"}, "type tensor<3xf32>, expected tensor<2xf32>"),
        (DONE, "C1", {"result": "tensor<5xf32>"}, "type tensor<5xf32>, expected tensor<4xf32>"),
    ],
)
def test_token_and_future_constraints_are_checked(
    template: Template, label: str, changed: dict[str, str], words: str
) -> None:
    template.refuse(label, words, **changed)


def test_empty_channel_pairs_may_have_any_rank(judge: Judge) -> None:
    text = """func.func @f(%x: tensor<2xf32>, %t: !stablehlo.token) {
  %0 = "stablehlo.send"(%x, %t) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
    source_target_pairs = dense<> : tensor<0xi64>}> : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token
  return
}"""
    judge.print(text)
    parse_module(text).verify()
    with pytest.raises(VerifyException, match="C1: source_target_pairs have shape"):
        parse_module(text.replace("dense<> : tensor<0xi64>", "dense<1> : tensor<2xi64>")).verify()
