"""Import and export: an unchanged graph comes back node by node, and an exported rewrite is proved."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false

from __future__ import annotations

import pytest

from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.proof.prove import prove
from recompute.test.unit.frontends.torch.graphs import copies_in, exported, is_proved, joint, same_nodes
from recompute.test.unit.frontends.torch.steps import STEPS

from recompute.frontends.torch import exporter  # isort: skip
from recompute.frontends.torch.exporter import write_joint  # isort: skip
from recompute.frontends.torch.importer import read_joint  # isort: skip


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


@pytest.mark.parametrize("name", ["gpt", "batch norm"])
def test_an_exported_rewrite_is_proved(name: str) -> None:
    module, graph, outputs = exported(name)
    assert is_proved(module, graph, outputs)
    assert len(list(copies_in(graph, ""))) > 5


def test_a_copy_without_its_own_node_is_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two draws at one time: the exporter does not guess which operation advances the generator."""
    graph, outputs = joint("gpt")
    module = read_joint(graph, outputs)
    first, second = [op for op in module.walk() if op.name == "torch.draw"][:2]
    second.detach()
    assert first.parent is not None
    first.parent.insert_op_after(second, first)
    with pytest.raises(exporter.Unsupported, match="two random number generators advance at the same time"):
        write_joint(module, graph)
