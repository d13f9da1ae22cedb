"""Import and export: a graph that nobody changes comes back node by node; bugs in either are caught."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any

import pytest

from recompute import RecomputeOptions, rewrite
from recompute.interpreters.prove import prove
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.test.unit.frontends.torch.graphs import joint, same_nodes
from recompute.test.unit.frontends.torch.steps import STEPS, torch

from recompute.frontends.torch import exporter, importer, unsupported  # isort: skip
from recompute.frontends.torch.exporter import write_joint  # isort: skip
from recompute.frontends.torch.importer import ORIGIN, read_joint  # isort: skip

LEAST = RecomputeOptions(budget="min", target="none", stagger=False, proof=False)


@pytest.mark.parametrize("name", STEPS)
def test_an_unchanged_graph_comes_back(name: str) -> None:
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


@cache
def _exported(name: str) -> tuple[Any, Any, int]:
    """The imported step, and the graph of its rewrite for the least peak."""
    graph, outputs = joint(name)
    module = read_joint(graph, outputs)
    return module, write_joint(rewrite(module, LEAST).module, graph), outputs


def _copies(graph: Any, part: str) -> Iterator[Any]:
    return (node for node in graph.graph.nodes if ORIGIN in node.meta and part in str(node.args) + str(node.target))


def _proved(module: Any, graph: Any, outputs: int) -> bool:
    with suppress(unsupported.Unsupported):
        return prove(module, read_joint(graph, outputs)).proved
    return False


def _clone(graph: Any) -> Any:
    """The graph with nodes of its own, which a test may change."""
    fresh = torch.fx.Graph()
    fresh.output(fresh.graph_copy(graph.graph, {})).meta = dict(graph.graph.output_node().meta)
    return torch.fx.GraphModule(graph, fresh)


@pytest.mark.parametrize("name", ["gpt", "batch norm"])
def test_an_exported_rewrite_is_proved(name: str) -> None:
    module, graph, outputs = _exported(name)
    assert _proved(module, graph, outputs)
    assert len(list(_copies(graph, ""))) > 5


def _fresh_draw(graph: Any) -> None:
    """PyTorch's issue 190758: the copy of a dropout draws again."""
    node = next(_copies(graph, "run_with_rng_state"))
    _, target, *args = node.args
    node.target, node.args = target, tuple(args)


def _other_state(graph: Any) -> None:
    states = [node.args[0] for node in _copies(graph, "run_with_rng_state")]
    node = next(_copies(graph, "run_with_rng_state"))
    other = next(state for state in states if state is not node.args[0])
    node.args = (other, *node.args[1:])


def _other_share(graph: Any) -> None:
    node = next(_copies(graph, "run_with_rng_state"))
    node.args = (*node.args[:3], 0.2, *node.args[4:])


def _lost_draw(graph: Any) -> None:
    """The forward dropout no longer advances the generator for another one."""
    one, other = [node for node in graph.graph.nodes if "run_and_save_rng_state" in str(node.target)][:2]
    other.replace_all_uses_with(one)
    graph.graph.erase_node(other)


def _swapped_operands(graph: Any) -> None:
    node = next(_copies(graph, "aten.bmm"))
    node.args = node.args[::-1]


def _wrong_input(graph: Any) -> None:
    """A copy reads another weight of the same shape."""
    node = next(node for node in _copies(graph, "aten.native_layer_norm"))
    input_, shape, weight, bias, epsilon = node.args
    node.args = (input_, shape, bias, weight, epsilon)


def _other_axis(graph: Any) -> None:
    node = next(_copies(graph, "aten._softmax"))
    node.args = (node.args[0], -2, *node.args[2:])


def _wrong_result(graph: Any) -> None:
    """A gradient is returned for another parameter of the same shape."""
    (results,) = graph.graph.output_node().args
    shapes = [node.meta["val"].shape if isinstance(node, torch.fx.Node) else None for node in results]
    first, second = next((i, k) for i in range(1, len(shapes)) for k in range(i) if shapes[i] == shapes[k] and k)
    swapped = list(results)
    swapped[first], swapped[second] = results[second], results[first]
    graph.graph.output_node().args = (swapped,)


def _stale_value(graph: Any) -> None:
    """A copy of one block is read in place of that of another."""
    one, other = list(_copies(graph, "aten.gelu"))[:2]
    other.replace_all_uses_with(one)


def _changed_constant(graph: Any) -> None:
    node = next(node for node in _copies(graph, "aten.masked_fill.Scalar"))
    node.args = (*node.args[:2], float("inf"))


EXPORTER_BUGS = [
    _fresh_draw,
    _other_state,
    _other_share,
    _lost_draw,
    _swapped_operands,
    _wrong_input,
    _other_axis,
    _wrong_result,
    _stale_value,
    _changed_constant,
]


@pytest.mark.parametrize("bug", EXPORTER_BUGS)
def test_a_bug_of_the_exporter_is_not_proved(bug: Callable[[Any], None]) -> None:
    module, exported, outputs = _exported("gpt")
    graph = _clone(exported)
    assert _proved(module, graph, outputs)
    bug(graph)
    assert not _proved(module, graph, outputs)


def test_a_stale_buffer_is_not_proved() -> None:
    """The backward pass reads the statistics that the caller has overwritten by then, not those that were kept."""
    module, exported, outputs = _exported("batch norm")
    graph = _clone(exported)
    kept = [node for node in graph.graph.nodes if node.meta.get(importer.KEPT)]
    assert kept
    for node in kept:
        node.meta.pop(importer.KEPT)
        node.replace_all_uses_with(node.args[0])
        graph.graph.erase_node(node)
    assert _reads_overwritten(graph)
    assert not _proved(module, graph, outputs)


def _reads_overwritten(graph: Any) -> bool:
    written = importer._written_placeholders(graph.graph)
    return any(importer.is_backward(user) for node in written for user in node.users)


IMPORTER_BUGS: dict[str, tuple[str, str, Any]] = {
    "keywords are lost": ("gpt", "text_of", lambda node, args, kwargs, operand: _text(node, args, {}, operand)),
    "numbers are rounded": ("batch norm", "text_of", lambda *given: _text(*given).replace("1e-05", "0.0")),
    "lists are emptied": ("gpt", "text_of", lambda *given: _text(*given).replace("[256, 32]", "[128, 64]")),
    "overloads are one": ("convolutions", "qualified_name", lambda target: "aten.relu.default"),
}
_text = importer.text_of


@pytest.mark.parametrize("bug", IMPORTER_BUGS)
def test_a_bug_of_the_importer_changes_an_unmodified_round_trip(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, attribute, wrong = IMPORTER_BUGS[bug]
    graph, outputs = joint(name)
    monkeypatch.setattr(importer, attribute, wrong)
    try:
        exported = write_joint(read_joint(graph, outputs), graph)
    except (ValueError, IndexError, AttributeError, unsupported.Unsupported):
        return
    assert not same_nodes(graph, exported)


def test_a_copy_without_its_own_node_is_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two draws at one time: the exporter does not guess which operation advances the generator."""
    graph, outputs = joint("gpt")
    module = read_joint(graph, outputs)
    first, second = [op for op in module.walk() if op.name == "torch.draw"][:2]
    second.detach()
    assert first.parent is not None
    first.parent.insert_op_after(second, first)
    with pytest.raises(exporter.Unsupported, match="two generators advance at one time"):
        write_joint(module, graph)
