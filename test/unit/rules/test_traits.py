"""The traits `Pure` and `NoMemoryEffect` of operations of other projects declare them pure, to the passes and to the
proof."""

from __future__ import annotations

import pytest
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.scf import ForOp
from xdsl.ir import Block, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.traits import (
    Commutative,
    ConstantLike,
    HasAncestor,
    HasParent,
    IsTerminator,
    MemoryReadEffect,
    MemoryWriteEffect,
    NoMemoryEffect,
    OpTrait,
    Pure,
    RecursiveMemoryEffect,
    SymbolOpInterface,
)

from recompute import rules
from recompute.analysis.step.order import functions_of
from recompute.dialects.context import make_context
from recompute.driver.api import rewrite
from recompute.mlir_io.parser import ModuleParser
from recompute.proof.operations import pure_traits
from recompute.proof.operations.pure_traits import is_pure_by_traits
from recompute.proof.prove import prove
from recompute.proof.verdicts.verdict import Proof
from recompute.rules import traits
from recompute.rules.effects import why_impure
from recompute.rules.traits import is_declared_pure

T = "tensor<256xf32>"


class Constant(ConstantLike):
    """A constant whose value no pass reads."""

    @staticmethod
    def get_constant_value(ssa_value: SSAValue) -> None:
        return None


def operation(name_: str, *declared: OpTrait) -> type[IRDLOperation]:
    """Return the class of an operation of any operands, results and regions."""

    class AnyOperation(IRDLOperation):
        name = name_
        inputs = var_operand_def()
        outputs = var_result_def()
        bodies = var_region_def()
        sym_name = prop_def(AnyAttr(), prop_name="sym_name") if SymbolOpInterface() in declared else None

    AnyOperation.traits = traits_def(*declared)
    if AnyOperation.sym_name is None:
        del AnyOperation.sym_name
    return irdl_op_definition(AnyOperation)


PURE = operation("acme.pure", Pure())
QUIET = operation("acme.quiet", NoMemoryEffect(), Commutative())
CONSTANT = operation("acme.constant", Pure(), Constant())
IGNORED = {
    "no traits": operation("acme.unknown"),
    "another trait": operation("acme.commutative", Commutative()),
    "reads": operation("acme.read", MemoryReadEffect()),
    "no effect and a read": operation("acme.both", NoMemoryEffect(), MemoryReadEffect()),
    "pure and a write": operation("acme.write", Pure(), MemoryWriteEffect()),
    "its regions": operation("acme.recursive", RecursiveMemoryEffect()),
    "a terminator": operation("acme.end", Pure(), IsTerminator()),
    "of a loop": operation("acme.index", Pure(), HasParent(ForOp)),
    "inside a loop": operation("acme.within", Pure(), HasAncestor(ForOp)),
}


def source(name: str) -> str:
    """Return a step whose forward and backward operations are all `name`."""
    return f"""func.func @step(%x: {T}, %ct: {T}) -> ({T}, {T}) {{
  %a = "{name}"(%x) {{recompute.recompute = true}} : ({T}) -> {T}
  %b = "{name}"(%a) {{recompute.recompute = true}} : ({T}) -> {T}
  %c = "acme.pure"(%b) : ({T}) -> {T}
  %g = "acme.pure"(%ct, %b) {{recompute.phase = "gradient"}} : ({T}, {T}) -> {T}
  %g1 = "acme.pure"(%g, %a) {{recompute.phase = "gradient"}} : ({T}, {T}) -> {T}
  func.return %c, %g1 : {T}, {T}
}}"""


def load(text: str, *more: type[Operation]) -> ModuleOp:
    context = make_context()
    context.load_dialect(Dialect("acme", [PURE, QUIET, CONSTANT, *more]))
    return ModuleParser(context, text).parse_module()


def first_operation(text: str) -> Operation:
    """Return the first operation of the first function."""
    return functions_of(load(text))[0].body.block.ops.first or pytest.fail("the function has operations")


def compare(before: str, after: str, *more: type[Operation]) -> Proof:
    return prove(load(before, *more), load(after, *more))


@pytest.mark.parametrize("name", ["acme.pure", "acme.quiet"])
def test_operations_with_pure_traits_are_recomputed_and_proved(name: str) -> None:
    result = rewrite(load(source(name)), target="none", segments="none")
    assert result.copies == 1
    assert result.proof is not None and result.proof.assumed_pure == tuple(sorted({"acme.pure", name}))
    assert "assuming, unverified, that these operations are pure: acme.pure" in result.proof.assumptions[0]


@pytest.mark.parametrize("case", IGNORED)
def test_other_traits_declare_nothing(case: str) -> None:
    kind = IGNORED[case]
    op = kind.create(operands=first_operation(source("acme.pure")).operands)
    assert not is_declared_pure(op) and not is_pure_by_traits(op)
    assert f"the effects of {kind.name} are unknown" in (why_impure(op) or "")


@pytest.mark.parametrize("case", ["no traits", "reads", "no effect and a read", "pure and a write"])
def test_effects_are_neither_recomputed_nor_proved(case: str) -> None:
    kind = IGNORED[case]
    text = source(kind.name)
    assert rewrite(load(text, kind), target="none", segments="none").copies == 0
    copied = text.replace("%g =", f'%b2 = "{kind.name}"(%a) : ({T}) -> {T}\n%g =')
    assert not compare(text, copied, kind) and compare(copied, copied, kind)


def test_regions_symbols_and_missing_operands_need_a_declaration() -> None:
    bare = PURE.create()
    looped = PURE.create(regions=[Region(Block())])
    symbol = operation("acme.symbol", Pure(), SymbolOpInterface()).create(properties={"sym_name": StringAttr("s")})
    for op, reason in (
        (bare, "it has no operands, but its class lacks the trait ConstantLike"),
        (looped, "it has regions, whose effects the trait does not describe"),
        (symbol, "it defines or uses a symbol"),
    ):
        assert not is_declared_pure(op) and not is_pure_by_traits(op)
        assert f"are unknown (its trait does not suffice: {reason}); if it is pure, declare it" in (
            why_impure(op) or ""
        )
    constant = CONSTANT.create()
    assert is_declared_pure(constant) and is_pure_by_traits(constant)


COPY = (
    source("acme.pure")
    .replace("%g1 =", f'%a2 = "acme.pure"(%x) : ({T}) -> {T}\n%g1 =')
    .replace("(%g, %a)", "(%g, %a2)")
)
CHANGES = {
    "another operand": ('"acme.pure"(%x) :', '"acme.pure"(%ct) :'),
    "an attribute": ('"acme.pure"(%x) :', '"acme.pure"(%x) {k = 1 : i32} :'),
    "another operation": ('"acme.pure"(%x) :', '"acme.quiet"(%x) :'),
    "operands in another order": ("(%ct, %b)", "(%b, %ct)"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changed_copies_are_not_proved(change: str) -> None:
    assert compare(source("acme.pure"), COPY)
    assert not compare(source("acme.pure"), COPY.replace(*CHANGES[change]))


def test_operation_may_not_run_where_the_original_does_not() -> None:
    """`Pure` does not say that the operation is defined for all operands."""
    text = f"""func.func @f(%x: {T}, %p: i1) -> {T} {{
  %r = scf.if %p -> ({T}) {{
    %a = "acme.pure"(%x) : ({T}) -> {T}
    scf.yield %a : {T}
  }} else {{
    scf.yield %x : {T}
  }}
  func.return %r : {T}
}}"""
    line = f'    %a = "acme.pure"(%x) : ({T}) -> {T}\n'
    assert compare(text, text)
    assert not compare(text, text.replace(line, "").replace("  %r =", f"{line}  %r =", 1))


def test_memory_and_unregistered_operations_are_effects() -> None:
    memory = source("acme.pure").replace("tensor<", "memref<")
    assert rewrite(load(memory), target="none", segments="none").copies == 0
    assert not compare(memory, COPY.replace("tensor<", "memref<"))
    step, copy = (Parser(make_context(), text).parse_module() for text in (source("acme.pure"), COPY))
    assert not prove(step, copy)
    assert not prove(load(source("acme.pure")), copy)


def test_registered_facts_take_precedence() -> None:
    with rules.registrations_undone():
        rules.register("acme.pure", rules.impure("it prints"))
        assert why_impure(first_operation(source("acme.pure"))) == "it prints"


def test_traits_of_xdsl_and_of_this_project_are_ignored() -> None:
    """Their traits describe erasure: `shard.all_reduce` is `Pure`, and so is `stablehlo.create_token`."""
    dialects = [*(make() for make in get_all_dialects().values()), *make_context().loaded_dialects]
    kinds = {kind for dialect in dialects for kind in dialect.operations}
    names = {kind.name for kind in kinds if any(isinstance(trait, Pure) for trait in kind.traits)}
    assert {"shard.all_reduce", "stablehlo.create_token", "rv32.get_register"} <= names
    for kind in kinds:
        assert not traits._has_no_effects(kind), kind.name  # pyright: ignore[reportPrivateUsage]
        assert not pure_traits._is_free_of_effects(kind), kind.name  # pyright: ignore[reportPrivateUsage]
