"""Export the joint graph of a step as MLIR, for the command-line tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.exc import BackendCompilerFailed

from ...mlir_io.printer import print_module
from .fx.importer import read_joint
from .program_order.executor import compile_in_order


class _Captured(Exception):
    """Raised to end the compilation once the joint graph is captured, so that nothing runs."""

    def __init__(self, text: str):
        self.text = text
        super().__init__("captured")


def export(model: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> str:
    """Return the forward and the backward pass of a step as MLIR, with locations. The step does not run.

    Args:
        model: A module or a function of tensors, some of which need a gradient.
        args: The positional arguments of the call.
        kwargs: The keyword arguments of the call.

    Returns:
        MLIR text for `recompute-opt` and `recompute.rewrite`. Rewrite it with the option `target=none`.

    Raises:
        ValueError: For a step without a backward pass.
        Unsupported: For a node that the MLIR encoding cannot represent.

    Example:
        >>> text = recompute.torch.export(model, (batch, target))  # doctest: +SKIP
    """
    compiler = aot_autograd(fw_compiler=compile_in_order, bw_compiler=compile_in_order, partition_fn=_capture)
    step = torch.compile(model, backend=compiler, fullgraph=True)
    try:
        step(*args, **(kwargs or {}))
    except (BackendCompilerFailed, _Captured) as error:
        captured = getattr(error, "inner_exception", error)
        if isinstance(captured, _Captured):
            return captured.text
        if isinstance(captured, Exception) and captured is not error:
            raise captured from error
        raise
    raise ValueError("export: the step has no backward pass, because none of its results requires a gradient")


def _capture(joint: torch.fx.GraphModule, inputs: Any, *, num_fwd_outputs: int, **_: Any) -> Any:
    raise _Captured(print_module(read_joint(joint, num_fwd_outputs, marked=True), debuginfo=True))
