"""Offloading to the host is proved, executed with equal results, counted as measured, and chosen by cost."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from recompute.dialects.placements import is_from_host, is_to_host
from recompute.driver.api import memory, prove, rewrite
from recompute.driver.rewrites.rewritten import Rewritten
from recompute.interpreters.execute_check import compare
from recompute.interpreters.inputs import random_inputs
from recompute.interpreters.meter import meter
from recompute.mlir_io.parser import parse_module
from recompute.options.recompute_options import RecomputeOptions
from recompute.options.selection import Selection
from recompute.planning.host_moves import NOTHING_MOVED
from recompute.planning.plan_file import from_json
from recompute.rules.costs.device import DEVICES
from recompute.support.diagnostics import Refusal

SHAPE = "tensor<64x64xf32>"
BYTES = 4 * 64 * 64
LAYERS = 5


def chain(layers: int = LAYERS, mark: str = "") -> str:
    """Return layers of a product and its sine, with the gradient, which reads each layer's product, the last one
    first."""
    forward = [f'%h0 = stablehlo.sine %x {{recompute.phase = "primal"}} : {SHAPE}']
    for at in range(layers):
        forward += [
            f"%p{at} = stablehlo.dot_general %h{at}, %w, contracting_dims = [1] x [0] "
            f'{{recompute.phase = "primal"{mark}}} : ({SHAPE}, {SHAPE}) -> {SHAPE}',
            f'%h{at + 1} = stablehlo.sine %p{at} {{recompute.phase = "primal"}} : {SHAPE}',
        ]
    backward, last = list[str](), "%ct"
    for at in reversed(range(layers)):
        backward += [
            f'%c{at} = stablehlo.cosine %p{at} {{recompute.phase = "gradient"}} : {SHAPE}',
            f'%m{at} = stablehlo.multiply {last}, %c{at} {{recompute.phase = "gradient"}} : {SHAPE}',
            f"%g{at} = stablehlo.dot_general %m{at}, %w, contracting_dims = [1] x [1] "
            f'{{recompute.phase = "gradient"}} : ({SHAPE}, {SHAPE}) -> {SHAPE}',
        ]
        last = f"%g{at}"
    body = "\n  ".join([*forward, *backward, f"func.return %h{layers}, {last} : {SHAPE}, {SHAPE}"])
    return f"func.func @step(%x: {SHAPE}, %w: {SHAPE}, %ct: {SHAPE}) -> ({SHAPE}, {SHAPE}) {{\n  {body}\n}}\n"


MARKED = chain(mark=', recompute.recompute = "offload"')


def holds(text: str, result: Rewritten) -> int:
    """Assert that results are unchanged and the static peak is the measured one; return that peak in bytes."""
    before = parse_module(text)
    inputs = random_inputs(next(iter(result.module.ops)), 1)  # pyright: ignore[reportArgumentType]
    assert compare(before, result.module, inputs)
    _, metered = meter(next(iter(result.module.ops)), inputs)  # pyright: ignore[reportArgumentType]
    assert metered.peak_bytes == memory(result.module)["step"].peak_bytes
    return metered.peak_bytes


@pytest.mark.parametrize("target", ["none", "stablehlo"])
def test_marked_values_use_no_device_memory(target: str) -> None:
    result = rewrite(MARKED, RecomputeOptions(offload="marked", target=target))
    assert result.proof is not None and result.proof.proved and result.extra_flops == 0
    # What the gradient begins with would come back at once.
    assert sum(map(is_to_host, result.module.walk())) == sum(map(is_from_host, result.module.walk())) == LAYERS - 1
    # The products do not wait on the device; a layer's own two values and a cotangent are there at a time.
    assert holds(MARKED, result) <= 4 * BYTES < memory(MARKED)["step"].peak_bytes


def test_nothing_is_offloaded_without_option() -> None:
    result = rewrite(MARKED, RecomputeOptions())
    assert not any(map(is_to_host, result.module.walk()))


MOVE = (
    '{has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}} : '
    f"({SHAPE}) -> {SHAPE}"
)
BACK = MOVE.replace("pinned_host", "device")
PLAIN = f"""func.func @f(%x: {SHAPE}, %y: {SHAPE}) -> {SHAPE} {{
  %a = stablehlo.sine %x : {SHAPE}
  %b = stablehlo.multiply %a, %y : {SHAPE}
  return %b : {SHAPE}
}}"""
MOVED = f"""func.func @f(%x: {SHAPE}, %y: {SHAPE}) -> {SHAPE} {{
  %a = stablehlo.sine %x : {SHAPE}
  %h = stablehlo.custom_call @annotate_device_placement(%a) {MOVE}
  %d = stablehlo.custom_call @annotate_device_placement(%h) {BACK}
  %b = stablehlo.multiply %d, %y : {SHAPE}
  return %b : {SHAPE}
}}"""


def test_offload_and_reload_are_proved() -> None:
    assert prove(PLAIN, MOVED) and prove(MOVED, PLAIN)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (f"@annotate_device_placement(%a) {MOVE}", f"@annotate_device_placement(%x) {MOVE}"),
        ("multiply %d, %y", "multiply %h, %y"),
        (f"@annotate_device_placement(%h) {BACK}", f"@annotate_device_placement(%h) {MOVE}"),
        (f"@annotate_device_placement(%a) {MOVE}", f"@annotate_device_placement(%a) {BACK}"),
        (MOVE, MOVE.replace("pinned_host", "unpinned_host")),
        (MOVE, MOVE.replace('= "pinned_host"', '= "pinned_host", _xla_other = "x"')),
        (BACK, BACK.replace("has_side_effect = true,", "has_side_effect = true, acme.hint = 1 : i32,")),
        (BACK, BACK.replace("has_side_effect = true", "has_side_effect = false")),
        ("@annotate_device_placement(%a)", "@annotate_other_placement(%a)"),
        ("return %b", "return %d"),
    ],
)
def test_wrong_moves_are_not_proved(old: str, new: str) -> None:
    assert old in MOVED
    wrong = MOVED.replace(old, new)
    assert not prove(PLAIN, wrong) and not prove(wrong, PLAIN) and not prove(MOVED, wrong)


def test_result_on_host_stays_on_host() -> None:
    returned = MOVED.replace("return %b", "return %h")
    assert not prove(returned, returned.replace("return %h", "return %a"))
    assert prove(returned, returned)


def budgeted(text: str, budget: str, offload: str, cost: str) -> Rewritten:
    return rewrite(text, RecomputeOptions(budget=budget, memory_model="order", offload=offload, cost=cost))


def extra(result: Rewritten) -> float:
    """Return the extra seconds that the last remark states."""
    messages = [match[1] for remark in result.remarks if (match := re.search(r": ([0-9.e+-]+) us on", remark.reason))]
    return float(messages[-1])


BUDGET = "55%"


def test_budget_offloads_expensive_values() -> None:
    """Products, which take long on a CPU, are offloaded over a fast link: the budget is met for a fraction of the
    time."""
    text = chain()
    without, moved = (budgeted(text, BUDGET, options, "roofline(cpu)") for options in ("", "20GB/s"))
    assert any(map(is_to_host, moved.module.walk())) and not any(map(is_to_host, without.module.walk()))
    assert extra(moved) < 0.5 * extra(without)
    for item in (without, moved):
        assert item.proof is not None and item.proof.proved
        assert holds(text, item) <= 0.55 * memory(text)["step"].peak_bytes
    assert any(
        f"on the host until their gradient operations run, at an extra cost of {extra(moved):.4g} us on cpu"
        in remark.reason
        for remark in moved.remarks
    )


def test_slow_link_offloads_nothing_with_remark() -> None:
    result = budgeted(chain(), BUDGET, "1MB/s", "roofline(cpu)")
    assert not any(map(is_to_host, result.module.walk()))
    assert "nothing is moved to the host: recomputing values costs less" in [remark.reason for remark in result.remarks]


def test_unrecomputable_values_can_be_offloaded() -> None:
    """Numbers from a hidden random state are offloaded, and the peak is below the minimum of recomputation alone."""
    uniform = "rng_distribution = #stablehlo<rng_distribution UNIFORM>"
    drawn = re.sub(
        r"%p(\d) = stablehlo.dot_general %h[^{]*\{([^}]*)\}[^\n]*",
        rf'%p\1 = "stablehlo.rng"(%zero, %one, %shape) {{{uniform}, \2}} : '
        rf"(tensor<f32>, tensor<f32>, tensor<2xi64>) -> {SHAPE}",
        chain(),
    ).replace(
        "{\n",
        """{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %shape = stablehlo.constant dense<64> : tensor<2xi64>
""",
        1,
    )
    assert drawn.count("stablehlo.rng") == LAYERS
    with pytest.raises(Refusal, match="no plan is within the budget of 60% "):
        budgeted(drawn, "60%", "", "roofline(cpu)")
    result = budgeted(drawn, "60%", "20GB/s", "roofline(cpu)")
    before, after = result.memory()["step"]
    assert after.peak_bytes <= 0.6 * before.peak_bytes and result.proof is not None and result.proof.proved
    assert any("with only the marked values moved, no plan was found" in remark.reason for remark in result.remarks)


def test_marked_values_are_offloaded_in_any_case() -> None:
    """Marked values are offloaded even if recomputation is cheaper, and the remark compares both."""
    product = "contracting_dims = [1] x [0] {"
    some = chain().replace(product, f'{product}recompute.recompute = "offload", ', 1)
    result = budgeted(some, BUDGET, "20GB/s", "roofline(cpu)")
    assert "with only the marked values" in result.remarks[-1].reason
    assert holds(some, result) <= 0.55 * memory(some)["step"].peak_bytes


def test_plan_reproduces_program() -> None:
    text = chain()
    result = budgeted(text, BUDGET, "20GB/s", "roofline(cpu)")
    read = from_json(result.plan_text)
    assert read[0].graph == result.plans[0].graph and read[0].offload.speed == 20 * 10**9
    again = rewrite(text, RecomputeOptions(plan=result.plan_text, cost="roofline(cpu)"))
    assert again.text == result.text
    nothing = replace(read[0], offload=NOTHING_MOVED)
    with pytest.raises(Refusal, match="the plan is for another program"):
        rewrite(text, RecomputeOptions(plan=[nothing], cost="roofline(cpu)"))


@pytest.mark.parametrize(
    ("offload", "cost", "words"),
    [
        ("all", "flops", "offload must be marked, auto, or a speed such as 25GB/s, not 'all'"),
        ("0GB/s", "roofline(cpu)", "not '0GB/s'"),
        ("25 GB", "roofline(cpu)", "not '25 GB'"),
        ("auto", "flops", "compares transfers and work in seconds: give a device, for example cost=roofline"),
        ("auto", "roofline(cpu)", "the transfer speed of cpu to its host is unknown"),
        ("auto", "roofline(zz)", "unknown device 'zz'"),
    ],
)
def test_bad_offload_option_is_rejected(offload: str, cost: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        RecomputeOptions(offload=offload, cost=cost)


def test_unmatched_selection_is_refused_at_the_step() -> None:
    """A policy that skips a missing segment is refused before anything is marked."""
    result = Selection(policy="offload_dot_with_no_batch_dims", skip=(7,))
    words = "there is no segment 7 to skip: the step names no segments, and skip counts only named ones"
    with pytest.raises(Refusal, match=words) as refused:
        rewrite(chain(), RecomputeOptions(result, offload="marked"))
    assert refused.value.operation.name == "func.func"


def test_transfer_speed_of_devices_is_one_way() -> None:
    known = {name: first.host_bytes_per_second for name, first in DEVICES.items()}
    assert known == {"a100": 32e9, "h100": 64e9, "h200": 64e9, "mi300x": 64e9, "tpuv5e": None, "cpu": None}
