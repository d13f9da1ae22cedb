"""Each option that has no effect on a module causes one remark, which names the option and the reason."""

from __future__ import annotations

from typing import Any

import pytest

from recompute.mlir_io.parser import parse_module
from recompute.options.recompute_options import RecomputeOptions
from recompute.options.selection import Selection
from recompute.rewriting.options_without_effect import options_without_effect
from recompute.rewriting.rewrite import rewrite_in_place
from recompute.support.diagnostics import Refusal
from recompute.transforms.offload import insert_host_moves

T = "tensor<256xf32>"


def step(marks: str = "", operation: str = "") -> str:
    """Return a step with marks on its first operation, and with a further operation."""
    return f"""func.func @step(%x: {T}, %ct: {T}) -> ({T}, {T}) {{
  %a = stablehlo.sine %x {{recompute.phase = "primal"{marks}}} : {T}
  %b = stablehlo.tanh %a {{recompute.phase = "primal"}} : {T}
  {operation}
  %g = stablehlo.multiply %ct, %b {{recompute.phase = "gradient"}} : {T}
  %h = stablehlo.multiply %g, %a {{recompute.phase = "gradient"}} : {T}
  func.return %b, %h : {T}, {T}
}}"""


def reasons(options: dict[str, Any], text: str | None = None) -> list[str]:
    own = {name: options[name] for name in options.keys() & {"loops", "offload"}}
    selection = Selection(**{name: options[name] for name in options.keys() - own.keys()})
    module = parse_module(text or step())
    return [remark.reason for remark in options_without_effect(module, RecomputeOptions(selection, **own))]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"names": ("a",)}, "names has no effect with policy=nothing_saveable: these policies use names: save_only_"),
        ({"policy": "dots_saveable"}, "policy=dots_saveable saves nothing: it matches no operation of the module"),
        ({"collectives": True}, "collectives has no effect: the module has no collectives"),
        ({"preserve_rng_state": False}, "preserve-rng-state=false has no effect: no operation draws from"),
        ({"loops": "periodic(8)"}, 'loops="periodic(8)" has no effect: the module has no loops'),
        ({"offload": "marked"}, 'offload=marked has no effect: no operation has recompute.recompute = "offload"'),
    ],
)
def test_option_without_effect_is_named(options: dict[str, Any], expected: str) -> None:
    (reason,) = reasons(options)
    assert reason.startswith(expected)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, step()),
        ({"loops": False}, step()),
        ({"offload": "marked"}, step(', recompute.recompute = "offload"')),
        (
            {"offload": "marked"},
            step(operation=f"%m = stablehlo.custom_call @recompute.offload(%a) : ({T}) -> {T}"),
        ),
        ({"offload": "marked", "policy": "save_and_offload_only_these_names", "names": ("a",)}, step()),
        ({"policy": "everything_saveable"}, step()),
        (
            {"collectives": True},
            step(operation=f'%m = "stablehlo.all_reduce"(%a) ({{}}) : ({T}) -> {T}'.replace("({})", "")),
        ),
    ],
)
def test_option_with_an_effect_gets_no_remark(options: dict[str, Any], text: str) -> None:
    assert reasons(options, text) == []


def test_mark_that_moves_nothing_is_reported_at_its_operation() -> None:
    module = parse_module(step(', recompute.recompute = "offload"'), "step.mlir")
    assert list(map(str, options_without_effect(module, RecomputeOptions()))) == [
        'step.mlir:2:8: remark: recompute.recompute = "offload" on 1 operation only saves the values: offload=marked '
        "would also move them to the host"
    ]


def test_mark_of_a_value_that_an_earlier_pass_moved_gets_no_remark() -> None:
    module = parse_module(step(', recompute.recompute = "offload"'))
    insert_host_moves(module)
    assert options_without_effect(module, RecomputeOptions()) == []


def test_too_many_segments_are_reported() -> None:
    forward = [f'  %{i + 1} = math.sin %{i} {{recompute.phase = "primal"}} : {T}' for i in range(6)]
    gradient = [
        f'  %g{i} = arith.mulf %{f"g{i + 1}" if i < 6 else "ct"}, %{i} {{recompute.phase = "gradient"}} : {T}'
        for i in range(6, 0, -1)
    ]
    lines = [f"func.func @step(%0: {T}, %ct: {T}) -> ({T}, {T}) {{", *forward, *gradient]
    module = parse_module("\n".join([*lines, f"  func.return %6, %g1 : {T}, {T}", "}"]))
    outcome = rewrite_in_place(module, RecomputeOptions(Selection(segment_count=99), target="none"))
    texts = [remark.reason for remark in outcome.remarks]
    assert any(text.startswith("segment-count=99 is not possible: the step has the structure of ") for text in texts)


def test_index_of_a_missing_cotangent_is_refused() -> None:
    bare = step().replace(' {recompute.phase = "primal"}', "").replace(' {recompute.phase = "gradient"}', "")
    with pytest.raises(Refusal, match="cotangents=9 is out of range: the function has 2 arguments, numbered from 0"):
        rewrite_in_place(parse_module(bare), RecomputeOptions(Selection(cotangents=(9,))))
