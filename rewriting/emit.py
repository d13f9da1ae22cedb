"""Emit a module that contains copies: run CSE, lower tokens, delay early operations if the options request it
(`stagger`), and verify the module."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ..analysis.step.graph_of import NumberedGraph
from ..analysis.step.module_steps import numbered_steps
from ..analysis.step.step import Steps
from ..options.recompute_options import Emission
from ..support.timing import part
from ..transforms.calls.origins import Origins
from ..transforms.cse import cse
from ..transforms.lower import lower
from ..transforms.stagger import stagger
from ..transforms.verify import verify, verify_input


def emit(module: ModuleOp, origins: Origins, emission: Emission, before: Steps) -> Steps:
    """Clean up, lower and verify the module in place. The caller restores calls and gradient regions afterwards.

    Args:
        module: The module with copies and tokens.
        origins: The origin of each inlined operation.
        emission: The form of the result.
        before: The steps of the module before copies were inserted.

    Returns:
        The steps of the result.
    """
    phases_of = {function: step.phases for function, step in before}
    graphs = dict[FuncOp, NumberedGraph]()
    with part("cse"):
        if emission.calls:
            origins.follow_copies(module)
            cse(module, phases_of, origins.instance_of)
        else:
            cse(module, phases_of)
    if not emission.keeps_barriers:
        # Verify before lowering: lowering removes the tokens, so that only program order remains.
        with part("verify"):
            verify(module)
    with part("lower"):
        lower(module, emission.target)
    if emission.staggered and emission.target == "stablehlo":
        with part("stagger"):
            stagger(module, phases_of=phases_of, unchanged=graphs)
    steps = numbered_steps(module, bare=True, graphs=graphs)
    with part("verify"):
        if emission.keeps_barriers:
            verify(module, steps)
        else:
            verify_input(module)
    return steps
