"""Shardings that are attached to operations of other dialects and to functions: `sdy.sharding` among the attributes.

%0 = stablehlo.add %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
func.func @f(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})

The constraints are those of Shardy's `verifiers.cc`. Shardings over a mesh that the module lacks are accepted: programs
that are cut from larger ones often lack their meshes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from .axes import SHARDING, check_sharding, mesh_of, parse_sharding
from .shardings import ShardingAttr, ShardingPerValueAttr


def check_attached_shardings(op: Operation) -> None:
    """Raise `VerifyException` for the first sharding that is invalid for its value."""
    if isinstance(op, FuncOp):
        for subject, attribute, type_ in _of_function(op):
            if not isinstance(attribute, ShardingAttr):
                raise VerifyException(f"{subject} is {attribute}, expected one of the form #sdy.sharding<…>")
            _check(op, subject, attribute.data, type_)
    elif (attribute := op.attributes.get(SHARDING)) is not None and not op.name.startswith("sdy."):
        if not isinstance(attribute, ShardingPerValueAttr):
            raise VerifyException(f"{SHARDING} is {attribute}, expected one of the form #sdy.sharding_per_value<…>")
        _check_results(op, attribute.data)


def _check_results(op: Operation, shardings: Sequence[str]) -> None:
    # An operation without results may have one sharding, for its effect.
    if not op.results and len(shardings) == 1:
        return
    if len(shardings) != len(op.results):
        raise VerifyException(f"there are {len(shardings)} shardings for {len(op.results)} results")
    for index, (text, type_) in enumerate(zip(shardings, op.result_types, strict=True)):
        _check(op, f"the sharding of result {index}", text, type_)


def _check(op: Operation, subject: str, text: str, type_: Attribute) -> None:
    sharding = parse_sharding(text)
    if (mesh := mesh_of(op, sharding.mesh)) is not None:
        check_sharding(subject, sharding, type_, mesh, op)


def _of_function(function: FuncOp) -> Iterator[tuple[str, Attribute, Attribute]]:
    """Yield the shardings of arguments and results: the subject of an error, the attribute, the type of the value."""
    type_ = function.function_type
    yield from _of_values("argument", function.arg_attrs, type_.inputs)
    yield from _of_values("result", function.res_attrs, type_.outputs)


def _of_values(
    role: str, attributes: Attribute | None, types: Iterable[Attribute]
) -> Iterator[tuple[str, Attribute, Attribute]]:
    if not isa(attributes, ArrayAttr[DictionaryAttr]):
        return
    for index, (dictionary, type_) in enumerate(zip(attributes, types, strict=True)):
        if (sharding := dictionary.data.get(SHARDING)) is not None:
            yield f"the sharding of {role} {index}", sharding, type_
