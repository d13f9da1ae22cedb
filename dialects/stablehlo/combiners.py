"""Regions that combine two values of each kind into one: `(E…, E…) -> E…`, where each operand is promotable to its E.

The values are scalars. Where the operands of a reduction say so, they may be tensors, as in StableHLO's own verifier.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, AnyFloat
from xdsl.ir import Attribute, Block
from xdsl.utils.exceptions import VerifyException

from ...support.type_guards import AnyTensor, is_complex_type, is_integer_type, is_tensor
from .checks import Shape, bits_of, check_count
from .control import check_all, returned_types


def combined_types(block: Block, count: int) -> Sequence[AnyTensor]:
    """The types that the region takes twice and returns."""
    returned = returned_types(block)
    check_count("values that the region returns", len(returned), count)
    check_all("the arguments of the region", block.arg_types, [*returned, *returned])
    tensors = [type_ for type_ in returned if is_tensor(type_)]
    if len(tensors) != count:
        raise VerifyException(f"the region returns {', '.join(map(str, returned))}, expected tensors")
    return tensors


def check_scalars(types: Sequence[AnyTensor]) -> None:
    for type_ in types:
        if type_.get_shape():
            raise VerifyException(f"the region works on scalars, not on {type_}")


def check_slices(types: Sequence[AnyTensor], shape: Shape) -> None:
    """Tensors whose extents stand in `shape`, in order."""
    for type_ in types:
        extents = iter(shape)
        if not all(any(_agree(one, other) for other in extents) for one in type_.get_shape()):
            raise VerifyException(f"the region works on scalars, or on extents of {list(shape)}, not on {type_}")


def _agree(one: int, other: int) -> bool:
    return one == other or DYNAMIC_INDEX in (one, other)


def check_promotable(what: str, element: Attribute, to: Attribute) -> None:
    """Elements of one kind, and of no more bits; floats of any, as when bf16 is summed up in f32."""
    if element != to and not _promotes(element, to):
        raise VerifyException(f"{what} has elements of type {element}, which do not become {to}")


def _promotes(element: Attribute, to: Attribute) -> bool:
    if isinstance(element, AnyFloat):
        return isinstance(to, AnyFloat)
    kinds = (is_integer_type, is_complex_type)
    return any(of(element) and of(to) for of in kinds) and (bits_of(element) or 0) <= (bits_of(to) or 0)
