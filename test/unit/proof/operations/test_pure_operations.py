"""The list of pure operations in the proof agrees with independent statements about the same operations."""

from __future__ import annotations

import re

import pytest
from xdsl.dialects.linalg import Linalg
from xdsl.dialects.math import Math
from xdsl.dialects.memref import MemRef
from xdsl.dialects.scf import Scf
from xdsl.dialects.tensor import Tensor

from recompute.dialects.arith import ARITH
from recompute.proof.operations.pure_operations import (
    COMPUTE_THEIR_REGIONS,
    OF_THE_REGION,
    PURE_OPERATIONS,
    TERMINATORS,
)
from recompute.proof.translation.per_device import COLLECTIVES
from recompute.rules.effects import IMPURE, PURE, PURE_IF_BODY_IS
from recompute.rules.facts import OpClass
from recompute.rules.registry import BUILT_IN

from ..programs import T, compare, main

BY_THE_RULES = frozenset(name for name in BUILT_IN if name in PURE or name in PURE_IF_BODY_IS)
NOT_LISTED = frozenset("scf.parallel scf.reduce scf.reduce.return".split())
# Read by the proof as what they hand on, or standing for something outside the block: a function, a mesh.
NOT_VALUES = frozenset(
    """
    stablehlo.optimization_barrier recompute.depend recompute.segment recompute.gradient func.constant sdy.mesh
    """.split()
)


def test_pure_list_agrees_with_the_rules_of_the_passes() -> None:
    """Two independently written lists agree, except for differences listed by name."""
    assert PURE_OPERATIONS <= BY_THE_RULES
    difference = BY_THE_RULES - PURE_OPERATIONS
    assert {name for name in difference if not name.startswith("torch.")} == NOT_VALUES


# Tensors that no dense training step has, other devices, operations of tests and of inference.
FAMILIES = re.compile(
    r"torch\.((seeded\.)?prims|(seeded\.)?aten\._?(amp|cslt|coalesce|convert|copy_|cudnn|dirichlet|dyn_quant|empty_|fbgemm|fused|fw_|"
    r"histogram|indices|int_|jagged|lazy|linear_mm|lstm|make|miopen|mkldnn|mps|native_multi|new_zeros|nnpack|pack|padded|"
    r"pin|philox|q_|quantize|reshape|sobol|spars|spdiags|spsolve|standard|thnn|to_|trans|triton|triplet|values|weight_int"
    r"|special_|fake_quant|\w+_copy\.|\w+\.(\w+_)?generator|\w+\.Tensor_generator|\w+\.quantized|\w+_for_mps|\w+_fallback|"
    r"c?(col|row)_indices|crow|hash|hspmm|neg_view|upsample_lanczos|cholesky_solve|compute_linear|grid_sampler_2d_cpu|"
    r"foreach_copy|index_put_impl|mixed|scaled_grouped_mm_v2|sample_dirichlet|binomial|cauchy|geometric|log_normal|random|"
    r"scaled_dot_product_(cudnn|efficient)_attention_backward|scaled_dot_product_fused|randint_like.Tensor))"
)


def test_unlisted_pytorch_operations_have_known_family() -> None:
    left_over = {name for name in BY_THE_RULES - PURE_OPERATIONS if name.startswith("torch.")}
    assert sorted(name for name in left_over if FAMILIES.match(name) is None) == []


def test_pure_list_covers_every_value_operation() -> None:
    kinds = [op.name for dialect in (ARITH, Math, Tensor, Linalg, Scf) for op in dialect.operations]
    assert {name for name in kinds if name not in PURE_OPERATIONS} - TERMINATORS == NOT_LISTED
    assert not any(op.name in PURE_OPERATIONS for op in MemRef.operations)


def test_regions_of_pure_operations_are_known_to_the_proof() -> None:
    """A pure operation with regions that is missing from `COMPUTE_THEIR_REGIONS` would be an effect."""
    with_regions = {name for name in PURE_OPERATIONS if name in PURE_IF_BODY_IS}
    assert "scf.index_switch" in with_regions and with_regions - COMPUTE_THEIR_REGIONS == set()


def a_copy_is_proved(name: str) -> bool:
    once = f'%a = "{name}"(%x) : ({T}) -> {T}\n'
    read = '%c = "stablehlo.add"(%a, %?)' + f" : ({T}, {T}) -> {T}\nreturn %c"
    before = main(once + read.replace("%?", "%a"))
    return compare(before, main(once + once.replace("%a", "%b") + read.replace("%?", "%b"))).proved


@pytest.mark.slow("torch")
@pytest.mark.parametrize("of_torch", [False, True], ids=["mlir", "torch"])
def test_copies_allowed_to_passes_are_proved(of_torch: bool) -> None:
    names = BY_THE_RULES - NOT_VALUES - OF_THE_REGION
    names = {name for name in names if name.startswith("torch.") == of_torch}
    names = {name for name in names if name in PURE_OPERATIONS or not of_torch}
    assert [name for name in sorted(names) if not a_copy_is_proved(name)] == []


@pytest.mark.parametrize(
    "name", [*sorted(name for name in BUILT_IN if name in IMPURE and name not in COLLECTIVES), "acme.unknown"]
)
def test_copies_forbidden_to_passes_are_not_proved(name: str) -> None:
    assert not a_copy_is_proved(name)


def test_collectives_are_copied_where_allowed() -> None:
    assert sorted(COLLECTIVES) == sorted(
        name for name, facts in BUILT_IN.items() if OpClass.COLLECTIVE in facts.op_classes
    )
    assert all(map(a_copy_is_proved, COLLECTIVES))
