"""An unchanged graph is exported node by node as it was imported, and an exported rewrite is proved."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

import pytest

from recompute import rewrite
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.proof.prove import prove
from recompute.test.unit.frontends.torch.graphs import LEAST, cloned, copies_in, exported, is_proved, joint, same_nodes
from recompute.test.unit.frontends.torch.steps import STEPS, torch

from functorch.compile import default_partition  # isort: skip
from recompute.frontends.torch.fx import exporter, layout_views  # isort: skip
from recompute.frontends.torch.fx.exporter import write_joint  # isort: skip
from recompute.frontends.torch.fx.importer import is_backward, read_joint  # isort: skip


@pytest.mark.parametrize("name", STEPS)
def test_unchanged_graph_round_trips(name: str) -> None:
    graph, outputs = joint(name)
    module = read_joint(graph, outputs)
    assert same_nodes(graph, write_joint(module, graph))
    text = print_module(module, debuginfo=True)
    parsed = parse_module(text, "step.mlir")
    assert print_module(parsed, debuginfo=True) == text
    assert prove(module, parsed).proved


def test_scopes_and_phases_come_from_modules_and_tags() -> None:
    graph, outputs = joint("gpt")
    text = print_module(read_joint(graph, outputs), debuginfo=True)
    assert "jvp(" in text and "transpose(jvp(" in text
    assert text.count('recompute.phase = "primal"') > 40 < text.count('recompute.phase = "gradient"')
    assert text.count('"torch.draw"()') == text.count('"torch.seeded.aten.native_dropout.default"') == 4


@pytest.mark.parametrize("name", ["gpt", "batch norm"])
def test_an_exported_rewrite_is_proved(name: str) -> None:
    module, graph, outputs = exported(name)
    assert is_proved(module, graph, outputs)
    assert len(list(copies_in(graph, ""))) > 5


def test_a_copy_without_its_own_node_is_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    """If two draws are at one time, the exporter does not guess which operation advances the generator."""
    graph, outputs = joint("gpt")
    module = read_joint(graph, outputs)
    first, second = [op for op in module.walk() if op.name == "torch.draw"][:2]
    second.detach()
    assert first.parent is not None
    first.parent.insert_op_after(second, first)
    with pytest.raises(exporter.Unsupported, match="two random number generators advance at the same time"):
        write_joint(module, graph)


def _of_flat_weights() -> tuple[Any, Any, int]:
    """Return the imported convolutions, and their graph whose backward pass reads weights through flat views."""
    graph, outputs = joint("convolutions")
    module = read_joint(graph, outputs)
    return module, write_joint(rewrite(module, LEAST).module, graph, for_inductor=True), outputs


def test_weights_of_convolutions_are_read_through_flat_views() -> None:
    """A flat view of a weight has one layout, so that Inductor does not save a copy in another layout."""
    module, graph, outputs = _of_flat_weights()
    assert is_proved(module, graph, outputs)
    flat = [node for node in graph.graph.nodes if node.meta.get(layout_views.FLAT)]
    views = [node for node in flat if layout_views.flattened_argument(node) is not None]
    assert views and all(is_backward(user) for view in views for user in view.users)
    (forward, _) = default_partition(graph, (), num_fwd_outputs=outputs)
    results: Any = forward.graph.output_node().args[0]
    saved = [node.name for node in results[outputs:]]
    assert {view.name for view in views} <= set(saved)
    assert not {view.args[0].name for view in views} & set(saved)


def test_a_flat_view_of_another_weight_is_not_proved() -> None:
    module, graph, outputs = _of_flat_weights()
    graph = cloned(graph)
    views = [node for node in graph.graph.nodes if layout_views.restored_argument(node) is not None]
    by_shape = [
        (view, other) for view in views for other in views if view is not other and view.args[1] == other.args[1]
    ]
    first, other = by_shape[0]
    first.args = (other.args[0], first.args[1])
    assert not is_proved(module, graph, outputs)


@pytest.mark.parametrize("shape", [[-1], [2, 2]])
def test_another_view_is_no_flat_view(shape: list[int]) -> None:
    """An operation that reads a view in another shape is not imported as a reader of the argument."""
    _, graph, _ = _of_flat_weights()
    graph = cloned(graph)
    view = next(node for node in graph.graph.nodes if layout_views.restored_argument(node) is not None)
    view.args = (view.args[0], shape)
    assert layout_views.restored_argument(view) is None


@pytest.mark.parametrize("name", STEPS)
def test_the_backward_pass_makes_views_again(name: str) -> None:
    """The backward pass makes views again, since Inductor saves a view as a copy if it gives the value another
    layout."""
    graph, outputs = joint(name)
    module = read_joint(graph, outputs)
    written = write_joint(module, graph, for_inductor=True)
    assert is_proved(module, written, outputs)
    (forward, _) = default_partition(written, (), num_fwd_outputs=outputs)
    results: Any = forward.graph.output_node().args[0]
    saved = results[outputs:]
    is_view = [node.target is torch.ops.aten.view.default and not node.meta.get(layout_views.FLAT) for node in saved]
    assert saved and not any(is_view)
