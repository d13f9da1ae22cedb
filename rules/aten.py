"""Facts about ATen and the other operations of `dialects/torch.py` that schemas and tags do not contain.

`dialects/aten.py` lists the names of operations according to their schemas and tags. PyTorch allocates every result at
run time, including constants and returned values.
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import FixedBitwidthType, IntegerAttr
from xdsl.ir import Attribute, Operation

from ..dialects import aten
from ..dialects.torch import DRAW, FLOPS, GET_ATTR, PREFIX, READ, SEEDED, STORED
from ..support.type_guards import is_shaped
from .body_runs import elements
from .facts import Facts, cast, communication, constant, impure, no_work, product, pure, random, view
from .flop_counts import per_element

_OVERWRITTEN = "it reads an argument that the step overwrites"
_ADVANCES = "it advances the generator of random numbers"
_WRITES = "it writes to an operand"
_INDUCTOR_OPERATIONS = """
prims._low_memory_max_pool_offsets_to_indices.default prims._low_memory_max_pool_with_offsets.default prims.fma.default
prims.inductor_force_stride_order.default prims.inductor_lookup_seed.default prims.inductor_randint.default
prims.inductor_random.default prims.prepare_softmax_online.default
"""
"""Operations of Inductor. Its random operations are functions of a seed operand. The draw of the seeds is never
copied."""
_MEANS = """
aten.binary_cross_entropy.default aten.mse_loss.default aten.smooth_l1_loss.default aten.soft_margin_loss.default
"""
"""Losses that reduce the values of all elements in place, so that the scalar result occupies the storage of these
values."""
_ONE_EACH = per_element(1)

_CASTS = "aten._to_copy.default prims.convert_element_type.default"
_PRODUCTS = """
aten._scaled_dot_product_attention_math.default aten._scaled_dot_product_cudnn_attention.default
aten._scaled_dot_product_efficient_attention.default aten._scaled_dot_product_flash_attention.default
aten._scaled_dot_product_flash_attention_for_cpu.default aten._scaled_dot_product_fused_attention_overrideable.default
aten._flash_attention_forward.default aten._efficient_attention_forward.default
aten.addbmm.default aten.addmm.default aten.addmv.default aten.addr.default aten.baddbmm.default aten.bmm.default
aten.bmm.dtype aten.convolution.default aten.dot.default aten.linear.default aten.mkldnn_convolution.default
aten.mm.default aten.mm.dtype aten.mv.default aten._int_mm.default aten._scaled_mm.default
"""
_MOVES = """
aten.arange.default aten.arange.start aten.arange.start_step aten.cat.default aten.clone.default
aten.constant_pad_nd.default aten.copy.default aten.embedding.default aten.empty.memory_format
aten.empty_like.default aten.empty_strided.default aten.eye.default aten.fill.Scalar aten.flip.default
aten.full.default aten.full_like.default aten.gather.default aten.index.Tensor aten.index_select.default
aten.lift_fresh_copy.default aten.new_empty.default aten.new_empty_strided.default aten.new_full.default
aten.new_ones.default aten.new_zeros.default aten.ones.default aten.ones_like.default aten.repeat.default
aten.roll.default aten.scalar_tensor.default aten.select_backward.default aten.slice_backward.default
aten.slice_scatter.default aten.select_scatter.default aten.stack.default aten.tril.default aten.triu.default
aten.where.self aten.zeros.default aten.zeros_like.default
"""
_ON_SIZES = " ".join(
    ["aten.sym_numel.default", "aten.sym_size.int", "aten.sym_storage_offset.default", "aten.sym_stride.int"]
    + [f"python.{name}.default" for name in aten.ON_SIZES.split()]
)
_COLLECTIVES = """
_c10d_functional.all_gather_into_tensor.default _c10d_functional.all_gather_into_tensor_coalesced.default
_c10d_functional.all_reduce.default _c10d_functional.all_reduce_coalesced.default
_c10d_functional.all_to_all_single.default _c10d_functional.broadcast.default
_c10d_functional.reduce_scatter_tensor.default _c10d_functional.reduce_scatter_tensor_coalesced.default
_c10d_functional.wait_tensor.default
"""


def _flops_of(op: Operation) -> int:
    """Return the FLOPs that PyTorch counts, or one FLOP for each element of the results if PyTorch counts none."""
    flops = op.attributes.get(FLOPS)
    return flops.value.data if isinstance(flops, IntegerAttr) else _ONE_EACH(op)


def _table(names: str, facts: Facts, prefix: str = PREFIX) -> dict[str, Facts]:
    return {f"{prefix}{name}": facts for name in names.split()}


_OF_SCHEMAS: dict[str, Facts] = {
    **_table(aten.PURE, pure(_flops_of)),
    **_table(aten.VIEWS, view()),
    **_table(aten.SEEDED, random(0, _flops_of), SEEDED),
}


def _stored_bytes(op: Operation) -> int | None:
    """Return the number of bytes that PyTorch allocates for the result, or None if the result type determines it."""
    stored = op.attributes.get(STORED)
    return stored.value.data if isinstance(stored, IntegerAttr) else None


def _operand_bytes(op: Operation) -> int:
    """Return the size of the largest operand in bytes."""
    return max(_tensor_bytes(operand.type) or 0 for operand in op.operands)


def _tensor_bytes(type_: Attribute) -> int | None:
    """Return the size, in bytes, of a tensor type with a static shape; None for other types."""
    if not is_shaped(type_) or not isinstance(element := type_.element_type, FixedBitwidthType):
        return None
    return -(-element.bitwidth // 8) * elements(type_)


def _as_products(facts: dict[str, Facts]) -> dict[str, Facts]:
    products = {f"{prefix}{name}" for name in _PRODUCTS.split() for prefix in (PREFIX, SEEDED)}
    return {name: product(fact) if name in products else fact for name, fact in facts.items()}


OPERATIONS: dict[str, Facts] = {
    name: replace(facts, allocated=True, stored_bytes=facts.stored_bytes or _stored_bytes)
    for name, facts in {
        **_as_products(_OF_SCHEMAS),
        **_table(_MOVES, pure(no_work)),
        **_table(_CASTS, replace(cast(), flops=_flops_of)),
        **_table(_ON_SIZES, pure(no_work)),
        **_table(_INDUCTOR_OPERATIONS, pure(_flops_of)),
        **_table(_MEANS, replace(pure(_flops_of), stored_bytes=_operand_bytes)),
        **_table("aten.copy_.default", impure(_WRITES)),
        **_table(_COLLECTIVES, communication()),
        READ: impure(_OVERWRITTEN),
        DRAW: impure(_ADVANCES),
    }.items()
} | {GET_ATTR: constant()}
