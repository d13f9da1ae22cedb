"""What the equivalence check takes for pure: a deterministic function of operands, attributes and regions, no effect.

The checker's own list, shared with no pass and no rule table, so that a wrong entry there is not repeated here.
Whatever is not on it is an ordered effect. Left out on purpose, though StableHLO has them:
`custom_call` (unknown code), `rng` (hidden state), `infeed`, `outfeed`, `send`, `recv`, `after_all`, `create_token`
(order), `async_start`, `async_done`, `composite` (names a function) and every collective (all devices must take part).
`partition_id` and `replica_id` are constants of the device; `rng_bit_generator` takes its state as an operand.
Source: the StableHLO specification, https://openxla.org/stablehlo/spec, and ChloOps.td.

arith and math are pure throughout. tensor is, since tensors are values; `tensor.empty` is taken to hold the same each
time, so a program that reads what nobody has written has no result of its own. A sharding constraint of sdy is its
operand, laid out over the devices in some way; it may be repeated, not dropped. linalg and scf are here for tensors and
scalars: whatever takes or makes a memref is an effect, whatever its name, and so is a region with an effect in it. Left
out: memref; `scf.parallel`, `scf.forall` and their reductions, whose order is left open; `func.call_indirect`; and
operations that no dialect of today has under these names.
Source: https://mlir.llvm.org/docs/Dialects/.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import (
    ArrayAttr,
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    MemRefType,
    UnrankedMemRefType,
)
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue
from xdsl.utils.hints import isa

from ..support.type_guards import is_tensor

_STABLEHLO = """
    abs add and atan2 batch_norm_grad batch_norm_inference batch_norm_training bitcast_convert broadcast
    broadcast_in_dim case cbrt ceil cholesky clamp compare complex concatenate constant convert convolution cosine
    count_leading_zeros divide dot dot_general dynamic_broadcast_in_dim dynamic_conv dynamic_gather dynamic_iota
    dynamic_pad dynamic_reshape dynamic_slice dynamic_update_slice einsum exponential exponential_minus_one fft floor
    gather get_dimension_size get_tuple_element if imag iota is_finite log log_plus_one logistic map maximum minimum
    multiply negate not or pad partition_id popcnt power real real_dynamic_slice reduce reduce_precision reduce_window
    remainder replica_id reshape reverse rng_bit_generator round_nearest_afz round_nearest_even rsqrt scatter select
    select_and_scatter set_dimension_size shift_left shift_right_arithmetic shift_right_logical sign sine slice sort
    sqrt subtract tan tanh torch_index_select transpose triangular_solve tuple unary_einsum uniform_dequantize
    uniform_quantize while xor
"""

_CHLO = """
    acos acosh asin asinh atan atanh bessel_i1e conj constant constant_like cosh digamma erf erf_inv erfc is_inf
    is_neg_inf is_pos_inf lgamma mulhi next_after polygamma ragged_dot sinh square tan top_k zeta
"""

_ARITH = """
    addf addi addui_extended andi bitcast ceildivsi ceildivui cmpf cmpi constant divf divsi divui extf extsi extui
    floordivsi fptosi fptoui index_cast index_castui maximumf maxnumf maxsi maxui minimumf minnumf minsi minui mulf
    muli mulsi_extended mului_extended negf ori remf remsi remui select shli shrsi shrui sitofp subf subi truncf trunci
    uitofp xori
"""

_MATH = """
    absf absi acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh ctlz ctpop cttz erf erfc exp exp2 expm1
    floor fma fpowi ipowi isfinite isinf isnan isnormal log log10 log1p log2 powf round roundeven rsqrt sin sincos sinh
    sqrt tan tanh trunc
"""

_TENSOR = """
    cast collapse_shape concat dim empty expand_shape extract extract_slice from_elements gather generate insert
    insert_slice pad rank reshape scatter splat
"""

_LINALG = """
    abs add batch_matmul batch_matvec batch_vecmat broadcast ceil contract conv_2d_nchw_fchw conv_2d_ngchw_fgchw
    conv_2d_ngchw_gfchw conv_2d_nhwc_fhwc conv_2d_nhwc_hwcf conv_2d_nhwgc_gfhwc copy div div_unsigned dot elementwise
    erf exp fill floor generic index log map matmul matvec max min mul negf pooling_nchw_max powf quantized_matmul
    reciprocal reduce round rsqrt select sqrt square sub tanh transpose vecmat
"""

_SCF = "execute_region for if index_switch while"

PURE_OPERATIONS = frozenset(
    [f"stablehlo.{name}" for name in _STABLEHLO.split()]
    + [f"chlo.{name}" for name in _CHLO.split()]
    + [f"arith.{name}" for name in _ARITH.split()]
    + [f"math.{name}" for name in _MATH.split()]
    + [f"tensor.{name}" for name in _TENSOR.split()]
    + [f"linalg.{name}" for name in _LINALG.split()]
    + [f"scf.{name}" for name in _SCF.split()]
    + ["recompute.token", "sdy.manual_computation", "sdy.sharding_constraint"]
)

COMPUTE_THEIR_REGIONS = frozenset(
    """
    scf.execute_region scf.for scf.if scf.index_switch scf.while sdy.manual_computation stablehlo.all_reduce
    stablehlo.case stablehlo.if stablehlo.reduce_scatter
    stablehlo.map stablehlo.reduce stablehlo.reduce_window stablehlo.scatter stablehlo.select_and_scatter
    stablehlo.sort stablehlo.while tensor.generate tensor.pad
    """.split()
).union(f"linalg.{name}" for name in _LINALG.split())
"""A region of these is a function of its arguments and of what it captures: all that counts is what its terminator
reads, and its effects. A region of anything else may mean whatever its owner likes."""

TERMINATORS = frozenset(
    """
    func.return linalg.yield recompute.yield scf.condition scf.yield sdy.return stablehlo.return tensor.yield
    """.split()
)

KEPT = frozenset({"sdy.sharding_constraint"})
"""They compute nothing that anybody has to read, and still may not vanish; said twice is as good as said once.
Shardy shards the operand of a constraint that nobody reads."""

OF_THE_REGION = frozenset({"linalg.index"})
"""They read which point of the loops around them runs: not the same in two regions, though nothing is an operand."""

OF_THE_PLACE = frozenset({"stablehlo.partition_id", "stablehlo.replica_id"})
"""They read on which device they run: the same in two regions of one device."""

RUN_ELSEWHERE = frozenset({"sdy.manual_computation"})
"""Their regions run on devices of their own."""


_NUMBERS = frozenset({IntegerType, BFloat16Type, Float16Type, Float32Type, Float64Type})
"""What nearly every tensor holds, asked for first: exactly these classes."""


class Memory:
    """Finds references to memory among values; each type is looked at once."""

    def __init__(self):
        # The type is kept beside the answer, so that its id is not given to another one.
        self._seen = dict[int, tuple[Attribute, bool]]()

    def is_among(self, values: Iterable[SSAValue]) -> bool:
        for value in values:
            if (known := self._seen.get(id(value.type))) is None:
                known = self._seen[id(value.type)] = value.type, refers_to_memory(value.type)
            if known[1]:
                return True
        return False


def refers_to_memory(type_: Attribute) -> bool:
    """A memref, or a type that holds one: whatever touches it is an effect."""
    if is_tensor(type_):
        return refers_to_memory(type_.element_type)
    if type(type_) in _NUMBERS:
        return False
    if isinstance(type_, MemRefType | UnrankedMemRefType):
        return True
    parts = type_.parameters if isinstance(type_, ParametrizedAttribute) else ()
    listed = type_.data if isa(type_, ArrayAttr) else ()
    return any(map(refers_to_memory, (*parts, *listed)))
