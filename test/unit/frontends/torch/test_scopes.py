"""The scope of a node consists of its module path and of the regions that the user names."""

# pyright: basic, reportMissingImports=false, reportInvalidTypeForm=false

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="the graphs are PyTorch's")

from recompute.frontends.torch.fx.node_locations import REGION, location_of, scope_of  # noqa: E402


def node(graph: torch.fx.Graph, expression: str, region: str = "", backward: bool = False) -> torch.fx.Node:
    result = graph.call_function(torch.sin, ())
    stack = {"module": (expression, torch.nn.Module)} if expression else {}
    result.meta["fwd_nn_module_stack" if backward else "nn_module_stack"] = stack
    result.meta["custom"] = {REGION: region} if region else {}
    return result


@pytest.mark.parametrize(
    ("expression", "scope"),
    [
        ("L['self'].blocks[3].attn", "blocks.3/attn"),
        ("L['self']._modules['blocks']._modules['3'].attn", "blocks.3/attn"),
        ("L['self'].blocks[3][0]", "blocks.3/0"),
        ("L['self']._modules['blocks']._modules['3']._modules['0']._modules['1']", "blocks.3/0/1"),
        ("L['self'].layer1[0].conv", "layer1.0/conv"),
        ("L['self'][2]", "2"),
        ("G['model'].blocks[1]", "blocks.1"),
        ("", ""),
    ],
)
def test_module_path_is_the_scope(expression: str, scope: str):
    assert scope_of(node(torch.fx.Graph(), expression)) == scope


def test_backward_node_has_scope_of_forward_node():
    graph = torch.fx.Graph()
    forward, backward = node(graph, "L['self'].blocks[0]"), node(graph, "L['self'].blocks[0]", backward=True)
    assert scope_of(forward) == scope_of(backward) == "blocks.0"
    assert "transpose(jvp(blocks.0))" in str(location_of(backward, True))


def test_region_scope_is_inside_entering_module():
    graph = torch.fx.Graph()
    scores = node(graph, "L['self'].blocks[0]", "attn")
    inner = node(graph, "L['self'].blocks[0].softmax", "attn")
    node(graph, "L['self'].blocks[0]")
    other = node(graph, "L['self'].blocks[1]", "attn")
    gradient = node(graph, "L['self'].blocks[0].softmax", "attn", backward=True)
    assert [scope_of(each) for each in (scores, inner, other)] == [
        "blocks.0/attn",
        "blocks.0/attn/softmax",
        "blocks.1/attn",
    ]
    assert scope_of(gradient) == scope_of(inner)


def test_a_region_around_modules_is_outside_of_them():
    graph = torch.fx.Graph()
    first, second = node(graph, "L['self'].up", "mlp"), node(graph, "L['self'].down", "mlp")
    free = node(graph, "", "mlp")
    assert [scope_of(each) for each in (first, second, free)] == ["mlp/up", "mlp/down", "mlp"]
