"""All attributes of StableHLO, from one place."""

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
from .records import (
    RECORDS,
    ConvolutionAttr,
    ConvolutionDimensions,
    DotAlgorithm,
    DotAlgorithmAttr,
    DotAttr,
    DotDimensions,
    GatherAttr,
    GatherDimensions,
    ScatterAttr,
    ScatterDimensions,
)

ATTRIBUTES = [*ENUMERATIONS, *RECORDS]

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
