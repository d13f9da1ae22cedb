"""CHLO for xDSL: operations that JAX and PyTorch/XLA emit and that XLA expands into StableHLO.

Names, properties and assembly follow `ChloOps.td`; constraints follow StableHLO's verifier, since the specification
does not describe CHLO.
"""

from xdsl.ir import Dialect

from .broadcasting import BROADCASTING, BROADCASTING_ATTRIBUTES
from .constants import CONSTANTS
from .elementwise import ELEMENTWISE
from .ragged_dot import RAGGED_DOT, RAGGED_DOT_ATTRIBUTES
from .scan import SCAN
from .top_k import TOP_K

CHLO = Dialect(
    "chlo",
    [*ELEMENTWISE, *TOP_K, *BROADCASTING, *CONSTANTS, *RAGGED_DOT, *SCAN],
    [*BROADCASTING_ATTRIBUTES, *RAGGED_DOT_ATTRIBUTES],
)
