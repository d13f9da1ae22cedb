"""Parsing of the paths in JAX's locations."""

from __future__ import annotations

import pytest

from recompute.analysis.step.direction import Direction
from recompute.analysis.step.jax_paths import backward_path, forward_path, parse_path

PATHS = {
    "jit(f)/jvp(block0)/tanh": (("block0",), (), Direction.FORWARD),
    "jit(f)/transpose(jvp(block0))/mul": (("block0",), (), Direction.BACKWARD),
    "jit(f)/grads/jvp(model)/layer/attn/cos": (("grads", "model", "layer", "attn"), (), Direction.FORWARD),
    "jit(f)/jvp(model/layer)/cos": (("model", "layer"), (), Direction.FORWARD),
    "jit(f)/jvp(block0)/jit(_where)/select_n": (("block0",), ("_where",), Direction.FORWARD),
    "jit(f)/jvp(jit(log_softmax))/sub": ((), ("log_softmax",), Direction.FORWARD),
    "jit(f)/jvp()/mul": ((), (), Direction.FORWARD),
    "jit(f)/transpose": ((), (), Direction.NONE),
    "jit(f)/sub": ((), (), Direction.NONE),
    "jit(f)/vmap(transpose(jvp(s)))/mul": (("s",), (), Direction.BACKWARD),
    "jit(f)/transpose(jvp(vmap(s)))/mul": (("s",), (), Direction.BACKWARD),
    "jit(f)/transpose(jvp(transpose(jvp(s))))/mul": (("s",), (), Direction.BACKWARD),
    "jit(f)/transpose(jvp(jvp(s)))/mul": (("s",), (), Direction.BACKWARD),
    "jit(f)/jvp(transpose(jvp(s)))/mul": (("s",), (), Direction.FORWARD),
    "jit(f)/jvp(loss)/transpose(jvp(s))/mul": (("loss", "s"), (), Direction.FORWARD),
    "jit(f)/jvp(vmap(jvp(s)))/mul": (("s",), (), Direction.FORWARD),
    "jit(f)/transpose(jvp(b))/jvp(b)/checkpoint/rematted_computation/sin": (("b", "b"), (), Direction.BACKWARD),
    "jit(f)/jvp(LM)/while/body/eval_jaxpr/Block/sin": (("LM", "while", "body", "Block"), (), Direction.FORWARD),
    "jit(f)/jvp(model/block0)": ((), (), Direction.NONE),
    "jit(f)/jvp(a/b)/c(d/e)": (("a", "b"), (), Direction.FORWARD),
    "jit(f)/jvp(a(/sin": ((), (), Direction.NONE),
    "": ((), (), Direction.NONE),
}


@pytest.mark.parametrize("path", PATHS)
def test_paths_are_parsed_into_scope_and_direction(path: str) -> None:
    scope = parse_path(path)
    assert (scope.path, scope.functions, scope.direction) == PATHS[path]


@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        ("jit(f)/jvp(block0)/tanh", "jit(f)/transpose(jvp(block0))/recompute/tanh"),
        ("jit(f)/jvp(b)/jit(_where)/select_n", "jit(f)/transpose(jvp(b))/recompute/jit(_where)/select_n"),
        ("tanh", "transpose(jvp())/recompute/tanh"),
    ],
)
def test_copy_is_located_in_the_backward_pass(forward: str, backward: str) -> None:
    assert backward_path(forward) == backward
    assert parse_path(backward).direction is Direction.BACKWARD
    assert parse_path(backward).path == parse_path(forward).path


@pytest.mark.parametrize(
    ("again", "forward"),
    [
        ("jit(f)/transpose(jvp(b))/jvp(b)/checkpoint/rematted_computation/sin", "jit(f)/jvp(b)/sin"),
        ("jit(f)/transpose(jvp(b))/checkpoint/rematted_computation/attn/sin", "jit(f)/jvp(b)/attn/sin"),
        ("jit(f)/transpose(jvp(jvp()))/checkpoint/rematted_computation/jit(g)/sin", "jit(f)/jvp(jvp())/jit(g)/sin"),
        ("jit(f)/vmap(transpose(jvp(a/b)))/checkpoint/rematted_computation/sin", "jit(f)/vmap(jvp(a/b))/sin"),
        ("jit(f)/jvp(transpose(jvp(b)))/checkpoint/rematted_computation/sin", "jit(f)/jvp(transpose(jvp(b)))/sin"),
        ("jit(f)/transpose(jvp())/remat2", "jit(f)/jvp()/remat2"),
        ("", ""),
    ],
)
def test_checkpoint_recomputation_maps_to_forward_path(again: str, forward: str) -> None:
    assert forward_path(again) == forward
    assert parse_path(forward).direction is not Direction.BACKWARD
