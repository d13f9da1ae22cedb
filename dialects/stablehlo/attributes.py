"""All attributes of StableHLO."""

from .accuracy import ACCURACY
from .enumerations import (
    ENUMERATIONS,
    ComparisonDirection,
    ComparisonDirectionAttr,
    ComparisonType,
    ComparisonTypeAttr,
    Precision,
    PrecisionAttr,
    RngAlgorithm,
    RngAlgorithmAttr,
)
from .labels import ConvolutionAttr, ConvolutionDimensions
from .records import (
    RECORDS,
    DotAlgorithm,
    DotAlgorithmAttr,
    DotAttr,
    DotDimensions,
    GatherAttr,
    GatherDimensions,
    ScatterAttr,
    ScatterDimensions,
)

ATTRIBUTES = [*ENUMERATIONS, *ACCURACY, *RECORDS]

__all__ = [
    "ATTRIBUTES",
    "ComparisonDirection",
    "ComparisonDirectionAttr",
    "ComparisonType",
    "ComparisonTypeAttr",
    "ConvolutionAttr",
    "ConvolutionDimensions",
    "DotAlgorithm",
    "DotAlgorithmAttr",
    "DotAttr",
    "DotDimensions",
    "GatherAttr",
    "GatherDimensions",
    "Precision",
    "PrecisionAttr",
    "RngAlgorithm",
    "RngAlgorithmAttr",
    "ScatterAttr",
    "ScatterDimensions",
]
