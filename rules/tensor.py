"""Facts about the tensor dialect: https://mlir.llvm.org/docs/Dialects/TensorOps/.

Tensors are values, so no operation writes memory. The contents of `tensor.empty` are unspecified: two executions may
return different elements.
"""

from __future__ import annotations

from .facts import Facts, View, moves, nothing, once, pure_if_body_is, table, terminator, view

_MOVES = "concat dim empty extract extract_slice from_elements gather insert insert_slice rank scatter splat"

OPERATIONS: dict[str, Facts] = {
    **table("tensor", _MOVES, moves()),
    **table("tensor", "cast collapse_shape expand_shape reshape", view(layout=View.DENSE)),
    **table("tensor", "generate pad", pure_if_body_is(nothing, once)),
    "tensor.yield": terminator(),
}
