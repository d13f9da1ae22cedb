"""Shardy's attributes on operations of other dialects and on functions: shardings, sharding rules, propagation edges.

    %0 = stablehlo.add %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
    func.func @f(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})

The constraints follow Shardy's `verifiers.cc`. A sharding may name a mesh that the module does not define, because
programs that are extracted from larger ones often lack their meshes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from .propagation_edges import EDGE_ARRAYS, PROPAGATION_EDGES, check_edge_array, check_propagation_edges
from .sharding_checks import check_sharding, check_unsharded
from .sharding_lookup import SHARDING, mesh_of
from .sharding_rules import SHARDING_RULE, check_sharding_rule
from .sharding_text import parse_sharding
from .shardings import ShardingAttr, ShardingPerValueAttr


def check_attached_shardings(op: Operation) -> None:
    """Raise `VerifyException` for the first Shardy attribute that is invalid for the operation or its values."""
    if isinstance(op, FuncOp):
        for subject, attribute, type_ in _function_shardings(op):
            if not isinstance(attribute, ShardingAttr):
                raise VerifyException(f"{subject} is {attribute}, expected the form #sdy.sharding<…>")
            sharding = parse_sharding(attribute.data)
            if (mesh := mesh_of(op, sharding.mesh)) is not None:
                check_sharding(subject, sharding, type_, mesh, op)
        return
    for name, attribute in op.attributes.items():
        if name == SHARDING and not op.name.startswith("sdy."):
            _check_results(op, attribute)
        elif name == SHARDING_RULE:
            check_sharding_rule(op, attribute)
        elif name == PROPAGATION_EDGES:
            check_propagation_edges(op, attribute)
        elif name in EDGE_ARRAYS:
            check_edge_array(name, attribute)


def _check_results(op: Operation, attribute: Attribute) -> None:
    """Raise `VerifyException` unless the attribute contains a valid sharding for each result."""
    if not isinstance(attribute, ShardingPerValueAttr):
        raise VerifyException(f"{SHARDING} is {attribute}, expected the form #sdy.sharding_per_value<…>")
    shardings = [parse_sharding(text) for text in attribute.data]
    meshes = [mesh_of(op, sharding.mesh) for sharding in shardings]
    if not op.results and len(shardings) == 1:
        # An operation without results may have one sharding, for its effect.
        mesh = meshes[0]
        if mesh is None:
            return
        if mesh.is_maximal() or not any(dimension.axes for dimension in shardings[0].dimensions):
            return check_unsharded("the sharding", shardings[0])
    if len(shardings) != len(op.results):
        raise VerifyException(
            f"the number of shardings is {len(shardings)}, expected {len(op.results)}, one for each result"
        )
    for index, (sharding, mesh, type_) in enumerate(zip(shardings, meshes, op.result_types, strict=True)):
        if mesh is not None:
            check_sharding(f"the sharding of result {index}", sharding, type_, mesh, op)


def _function_shardings(function: FuncOp) -> Iterator[tuple[str, Attribute, Attribute]]:
    """Yield each sharding of an argument or result as (subject for error messages, attribute, type of the value)."""
    type_ = function.function_type
    yield from _value_shardings("argument", function.arg_attrs, type_.inputs)
    yield from _value_shardings("result", function.res_attrs, type_.outputs)


def _value_shardings(
    role: str, attributes: Attribute | None, types: Iterable[Attribute]
) -> Iterator[tuple[str, Attribute, Attribute]]:
    if not isa(attributes, ArrayAttr[DictionaryAttr]):
        return
    for index, (dictionary, type_) in enumerate(zip(attributes, types, strict=True)):
        if (sharding := dictionary.data.get(SHARDING)) is not None:
            yield f"the sharding of {role} {index}", sharding, type_
