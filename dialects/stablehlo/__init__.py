"""StableHLO for xDSL: all operations of its specification, and those that it keeps for older exporters.

Property names, custom assembly and checks are those of StableHLO itself, so that its text can be read and written.
"""

from itertools import chain

from xdsl.ir import Dialect

from .attributes import ATTRIBUTES
from .binary import BINARY
from .branches import BRANCHES
from .collectives import COLLECTIVES
from .composite import COMPOSITE
from .contraction import CONTRACTION
from .control import CONTROL
from .convolution import CONVOLUTION
from .creation import CREATION
from .devices import DEVICES
from .dynamic import DYNAMIC
from .dynamic_shapes import DYNAMIC_SHAPES
from .elementwise import ELEMENTWISE
from .foreign import FOREIGN
from .indexing import INDEXING
from .legacy import LEGACY
from .linear_algebra import LINEAR_ALGEBRA
from .mapping import MAPPING
from .normalization import NORMALIZATION
from .padding import PADDING
from .quantization import QUANTIZATION
from .reduction import REDUCTION
from .representation import REPRESENTATION
from .shapes import SHAPES
from .slices import SLICES
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
STABLEHLO = Dialect("stablehlo", list(OPERATIONS), [*ATTRIBUTES, *TOKEN_TYPES])
