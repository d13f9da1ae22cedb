"""Workarounds for bugs of xDSL 0.73 and 0.74: `install()` applies them.

Each workaround is applied only if a test shows that the bug is present, and changes only the behaviour that is wrong.
docs/upstream.md describes the bugs for xDSL's developers.

Floats: xDSL parses `0x7F800001 : f32`, a signalling NaN, as 0x7FC00001, and every 8-bit NaN as the same one; it rejects
`1.0e40 : f32`, which MLIR parses as infinity; it prints infinity in `array<f32: 0x7f800000>` but cannot parse it; and
it fails on `1.0 : f80` with a traceback. Version 0.73 also rounds bf16 twice and treats all NaNs as equal. The
workaround replaces the conversions in the float types, which fixes attributes, arrays and dense constants together.

Dense constants: xDSL parses `dense<0xFF800000> : tensor<f32>`, minus infinity, as the integer 4286578688; prints
`dense<[0.0, -0.0]>` as `dense<0.0>`; and sets the quiet bit of NaNs when it prints them, all without an error.

Symbols: xDSL treats every unregistered operation as a symbol table and stops the look-up there. So `func.call @f` in
the region of a `"sdy.manual_computation"`, where JAX's `shard_map` puts calls, finds no function. The workaround
continues the look-up outside the operation. xDSL also walks the whole table for each symbol; `symbols_remembered`
caches the tables while a module is verified.

`tensor.reshape`: xDSL multiplies unknown extents as if they were -1, and therefore refuses to reshape `tensor<128xf32>`
to `tensor<?x?xf32>`.

`arith` on tensors: see `arith_on_tensors.py`. Locations: see `xdsl_locations.py`.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from io import StringIO
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyDenseElement,
    AnyFloat,
    BFloat16Type,
    Builtin,
    BytesAttr,
    ComplexType,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    Float8E4M3FNType,
    Float16Type,
    Float32Type,
    FloatData,
    IndexType,
    ModuleOp,
    RankedStructure,
    ReducedPrecisionFloatType,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnregisteredOp,
    f32,
    f80,
)
from xdsl.dialects.func import FuncOp
from xdsl.dialects.tensor import ReshapeOp
from xdsl.ir import Block, Operation, Region
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import SymbolOpInterface, SymbolTable
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.test_value import create_ssa_value

from ..dialects.dense import SplatBytes
from ..support.type_guards import AnyDense
from .arith_on_tensors import repair_arith
from .numbers import decode_nan, double_bits, encode_float, has_nan, is_wide, pack_floats, parse_dense_array
from .xdsl_locations import repair_locations

SOME_NAN: dict[type[AnyFloat], int] = {
    Float32Type: 0x7F800001,
    Float16Type: 0x7C01,
    BFloat16Type: 0x7F81,
    Float8E4M3FNType: 0xFF,
}
"""For each type, a NaN with which `converts_exactly` tests the conversions."""
_ROUNDED_TWICE = 1.0 + 2.0**-8 + 2.0**-30
"""A number that becomes a tie for bf16 if it is first rounded to f32, and then rounds down instead of up."""
_xdsl_prints = Printer.print_float


def repair_floats() -> None:
    """Apply the workarounds for floats. Never raises: if xDSL's internals are not as expected, warns on standard
    error."""
    try:
        for kind in (Float16Type(), BFloat16Type(), Float32Type()):
            if not converts_exactly(kind):
                _repair_type(type(kind))
        if not converts_exactly(Float8E4M3FNType()):
            _repair_small_types()
        if not tells_nans_apart():
            FloatData.__eq__, FloatData.__hash__ = _equal, _hash
        if not prints_wide_floats():
            Printer.print_float = _print
        if not reads_bits_in_arrays():
            AttrParser._parse_builtin_densearray_attr = parse_dense_array  # pyright: ignore[reportPrivateUsage]
    except Exception as error:
        print(f"recompute: xDSL's floats are not repaired: {error}", file=sys.stderr)


def converts_exactly(kind: AnyFloat) -> bool:
    """Return whether NaNs keep their bits, numbers out of range become infinity, and rounding happens once."""
    nan = SOME_NAN[type(kind)]
    (unpacked,) = kind.unpack(nan.to_bytes(kind.size, "little"), 1)
    return all(_pack(value, kind) == encode_float(value, kind) for value in (_ROUNDED_TWICE, 1.0e300)) and (
        double_bits(unpacked) == double_bits(decode_nan(nan, kind) or 0.0) and _pack(unpacked, kind) == nan
    )


def _pack(value: float, kind: AnyFloat) -> int | None:
    try:
        return int.from_bytes(kind.pack((value,)), "little")
    except OverflowError:
        return None


def _repair_type(kind: Any) -> None:
    """Replace the conversion methods of f16, bf16 or f32. Numbers other than NaNs are unpacked as before."""
    unpacks, iterates = kind.unpack, kind.iter_unpack

    def pack(self: AnyFloat, values: Sequence[float]) -> bytes:
        return pack_floats(values, self)

    def unpack(self: AnyFloat, buffer: bytes, num: int) -> tuple[float, ...]:
        return tuple(_with_nans(unpacks(self, buffer, num), buffer, self))

    def iter_unpack(self: AnyFloat, buffer: bytes) -> Iterator[float]:
        return _with_nans(iterates(self, buffer), buffer, self)

    kind.pack, kind.unpack, kind.iter_unpack = pack, unpack, iter_unpack


def _with_nans(values: Iterable[float], buffer: bytes, kind: AnyFloat) -> Iterator[float]:
    """Yield the values, replacing each NaN by the NaN decoded from the buffer."""
    for index, value in enumerate(values):
        nan = None if value == value else decode_nan(_bits_at(index, buffer, kind.size), kind)
        yield value if nan is None else nan


def _bits_at(index: int, buffer: bytes, size: int) -> int:
    return int.from_bytes(memoryview(buffer)[index * size : (index + 1) * size], "little")


def _repair_small_types() -> None:
    """Replace the conversions of the types that xDSL converts bit by bit: types of at most eight bits, and tf32."""
    xdsl_decodes, xdsl_encodes = ReducedPrecisionFloatType.decode_bits, ReducedPrecisionFloatType.encode_bits

    def decode(self: Any, bits: int) -> float:
        nan = decode_nan(bits, self)
        return xdsl_decodes(self, bits) if nan is None else nan

    def encode(self: Any, value: float) -> int:
        return xdsl_encodes(self, value) if value == value or not has_nan(self) else encode_float(value, self)

    ReducedPrecisionFloatType.decode_bits, ReducedPrecisionFloatType.encode_bits = decode, encode


def tells_nans_apart() -> bool:
    first, other = (FloatData(decode_nan(bits, f32) or 0.0) for bits in (0x7F800001, 0x7FC00001))
    same = FloatData(decode_nan(0x7F800001, f32) or 0.0)
    return first == same and hash(first) == hash(same) and first != other and FloatData(0.0) != FloatData(-0.0)


def _equal(self: FloatData, other: object) -> bool:
    return isinstance(other, FloatData) and double_bits(self.data) == double_bits(other.data)


def _hash(self: FloatData) -> int:
    return hash(double_bits(self.data))


def prints_wide_floats() -> bool:
    try:
        Printer(StringIO()).print_float(1.0, f80)
    except NotImplementedError:
        return False
    return True


def _print(self: Printer, value: float, type: AnyFloat) -> None:
    """Replace `Printer.print_float`: numbers of type f80 and f128, which are stored as doubles, are printed as
    doubles."""
    if not is_wide(type):
        return _xdsl_prints(self, value, type)
    if not math.isfinite(value):
        raise ValueError(
            f"cannot print {value} as {type}: its bit pattern is unknown; write it as a hexadecimal constant"
        )
    return self.print_string(f"{value:.16e}")


def reads_bits_in_arrays() -> bool:
    context = Context()
    context.load_dialect(Builtin)
    try:
        parsed = Parser(context, "array<f32: 0x7F800001>").parse_attribute()
    except ParseError:
        return False
    return isinstance(parsed, DenseArrayBase) and parsed.data.data == b"\x01\x00\x80\x7f"


MINUS_INFINITY = b"\x00\x00\x80\xff"
SIGNALLING_NAN = b"\x01\x00\x80\x7f"
TWO_ZEROS = b"\x00\x00\x00\x00\x00\x00\x00\x80"
_BARE_HEXADECIMAL = re.compile(r'(?<!")\b0[xX]')

_xdsl_parses = AttrParser.parse_dense_int_or_fp_elements_attr
_xdsl_prints_dense = DenseIntOrFPElementsAttr.print_without_type


def repair_dense() -> None:
    """Apply the workarounds for dense constants. Never raises: if xDSL's internals are not as expected, warns on
    standard error."""
    try:
        if not reads_exactly():
            AttrParser.parse_dense_int_or_fp_elements_attr = _parse
        if not writes_exactly():
            DenseIntOrFPElementsAttr.print_without_type = _print_dense
    except Exception as error:
        print(f"recompute: xDSL's dense constants are not repaired: {error}", file=sys.stderr)


def reads_exactly() -> bool:
    context = Context()
    context.load_dialect(Builtin)
    parsed = Parser(context, "dense<0xFF800000> : tensor<f32>").parse_attribute()
    return isinstance(parsed, DenseIntOrFPElementsAttr) and parsed.data.data == MINUS_INFINITY


def writes_exactly() -> bool:
    nan = DenseIntOrFPElementsAttr(TensorType(f32, []), BytesAttr(SIGNALLING_NAN))
    zeros = DenseIntOrFPElementsAttr(TensorType(f32, [2]), BytesAttr(TWO_ZEROS))
    return "7f800001" in _text(nan).lower() and "-0" in _text(zeros)


def _text(attribute: AnyDense) -> str:
    stream = StringIO()
    attribute.print_without_type(Printer(stream))
    return stream.getvalue()


def _parse(self: AttrParser, type: RankedStructure[AnyDenseElement] | None) -> DenseIntOrFPElementsAttr:
    """Replace `AttrParser.parse_dense_int_or_fp_elements_attr`: hexadecimal numbers are bit patterns of the element
    type."""
    from ..dialects.dense import to_standard
    from ..dialects.dense_literal import parse_dense

    content, start = self.lexer.input.content, self.pos
    if not _BARE_HEXADECIMAL.search(content, start, max(content.find(">", start), start)):
        return _xdsl_parses(self, type)
    try:
        return to_standard(*parse_dense(self, type))
    except ParseError as error:
        self._resume_from(start)  # pyright: ignore[reportPrivateUsage]
        if (integers := _parse_integers(self, type)) is None:
            raise error
        return integers


def _parse_integers(parser: AttrParser, type: RankedStructure[AnyDenseElement] | None) -> AnyDense | None:
    """Parse with xDSL's method, for integers of widths that numpy lacks; None for floats, which xDSL parses
    incorrectly."""
    try:
        parsed = _xdsl_parses(parser, type)
    except (ParseError, NotImplementedError):
        return None
    return None if _holds_floats(parsed) else parsed


def _print_dense(self: AnyDense, printer: Printer) -> None:
    """Replace `DenseIntOrFPElementsAttr.print_without_type`: NaNs keep their bits, and zeros their sign."""
    from ..dialects.dense import standard_text

    is_stored_once = isinstance(self.data, SplatBytes)
    text = standard_text(self) if is_stored_once or (_holds_floats(self) and _loses_bits(self)) else None
    if text is None:
        return _xdsl_prints_dense(self, printer)
    return printer.print_string(text)


def _holds_floats(attribute: AnyDense) -> bool:
    element = attribute.get_element_type()
    return isinstance(element, AnyFloat) or (
        isinstance(element, ComplexType) and isinstance(element.element_type, AnyFloat)
    )


def _loses_bits(attribute: AnyDense) -> bool:
    """Return whether xDSL would print the constant inexactly: a value is a NaN, or all values compare equal but differ
    in bits."""
    values, data = attribute.get_values(), attribute.data.data
    if not values:
        return False
    if any(value != value for value in values):
        return True
    size = len(data) // len(values)
    return attribute.is_splat() and data != data[:size] * len(values)


_xdsl_looks_up = SymbolTable.lookup_symbol

Symbols = dict[str, Operation]
_CACHED_TABLES: ContextVar[dict[Operation, Symbols] | None] = ContextVar("cached symbol tables", default=None)


@contextmanager
def symbols_remembered() -> Generator[None, None, None]:
    """Cache symbol tables within the context, in which no symbol may be added, removed or renamed."""
    token = _CACHED_TABLES.set({})
    try:
        yield
    finally:
        _CACHED_TABLES.reset(token)


def repair_symbols() -> None:
    """Apply the workaround for symbols. Never raises: if xDSL's internals are not as expected, warns on standard
    error."""
    try:
        if not looks_around_unknown_operations():
            SymbolTable.lookup_symbol = staticmethod(_lookup)
    except Exception as error:
        print(f"recompute: xDSL's symbol tables are not repaired: {error}", file=sys.stderr)


def looks_around_unknown_operations() -> bool:
    function = FuncOp("f", ((), ()))
    inside = UnregisteredOp.with_name("any.thing").create(regions=[Region(Block())])
    outer = UnregisteredOp.with_name("any.thing").create(regions=[Region(Block([inside]))])
    ModuleOp([function, outer])
    return SymbolTable.lookup_symbol(inside, "f") is function


def _lookup(op: Operation, name: str | StringAttr | SymbolRefAttr) -> Operation | None:
    """Replace `SymbolTable.lookup_symbol`: continue outside unregistered operations, up to the nearest registered
    table."""
    table = _nearest_table(op)
    while isinstance(table, UnregisteredOp) and (outer := table.parent_op()) is not None:
        if _is_like_a_table(table) and (symbol := _look_up_in(table, name)) is not None:
            return symbol
        table = _nearest_table(outer)
    return _look_up_in(op if table is None else table, name)


def _look_up_in(table: Operation, name: str | StringAttr | SymbolRefAttr) -> Operation | None:
    """Look up a name in one symbol table as xDSL does, using the cached table if there is one."""
    tables = _CACHED_TABLES.get()
    if tables is None or not _is_like_a_table(table) or (isinstance(name, SymbolRefAttr) and name.nested_references):
        return _xdsl_looks_up(table, name)
    if (symbols := tables.get(table)) is None:
        symbols = tables[table] = _symbols_of(table)
    return symbols.get(_text_of(name))


def _symbols_of(table: Operation) -> Symbols:
    """Return the operations of the table by symbol name; of several with the same name, the first."""
    symbols: Symbols = {}
    for op in table.regions[0].block.ops:
        if (trait := op.get_trait(SymbolOpInterface)) is not None and (name := trait.get_sym_attr_name(op)) is not None:
            symbols.setdefault(name.data, op)
    return symbols


def _text_of(name: str | StringAttr | SymbolRefAttr) -> str:
    if isinstance(name, SymbolRefAttr):
        return name.root_reference.data
    return name.data if isinstance(name, StringAttr) else name


def _nearest_table(op: Operation | None) -> Operation | None:
    while op is not None and not op.has_trait(SymbolTable):
        op = op.parent_op()
    return op


def _is_like_a_table(op: Operation) -> bool:
    return len(op.regions) == 1 and len(op.regions[0].blocks) == 1


_xdsl_verifies_reshape = ReshapeOp.verify_


def repair_reshape() -> None:
    """Apply the workaround for `tensor.reshape`."""
    if not accepts_unknown_extents():
        ReshapeOp.verify_ = _verify_reshape


def accepts_unknown_extents() -> bool:
    vector, shape = (create_ssa_value(TensorType(element, [2])) for element in (f32, IndexType()))
    reshape = ReshapeOp(vector, shape, TensorType(f32, [DYNAMIC_INDEX, DYNAMIC_INDEX]))
    try:
        reshape.verify_()
    except VerifyException:
        return False
    return True


def _verify_reshape(self: ReshapeOp) -> None:
    """Replace `ReshapeOp.verify_`: the numbers of elements are compared only if all extents are known."""
    shapes = [cast(TensorType, value.type).get_shape() for value in (self.source, self.shape, self.result)]
    if all(DYNAMIC_INDEX not in shape for shape in shapes):
        return _xdsl_verifies_reshape(self)
    source, shape, result = shapes
    if cast(TensorType, self.source.type).element_type != self.result.type.element_type:
        raise VerifyException("element types of source and result tensor types should be the same")
    if len(shape) != 1:
        raise VerifyException("shape tensor must have a rank one")
    if shape[0] == DYNAMIC_INDEX:
        raise VerifyException("cannot use shape operand with dynamic length to reshape to a tensor of known rank")
    if shape[0] != len(result):
        raise VerifyException("length of shape operand differs from the result's tensor rank")
    if DYNAMIC_INDEX not in source + result and math.prod(source) != math.prod(result):
        raise VerifyException("source and result tensor should have the same number of elements")


def install() -> None:
    """Apply the workarounds to xDSL, each only if its bug is present. Repeated calls do nothing."""
    repair_floats()
    repair_dense()
    repair_symbols()
    repair_reshape()
    repair_arith()
    repair_locations()
