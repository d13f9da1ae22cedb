"""Two attributes are equal in the proof if and only if their values are equal bit for bit, whatever their class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import pytest
from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import (
    Builtin,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    Float32Type,
    FloatAttr,
    StringAttr,
    TensorType,
    f32,
)
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer

from recompute.dialects.constants.dense import DenseAttr
from recompute.mlir_io.parser import parse_module
from recompute.proof.expressions.attribute_keys import MAX_PRINTED_BYTES, AttributeKeys, OpaqueAttributeError

ONE, FOUR = (TensorType(f32, [count]) for count in (1, 4))

Content = TypeVar("Content")

DIFFERENT = """
    1 : i32;  1 : i64;  2 : i32;  1 : index;  1.0 : f32;  1.0 : f64;  -0.0 : f32;  0.0 : f32;  "1";  "2";  unit;  true
    i32;  si32;  i64;  f32;  f64;  index;  none;  tuple<i32>;  (i32) -> i64;  (i64) -> i32;  (i32, i64) -> ()
    [];  [1 : i32];  [2 : i32];  [1 : i32, 1 : i32];  {};  {a};  {a = 1 : i32};  {b = 1 : i32};  {a = 2 : i32}
    @a;  @b;  @a::@b;  @a::@a;  array<i32: 1>;  array<i64: 1>;  array<i32: 2>
    tensor<2xf32>;  tensor<2xf64>;  tensor<2x1xf32>;  tensor<2xf32, 1 : i32>;  tensor<?xf32>;  tensor<*xf32>
    vector<2xf32>;  memref<2xf32>;  memref<2xf32, 1 : i32>
    dense<1> : tensor<2xi32>;  dense<2> : tensor<2xi32>;  dense<1> : tensor<2xi64>;  dense<1> : vector<2xi32>
    #other.a<1>;  #other.b<1>;  #other.a<2>;  !other.a<1>;  !other.b<1>;  !other.a<2>
    affine_map<(d0) -> (d0)>;  affine_map<(d0) -> (d0 + 1)>;  affine_map<(d0, d1) -> (d0)>
"""
TEXTS = [text.strip() for line in DIFFERENT.strip().splitlines() for text in line.split(";")]


class Unwritten(Data[Content]):
    """An attribute with data that has no textual form."""

    @override
    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Content:
        raise NotImplementedError

    @override
    def print_parameter(self, printer: Printer) -> None:
        raise NotImplementedError


@irdl_attr_definition
class Pair(Unwritten[tuple[float, float]]):
    """An attribute of two floats, which Python would compare by value rather than bit for bit."""

    name = "acme.pair"


@irdl_attr_definition
class Word(Unwritten[str]):
    """A textual attribute of another class than `StringAttr`."""

    name = "acme.word"


@dataclass(frozen=True)
class Hidden(Attribute):
    """An attribute that does not expose its contents, which xDSL's checks would reject."""

    name = "acme.hidden"

    @override
    def __post_init__(self) -> None:
        """Skip xDSL's check."""


def parsed(text: str) -> Attribute:
    context = Context(allow_unregistered=True)
    context.load_dialect(Builtin)
    return Parser(context, text).parse_attribute()


def test_attribute_keys_are_distinct_and_stable() -> None:
    """All attributes have distinct keys, and equal ones when another parser reads them."""
    keys = AttributeKeys(frozenset())
    first, second = ({text: keys.number(parsed(text)) for text in TEXTS} for _ in range(2))
    assert first == second
    assert len(set(first.values())) == len(TEXTS)


def have_equal_keys(*attributes: Attribute) -> bool:
    keys = AttributeKeys(frozenset())
    return len({keys.number(attribute) for attribute in attributes}) == 1


def elements(type_: TensorType[Float32Type], raw: bytes) -> DenseIntOrFPElementsAttr:
    return DenseIntOrFPElementsAttr(type_, BytesAttr(raw))


@pytest.mark.parametrize("element", [b"\0\0\x80\x3f", b"\1\1\1\1", b"\1\2\1\2", b"\0\0\0\0"])
def test_constant_has_one_key_in_every_form(element: bytes) -> None:
    """A splat, the same elements written out, and xDSL's own encoding have one key, also if the bytes of an element
    repeat."""
    for count in (1, 2, 4):
        type_ = TensorType(f32, [count])
        once, all_ = (DenseAttr(type_, BytesAttr(element * stored)) for stored in (1, count))
        assert have_equal_keys(once, all_, elements(type_, element * count))


def test_constants_without_elements_are_equal() -> None:
    empty = TensorType(f32, [0])
    assert have_equal_keys(DenseAttr(empty, BytesAttr(b"")), elements(empty, b""))


def test_constants_with_different_elements_differ() -> None:
    a, b, c = b"\1\1\1\1", b"\1\2\1\2", b"\1\1\1\2"
    for raw, others in ((a, (b, c)), (a + b + a + c, (a + b + a + a, a + b + a + b, a + c + a + c, a))):
        for other in others:
            assert not have_equal_keys(DenseAttr(FOUR, BytesAttr(raw)), DenseAttr(FOUR, BytesAttr(other)))
            assert not have_equal_keys(
                elements(FOUR, raw * (16 // len(raw))), elements(FOUR, other * (16 // len(other)))
            )
    assert not have_equal_keys(elements(ONE, a), elements(ONE, c))
    assert not have_equal_keys(DenseAttr(FOUR, BytesAttr(a)), DenseAttr(ONE, BytesAttr(a)))


def test_data_is_compared_by_its_bits() -> None:
    assert have_equal_keys(Pair((0.0, 1.0)), Pair((0.0, 1.0)))
    assert not have_equal_keys(Pair((0.0, 1.0)), Pair((-0.0, 1.0)))
    assert not have_equal_keys(Pair((0.0, 1.0)), Pair((0.0, 2.0)))
    assert not have_equal_keys(FloatAttr(0.0, f32), FloatAttr(-0.0, f32))
    assert not have_equal_keys(StringAttr("1"), BytesAttr(b"1"))
    assert not have_equal_keys(StringAttr("1"), Word("1"))


def test_attribute_that_hides_its_content_is_refused() -> None:
    with pytest.raises(OpaqueAttributeError, match="neither `Data` nor `ParametrizedAttribute`"):
        AttributeKeys(frozenset()).number(Hidden())


@pytest.mark.parametrize("form", [DenseAttr, DenseIntOrFPElementsAttr])
def test_long_constant_is_not_spelled_out(form: type[DenseAttr] | type[DenseIntOrFPElementsAttr]) -> None:
    for extra, spelt_out in ((0, True), (1, False)):
        length = MAX_PRINTED_BYTES // 4 + extra
        keys, attribute = AttributeKeys(frozenset()), form(TensorType(f32, [length]), BytesAttr(bytes(4 * length)))
        assert (str(attribute) == keys.text(keys.number(attribute))) == spelt_out


def test_splat_is_not_expanded() -> None:
    """Splats are numbered without expanding them, which would take terabytes."""
    texts = [f"dense<{value}> : {kind}<1099511627775x{type_}>" for value, kind, type_ in SPLATS]
    keys = AttributeKeys(frozenset())
    first, again = ([keys.number(one_attribute(text)) for text in texts] for _ in range(2))
    assert first == again
    assert len(set(first)) == len(texts)


SPLATS = [("1", "tensor", "i64"), ("2", "tensor", "i64"), ("1", "vector", "i64"), ("0xFF800000", "tensor", "f32")]


def one_attribute(text: str) -> Attribute:
    (op,) = parse_module(f'"foo.x"() {{a = {text}}} : () -> ()').ops
    return op.attributes["a"]
