"""Operations that this harness treats as pure, according to the dialects' specifications, not to the prover's list.

StableHLO: https://openxla.org/stablehlo/spec; the others: https://mlir.llvm.org/docs/Dialects/.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..tree import Block, Operation

_STABLEHLO = """
    abs add and atan2 batch_norm_grad batch_norm_inference batch_norm_training bitcast_convert broadcast
    broadcast_in_dim case cbrt ceil cholesky clamp compare complex concatenate constant convert convolution cosine
    count_leading_zeros divide dot dot_general dynamic_broadcast_in_dim dynamic_conv dynamic_gather dynamic_iota
    dynamic_pad dynamic_reshape dynamic_slice dynamic_update_slice exponential exponential_minus_one fft floor gather
    get_dimension_size get_tuple_element if imag iota is_finite log log_plus_one logistic map maximum minimum multiply
    negate not or pad popcnt power real real_dynamic_slice reduce reduce_precision reduce_window remainder reshape
    reverse rng_bit_generator round_nearest_afz round_nearest_even rsqrt scatter select select_and_scatter shift_left
    shift_right_arithmetic shift_right_logical sign sine slice sort sqrt subtract tan tanh transpose triangular_solve
    tuple uniform_dequantize uniform_quantize while xor partition_id replica_id optimization_barrier
"""
_CHLO = """
    acos acosh asin asinh atan atanh bessel_i1e conj constant cosh digamma erf erf_inv erfc is_inf is_neg_inf
    is_pos_inf lgamma next_after polygamma sinh square tan top_k zeta
"""
_ARITH = """
    addf addi andi bitcast cmpf cmpi constant divf extf extsi extui fptosi fptoui index_cast index_castui maximumf
    maxnumf maxsi maxui minimumf minnumf minsi minui mulf muli negf ori remf select shli shrsi shrui sitofp subf subi
    truncf trunci uitofp xori divsi divui remsi remui ceildivsi floordivsi addui_extended mulsi_extended mului_extended
"""
_MATH = """
    absf absi atan2 cbrt ceil copysign cos cosh erf exp exp2 expm1 floor fma log log10 log1p log2 powf round rsqrt sin
    sinh sqrt tan tanh
"""
_TENSOR = """
    cast collapse_shape concat dim empty expand_shape extract extract_slice from_elements generate insert insert_slice
    pad rank reshape splat
"""
_SCF = "execute_region for if index_switch while"
_LINALG = "generic index fill matmul"

NAMES = frozenset(
    f"{dialect}.{name}"
    for dialect, names in (
        ("stablehlo", _STABLEHLO),
        ("chlo", _CHLO),
        ("arith", _ARITH),
        ("math", _MATH),
        ("tensor", _TENSOR),
        ("scf", _SCF),
        ("linalg", _LINALG),
    )
    for name in names.split()
) | {"recompute.token", "sdy.sharding_constraint", "sdy.manual_computation", "attributed"}
KEPT_WHEN_UNREAD = frozenset({"sdy.sharding_constraint"})
"""Pure, but what they say holds for values that others read too."""
OF_THE_DEVICE = frozenset({"stablehlo.partition_id", "stablehlo.replica_id"})
"""Constants of the device: an unknown operation may run its regions on another one."""
OF_THE_REGION = frozenset({"linalg.index"})
"""They read the loops around them."""
MAY_FAIL = frozenset(f"arith.{name}" for name in "divsi divui remsi remui ceildivsi floordivsi".split()) | {
    "tensor.extract"
}
"""Undefined for some operands: not to be run where they would not have been run."""
ENDS = frozenset("stablehlo.return scf.yield scf.condition sdy.return linalg.yield tensor.yield".split())
_OTHERS = """
    stablehlo.all_reduce stablehlo.reduce_scatter sdy.manual_computation recompute.segment recompute.gradient func.func
"""
RUNS_ITS_REGIONS = NAMES | frozenset(_OTHERS.split())
"""What its regions mean is what they compute. Any other region is taken as it stands."""


def blocks_run(op: Operation) -> Iterator[Block]:
    """Return the blocks of an operation that is known to run them unchanged; empty for others."""
    return op.blocks() if op.name in RUNS_ITS_REGIONS else iter(())


def as_they_stand(module: Operation) -> Iterator[Operation]:
    """Yield the operations in regions that are compared literally."""
    for op in module.walk():
        if op is not module and op.name not in RUNS_ITS_REGIONS:
            yield from (inner for inner in op.walk() if inner is not op)


def is_pure(op: Operation) -> bool:
    """Return whether neither the operation nor its regions have an effect; any use of memory is an effect."""
    if op.name not in NAMES or op.successors:
        return False
    if any("memref" in value.type for value in (*op.operands, *op.results)):
        return False
    return all(is_pure(inner) or inner.name in ENDS for block in op.blocks() for inner in block.operations)
