"""The kernels of operations by name, a line for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import arith, chlo, dynamic_shapes, legacy, math, normalization, quantization, signless, tensors, tuples
from .arrays import Combine, Kernel
from .constants import constant
from .contraction import dot_general
from .conversion import bitcast_convert, reduce_precision
from .elementwise import BY_TABLE, clamp, compare, complex_of_parts, convert_elements, from_tables, select
from .indexing import gather, scatter
from .linear_algebra import cholesky, fft, triangular_solve
from .mapping import map_
from .movement import broadcast_in_dim, concatenate, iota, reshape, slice_, transpose
from .one_process import collective, collective_permute, own_number
from .placement import dynamic_slice, dynamic_update_slice, pad, reverse
from .random_bits import rng_bit_generator
from .reduction import reduce
from .selection import select_and_scatter
from .sorting import sort
from .windowed import convolution, reduce_window

# They work on arrays of any shape, independent of the types, and so on vectors of scalars too.
ELEMENTWISE: dict[str, Callable[[Any], Kernel]] = {
    **{f"stablehlo.{name}": from_tables for name in sorted(BY_TABLE)},
    "stablehlo.compare": compare,
    "stablehlo.select": select,
    "stablehlo.clamp": clamp,
    "stablehlo.convert": convert_elements,
    "stablehlo.reduce_precision": reduce_precision,
    "stablehlo.complex": complex_of_parts,
    **{f"arith.{name}": signless.integer for name in (*signless.SIGNED, *signless.UNSIGNED)},
    **dict.fromkeys(arith.AS_STABLEHLO, arith.as_stablehlo),
    **dict.fromkeys(arith.NUMBERS_FIRST, arith.numbers_first),
    "arith.addui_extended": signless.extended,
    "arith.mului_extended": signless.extended,
    "arith.mulsi_extended": signless.extended,
    "arith.cmpi": arith.compare_integers,
    "arith.cmpf": arith.compare_floats,
    "arith.select": select,
    "arith.extsi": arith.from_signed,
    "arith.trunci": arith.from_signed,
    "arith.index_cast": arith.from_signed,
    "arith.sitofp": arith.from_signed,
    "arith.extui": arith.from_unsigned,
    "arith.uitofp": arith.from_unsigned,
    "arith.fptosi": arith.to_whole,
    "arith.fptoui": arith.to_whole,
    "arith.extf": arith.between_floats,
    "arith.truncf": arith.between_floats,
    "arith.bitcast": arith.bitcast,
    **dict.fromkeys(math.AS_STABLEHLO, math.as_stablehlo),
    **dict.fromkeys(math.FLOATS, math.of_floats),
    **dict.fromkeys(math.BITS, math.of_bits),
    **{f"chlo.{name}": chlo.elementwise for name in (*chlo.NUMPY, *chlo.SCIPY)},
    "chlo.next_after": chlo.next_after,
    "chlo.mulhi": chlo.multiply_high,
    "math.absi": math.absolute,
    "math.ipowi": math.integer_power,
    "math.fpowi": math.float_to_integer_power,
    "math.fma": math.fused_multiply_add,
}
COLLECTIVES = "all_gather all_reduce all_to_all collective_broadcast collective_reduce reduce_scatter".split()
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
    "stablehlo.uniform_quantize": quantization.uniform_quantize,
    "stablehlo.uniform_dequantize": quantization.uniform_dequantize,
    "stablehlo.tuple": tuples.tuple_,
    "stablehlo.get_tuple_element": tuples.element,
    "stablehlo.create_token": tuples.token,
    "stablehlo.after_all": tuples.token,
    "stablehlo.pad": pad,
    "stablehlo.reverse": reverse,
    "stablehlo.dynamic_slice": dynamic_slice,
    "stablehlo.dynamic_update_slice": dynamic_update_slice,
    "stablehlo.rng_bit_generator": rng_bit_generator,
    "stablehlo.fft": fft,
    "stablehlo.cholesky": cholesky,
    "stablehlo.triangular_solve": triangular_solve,
    **dict.fromkeys((f"stablehlo.{name}" for name in COLLECTIVES), collective),
    "stablehlo.collective_permute": collective_permute,
    "stablehlo.partition_id": own_number,
    "stablehlo.replica_id": own_number,
    "chlo.top_k": chlo.top_k,
    "sdy.sharding_constraint": chlo.constrained,
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
# Their region combines two scalars.
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
# A body on scalars for every point of an iteration space.
STRUCTURED = frozenset(
    """
    linalg.generic linalg.add linalg.exp linalg.log linalg.sub linalg.sqrt linalg.select linalg.fill linalg.copy
    linalg.max linalg.min linalg.mul linalg.transpose linalg.matmul linalg.quantized_matmul linalg.pooling_nchw_max
    linalg.conv_2d_nchw_fchw linalg.conv_2d_nhwgc_gfhwc linalg.conv_2d_nhwc_hwcf linalg.conv_2d_ngchw_gfchw
    linalg.conv_2d_ngchw_fgchw linalg.conv_2d_nhwc_fhwc linalg.broadcast linalg.reduce
    """.split()
)
