"""The tables that map the names of operations to functions that make their kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dialects.chlo.broadcasting import BROADCASTING, BroadcastBinaryOp
from . import (
    arith_math,
    arrays,
    chlo,
    chlo_broadcasting,
    conversion,
    dynamic_shapes,
    legacy,
    normalization,
    shardy,
    tensors,
)
from .arrays import Combine, Kernel
from .chlo_ragged_dot import ragged_dot
from .collectives_run import collective, own_id, single_process_permute
from .conversion import bitcast_convert, reduce_precision
from .elementwise import BY_TABLE, clamp, compare, complex_of_parts, convert_elements, from_tables, select
from .indexing import gather, scatter
from .matrices import cholesky, dot_general, fft, triangular_solve
from .movement import (
    broadcast_in_dim,
    concatenate,
    constant,
    dynamic_slice,
    dynamic_update_slice,
    iota,
    pad,
    reshape,
    reverse,
    slice_,
    transpose,
)
from .random_bits import rng_bit_generator
from .scalar_bodies import map_, reduce, sort
from .windowed import convolution, reduce_window, select_and_scatter

# Kernels that accept arrays of any shape, whatever the types of the operation, and can therefore run on vectors of
# scalars.
ELEMENTWISE: dict[str, Callable[[Any], Kernel]] = {
    **{f"stablehlo.{name}": conversion.on_real_numbers(from_tables) for name in sorted(BY_TABLE)},
    "stablehlo.compare": compare,
    "stablehlo.select": select,
    "stablehlo.clamp": clamp,
    "stablehlo.convert": convert_elements,
    "stablehlo.reduce_precision": reduce_precision,
    "stablehlo.complex": complex_of_parts,
    **{f"arith.{name}": arith_math.integer for name in (*arith_math.SIGNED, *arith_math.UNSIGNED)},
    **dict.fromkeys(arith_math.AS_STABLEHLO, arith_math.as_stablehlo),
    **dict.fromkeys(arith_math.NUMBERS_FIRST, arith_math.numbers_first),
    "arith.addui_extended": arith_math.extended_arithmetic,
    "arith.mului_extended": arith_math.extended_arithmetic,
    "arith.mulsi_extended": arith_math.extended_arithmetic,
    "arith.cmpi": arith_math.compare_integers,
    "arith.cmpf": arith_math.compare_floats,
    "arith.select": select,
    "arith.extsi": arith_math.from_signed,
    "arith.trunci": arith_math.from_signed,
    "arith.index_cast": arith_math.from_signed,
    "arith.sitofp": arith_math.from_signed,
    "arith.extui": arith_math.from_unsigned,
    "arith.index_castui": arith_math.from_unsigned,
    "arith.uitofp": arith_math.from_unsigned,
    "arith.fptosi": arith_math.to_whole,
    "arith.fptoui": arith_math.to_whole,
    "arith.extf": arith_math.between_floats,
    "arith.truncf": arith_math.between_floats,
    "arith.bitcast": arith_math.bitcast,
    **dict.fromkeys(arith_math.MATH_AS_STABLEHLO, arith_math.math_as_stablehlo),
    **dict.fromkeys(arith_math.FLOATS, arith_math.of_floats),
    **dict.fromkeys(arith_math.BITS, arith_math.of_bits),
    **{f"chlo.{name}": chlo.elementwise for name in (*chlo.NUMPY, *chlo.SCIPY)},
    "chlo.next_after": chlo.next_after,
    "chlo.mulhi": chlo.multiply_high,
    "math.absi": arith_math.absolute,
    "math.ipowi": arith_math.integer_power,
    "math.fpowi": arith_math.float_to_integer_power,
    "math.fma": arith_math.fused_multiply_add,
}
COLLECTIVES = "all_gather all_reduce all_to_all collective_broadcast collective_reduce reduce_scatter".split()
RESHARDED = """
    all_gather all_slice all_to_all collective_permute data_flow_edge func_data_flow_edge propagation_barrier
    replicated_to_unreduced reshard sharded_to_unreduced sharding_constraint
"""
KERNELS: dict[str, Callable[[Any], Kernel]] = {
    **ELEMENTWISE,
    "stablehlo.constant": constant,
    "stablehlo.iota": iota,
    "stablehlo.reshape": reshape,
    "stablehlo.transpose": transpose,
    "stablehlo.broadcast_in_dim": broadcast_in_dim,
    "stablehlo.bitcast_convert": bitcast_convert,
    "stablehlo.slice": slice_,
    "stablehlo.concatenate": concatenate,
    "stablehlo.dot_general": dot_general,
    "stablehlo.convolution": convolution,
    "stablehlo.gather": gather,
    "stablehlo.dot": legacy.dot,
    "stablehlo.broadcast": legacy.broadcast,
    "stablehlo.einsum": legacy.einsum,
    "stablehlo.unary_einsum": legacy.einsum,
    "stablehlo.torch_index_select": legacy.torch_index_select,
    "stablehlo.batch_norm_training": normalization.batch_norm_training,
    "stablehlo.batch_norm_inference": normalization.batch_norm_inference,
    "stablehlo.batch_norm_grad": normalization.batch_norm_grad,
    "stablehlo.dynamic_reshape": dynamic_shapes.dynamic_reshape,
    "stablehlo.dynamic_broadcast_in_dim": dynamic_shapes.dynamic_broadcast_in_dim,
    "stablehlo.dynamic_iota": dynamic_shapes.dynamic_iota,
    "stablehlo.dynamic_pad": dynamic_shapes.dynamic_pad,
    "stablehlo.dynamic_gather": dynamic_shapes.dynamic_gather,
    "stablehlo.dynamic_conv": dynamic_shapes.dynamic_conv,
    "stablehlo.real_dynamic_slice": dynamic_shapes.real_dynamic_slice,
    "stablehlo.get_dimension_size": dynamic_shapes.get_dimension_size,
    "stablehlo.set_dimension_size": dynamic_shapes.set_dimension_size,
    "stablehlo.uniform_quantize": conversion.uniform_quantize,
    "stablehlo.uniform_dequantize": conversion.uniform_dequantize,
    "stablehlo.tuple": arrays.tuple_,
    "stablehlo.get_tuple_element": arrays.element,
    "stablehlo.create_token": arrays.token,
    "stablehlo.after_all": arrays.token,
    "stablehlo.async_done": arrays.async_done,
    "stablehlo.pad": pad,
    "stablehlo.reverse": reverse,
    "stablehlo.dynamic_slice": dynamic_slice,
    "stablehlo.dynamic_update_slice": dynamic_update_slice,
    "stablehlo.rng_bit_generator": rng_bit_generator,
    "stablehlo.fft": fft,
    "stablehlo.cholesky": cholesky,
    "stablehlo.triangular_solve": triangular_solve,
    **dict.fromkeys((f"stablehlo.{name}" for name in COLLECTIVES), collective),
    "stablehlo.collective_permute": single_process_permute,
    "stablehlo.partition_id": own_id,
    "stablehlo.replica_id": own_id,
    "chlo.ragged_dot": ragged_dot,
    "chlo.top_k": chlo.top_k,
    **{op.name: chlo_broadcasting.broadcast_binary for op in BROADCASTING if issubclass(op, BroadcastBinaryOp)},
    "chlo.broadcast_select": chlo_broadcasting.broadcast_select,
    "chlo.constant": constant,
    "chlo.constant_like": chlo_broadcasting.constant_like,
    **{f"sdy.{name}": shardy.reshard for name in RESHARDED.split()},
    **{f"sdy.{name}": shardy.reducing_collective for name in "all_reduce reduce_scatter".split()},
    "sdy.constant": constant,
    "sdy.sharding_group": shardy.sharding_group,
    "arith.constant": constant,
    "tensor.empty": tensors.empty,
    "tensor.splat": tensors.splat,
    "tensor.from_elements": tensors.from_elements,
    "tensor.dim": tensors.dim,
    "tensor.cast": tensors.cast,
    "tensor.reshape": tensors.reshape,
    "tensor.collapse_shape": tensors.reshape,
    "tensor.expand_shape": tensors.reshape,
    "tensor.concat": tensors.concat,
    "tensor.extract": tensors.extract,
    "tensor.insert": tensors.insert,
    "tensor.extract_slice": tensors.extract_slice,
    "tensor.insert_slice": tensors.insert_slice,
}
# Operations with one region on scalars.
WITH_COMBINER: dict[str, Callable[[Any, Combine], Kernel]] = {
    "stablehlo.reduce": reduce,
    "stablehlo.reduce_window": reduce_window,
    "stablehlo.scatter": scatter,
    "stablehlo.sort": sort,
    "stablehlo.map": map_,
    "tensor.pad": tensors.pad,
}
WITH_TWO_COMBINERS: dict[str, Callable[[Any, Combine, Combine], Kernel]] = {
    "stablehlo.select_and_scatter": select_and_scatter,
}
# Operations that run a body on scalars for every point of an iteration space.
STRUCTURED = frozenset(
    """
    linalg.generic linalg.add linalg.exp linalg.log linalg.sub linalg.sqrt linalg.select linalg.fill linalg.copy
    linalg.max linalg.min linalg.mul linalg.transpose linalg.matmul linalg.quantized_matmul linalg.pooling_nchw_max
    linalg.conv_2d_nchw_fchw linalg.conv_2d_nhwgc_gfhwc linalg.conv_2d_nhwc_hwcf linalg.conv_2d_ngchw_gfchw
    linalg.conv_2d_ngchw_fgchw linalg.conv_2d_nhwc_fhwc linalg.broadcast linalg.reduce
    """.split()
)
