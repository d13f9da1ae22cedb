"""Facts about custom calls, which determine whether a call may be recomputed.

    stablehlo.custom_call @lapack_spotrf_ffi(%x)                  pure: a known target
    stablehlo.custom_call @mine(%x) {recompute.repeatable}        pure: declared by the user
    stablehlo.custom_call @mine(%x)                               impure: its results are saved
    stablehlo.custom_call @log(%x) {has_side_effect = true}       impure, whatever its target

The proof has its own list (`proof/operations/pure_operations.py`).
"""

from __future__ import annotations

from ..dialects.names import Names
from ..dialects.stablehlo.custom_call import CustomCallOp
from .facts import Facts, impure, pure

CUSTOM_CALL = "stablehlo.custom_call"

KNOWN_TARGETS = (
    "lapack_",  # jaxlib/cpu/lapack_kernels.h: factorizations and solvers on CPU
    "blas_",
    "ducc_fft",  # jaxlib/cpu/ducc_fft_kernels.h
    "cu_threefry2x32",  # jaxlib/gpu/prng.cc: random bits from a key
    "cu_lu_pivots_to_permutation",
    "lu_pivots_to_permutation",
    "cublas_",  # jaxlib/gpu/blas.cc, solver.cc, sparse.cc and the hip versions
    "cusolver_",
    "cusparse_",
    "hipblas_",
    "hipsolver_",
    "__cublas$",  # created by XLA: xla/service/gpu/cublas_cudnn.h
    "__cudnn$",
    "__cusolver$",
    "ApproxTopK",  # jax/_src/lax/ann.py
    "Cholesky",  # jax/_src/lax/linalg.py, for TPU
    "Eigh",
    "LuDecomposition",
    "ProductOfElementaryHouseholderReflectors",
    "Qr",
    "tpu_custom_call",  # Pallas: jax/_src/tpu_custom_call.py
    "mosaic_gpu",
    "__gpu$xla.gpu.triton",
    "xla_ffi_python_cpu_callback",  # jax.pure_callback: jax/_src/callback.py
    "xla_ffi_python_gpu_callback",
    "xla_python_cpu_callback",
    "xla_python_gpu_callback",
    "mhlo.",  # operations that are calls in StableHLO: stablehlo/transforms/ChloLegalizeToStablehlo.cpp
    "chlo.",
    "Sharding",  # returns its operand with a sharding: xla/service/sharding_propagation.cc
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
)
"""Target prefixes of calls that are functions of their operands, each with the code that emits or defines the calls."""

_PURE = pure()


def custom_call_facts(op: CustomCallOp) -> Facts:
    """Return the facts about a custom call that is neither a mark nor a placement."""
    target = op.call_target_name.data
    if has_side_effect(op):
        return impure(f"the custom call @{target} has side effects")
    if target.startswith(KNOWN_TARGETS) or Names.REPEATABLE in op.attributes:
        return _PURE
    return impure(
        f"the custom call @{target} is not known to return the same value each time; if it does, declare it with "
        f"repeatable={target}"
    )


def has_side_effect(op: CustomCallOp) -> bool:
    return op.has_side_effect is not None and bool(op.has_side_effect.value.data)


def is_repeatable_by_word(op: CustomCallOp) -> bool:
    """Return whether only a declaration by the user can make the call repeatable, because it has no side effect but an
    unknown target."""
    return not has_side_effect(op) and not op.call_target_name.data.startswith(KNOWN_TARGETS)
