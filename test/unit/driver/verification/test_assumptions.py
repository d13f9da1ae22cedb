"""Assumptions of proofs: they come from options and from the program before, never from the rewritten program."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

import recompute
from recompute.dialects.names import Names
from recompute.dialects.sdy.sharding_ops import ShardingConstraintOp
from recompute.dialects.sdy.shardings import ShardingAttr
from recompute.dialects.stablehlo.custom_call import CustomCallOp
from recompute.driver.pipelines.pipeline import own_pass_names
from recompute.driver.verification.assumptions import Assumptions
from recompute.driver.verification.verified import NotProved, change_in_place
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.support.operations import name_of
from recompute.tools.recompute_check import main as check
from recompute.transforms.flatten_tuples import FlattenTuplesPass, flatten_tuples
from recompute.transforms.shard_kept import ShardKeptPass

T = "tensor<8x6xf32>"
STEP = f"""
sdy.mesh @mesh = <["model"=2]>
func.func public @step(%x: {T}, %ct: {T}) -> ({T}, {T}) {{
  %a = stablehlo.exponential %x : {T} loc("jit(f)/jvp()/exp")
  %s = stablehlo.custom_call @mine(%a) SEGMENT : ({T}) -> {T} loc("SCOPE/sin")
  %y = stablehlo.tanh %s : {T} loc("jit(f)/jvp()/tanh")
  %g = stablehlo.multiply %ct, %y : {T} loc("jit(f)/transpose(jvp())/mul")
  %h = stablehlo.multiply %g, %s : {T} loc("jit(f)/transpose(jvp())/mul")
  func.return %y, %h : {T}, {T}
}}
"""
SEGMENT, SLICED = 'recompute.segment = "b"', "recompute.recompute_slice_activation = true"
SCOPE = "jit(f)/jvp(recompute:b@3+recompute_slice_activation)"
TUPLE = f"""
func.func public @main(%x: {T}) -> tuple<{T}, {T}> {{
  %a = stablehlo.tanh %x : {T}
  %t = stablehlo.tuple %x, %a : tuple<{T}, {T}>
  func.return %t : tuple<{T}, {T}>
}}
"""


def layers(count: int = 3) -> str:
    """Return a step whose segments, each with a call of @mine, are worth recomputing."""
    forward, backward, last, gradient = list[str](), list[str](), "%x", "%ct"
    for layer in range(count):
        inside, scope = f'{{recompute.segment = "b{layer}"}} : ', 'loc("jit(f)/jvp()/op")'
        forward += [
            f"  %s{layer} = stablehlo.custom_call @mine({last}) {inside}({T}) -> {T} {scope}",
            f"  %c{layer} = stablehlo.cosine %s{layer} {inside}{T} {scope}",
            f"  %y{layer} = stablehlo.tanh %c{layer} {inside}{T} {scope}",
        ]
        last = f"%y{layer}"
    for layer in reversed(range(count)):
        for value in (f"%y{layer}", f"%c{layer}", f"%s{layer}"):
            backward.append(
                f'  %g{len(backward)} = stablehlo.multiply {gradient}, {value} : {T} loc("jit(f)/transpose(jvp())/mul")'
            )
            gradient = f"%g{len(backward) - 1}"
    lines = "\n".join((*forward, *backward))
    return f"func.func public @step(%x: {T}, %ct: {T}) -> {T} {{\n{lines}\n  func.return {gradient} : {T}\n}}\n"


def step(*attributes: str, scope: str = "jit(f)/jvp()") -> str:
    return STEP.replace("SEGMENT", f"{{{', '.join(attributes)}}}").replace("SCOPE", scope)


def repeat_the_call(module: ModuleOp) -> None:
    """Run the custom call twice, and mark both as repeatable: the planted bug."""
    (call,) = (op for op in module.walk() if isinstance(op, CustomCallOp))
    (backward,) = (use for use in call.results[0].uses if name_of(use.operation) == "stablehlo.multiply")
    copy = call.clone()
    for each in (call, copy):
        each.attributes[Names.REPEATABLE] = UnitAttr()
    Rewriter.insert_op(copy, InsertPoint.after(call))
    backward.operation.operands[backward.index] = copy.results[0]


def add_a_constraint(module: ModuleOp) -> None:
    """Constrain a value, and mark the constraint as one of `recompute-shard-kept`: the planted bug."""
    (call,) = (op for op in module.walk() if isinstance(op, CustomCallOp))
    constraint = ShardingConstraintOp.create(
        operands=[call.results[0]],
        result_types=[call.results[0].type],
        properties={"sharding": ShardingAttr('@mesh, [{?}, {"model", ?}]')},
        attributes={Names.SHARDS_KEPT: UnitAttr()},
    )
    constraint.location = FileLineColLoc(StringAttr("step.py"), IntAttr(7), IntAttr(3))
    (backward,) = (use for use in call.results[0].uses if name_of(use.operation) == "stablehlo.multiply")
    Rewriter.insert_op(constraint, InsertPoint.after(call))
    backward.operation.operands[backward.index] = constraint.results[0]


@dataclass(frozen=True)
class Repeating(ModulePass):
    """A pass that plants the bug, and has an option of the name that counts on passes of this project."""

    name = "test-repeating"
    repeatable: tuple[str, ...] = ("mine",)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        repeat_the_call(op)


def test_output_cannot_declare_a_call_repeatable() -> None:
    with pytest.raises(NotProved) as error:
        change_in_place(parse_module(step(), "step.mlir"), [repeat_the_call])
    assert "result #1 of @step differs" in str(error.value)
    assert "step.mlir:5:8: recompute.repeatable on @mine is ignored" in str(error.value)
    assert "on the call in the original program, or with repeatable=('mine',)" in str(error.value)


def test_foreign_pass_cannot_declare_a_call_repeatable() -> None:
    options = recompute.RecomputeOptions(pipeline=[Repeating()])
    with pytest.raises(NotProved, match=r"recompute\.repeatable on @mine is ignored"):
        recompute.rewrite(step(), options)


def test_input_and_options_can_declare_a_call_repeatable() -> None:
    declared = change_in_place(parse_module(step("recompute.repeatable")), [repeat_the_call])
    by_option = change_in_place(
        parse_module(step()), [repeat_the_call], assumptions=Assumptions(repeatable=("other", "mi*"))
    )
    for proof in (declared, by_option):
        assert proof and proof.assumed_pure == ("stablehlo.custom_call @mine",)
    with pytest.raises(NotProved):
        change_in_place(parse_module(step()), [repeat_the_call], assumptions=Assumptions(repeatable=("min",)))


def test_a_declaration_does_not_cover_side_effects_or_other_targets() -> None:
    effect = step("has_side_effect = true", "recompute.repeatable")
    other = step("recompute.repeatable").replace("@mine", "@theirs")
    assumptions = Assumptions(repeatable=("mine",))
    with pytest.raises(NotProved):
        change_in_place(parse_module(effect), [repeat_the_call], assumptions=assumptions)

    def rename(module: ModuleOp) -> None:
        for op in module.walk():
            if isinstance(op, CustomCallOp):
                op.properties["call_target_name"] = StringAttr("mine")

    with pytest.raises(NotProved):
        change_in_place(parse_module(other), [rename, repeat_the_call], assumptions=assumptions)


def test_output_cannot_declare_added_constraints() -> None:
    with pytest.raises(NotProved) as error:
        change_in_place(parse_module(step(SEGMENT), "step.mlir"), [add_a_constraint])
    assert "result #1 of @step differs" in str(error.value)
    assert "step.py:7:3: recompute.shards_kept is ignored" in str(error.value)
    assert "recompute_slice_activation on the segment in the original program" in str(error.value)


@pytest.mark.parametrize(
    ("text", "assumptions"),
    [
        (step(SEGMENT, SLICED), Assumptions()),
        (step(scope=SCOPE), Assumptions()),
        (step(), Assumptions(added_constraints=True)),
        (step(), Assumptions.of_passes([ShardKeptPass()], own_pass_names())),
    ],
)
def test_input_and_passes_can_declare_added_constraints(text: str, assumptions: Assumptions) -> None:
    proof = change_in_place(parse_module(text), [add_a_constraint], assumptions=assumptions)
    assert proof and proof.added_constraints == 1


@pytest.mark.parametrize(
    "text",
    [
        step(SEGMENT, SLICED.replace("true", "false")),
        step(scope=SCOPE.replace("+", "-")),
        step(scope="jit(f)/jvp(recompute_slice_activation)"),
        step(scope=f"{SCOPE[:-1]}+unknown)"),
    ],
)
def test_constraint_switch_is_read_with_its_value(text: str) -> None:
    with pytest.raises(NotProved):
        change_in_place(parse_module(text), [add_a_constraint])


def test_only_the_flattening_pass_may_flatten_results() -> None:
    def flatten(module: ModuleOp) -> None:
        flatten_tuples(module)

    with pytest.raises(NotProved):
        change_in_place(parse_module(TUPLE), [flatten])
    proof = change_in_place(
        parse_module(TUPLE), [flatten], assumptions=Assumptions.of_passes([FlattenTuplesPass()], own_pass_names())
    )
    assert proof and proof.flattened_results == 1


@pytest.mark.parametrize("by_pipeline", [False, True])
def test_output_of_the_pipeline_is_checked_with_the_same_pattern(
    by_pipeline: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = recompute.RecomputeOptions(recompute.Selection(repeatable=("mi*",)))
    if by_pipeline:
        options = recompute.RecomputeOptions(pipeline='recompute{repeatable="mi*"}')
    before = tmp_path / "before.mlir"
    before.write_text(layers())
    result = recompute.rewrite(layers(), options)
    assert result.proof and result.proof.assumed_pure == ("stablehlo.custom_call @mine",) and result.copies
    assert not recompute.prove(layers(), result.module)
    assert recompute.prove(layers(), result.module, repeatable=["mi*"])
    after = tmp_path / "after.mlir"
    after.write_text(print_module(result.module))
    assert check([str(before), str(after)]) == 1
    output = capsys.readouterr().out
    assert "recompute.repeatable on @mine is ignored" in output and "--repeatable mine" in output
    assert check([str(before), str(after), "--repeatable", "mi*"]) == 0
    assert "assuming, unverified, that these operations are pure: stablehlo.custom_call @mine" in (
        capsys.readouterr().out
    )
