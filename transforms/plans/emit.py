"""What has its copies and tokens as it is written: merged, verified, lowered, staggered."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from ...dialects.stopwatch import part
from ...options.recompute_options import Emission
from ..calls.origins import Origins
from ..cse import cse
from ..lower import lower
from ..phase import Steps, numbered_steps
from ..stagger import stagger
from ..verify import verify, verify_input


def emit(work: ModuleOp, origins: Origins, emission: Emission, before: Steps) -> Steps:
    """The module, which has its copies and tokens, as it is written, but for calls. `before`: its steps before that.

    Its steps after that are returned.
    """
    known = {function: step.phases for function, step in before}
    with part("cse"):
        if emission.calls:
            origins.follow_copies(work)
            cse(work, known, origins.instance_of)
        else:
            cse(work, known)
    if not emission.is_ordered:
        # While the tokens are there: program order is all that is left of them.
        with part("verify"):
            verify(work)
    with part("lower"):
        lower(work, emission.target)
    if emission.staggered and emission.target == "stablehlo":
        with part("stagger"):
            stagger(work, known=known)
    steps = numbered_steps(work, bare=True)
    with part("verify"):
        if emission.is_ordered:
            verify(work, steps)
        else:
            verify_input(work)
    return steps


def replace_content(module: ModuleOp, work: ModuleOp) -> None:
    """Give the module the content of `work`."""
    for op in list(module.ops):
        op.detach()
        op.erase()
    for op in list(work.ops):
        op.detach()
        module.body.block.add_op(op)
