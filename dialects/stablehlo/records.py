"""Record attributes, mostly of dimension numbers: `#stablehlo.dot<lhs_contracting_dimensions = [1], …>`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import Attribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition

from .labels import ConvolutionAttr
from .structs import Dimensions, OrderedRecordAttribute, RecordAttribute


@dataclass(frozen=True)
class DotDimensions:
    """The dimensions that a contraction pairs: batching ones are kept, contracting ones are summed over."""

    lhs_batching_dimensions: Dimensions = ()
    rhs_batching_dimensions: Dimensions = ()
    lhs_contracting_dimensions: Dimensions = ()
    rhs_contracting_dimensions: Dimensions = ()


@dataclass(frozen=True)
class GatherDimensions:
    """The roles of the dimensions of operand, indices and result in a gather."""

    offset_dims: Dimensions = ()
    collapsed_slice_dims: Dimensions = ()
    operand_batching_dims: Dimensions = ()
    start_indices_batching_dims: Dimensions = ()
    start_index_map: Dimensions = ()
    index_vector_dim: int = 0


@dataclass(frozen=True)
class ScatterDimensions:
    """The roles of the dimensions of inputs, indices and updates in a scatter."""

    update_window_dims: Dimensions = ()
    inserted_window_dims: Dimensions = ()
    input_batching_dims: Dimensions = ()
    scatter_indices_batching_dims: Dimensions = ()
    scatter_dims_to_operand_dims: Dimensions = ()
    index_vector_dim: int = 0


@dataclass(frozen=True)
class DotAlgorithm:
    """The arithmetic that a contraction requires of the hardware."""

    lhs_precision_type: TypeAttribute
    rhs_precision_type: TypeAttribute
    accumulation_type: TypeAttribute
    lhs_component_count: int
    rhs_component_count: int
    num_primitive_operations: int
    allow_imprecise_accumulation: bool


@dataclass(frozen=True)
class OutputOperandAlias:
    """A result of a custom call, or a part of one, that shares the buffer of an operand, or of a part of one."""

    output_tuple_indices: Dimensions
    operand_index: int
    operand_tuple_indices: Dimensions


@irdl_attr_definition
class DotAttr(RecordAttribute[DotDimensions]):
    """`#stablehlo.dot<…>`, the dimension numbers of `dot_general`."""

    name = "stablehlo.dot"
    RECORD: ClassVar[type] = DotDimensions


@irdl_attr_definition
class GatherAttr(RecordAttribute[GatherDimensions]):
    """`#stablehlo.gather<…>`"""

    name = "stablehlo.gather"
    RECORD: ClassVar[type] = GatherDimensions


@irdl_attr_definition
class ScatterAttr(RecordAttribute[ScatterDimensions]):
    """`#stablehlo.scatter<…>`"""

    name = "stablehlo.scatter"
    RECORD: ClassVar[type] = ScatterDimensions


@irdl_attr_definition
class DotAlgorithmAttr(OrderedRecordAttribute[DotAlgorithm]):
    """`#stablehlo.dot_algorithm<…>`"""

    name = "stablehlo.dot_algorithm"
    RECORD: ClassVar[type] = DotAlgorithm


@irdl_attr_definition
class OutputOperandAliasAttr(OrderedRecordAttribute[OutputOperandAlias]):
    """`#stablehlo.output_operand_alias<…>`"""

    name = "stablehlo.output_operand_alias"
    RECORD: ClassVar[type] = OutputOperandAlias


RECORDS: list[type[Attribute]] = [
    DotAttr,
    DotAlgorithmAttr,
    GatherAttr,
    ScatterAttr,
    ConvolutionAttr,
    OutputOperandAliasAttr,
]
