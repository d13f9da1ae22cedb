"""StableHLO for xDSL: all operations of its specification, and the operations that it supports for older exporters.

Property names, custom assembly and checks follow StableHLO, so that its text can be read and written.
"""

from itertools import chain

from xdsl.ir import Dialect

from .accuracy import ACCURACY
from .attributes import ENUMERATIONS, RECORDS
from .binary import BINARY
from .branches import BRANCHES
from .collectives import COLLECTIVES
from .compare_select import ELEMENTWISE
from .composite import COMPOSITE
from .contraction import CONTRACTION
from .control import CONTROL
from .convolution import CONVOLUTION, ConvolutionAttr
from .creation import CREATION
from .dynamic_shapes import DYNAMIC_SHAPES
from .extent_bounds import BOUNDS
from .external import FOREIGN
from .indexing import INDEXING
from .legacy import LEGACY
from .linear_algebra import LINEAR_ALGEBRA
from .normalization import NORMALIZATION
from .padding import PADDING
from .process_groups import DEVICES
from .quantization import QUANTIZATION
from .reduction import MAPPING, REDUCTION
from .representation import REPRESENTATION
from .shapes import SHAPES
from .slices import DYNAMIC, SLICES
from .tokens import TOKEN_TYPES, TOKENS
from .tuples import TUPLES
from .unary import UNARY
from .windows import WINDOWS

OPERATIONS = chain(
    *(CREATION, DEVICES, FOREIGN),
    *(UNARY, BINARY, ELEMENTWISE, REPRESENTATION),
    *(SHAPES, SLICES, DYNAMIC, DYNAMIC_SHAPES, PADDING, INDEXING),
    *(CONTRACTION, CONVOLUTION, LINEAR_ALGEBRA, REDUCTION, WINDOWS),
    *(CONTROL, BRANCHES, MAPPING, NORMALIZATION),
    *(LEGACY, TUPLES, QUANTIZATION, COLLECTIVES, TOKENS, COMPOSITE),
)
ATTRIBUTES = [*ENUMERATIONS, *ACCURACY, *RECORDS, *BOUNDS, ConvolutionAttr]
STABLEHLO = Dialect("stablehlo", list(OPERATIONS), [*ATTRIBUTES, *TOKEN_TYPES])
