"""Facts about linalg on tensors: https://mlir.llvm.org/docs/Dialects/Linalg/.

On tensors, the operands in `outs` are ordinary values. On memrefs, the operations write memory, so they are never
recomputed, like all operations on memory.
"""

from __future__ import annotations

from .body_runs import loop_points
from .facts import Facts, no_work, product, pure_if_body_is, pure_movement, table, terminator

_STRUCTURED = """
abs add batch_matvec batch_vecmat broadcast ceil contract conv_2d_nchw_fchw conv_2d_ngchw_fgchw
conv_2d_ngchw_gfchw conv_2d_nhwc_fhwc conv_2d_nhwc_hwcf conv_2d_nhwgc_gfhwc copy div div_unsigned dot elementwise erf
exp fill floor generic log map max min mul negf pooling_nchw_max powf quantized_matmul reciprocal reduce
round rsqrt select sqrt square sub tanh transpose vecmat
"""

_PRODUCTS = "batch_matmul matmul matvec"

OPERATIONS: dict[str, Facts] = {
    **table("linalg", _STRUCTURED, pure_if_body_is(no_work, loop_points)),
    **table("linalg", _PRODUCTS, product(pure_if_body_is(no_work, loop_points))),
    "linalg.index": pure_movement(),
    "linalg.yield": terminator(),
}
