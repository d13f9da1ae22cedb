"""FLOPs and transcendentals per operation, against XLA's cost analysis: within 5 %, or with a stated reason."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import pytest
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from recompute.mlir_io.parser import parse_module
from recompute.rules.costs.cost import cost_named
from recompute.rules.flops import Work, work
from recompute.rules.registry import BUILT_IN
from recompute.support.operations import every_operation, name_of
from recompute.test.imports import ROOT
from recompute.transforms.inline import inline

from .xla_cases import COMPILED, DIFFERENT, OTHER_BYTES, TEXTS

jax = pytest.importorskip("jax", reason="XLA counts what is compared here")
PROGRAMS = import_module(".xla_programs", __package__).PROGRAMS
BAR = 0.05
NOT_COUNTED = {
    "stablehlo.constant": "nothing is computed",
    "chlo.constant": "nothing is computed",
    "chlo.ragged_dot": "XLA counts the whole product once for each group; here each element is in one group",
    "chlo.scan": "XLA does not read it",
    "stablehlo.return": "nothing is computed",
    "stablehlo.infeed": "no program of one operation can be read without a second device or a host",
    "stablehlo.outfeed": "likewise",
    "stablehlo.send": "likewise",
    "stablehlo.recv": "likewise",
    "stablehlo.after_all": "nothing is computed",
    "stablehlo.create_token": "nothing is computed",
    "stablehlo.async_start": "XLA reads it as other operations",
    "stablehlo.async_done": "likewise",
    "stablehlo.collective_reduce": "XLA does not read it",
    "stablehlo.composite": "XLA does not read it; it stands for another function",
    "stablehlo.dynamic_conv": "XLA reads no operand of padding that it could count",
    "stablehlo.dynamic_gather": "XLA reads it as a gather",
    "stablehlo.unary_einsum": "XLA does not read it",
    "stablehlo.uniform_quantize": "XLA does not read quantized types here",
    "stablehlo.uniform_dequantize": "likewise",
}


def main_of(text: str) -> list[Operation]:
    """Return the operations of the function `main`, with calls inlined."""
    module = parse_module(text)
    inline(module)
    (main,) = [op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == "main"]
    return list(main.body.block.ops)


def counted_here(text: str) -> Work:
    total = Work()
    for op in main_of(text):
        total = total.plus(work(op))
    return total


def counted_by_xla(text: str) -> dict[str, float]:
    """Return XLA's cost analysis of the module before optimization."""
    client = import_module("jax._src.lib").xla_client._xla
    read = client.mlir.mlir_module_to_xla_computation(text, use_tuple_args=False, return_tuple=False)
    return client.hlo_module_cost_analysis(jax.devices("cpu")[0].client, read.as_hlo_module())


def is_near(ours: Work, theirs: dict[str, float]) -> bool:
    pairs = (ours.flops, theirs.get("flops", 0)), (ours.transcendentals, theirs.get("transcendentals", 0))
    return all(abs(first - other) <= BAR * max(first, other) for first, other in pairs)


@pytest.mark.parametrize("name", TEXTS)
def test_flops_of_each_operation_agree_with_xla(name: str) -> None:
    assert is_near(counted_here(TEXTS[name]), counted_by_xla(TEXTS[name])) == (name not in DIFFERENT)


@pytest.mark.parametrize("name", PROGRAMS)
def test_flops_of_each_program_agree_with_xla(name: str) -> None:
    function, arguments = PROGRAMS[name]
    lowered = jax.jit(function).lower(*arguments)
    ours = counted_here(lowered.as_text())
    assert is_near(ours, lowered.cost_analysis()) == (name not in DIFFERENT)
    assert is_near(ours, lowered.compile().cost_analysis()) == (name not in COMPILED)


@pytest.mark.parametrize("name", PROGRAMS)
def test_bytes_of_each_program_agree_with_xla(name: str) -> None:
    function, arguments = PROGRAMS[name]
    lowered = jax.jit(function).lower(*arguments)
    ours, theirs = sum(cost_named("bytes").of(main_of(lowered.as_text()))), lowered.cost_analysis()["bytes accessed"]
    assert (abs(ours - theirs) <= BAR * max(ours, theirs)) == (name not in OTHER_BYTES)


def test_every_operation_is_compared() -> None:
    texts = [*TEXTS.values(), *(jax.jit(function).lower(*given).as_text() for function, given in PROGRAMS.values())]
    seen = {name_of(op) for text in texts for op in every_operation(parse_module(text))}
    known = {name for name in BUILT_IN if name.startswith(("stablehlo.", "chlo."))}
    assert known - seen == set(NOT_COUNTED) - seen
    assert set(DIFFERENT) | set(COMPILED) | set(OTHER_BYTES) <= {*TEXTS, *PROGRAMS}


@pytest.mark.parametrize("rows", [DIFFERENT, COMPILED, OTHER_BYTES])
def test_page_lists_every_difference(rows: Mapping[str, str]) -> None:
    page = (ROOT / "docs" / "cost_counts.md").read_text()
    assert [name for name, why in rows.items() if f"| {name} | {why} |" not in page] == []


def test_page_states_the_number_of_programs() -> None:
    page = " ".join((ROOT / "docs" / "cost_counts.md").read_text().split())
    assert f"- {len(TEXTS)} programs of one operation" in page and f"- {len(PROGRAMS)} programs that JAX lowers" in page
    assert f"within 5 % on {len(PROGRAMS) - len(OTHER_BYTES)} of the {len(PROGRAMS)} programs" in page


@pytest.mark.parametrize(
    "path", sorted((ROOT / "examples" / "stablehlo").glob("*.small.mlir")), ids=lambda item: item.name
)
def test_flops_of_each_example_agree_with_xla(path: Path) -> None:
    text = path.read_text()
    assert is_near(counted_here(text), counted_by_xla(text))
