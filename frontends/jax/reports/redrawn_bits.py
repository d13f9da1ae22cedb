"""Random bits that the backward pass draws again, and the names of the masks that a user can save instead."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation

from ....analysis.explain.executed_flops import runs_of
from ....analysis.request.value_names import names_of
from ....analysis.step.jax_paths import scope_of
from ....analysis.step.marks import is_copy
from ....dialects.stablehlo.checks import is_float_or_complex
from ....dialects.stablehlo.control import WhileOp
from ....driver.rewrites.rewritten import Rewritten
from ....rules.flops import flops
from ....rules.registry import facts_of
from ....support.operations import every_operation
from ....support.type_guards import is_tensor, is_unsigned
from ....transforms.preparation.timelines import flat_copy

_BERNOULLI = "_bernoulli"
"""The function of JAX that draws the masks of dropout."""


@dataclass(frozen=True)
class RedrawnBits:
    """Random bits that copies draw again for masks.

    Attributes:
        flops: The FLOPs of these draws, over all iterations of loops.
        extra_flops: The FLOPs of all copies.
        mask_bytes: The bytes of the masks.
        mask_names: For each mask, its name in the innermost scope, such as `Dropout_0/lt`, without repetitions.
    """

    flops: int
    extra_flops: int
    mask_bytes: int
    mask_names: tuple[str, ...]

    @property
    def share(self) -> float:
        """The share of the draws in the FLOPs of all copies."""
        return self.flops / self.extra_flops if self.extra_flops else 0.0


def redrawn_bits(rewritten: Rewritten) -> RedrawnBits | None:
    """Return the random bits that the copies of a rewritten step draw again for masks; None if there are no such
    copies."""
    if not any(map(_draws, every_operation(rewritten.module))):
        return None
    copies = list(filter(is_copy, every_operation(flat_copy(rewritten.module))))
    masks = [copy for copy in copies if _is_mask(copy)]
    if not masks:
        return None
    return RedrawnBits(
        flops=sum(runs_of(copy) * flops(copy) for copy in copies if _draws(copy)),
        extra_flops=rewritten.extra_flops,
        mask_bytes=sum(runs_of(mask) * _elements(mask) for mask in masks),
        mask_names=tuple(dict.fromkeys(_name_in_scope(mask) for mask in masks)),
    )


def _draws(op: Operation) -> bool:
    """Return whether the operation draws random bits, according to its facts. A loop that carries only integers, some
    of them unsigned, is also assumed to draw bits, because JAX runs the rounds of threefry in such loops."""
    if isinstance(op, WhileOp):
        types = [result.type.get_element_type() for result in op.results if is_tensor(result.type)]
        return not any(map(is_float_or_complex, types)) and any(map(is_unsigned, types))
    return (facts := facts_of(op)) is not None and facts.state is not None


def _is_mask(op: Operation) -> bool:
    """Return whether the operation computes a mask in `jax.random.bernoulli`."""
    if len(op.results) != 1 or not is_tensor(op.results[0].type) or _BERNOULLI not in scope_of(op.location).functions:
        return False
    return op.results[0].type.get_element_type() == IntegerType(1)


def _elements(mask: Operation) -> int:
    assert is_tensor(mask.results[0].type), "masks are tensors"
    return prod(mask.results[0].type.get_shape())


def _name_in_scope(mask: Operation) -> str:
    """Return the name of the mask, preceded by its innermost scope if it is in a scope."""
    *scoped, alone = names_of(mask)
    return scoped[-1] if scoped and scoped[-1].endswith(f"/{alone}") else alone
