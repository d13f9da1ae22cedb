"""Propagation edges: a record, step by step, of how Shardy propagated axes between the values of an operation.

    %1 = stablehlo.add %0, %0 {sdy.propagation_edges = #edges} : tensor<8xf32>

Example:
    #edges = #sdy.propagation_edges<[{step-2 = [{"y" = operand-1 -> [operand-0, result-0]}]}]>

Syntax and constraints follow Shardy's `attrs.td` and `verifiers.cc`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, Data, Operation, SSAValue
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from ...support.counted import counted
from .axes import Axis
from .sharding_lookup import is_in_module, mesh_of, sharding_of
from .sharding_text import parse_axis

PROPAGATION_EDGES = "sdy.propagation_edges"
ElementT = TypeVar("ElementT")
EDGE_ARRAYS = ("sdy.result_propagation_edges", "sdy.block_arg_propagation_edges")


@dataclass(frozen=True)
class ValueRef:
    """An operand or a result of the operation, by index."""

    role: str
    index: int

    def __str__(self) -> str:
        return f"{self.role}-{self.index}"


@dataclass(frozen=True)
class AxisEdges:
    """The propagation edges of one axis: a source value, and the values to which the axis was propagated from it."""

    axis: Axis
    source: ValueRef
    targets: tuple[ValueRef, ...]

    def __str__(self) -> str:
        return f"{{{self.axis} = {self.source} -> [{', '.join(map(str, self.targets))}]}}"


@dataclass(frozen=True)
class PropagationStep:
    """The edges of one propagation step."""

    index: int
    edges: tuple[AxisEdges, ...]

    def __str__(self) -> str:
        return f"{{step-{self.index} = [{', '.join(map(str, self.edges))}]}}"


def _parse_list(parser: AttrParser, element: Callable[[AttrParser], ElementT]) -> tuple[ElementT, ...]:
    """Parse a list of at least one element in square brackets."""
    parser.parse_punctuation("[")
    elements = parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: element(parser))
    parser.parse_punctuation("]")
    return tuple(elements)


def _parse_value(parser: AttrParser) -> ValueRef:
    start, role = parser.pos, parser.parse_identifier()
    if role not in ("operand", "result"):
        parser.raise_error(f"expected 'operand' or 'result', found '{role}'", start, parser.pos)
    parser.parse_punctuation("-")
    return ValueRef(role, parser.parse_integer(allow_boolean=False))


def _parse_edges(parser: AttrParser) -> AxisEdges:
    with parser.in_braces():
        axis = parse_axis(parser)
        parser.parse_punctuation("=")
        source = _parse_value(parser)
        parser.parse_punctuation("->")
        targets = _parse_list(parser, _parse_value)
    return AxisEdges(axis, source, targets)


def _parse_step(parser: AttrParser) -> PropagationStep:
    with parser.in_braces():
        parser.parse_keyword("step")
        parser.parse_punctuation("-")
        index = parser.parse_integer(allow_boolean=False)
        parser.parse_punctuation("=")
        edges = _parse_list(parser, _parse_edges)
    return PropagationStep(index, edges)


@irdl_attr_definition
class PropagationEdgesAttr(Data[tuple[PropagationStep, ...]]):
    """The edges of all steps: `#sdy.propagation_edges<[{step-2 = [{"y" = operand-1 -> [result-0]}]}]>`"""

    name = "sdy.propagation_edges"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[PropagationStep, ...]:
        with parser.in_angle_brackets():
            return _parse_list(parser, _parse_step)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<[{', '.join(map(str, self.data))}]>")

    def verify(self) -> None:
        seen = set[int]()
        for step in self.data:
            if step.index < 0:
                raise VerifyException(f"the step index {step.index} must not be negative")
            if step.index in seen:
                raise VerifyException(f"the step index {step.index} occurs more than once")
            seen.add(step.index)
            for edges in step.edges:
                if edges.source in edges.targets:
                    raise VerifyException(
                        f"{edges.source} is both the source and a target of the edges of axis {edges.axis} in step "
                        f"{step.index}"
                    )
                if len(set(edges.targets)) != len(edges.targets):
                    raise VerifyException(
                        f"the targets of the edges of axis {edges.axis} in step {step.index} must be distinct"
                    )


def check_propagation_edges(op: Operation, attribute: Attribute) -> None:
    """Raise `VerifyException` unless the attribute contains only edges between values of the operation, along axes of
    their mesh."""
    if not isinstance(attribute, PropagationEdgesAttr):
        raise VerifyException(f"{PROPAGATION_EDGES} is {attribute}, expected the form #sdy.propagation_edges<…>")
    if not is_in_module(op):
        return
    edges = [edge for step in attribute.data for edge in step.edges]
    values = [_value_of(op, ref) for edge in edges for ref in (edge.source, *edge.targets)]
    shardings = [sharding for value in values if value is not None and (sharding := sharding_of(value)) is not None]
    if not shardings:
        raise VerifyException("the propagation edges refer to no value with a sharding")
    meshes = [mesh for sharding in shardings if (mesh := mesh_of(op, sharding.mesh)) is not None]
    if any(mesh.sizes != meshes[0].sizes for mesh in meshes):
        raise VerifyException("the propagation edges refer to values with shardings over different meshes")
    for edge in edges:
        # As for all shardings, the module may lack the mesh.
        if meshes and edge.axis.name not in meshes[0].sizes:
            raise VerifyException(f"axis '{edge.axis.name}' of the propagation edges does not belong to the mesh")
        for ref in (edge.source, *edge.targets):
            _check_index(op, ref)


def check_edge_array(name: str, attribute: Attribute) -> None:
    """Raise `VerifyException` unless the attribute is an array of propagation edges."""
    if not isa(attribute, ArrayAttr[PropagationEdgesAttr]):
        raise VerifyException(f"{name} is {attribute}, expected an array of #sdy.propagation_edges<…>")


def _values(op: Operation, role: str) -> list[SSAValue]:
    return list(op.operands if role == "operand" else op.results)


def _value_of(op: Operation, ref: ValueRef) -> SSAValue | None:
    values = _values(op, ref.role)
    return values[ref.index] if 0 <= ref.index < len(values) else None


def _check_index(op: Operation, ref: ValueRef) -> None:
    # The values that such an operation connects belong to another function.
    if op.name == "sdy.func_data_flow_edge" or _value_of(op, ref) is not None:
        return
    count = counted(len(_values(op, ref.role)), ref.role)
    raise VerifyException(f"the propagation edges refer to {ref}, but the operation has {count}")
