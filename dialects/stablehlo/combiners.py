"""Regions that combine two values of each kind into one: `(E…, E…) -> E…`, where each operand is promotable to its E.

The values are scalars. For operands with such element types they may be tensors, as in StableHLO's own verifier.
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
    """Check that the extents of each tensor are a subsequence of `shape`."""
    for type_ in types:
        extents = iter(shape)
        if not all(any(_agree(size, extent) for extent in extents) for size in type_.get_shape()):
            raise VerifyException(f"the region works on scalars, or on extents of {list(shape)}, not on {type_}")


def _agree(first: int, second: int) -> bool:
    return first == second or DYNAMIC_INDEX in (first, second)


def check_promotable(subject: str, element: Attribute, to: Attribute) -> None:
    """Check that elements are of the same kind as `to` and have no more bits; floats may have any number of bits, as
    when bf16 is accumulated in f32."""
    if element != to and not _promotes(element, to):
        raise VerifyException(f"{subject} has elements of type {element}, which do not become {to}")


def _promotes(element: Attribute, to: Attribute) -> bool:
    if isinstance(element, AnyFloat):
        return isinstance(to, AnyFloat)
    kinds = (is_integer_type, is_complex_type)
    return any(of(element) and of(to) for of in kinds) and (bits_of(element) or 0) <= (bits_of(to) or 0)
