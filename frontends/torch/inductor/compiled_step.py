"""Compile the halves of a step with Inductor, run them on substitute arguments, and measure the peak.

Inductor fuses and reorders operations, so the peak of a compiled step is not the peak in program order. The peak is
measured before AOTAutograd receives the halves, so that the user never runs a plan that exceeds the budget. The
substitutes are zeros, since allocations depend only on shapes. A graph does not run if it contains unknown operations
or operations that may have effects.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any

import torch
import torch._functorch.config as functorch_config
from torch._functorch._aot_autograd.graph_compile import collect_fw_donated_buffer_idxs
from torch._guards import TracingContext
from torch._inductor.compile_fx import compile_fx_inner
from torch._ops import OpOverload
from torch._prims.rng_prims import run_and_save_rng_state, run_with_rng_state
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily

from ..fx.fake_values import hint_of
from ..fx.halves import Halves, placeholders_of
from ..fx.schemas import is_size_function
from .allocator import allocator_peak

_PURE_OR_RANDOM = frozenset({"aten", "prims"})
"""The namespaces of operations that may run on substitutes: they affect only their arguments and the generator."""
_PYTHON_FUNCTIONS = (operator.getitem, run_and_save_rng_state, run_with_rng_state)
Device = str


class NotMeasured(Exception):
    """Raised for a step that cannot run on substitute arguments. The message gives the reason."""


def why_not_run(joint: torch.fx.GraphModule) -> str | None:
    """Return the reason why a graph must not run on substitute arguments, or None if it may."""
    for node in joint.graph.find_nodes(op="placeholder"):
        if not isinstance(node.meta.get("val"), FakeTensor | int | float | torch.SymInt):
            return f"the argument {node.name} is neither a tensor nor a number"
    for node in joint.graph.nodes:
        if node.op != "call_function" or node.target in _PYTHON_FUNCTIONS or is_size_function(node.target):
            continue
        if not isinstance(node.target, OpOverload) or node.target.namespace not in _PURE_OR_RANDOM:
            return f"{node.target} may have effects"
    devices = devices_of(joint)
    return (
        None
        if len(devices) == 1 and devices <= {"cpu", "cuda"}
        else f"it runs on {', '.join(sorted(devices))}, but only a single CPU or CUDA device is supported"
    )


def devices_of(joint: torch.fx.GraphModule) -> set[Device]:
    values = (node.meta.get("val") for node in joint.graph.nodes)
    return {value.device.type for value in values if isinstance(value, torch.Tensor)}


def measured_peak(halves: Halves, num_fwd_outputs: int, device: Device) -> int:
    """Return the peak of the compiled step in bytes, including gradients and tangents.

    The peak excludes weights, buffers and inputs. The halves are not changed. Raises `NotMeasured` if they cannot be
    compiled or run.
    """
    try:
        return _peak_on_stand_ins(halves, num_fwd_outputs, device)
    except torch.OutOfMemoryError as error:
        raise NotMeasured("the device does not have enough memory to measure the compiled step") from error
    except Exception as error:
        text = next((line for line in str(error).splitlines() if line.strip()), "")
        raise NotMeasured(f"{type(error).__name__}: {text}") from error


def _peak_on_stand_ins(halves: Halves, num_fwd_outputs: int, device: Device) -> int:
    forward, backward = halves
    with _ready_to_compile():
        run_forward = _compile_half(forward, [_value(node) for node in placeholders_of(forward)], num_fwd_outputs)
        with _ready_to_run(device):
            arguments = {node.name: _stand_in(_value(node)) for node in placeholders_of(forward)}
            saved = _saved_values(forward, run_forward(list(arguments.values())), num_fwd_outputs)
        given = [_with_strides_of(_value(node), saved.get(node.name)) for node in placeholders_of(backward)]
        with _donated_buffers(halves, num_fwd_outputs):
            run_backward = _compile_half(backward, given, 0)
        names = [node.name for node in placeholders_of(backward)]
        tangents = {name: _value(node) for name, node in zip(names, placeholders_of(backward), strict=True)}
        del saved

        def step() -> object:
            results = run_forward(list(arguments.values()))
            saved = _saved_values(forward, results, num_fwd_outputs)
            returned = list(results[:num_fwd_outputs])
            del results
            # Like autograd, this variable holds the gradients of the results until the backward pass ends.
            held = {name: _stand_in(tangents[name]) for name in names if name not in saved}
            read = [saved[name] if name in saved else held[name] for name in names]
            saved.clear()
            return returned, run_backward(read)

        with _ready_to_run(device):
            return allocator_peak(step, device)


@contextmanager
def _ready_to_compile() -> Iterator[None]:
    """Set the global state in which AOTAutograd compiles a half, and restore the previous state afterwards."""
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        stack.enter_context(torch._C._DisableAutocast())
        yield


@contextmanager
def _ready_to_run(device: Device) -> Iterator[None]:
    """Leave the fake mode, so that operations compute real tensors, and restore the generators afterwards."""
    with ExitStack() as stack:
        stack.enter_context(unset_fake_temporarily())
        stack.enter_context(torch._C._DisablePythonDispatcher())
        stack.enter_context(torch.random.fork_rng(devices=None if device == "cuda" else ()))
        yield


@contextmanager
def _donated_buffers(halves: Halves, num_fwd_outputs: int) -> Iterator[None]:
    """Tell Inductor which saved tensors the backward half may overwrite, as AOTAutograd does."""
    context: Any = TracingContext.try_get()
    if context is None or not functorch_config.donated_buffer:
        yield
        return
    forward, backward = halves
    results: Any = forward.graph.output_node().args[0]
    gradients: Any = backward.graph.output_node().args[0]
    names = [node.name for node in placeholders_of(backward)]
    saved = [node for node in results[num_fwd_outputs:] if isinstance(node, torch.fx.Node) and node.name in names]
    donated = collect_fw_donated_buffer_idxs(
        [_value(node) for node in placeholders_of(forward)],
        [_value_or_none(node) for node in results[:num_fwd_outputs]],
        [_value_or_none(node) for node in gradients],
        [_value(node) for node in saved],
    )
    before = context.fw_metadata  # This is None, since AOTAutograd sets it after the split.
    context.fw_metadata = SimpleNamespace(bw_donated_idxs=[names.index(saved[index].name) for index in donated])
    try:
        yield
    finally:
        context.fw_metadata = before


def _compile_half(half: torch.fx.GraphModule, arguments: Sequence[Any], visible: int) -> Callable[[list[Any]], Any]:
    """Compile a half with Inductor. `visible`: the number of user-visible results, whose strides must not change."""
    with unset_fake_temporarily():
        own = copy.deepcopy(half)
    output = own.graph.output_node()
    results: Any = output.args[0]
    are_nodes = [isinstance(result, torch.fx.Node) for result in results[:visible]]
    output.meta["user_visible_output_idxs"] = [index for index, is_node in enumerate(are_nodes) if is_node]
    compile_graph: Any = compile_fx_inner
    with TracingContext.report_output_strides():
        return compile_graph(own, arguments, is_backward=not visible)


def _value(node: torch.fx.Node) -> Any:
    return node.meta["val"]


def _value_or_none(node: Any) -> Any:
    return node.meta.get("val") if isinstance(node, torch.fx.Node) else None


def _saved_values(forward: torch.fx.GraphModule, results: Sequence[Any], num_fwd_outputs: int) -> dict[str, Any]:
    """Map the names of saved nodes to the values that the forward half returned for them.

    The backward half has arguments with the same names.
    """
    nodes: Any = forward.graph.output_node().args[0]
    pairs = zip(nodes[num_fwd_outputs:], results[num_fwd_outputs:], strict=True)
    return {node.name: result for node, result in pairs if isinstance(node, torch.fx.Node)}


def _with_strides_of(value: Any, saved: Any) -> Any:
    """Return the fake argument `value` with the strides of the tensor that the compiled forward half saved."""
    if not isinstance(value, torch.Tensor) or saved is None or _hint(value.stride()) == tuple(saved.stride()):
        return value
    return value.as_strided(value.size(), saved.stride())


def _stand_in(value: Any) -> Any:
    """Return zeros with the shape of a fake value. Zeros are also valid indices."""
    if not isinstance(value, torch.Tensor):
        return hint_of(value)
    size, stride = _hint(value.size()), _hint(value.stride())
    return torch.empty_strided(size, stride, dtype=value.dtype, device=value.device).zero_()


def _hint(sizes: Sequence[Any]) -> tuple[int, ...]:
    return tuple(hint_of(size) for size in sizes)
