"""Facts about the memref dialect: https://mlir.llvm.org/docs/Dialects/MemRef/.

No operation is pure, because memory can change between two reads.
"""

from __future__ import annotations

from .facts import Facts, OpClass, impure, reads_memory, table, terminator, writes_memory

_WRITES = "atomic_rmw copy dealloc dma_start dma_wait generic_atomic_rmw prefetch realloc store"
_ALLOCATES = impure("it allocates memory, and a copy would allocate different memory", OpClass.WRITES_MEMORY)
_REFERS = """
alloca_scope assume_alignment cast collapse_shape dim expand_shape extract_aligned_pointer_as_index
extract_strided_metadata get_global memory_space_cast rank reinterpret_cast subview transpose view
"""

OPERATIONS: dict[str, Facts] = {
    "memref.load": reads_memory(),
    **table("memref", _WRITES, writes_memory()),
    **table("memref", "alloc alloca", _ALLOCATES),
    **table("memref", _REFERS, impure("it refers to memory, which may change", OpClass.READS_MEMORY)),
    "memref.global": impure("it declares memory"),
    "memref.alloca_scope.return": terminator(),
}
