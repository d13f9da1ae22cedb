"""Pairs of unequal programs, generated for every pure operation of the proof: none may be proved.

For each part of an operation that `prove.py` lists there is a pair that differs only in that part. To show that the
pairs detect a missing rule, each rule is also disabled once; then at least one pair has to be proved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from recompute.mlir_io.parser import parse_module
from recompute.proof import prove as proof
from recompute.proof.expressions import conditions, memory_spaces, terms
from recompute.proof.loop_rules import patterns, preserved_operations
from recompute.proof.operations import operation_parts
from recompute.proof.operations.pure_operations import OF_THE_REGION, PURE_OPERATIONS
from recompute.proof.translation import call_inliner, head_cache, transparent_ops, value_numbering

STATIC, DYNAMIC = "tensor<4xf32>", "tensor<?xf32>"
NEED_REGIONS = frozenset({"scf.for", "scf.while"})
"""They are not read without regions; the folder has pairs of them."""
NAMES = sorted(PURE_OPERATIONS - OF_THE_REGION - NEED_REGIONS)
NEEDED = {"arith.cmpf": "predicate = 1 : i64", "arith.cmpi": "predicate = 1 : i64"}
"""Attributes without which an operation is not read."""
IDENTITIES = frozenset({"recompute.token", "sdy.sharding_constraint"})
WITH_A_CONDITION = frozenset(
    """
    arith.ceildivsi arith.ceildivui arith.divsi arith.divui arith.floordivsi arith.remsi arith.remui chlo.ragged_dot
    math.ipowi stablehlo.cholesky stablehlo.dynamic_broadcast_in_dim stablehlo.dynamic_conv
    stablehlo.dynamic_gather stablehlo.dynamic_iota stablehlo.dynamic_pad stablehlo.dynamic_reshape
    stablehlo.real_dynamic_slice stablehlo.set_dimension_size stablehlo.torch_index_select stablehlo.while tensor.cast
    tensor.dim tensor.extract tensor.extract_slice tensor.gather tensor.insert tensor.insert_slice tensor.reshape
    tensor.scatter
    """.split()
)
"""Operations that may fail, or may not end, whatever the extents are; a list of the test's own."""
FOR_ALL_EXTENTS = frozenset("recompute.token sdy.sharding_constraint stablehlo.get_dimension_size tensor.rank".split())
UNEQUAL_PROGRAMS = sorted((Path(__file__).parent / "unequal").glob("*.a.mlir"))

Pair = tuple[str, str, str]
"""A name, and two programs."""


def function(body: str, type_: str = STATIC) -> str:
    return f"func.func @f(%c: i1, %x: {type_}, %y: {type_}) -> {type_} {{\n{body}\nreturn %r : {type_}\n}}"


def line(name: str, operands: str = "%x, %y", attributes: str = "", type_: str = STATIC, result: str = "%r") -> str:
    types = ", ".join([type_] * len(operands.split(", ")))
    message = ", ".join(filter(None, (NEEDED.get(name), attributes)))
    return f'{result} = "{name}"({operands}) {{{message}}} : ({types}) -> {type_}'


def branch(before: str, inside: str, type_: str = STATIC) -> str:
    """Return a conditional whose first region yields %q."""
    regions = f"({{\n{inside}\nstablehlo.return %q : {type_}\n}}, {{\nstablehlo.return %y : {type_}\n}})"
    return function(f'{before}\n%r = "stablehlo.if"(%c) {regions} : (i1) -> {type_}', type_)


def hoisted(name: str, type_: str = STATIC) -> tuple[str, str]:
    op = line(name, type_=type_, result="%q")
    return branch("", op, type_), branch(op, "", type_)


def pairs_of(name: str) -> Iterator[Pair]:
    plain = function(line(name))
    yield (
        f"{name}, an attribute",
        function(line(name, attributes="acme.a = 1 : i32")),
        function(line(name, attributes="acme.a = 2 : i32")),
    )
    yield f"{name}, an attribute lost", function(line(name, attributes="acme.a")), plain
    yield f"{name}, operands swapped", plain, function(line(name, "%y, %x"))
    message = 'mhlo.sharding = "{{devices=[2]<=[2]}, {replicated}}"'
    yield (
        f"{name}, operands swapped under an attribute",
        function(line(name, attributes=message)),
        function(line(name, "%y, %x", message)),
    )
    two = f'%q, %r = "{name}"(%x, %y) {{{NEEDED.get(name, "")}}} : ({STATIC}, {STATIC}) -> ({STATIC}, {STATIC})'
    yield f"{name}, results swapped", function(two), function(two.replace("%q, %r", "%r, %q"))
    narrow, use = line(name, result="%q"), f'%r = "acme.use"(%q) : (TYPE) -> {STATIC}'
    wide = narrow.removesuffix(STATIC) + DYNAMIC
    yield (
        f"{name}, the type of the result",
        function(f"{narrow}\n{use.replace('TYPE', STATIC)}"),
        function(f"{wide}\n{use.replace('TYPE', DYNAMIC)}"),
    )
    if name not in FOR_ALL_EXTENTS:
        yield f"{name}, hoisted with dynamic extents", *hoisted(name, DYNAMIC)
    if name in WITH_A_CONDITION:
        yield f"{name}, hoisted", *hoisted(name)


def wrapped_pairs() -> Iterator[Pair]:
    """Generate pairs for transparent operations: operands and results permuted beneath an attribute."""
    types = f"({STATIC}, {STATIC}) -> ({STATIC}, {STATIC})"
    message = '{mhlo.sharding = "{{devices=[2]<=[2]}, {replicated}}"}'
    for name, before, after in (
        ("a barrier", '"stablehlo.optimization_barrier"(%x, %y)', '"stablehlo.optimization_barrier"(%y, %x)'),
        ("a call", "call @g(%x, %y)", "call @g(%y, %x)"),
    ):
        returned = f"return %a, %b : {STATIC}, {STATIC}"
        private = f"func.func private @g(%a: {STATIC}, %b: {STATIC}) -> ({STATIC}, {STATIC}) {{\n{returned}\n}}"
        callee = f"\n{private}" if name == "a call" else ""
        item = function(f"%r, %q = {before} {message} : {types}") + callee
        other = function(f"%q, %r = {after} {message} : {types}") + callee
        yield f"{name}, operands and results swapped under an attribute", item, other
    token = f"%t = recompute.token %x : {STATIC}\n"
    depend = (
        f'"recompute.depend"(OPERANDS, %t) {message} : ({STATIC}, {STATIC}, !recompute.token) -> ({STATIC}, {STATIC})'
    )
    yield (
        "a dependency, operands and results swapped under an attribute",
        function(f"{token}%r, %q = {depend.replace('OPERANDS', '%x, %y')}"),
        function(f"{token}%q, %r = {depend.replace('OPERANDS', '%y, %x')}"),
    )
    yield (
        "the type of an operand of an effect",
        function(f'%q = "tensor.cast"(%x) : ({STATIC}) -> {STATIC}\n%r = "acme.use"(%q) : ({STATIC}) -> {STATIC}'),
        function(f'%q = "tensor.cast"(%x) : ({STATIC}) -> {DYNAMIC}\n%r = "acme.use"(%q) : ({DYNAMIC}) -> {STATIC}'),
    )


@cache
def all_pairs() -> tuple[Pair, ...]:
    attacked = tuple(
        (path.name, path.read_text(), path.with_name(path.name.replace(".a.", ".b.")).read_text())
        for path in UNEQUAL_PROGRAMS
    )
    generated = tuple(pair for name in NAMES for pair in pairs_of(name))
    return (*attacked, *wrapped_pairs(), *generated)


def is_proved(pair: Pair) -> bool:
    _, before, after = pair
    return proof.prove(parse_module(before), parse_module(after)).proved


OF_TORCH = "torch."
SAMPLE = 40
"""Of the pairs of PyTorch's operations, which differ in their names alone, a quick run tries one in so many."""


def pairs_outside_torch() -> list[Pair]:
    return [pair for pair in all_pairs() if not pair[0].startswith(OF_TORCH)]


def test_no_pair_is_proved() -> None:
    """A sample of the generated pairs is rejected, and so are all pairs written by hand."""
    written = len(UNEQUAL_PROGRAMS) + len(tuple(wrapped_pairs()))
    pairs = pairs_outside_torch()
    sample = [*pairs[:written], *pairs[written::4]]
    sample += [pair for pair in all_pairs() if pair[0].startswith(OF_TORCH)][::SAMPLE]
    assert len(sample) >= 600
    assert [pair[0] for pair in sample if is_proved(pair)] == []


@pytest.mark.slow
def test_no_pair_outside_torch_is_proved() -> None:
    pairs = pairs_outside_torch()
    assert len(pairs) >= 2000
    assert [pair[0] for pair in pairs if is_proved(pair)] == []


@pytest.mark.slow
def test_no_pair_of_torch_is_proved() -> None:
    pairs = [pair for pair in all_pairs() if pair[0].startswith(OF_TORCH)]
    assert len(pairs) >= 5000
    assert [pair[0] for pair in pairs if is_proved(pair)] == []


def test_each_program_is_equal_to_itself() -> None:
    """Each program is proved equal to itself: one that cannot be compared would be rejected whatever its pair says."""
    programs = [pair for pair in pairs_outside_torch() if not pair[0].endswith("results swapped")]
    assert [name for name, before, _ in programs[::7] if not is_proved((name, before, before))] == []


def test_total_operations_may_be_hoisted() -> None:
    total = [name for name in NAMES if name not in WITH_A_CONDITION | IDENTITIES]
    total = [name for at, name in enumerate(total) if not name.startswith(OF_TORCH) or at % SAMPLE == 0]
    assert [name for name in total if not is_proved((name, *hoisted(name)))] == []


def _each_apart(self: Any, around: Any, numbers: Any) -> list[int]:
    """Return terms in which the attributes wrap each value separately, which is the mutation under test."""
    wrapped = list(numbers)
    for head in around:
        wrapped = [self._terms.term(head, (number,)) for number in wrapped]
    return wrapped


def _no_condition(*_: Any) -> None:
    return None


def _always(*_: Any) -> bool:
    return True


def _never(*_: Any) -> bool:
    return False


def _nothing(*_: Any) -> tuple[()]:
    return ()


def _zero_types(_: Any, types: Any, __: Any) -> tuple[int, ...]:
    return tuple(0 for _ in types)


def _zero_operands(_: Any, op: Any, __: Any) -> tuple[int, ...]:
    return tuple(0 for _ in op.operands)


Patch = tuple[Any, str, Callable[..., Any]]
RULES: dict[str, tuple[Patch, ...]] = {
    "the position of an attribute": ((transparent_ops.Wrapping, "wrap", _each_apart),),
    "a reserved name": ((call_inliner, "is_reserved", _never), (operation_parts, "is_reserved", _never)),
    "the memory space of a value": ((memory_spaces.MemorySpaces, "is_on_device", _always),),
    "a run-time condition": ((conditions.RunTimeConditions, "of", _no_condition),),
    "a loop that may not end": (
        (value_numbering, "why_endless", _no_condition),
        (head_cache, "why_endless", _no_condition),
        (preserved_operations, "why_endless", _no_condition),
    ),
    "channels": ((proof, "newly_shared", _no_condition),),
    "operations that run only in the rewritten program": ((proof, "is_implied", _always),),
    "attributes": ((terms.Heads, "attributes", _nothing),),
    "types": ((terms.Heads, "numbers", _zero_types),),
    "operands": ((value_numbering.Numbering, "_operands", _zero_operands),),
    "constraints in loops": ((patterns.Patterns, "is_covered", _always), (patterns.Patterns, "is_repeated", _always)),
}


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_is_needed(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, name, without in RULES[rule]:
        monkeypatch.setattr(owner, name, without)
    assert any(is_proved(pair) for pair in all_pairs()), f"without the rule for {rule} no pair is proved"
