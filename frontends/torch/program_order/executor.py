"""Run a graph in program order, and free each argument after its last use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._prims.rng_prims import run_and_save_rng_state, run_with_rng_state
from torch.fx.graph import _BoxedCodeGen  # pyright: ignore[reportPrivateUsage]

from ..fx.fake_values import tensors_in


def compile_in_order(graph: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
    """Compile a graph to Python code that calls the operations in order, as the backend `aot_eager` does.

    The code takes its arguments as a list and clears that list, so that each argument is freed after its last use.

    Args:
        graph: The graph, which is changed in place.
        example_inputs: Ignored, but part of the interface of AOTAutograd's compilers.
    """
    for node in graph.graph.nodes:
        if node.target in (run_and_save_rng_state, run_with_rng_state):
            is_draw = node.target is run_and_save_rng_state
            result = node.meta["val"][1] if is_draw else node.meta["val"]
            node.target = _CALLS[is_draw, next(tensors_in(result)).device.type]
    graph.graph.set_codegen(_BoxedCodeGen())
    graph.recompile()
    forward = graph.forward

    def run(arguments: list[Any]) -> Any:
        return forward(arguments)

    run._boxed_call = True  # pyright: ignore[reportFunctionMemberAccess]
    return run


def draw_on_cpu(operation: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[torch.Tensor, Any]:
    """Run a random operation. Return the generator's previous state and the result."""
    return torch.get_rng_state(), operation(*args, **kwargs)


def draw_on_cuda(operation: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[torch.Tensor, Any]:
    """Run a random operation on the current CUDA device. Return the generator's previous state and the result."""
    return torch.cuda.get_rng_state(), operation(*args, **kwargs)


def replay_on_cpu(state: torch.Tensor, operation: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run a random operation from the given generator state, and restore the generator afterwards."""
    now = torch.get_rng_state()
    torch.set_rng_state(state)
    try:
        return operation(*args, **kwargs)
    finally:
        torch.set_rng_state(now)


def replay_on_cuda(state: torch.Tensor, operation: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run a random operation from a given generator state on the current CUDA device, and restore the generator
    afterwards.
    """
    now = torch.cuda.get_rng_state()
    torch.cuda.set_rng_state(state)
    try:
        return operation(*args, **kwargs)
    finally:
        torch.cuda.set_rng_state(now)


_CALLS: dict[tuple[bool, str], Callable[..., Any]] = {
    (True, "cpu"): draw_on_cpu,
    (True, "cuda"): draw_on_cuda,
    (False, "cpu"): replay_on_cpu,
    (False, "cuda"): replay_on_cuda,
}
