"""StableHLO for xDSL: the operations of JAX's training steps.

Property names, custom assembly and checks are those of StableHLO itself, so that its text can be read and written.
Other StableHLO operations pass through as unregistered ones in the generic form.
"""

from xdsl.ir import Dialect

from .attributes import ATTRIBUTES
from .binary import BINARY
from .contraction import CONTRACTION
from .control import CONTROL
from .creation import CREATION
from .elementwise import ELEMENTWISE
from .indexing import INDEXING
from .reduction import REDUCTION
from .shapes import SHAPES
from .slices import SLICES
from .unary import UNARY

STABLEHLO = Dialect(
    "stablehlo",
    [*CREATION, *UNARY, *BINARY, *ELEMENTWISE, *SHAPES, *SLICES, *CONTRACTION, *INDEXING, *REDUCTION, *CONTROL],
    list(ATTRIBUTES),
)
