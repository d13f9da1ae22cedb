"""Which kernel an operation has: a line for each, by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .arrays import Combine, Kernel
from .contraction import dot_general
from .conversion import bitcast_convert, reduce_precision
from .elementwise import BY_TABLE, clamp, compare, complex_of_parts, convert_elements, from_tables, select
from .indexing import gather, scatter
from .movement import broadcast_in_dim, concatenate, constant, iota, reshape, slice_, transpose
from .placement import dynamic_slice, dynamic_update_slice, pad, reverse
from .reduction import reduce
from .windowed import convolution, reduce_window

# They work on any shape, whatever the types say, and so on vectors of scalars too.
ELEMENTWISE: dict[str, Callable[[Any], Kernel]] = {
    **{f"stablehlo.{name}": from_tables for name in sorted(BY_TABLE)},
    "stablehlo.compare": compare,
    "stablehlo.select": select,
    "stablehlo.clamp": clamp,
    "stablehlo.convert": convert_elements,
    "stablehlo.reduce_precision": reduce_precision,
    "stablehlo.complex": complex_of_parts,
}
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
    "stablehlo.pad": pad,
    "stablehlo.reverse": reverse,
    "stablehlo.dynamic_slice": dynamic_slice,
    "stablehlo.dynamic_update_slice": dynamic_update_slice,
}
# Their region combines two scalars.
WITH_COMBINER: dict[str, Callable[[Any, Combine], Kernel]] = {
    "stablehlo.reduce": reduce,
    "stablehlo.reduce_window": reduce_window,
    "stablehlo.scatter": scatter,
}
