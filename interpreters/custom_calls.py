"""Custom calls that the proof treats as functions of their operands; all others are effects.

    stablehlo.custom_call @lapack_spotrf_ffi(%x)                       a function of its operands: on the list below
    stablehlo.custom_call @mine(%x) {recompute.repeatable}             the same as declared by the user, listed as such
    stablehlo.custom_call @mine(%x)                                    an effect: their number and order are compared
    stablehlo.custom_call @lapack_spotrf_ffi(%x) {has_side_effect = true}   an effect, whatever its target

The list is the proof's own: that of the passes is `rules/custom_calls.py`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, StringAttr
from xdsl.ir import Operation

from .anatomy import attributes_of, name_of

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
    # XLA: calls that its own passes write for matrix products, convolutions and attention.
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
    # Operations of CHLO and MHLO that StableHLO writes as calls.
    "mhlo.",
    "chlo.",
    # Markers for the partitioner: the operand, laid out over devices (xla/service/spmd).
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
)
"""Prefixes of targets."""

_WITH_A_MEANING = ("xla.", "annotate_", "recompute.")
"""Prefixes of calls that a compiler looks for, and of ours: without a rule of their own they are effects."""


def target_of(op: Operation) -> str | None:
    """The target of a custom call without side effects; None for other operations."""
    if name_of(op) != CUSTOM_CALL:
        return None
    attributes = attributes_of(op)
    target, effect = attributes.get("call_target_name"), attributes.get("has_side_effect")
    if not isinstance(target, StringAttr) or effect not in (None, BoolAttr.from_bool(False)):
        return None
    return None if target.data.startswith(_WITH_A_MEANING) else target.data


def is_listed(op: Operation) -> bool:
    """Whether an operation is a call of a target on the list, without side effects."""
    target = target_of(op)
    return target is not None and target.startswith(FUNCTIONS_OF_THEIR_OPERANDS)


def declared_target(target: str) -> str:
    """The name by which a user declares the calls of a target to be pure."""
    return f"{CUSTOM_CALL} @{target}"


def declared_name(op: Operation) -> str:
    """The name by which a user may have declared an operation to be pure; "" if there is none."""
    target = target_of(op)
    return "" if target is None else declared_target(target)
