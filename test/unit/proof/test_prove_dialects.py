"""The equivalence proof on arith, linalg, scf and memref: equal programs are proved, unequal ones are not."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from recompute.mlir_io.parser import parse_module
from recompute.proof.prove import prove

T = "tensor<8xf32>"
HEAD = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
"""


def load(body: str, result: str = f"%r : {T}") -> ModuleOp:
    types = result.split(":")[1]
    arguments = f"%x: {T}, %y: {T}, %p: i1, %f: f32, %m: memref<8xf32>, %o: memref<8xf32>"
    return parse_module(f"func.func @main({arguments}) -> {types} {{{HEAD}{body}\n  func.return {result}\n}}", "f.mlir")


def proved(before: str, after: str, result: str = f"%r : {T}") -> bool:
    return prove(load(before, result), load(after, result)).proved


def loop(name: str, body: str, start: str = "%x") -> str:
    return f"""
  {name} = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = {start}) -> ({T}) {{
    {body}
  }}"""


STEP = f"%b = math.sin %a : {T}\n %c = arith.mulf %b, %a : {T}\n scf.yield %c : {T}"


def test_copied_loop_is_proved() -> None:
    before = loop("%u", STEP) + f"\n%r = arith.addf %u, %u : {T}"
    after = loop("%u", STEP) + loop("%v", STEP) + f"\n%r = arith.addf %u, %v : {T}"
    assert proved(before, after)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%b = math.sin %a", "%b = math.cos %a"),
        ("arith.mulf %b, %a", "arith.mulf %b, %b"),
        ("arith.mulf %b, %a", "arith.mulf %a, %b"),
        ("arith.mulf %b, %a", "arith.mulf %b, %x"),
        ("scf.yield %c", "scf.yield %b"),
    ],
)
def test_loop_with_another_body_is_not_proved(old: str, new: str) -> None:
    before = loop("%u", STEP) + f"\n%r = arith.addf %u, %u : {T}"
    after = loop("%u", STEP) + loop("%v", STEP.replace(old, new)) + f"\n%r = arith.addf %u, %v : {T}"
    assert not proved(before, after)


@pytest.mark.parametrize(("old", "new"), [("to %c4", "to %c1"), ("iter_args(%a = %x)", "iter_args(%a = %y)")])
def test_loop_with_another_initial_value_is_not_proved(old: str, new: str) -> None:
    text = loop("%r", STEP)
    assert proved(text, text) and not proved(text, text.replace(old, new))


def branch(first: str, second: str) -> str:
    return f"""
  %r = scf.if %p -> ({T}) {{
    {first}
    scf.yield %s : {T}
  }} else {{
    {second}
    scf.yield %s : {T}
  }}"""


def test_swapped_branches_are_not_proved() -> None:
    sine, cosine = f"%s = math.sin %x : {T}", f"%s = math.cos %x : {T}"
    assert proved(branch(sine, cosine), branch(sine, cosine))
    assert not proved(branch(sine, cosine), branch(cosine, sine))


def test_loop_invariant_may_be_inside_or_outside() -> None:
    inside = loop("%r", f"%k = math.exp %y : {T}\n%c = arith.mulf %a, %k : {T}\nscf.yield %c : {T}")
    outside = f"%k = math.exp %y : {T}" + loop("%r", f"%c = arith.mulf %a, %k : {T}\nscf.yield %c : {T}")
    assert proved(inside, outside)


def test_both_regions_of_a_while_are_compared() -> None:
    text = f"""
  %r = scf.while (%a = %x) : ({T}) -> {T} {{
    %e = tensor.extract %a[%c0] : {T}
    %go = arith.cmpf olt, %e, %f : f32
    %s = math.sin %a : {T}
    scf.condition(%go) %s : {T}
  }} do {{
  ^bb0(%b: {T}):
    %t = math.exp %b : {T}
    scf.yield %t : {T}
  }}"""
    assert proved(text, text)
    for old, new in (("math.sin", "math.cos"), ("%s : ", "%a : "), ("yield %t", "yield %b"), ("olt", "ole")):
        changed = text.replace(old, new) if old != "%s : " else text.replace("(%go) %s", "(%go) %a")
        assert changed != text and not proved(text, changed), old


def generic(body: str, around: str = "") -> str:
    return f"""
  {around}
  %r = linalg.generic {{indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
      iterator_types = ["parallel"]}} ins(%x : {T}) outs(%y : {T}) {{
  ^bb0(%a: f32, %b: f32):
    {body}
  }} -> {T}"""


@pytest.mark.parametrize(
    ("old", "new"), [("addf", "subf"), ("%a, %b", "%b, %a"), ("(d0) -> (d0)>]", "(d0) -> (7 - d0)>]")]
)
def test_generic_is_compared_by_body_and_maps(old: str, new: str) -> None:
    text = generic("%s = arith.addf %a, %b : f32\nlinalg.yield %s : f32")
    assert proved(text, text)
    changed = (
        text.replace(old, new)
        if "d0" not in old
        else text.replace("[affine_map<(d0) -> (d0)>", "[affine_map<(d0) -> (d0 mod 8)>")
    )
    assert changed != text and not proved(text, changed)


INNER = """
    %t = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      outs(%e : tensor<8xindex>) {
    ^bb0(%z: index):
      OWN
      linalg.yield %i : index
    } -> tensor<8xindex>"""


def test_indices_of_nested_loops_are_distinct() -> None:
    """The operations `linalg.index` of two regions are distinct, although they have no operands."""
    index, rest = (
        "%i = linalg.index 0 : index",
        """
    %n = tensor.extract %t[%c1] : tensor<8xindex>
    %w = arith.index_cast %n : index to i32
    %s = arith.sitofp %w : i32 to f32
    linalg.yield %s : f32""",
    )
    around = "%e = tensor.empty() : tensor<8xindex>"
    own = generic(INNER.replace("OWN", index) + rest, around)
    outer = generic(index + INNER.replace("OWN", "") + rest, around)
    assert proved(own, own) and proved(outer, outer)
    assert not proved(own, outer) and not proved(outer, own)


def test_linalg_index_inside_branch_is_refused() -> None:
    """An operation `linalg.index` in a branch inside the loops is refused; the verifier rejects it as well."""
    index = "%j = linalg.index 0 : index\nscf.yield %j : index"
    branches = f"%i = scf.if %p -> (index) {{\n{index}\n}} else {{\n{index}\n}}"
    text = generic(f"{branches}\n%s = arith.addf %a, %b : f32\nlinalg.yield %s : f32")
    other = text.replace("%a", "%renamed")
    assert "linalg.index must be directly inside a linalg operation" in prove(load(text), load(other)).reason


LOAD = "%g = memref.load %m[%c0] : memref<8xf32>"
SPLAT = f"%r = tensor.splat %g : {T}"


def test_loads_are_effects_and_keep_their_number_and_order() -> None:
    store = "memref.store %f, %m[%c0] : memref<8xf32>"
    assert proved(f"{LOAD}\n{store}\n{SPLAT}", f"{LOAD}\n{store}\n{SPLAT}")
    assert not proved(f"{LOAD}\n{store}\n{SPLAT}", f"{store}\n{LOAD}\n{SPLAT}")
    again = LOAD.replace("%g", "%again")
    assert not proved(f"{LOAD}\n{SPLAT}", f"{LOAD}\n{again}\n{SPLAT}")
    assert not proved(f"{LOAD}\n{again}\n%r = tensor.splat %again : {T}", f"{LOAD}\n{SPLAT}")


@pytest.mark.parametrize(
    "write",
    [
        "linalg.fill ins(%f : f32) outs(%m : memref<8xf32>)",
        "%k = arith.select %p, %m, %o : memref<8xf32>\nlinalg.fill ins(%f : f32) outs(%k : memref<8xf32>)",
        "scf.if %p {\nlinalg.fill ins(%f : f32) outs(%m : memref<8xf32>)\n}",
        "scf.for %i = %c0 to %c4 step %c1 {\nmemref.store %f, %m[%i] : memref<8xf32>\n}",
    ],
    ids=["linalg", "select", "if", "for"],
)
def test_memory_writes_are_not_dropped_moved_or_doubled(write: str) -> None:
    text = f"{write}\n{LOAD}\n{SPLAT}"
    assert proved(text, text)
    doubled = write.replace("%k", "%k2")
    for changed in (f"{LOAD}\n{SPLAT}", f"{LOAD}\n{write}\n{SPLAT}", f"{write}\n{doubled}\n{LOAD}\n{SPLAT}"):
        assert not proved(text, changed)


def test_linalg_on_tensors_is_a_value() -> None:
    fill = f"%r = linalg.fill ins(%f : f32) outs(%x : {T}) -> {T}"
    assert proved(fill, f"{fill.replace('%r', '%dead')}\n{fill}")
    # What is written over matters to what reads it.
    assert not proved(fill, fill.replace("%x", "%y"))


def test_memref_inside_tuple_is_detected() -> None:
    both = '%t = "stablehlo.tuple"(%m, %o) : (memref<8xf32>, memref<8xf32>) -> tuple<memref<8xf32>, memref<8xf32>>'
    get = '%k = "stablehlo.get_tuple_element"(%t) {index = 0 : i32} : (tuple<memref<8xf32>, memref<8xf32>>) -> i32'
    other = get.replace("%k", "%k2")
    result = f"%x : {T}"
    assert proved(f"{both}\n{get}", f"{both}\n{get}", result)
    assert not proved(f"{both}\n{get}", f"{both}\n{get}\n{other}", result)
