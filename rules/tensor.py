"""Facts about the tensor dialect: https://mlir.llvm.org/docs/Dialects/TensorOps/.

Tensors are values, so no operation writes memory. The contents of `tensor.empty` are unspecified: two executions may
return different elements.
"""

from __future__ import annotations

from .facts import Facts, View, no_work, once, pure_if_body_is, pure_movement, table, terminator, view

_MOVES = "concat dim empty extract extract_slice from_elements gather insert insert_slice rank scatter splat"

OPERATIONS: dict[str, Facts] = {
    **table("tensor", _MOVES, pure_movement()),
    **table("tensor", "cast collapse_shape expand_shape reshape", view(layout=View.DENSE)),
    **table("tensor", "generate pad", pure_if_body_is(no_work, once)),
    "tensor.yield": terminator(),
}
