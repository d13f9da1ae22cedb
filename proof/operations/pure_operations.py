"""Operations and custom calls that the proof treats as pure: deterministic functions of their operands, attributes and
regions.

The list belongs to the proof alone and shares nothing with the passes or their rule tables (`rules/custom_calls.py`),
so a wrong entry in a rule table is not repeated here. Every other operation is an ordered effect. The list deliberately
omits these operations of StableHLO: `custom_call` (unknown code), `rng` (hidden state), `infeed`, `outfeed`, `send`,
`recv`, `after_all`, `create_token` (order), `async_start`, `async_done`, `composite` (names a function) and every
collective (all devices must take part). `partition_id` and `replica_id` are listed because they are constants on each
device, and `rng_bit_generator` because its state is an operand. Source: the StableHLO specification,
https://openxla.org/stablehlo/spec, and ChloOps.td.

All operations of arith, math and tensor are pure, because tensors are values. `tensor.empty` is assumed to return the
same elements each time: a program that reads elements before it writes them has no defined result. An sdy sharding
constraint is its operand with a sharding; the constraint may be repeated but not dropped. The operations of linalg and
scf are listed for tensors and scalars: every operation with memref operands or results is an effect, whatever its name,
and every operation with an effect in its regions is also an effect. The list omits memref; `scf.parallel`, `scf.forall`
and their reductions, whose order is unspecified; `func.call_indirect`; and operations that no current dialect has under
these names. Source: https://mlir.llvm.org/docs/Dialects/.

    stablehlo.custom_call @lapack_spotrf_ffi(%x)                       a function of its operands: the target is listed
    stablehlo.custom_call @mine(%x) {recompute.repeatable}             the same, because the user declares it
    stablehlo.custom_call @mine(%x)                                    an effect: unknown target
    stablehlo.custom_call @lapack_spotrf_ffi(%x) {has_side_effect = true}   an effect, whatever its target
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import (
    ArrayAttr,
    BFloat16Type,
    BoolAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    MemRefType,
    StringAttr,
    UnrankedMemRefType,
)
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue
from xdsl.utils.hints import isa

from ...support.operations import name_of
from ...support.type_guards import is_tensor
from .operation_parts import attributes_of
from .pure_aten import PURE_ATEN

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
    acos acosh asin asinh atan atanh bessel_i1e broadcast_add broadcast_and broadcast_atan2 broadcast_compare
    broadcast_complex broadcast_divide broadcast_maximum broadcast_minimum broadcast_multiply broadcast_next_after
    broadcast_or broadcast_polygamma broadcast_power broadcast_remainder broadcast_select broadcast_shift_left
    broadcast_shift_right_arithmetic broadcast_shift_right_logical broadcast_subtract broadcast_xor broadcast_zeta
    conj constant constant_like cosh digamma erf erf_inv erfc is_inf
    is_neg_inf is_pos_inf lgamma mulhi next_after polygamma ragged_dot scan sinh square tan top_k zeta
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

_SDY = "constant manual_computation named_computation propagation_barrier reshard sharding_constraint"

_SCF = "execute_region for if index_switch while"

PURE_OPERATIONS = frozenset(
    [f"stablehlo.{name}" for name in _STABLEHLO.split()]
    + [f"chlo.{name}" for name in _CHLO.split()]
    + [f"arith.{name}" for name in _ARITH.split()]
    + [f"math.{name}" for name in _MATH.split()]
    + [f"tensor.{name}" for name in _TENSOR.split()]
    + [f"linalg.{name}" for name in _LINALG.split()]
    + [f"scf.{name}" for name in _SCF.split()]
    + ["recompute.token"]
    + [f"sdy.{name}" for name in _SDY.split()]
).union(PURE_ATEN)

COMPUTE_THEIR_REGIONS = frozenset(
    """
    scf.execute_region scf.for scf.if scf.index_switch scf.while sdy.manual_computation
    chlo.scan sdy.named_computation stablehlo.all_reduce
    stablehlo.case stablehlo.collective_reduce stablehlo.if stablehlo.reduce_scatter
    stablehlo.map stablehlo.reduce stablehlo.reduce_window stablehlo.scatter stablehlo.select_and_scatter
    stablehlo.sort stablehlo.while tensor.generate tensor.pad
    """.split()
).union(f"linalg.{name}" for name in _LINALG.split())
"""Operations whose regions are functions of their arguments and captures: only their effects and the operands of their
terminators matter. The meaning of the regions of other operations is unknown."""

TERMINATORS = frozenset(
    """
    func.return linalg.yield recompute.yield scf.condition scf.yield sdy.return stablehlo.return tensor.yield
    """.split()
)

PRESERVED = frozenset({"sdy.sharding_constraint"})
"""Operations that must not be removed even if their results are unused; duplicates are allowed. Shardy shards the
operand of a constraint even if the constraint is unused."""

OF_THE_REGION = frozenset({"linalg.index"})
"""Operations that read the iteration of the enclosing loops. They have no operands, but their results differ from
region to region."""

OF_THE_DEVICE = frozenset({"stablehlo.partition_id", "stablehlo.replica_id"})
"""Operations that read the device on which they run. Their results are equal in two regions that run on the same
device."""

RUN_ELSEWHERE = frozenset({"sdy.manual_computation"})
"""Operations whose regions run on their own set of devices."""


_NUMBERS = frozenset({IntegerType, BFloat16Type, Float16Type, Float32Type, Float64Type})
"""Common element types without memrefs. They are checked first, by their exact class."""


class MemoryReferences:
    """Determines and caches whether types refer to memory."""

    def __init__(self):
        # The entry also holds the type, so that Python does not reuse its id.
        self._by_id = dict[int, tuple[Attribute, bool]]()

    def is_among(self, values: Iterable[SSAValue]) -> bool:
        """Return whether any value's type is or contains a memref."""
        for value in values:
            if (entry := self._by_id.get(id(value.type))) is None:
                entry = self._by_id[id(value.type)] = value.type, refers_to_memory(value.type)
            if entry[1]:
                return True
        return False


def refers_to_memory(type_: Attribute) -> bool:
    """Return whether the type is or contains a memref. An operation on a value of such a type is an effect."""
    if is_tensor(type_):
        return refers_to_memory(type_.element_type)
    if type(type_) in _NUMBERS:
        return False
    if isinstance(type_, MemRefType | UnrankedMemRefType):
        return True
    parts = type_.parameters if isinstance(type_, ParametrizedAttribute) else ()
    listed = type_.data if isa(type_, ArrayAttr) else ()
    return any(map(refers_to_memory, (*parts, *listed)))


CUSTOM_CALL = "stablehlo.custom_call"

FUNCTIONS_OF_THEIR_OPERANDS = (
    # jaxlib: jaxlib/cpu/lapack_kernels.h, jaxlib/gpu (prng, solver, blas, linalg), ducc_fft.
    "lapack_",
    "blas_",
    "ducc_fft",
    "cu_threefry2x32",
    "cu_lu_pivots_to_permutation",
    "cublas_",
    "cusolver_",
    "cusparse_",
    "hipblas_",
    "hipsolver_",
    "lu_pivots_to_permutation",
    # XLA: calls that its passes create for matrix products, convolutions and attention.
    "__cublas$",
    "__cudnn$",
    "__cusolver$",
    # XLA's expanders for TPU (xla/hlo/transforms/expanders) and jax/_src/lax/linalg.py.
    "ApproxTopK",
    "Cholesky",
    "Eigh",
    "LuDecomposition",
    "ProductOfElementaryHouseholderReflectors",
    "Qr",
    # Pallas kernels: jax/_src/tpu_custom_call.py, jax/_src/pallas.
    "tpu_custom_call",
    "mosaic_gpu",
    "__gpu$xla.gpu.triton",
    # jax.pure_callback: "a pure callback may be called multiple times, or not at all" (JAX, External callbacks).
    "xla_ffi_python_cpu_callback",
    "xla_ffi_python_gpu_callback",
    "xla_python_cpu_callback",
    "xla_python_gpu_callback",
    # Operations of CHLO and MHLO that are calls in StableHLO.
    "mhlo.",
    "chlo.",
    # Markers for the partitioner. They return their operand with a sharding (xla/service/spmd).
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
)
"""Prefixes of the targets of custom calls that are deterministic functions of their operands."""

_WITH_A_MEANING = ("xla.", "annotate_", "recompute.")
"""Prefixes of targets that XLA or this compiler interprets. Such calls are effects, unless the proof has a rule for the
target."""


def target_of(op: Operation) -> str | None:
    """Return the target of a custom call without side effects, or None for any other operation. Also return None for
    targets that XLA or this compiler interprets."""
    if name_of(op) != CUSTOM_CALL:
        return None
    attributes = attributes_of(op)
    target, effect = attributes.get("call_target_name"), attributes.get("has_side_effect")
    if not isinstance(target, StringAttr) or effect not in (None, BoolAttr.from_bool(False)):
        return None
    return None if target.data.startswith(_WITH_A_MEANING) else target.data


def is_listed(op: Operation) -> bool:
    """Return whether the operation is a side-effect-free custom call to a listed target."""
    target = target_of(op)
    return target is not None and target.startswith(FUNCTIONS_OF_THEIR_OPERANDS)


def declared_target(target: str) -> str:
    """Return the name under which a user declares that custom calls to a target are pure."""
    return f"{CUSTOM_CALL} @{target}"


def declared_name(op: Operation) -> str:
    """Return the name under which a user may have declared that a custom call is pure; empty for any other
    operation."""
    target = target_of(op)
    return "" if target is None else declared_target(target)
