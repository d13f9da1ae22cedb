"""StableHLO for xDSL: the operations of JAX's training steps.

Property names, custom assembly and checks are those of StableHLO itself, so that its text can be read and written.
Other StableHLO operations pass through as unregistered ones in the generic form.
"""

from itertools import chain

from xdsl.ir import Dialect

from .attributes import ATTRIBUTES
from .binary import BINARY
from .branches import BRANCHES
from .contraction import CONTRACTION
from .control import CONTROL
from .convolution import CONVOLUTION
from .creation import CREATION
from .devices import DEVICES
from .dynamic import DYNAMIC
from .elementwise import ELEMENTWISE
from .foreign import FOREIGN
from .indexing import INDEXING
from .linear_algebra import LINEAR_ALGEBRA
from .padding import PADDING
from .reduction import REDUCTION
from .representation import REPRESENTATION
from .shapes import SHAPES
from .slices import SLICES
from .unary import UNARY
from .windows import WINDOWS

OPERATIONS = chain(
    *(CREATION, DEVICES, FOREIGN),
    *(UNARY, BINARY, ELEMENTWISE, REPRESENTATION),
    *(SHAPES, SLICES, DYNAMIC, PADDING, INDEXING),
    *(CONTRACTION, CONVOLUTION, LINEAR_ALGEBRA, REDUCTION, WINDOWS),
    *(CONTROL, BRANCHES),
)
STABLEHLO = Dialect("stablehlo", list(OPERATIONS), ATTRIBUTES)
