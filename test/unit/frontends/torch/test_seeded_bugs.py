"""Every bug seeded into the exporter or the importer is detected.

The proof through the second import detects those of the exporter, since it covers the exported graph. The proof relies
on the importer; its bugs are detected by comparing the nodes after an unmodified round trip, or the bits of a step that
runs with the bug.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false, reportUnknownLambdaType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from recompute.test.unit.frontends.torch.graphs import cloned, copies_in, exported, is_proved, joint, same_nodes
from recompute.test.unit.frontends.torch.steps import compiled, made, run, torch

import recompute.torch as rt  # isort: skip
from recompute.frontends.torch.fx import importer, unsupported  # isort: skip
from recompute.frontends.torch.fx.exporter import write_joint  # isort: skip
from recompute.frontends.torch.fx.importer import read_joint  # isort: skip


def _fresh_draw(graph: Any) -> None:
    """PyTorch's issue 190758: the copy of a dropout draws again."""
    node = next(copies_in(graph, "run_with_rng_state"))
    _, target, *args = node.args
    node.target, node.args = target, tuple(args)


def _other_state(graph: Any) -> None:
    states = [node.args[0] for node in copies_in(graph, "run_with_rng_state")]
    node = next(copies_in(graph, "run_with_rng_state"))
    other = next(state for state in states if state is not node.args[0])
    node.args = (other, *node.args[1:])


def _other_share(graph: Any) -> None:
    node = next(copies_in(graph, "run_with_rng_state"))
    node.args = (*node.args[:3], 0.2, *node.args[4:])


def _lost_draw(graph: Any) -> None:
    """The forward dropout no longer advances the generator for another one."""
    first, other = [node for node in graph.graph.nodes if "run_and_save_rng_state" in str(node.target)][:2]
    other.replace_all_uses_with(first)
    graph.graph.erase_node(other)


def _swapped_operands(graph: Any) -> None:
    node = next(copies_in(graph, "aten.bmm"))
    node.args = node.args[::-1]


def _wrong_input(graph: Any) -> None:
    """A copy reads another weight of the same shape."""
    node = next(node for node in copies_in(graph, "aten.native_layer_norm"))
    input_, shape, weight, bias, epsilon = node.args
    node.args = (input_, shape, bias, weight, epsilon)


def _other_axis(graph: Any) -> None:
    node = next(copies_in(graph, "aten._softmax"))
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
    first, *_, other = copies_in(graph, "aten._softmax")
    other.replace_all_uses_with(first)


def _changed_constant(graph: Any) -> None:
    node = next(node for node in copies_in(graph, "aten.masked_fill.Scalar"))
    node.args = (*node.args[:2], float("inf"))


def _dropped_cast(graph: Any) -> None:
    """A copy leaves out the cast in front of it."""
    cast = next(copies_in(graph, "aten._to_copy"))
    cast.replace_all_uses_with(cast.args[0])
    graph.graph.erase_node(cast)


def _other_dtype(graph: Any) -> None:
    cast = next(copies_in(graph, "aten._to_copy"))
    cast.kwargs = {"dtype": torch.float16}


def _integer_for_float(graph: Any) -> None:
    """2 in place of 2.0: of another type, and in general of another result."""
    node = next(node for node in graph.graph.nodes if node.args[1:] == (2.0,) and "mul.Scalar" in str(node.target))
    node.args = (node.args[0], 2)


def _dropped_keyword(graph: Any) -> None:
    """The approximation of `gelu` is that by default."""
    next(copies_in(graph, "aten.gelu.")).kwargs = {}


def _dropped_factor(graph: Any) -> None:
    next(node for node in copies_in(graph, "aten.add.Tensor") if "alpha" in node.kwargs).kwargs = {}


def _other_element(graph: Any) -> None:
    """The reciprocal deviation in place of the mean: both are of one shape."""
    node = next(
        node for node in copies_in(graph, "getitem") if node.args[1] == 1 and "native_layer_norm" in node.args[0].name
    )
    node.args = (node.args[0], 2)


def _gradient_for_activation(graph: Any) -> None:
    """A copy reads the gradient of the value that it should read."""
    copy = next(copies_in(graph, "aten.add.Tensor"))
    shape = copy.args[0].meta["val"].shape
    earlier = graph.graph.nodes
    for node in earlier:
        if node is copy:
            break
        if importer.is_backward(node) and importer.ORIGIN not in node.meta and node.op == "call_function":
            value = node.meta.get("val")
            if isinstance(value, torch.Tensor) and value.shape == shape and value.dtype == torch.float32:
                copy.args = (node, *copy.args[1:])
                return
    raise AssertionError("no such gradient")


def _other_operation(graph: Any) -> None:
    """Another overload of the same operands and types."""
    node = next(copies_in(graph, "aten.cos"))
    node.target = torch.ops.aten.sin.default


def _late_draw(graph: Any) -> None:
    """The second layer draws before the first."""
    first, second = [node for node in graph.graph.nodes if "run_and_save_rng_state" in str(node.target)][:2]
    second.args = (second.args[0], first.args[1])
    first.prepend(second)


def _lost_gradient(graph: Any) -> None:
    """None is returned in place of a gradient."""
    (results,) = graph.graph.output_node().args
    lost = list(results)
    index = max(index for index, node in enumerate(lost) if isinstance(node, torch.fx.Node))
    lost[index] = None
    graph.graph.output_node().args = (lost,)


def _swapped_updates(graph: Any) -> None:
    """The running mean is written to the running variance, and the other way round."""
    (results,) = graph.graph.output_node().args
    swapped = list(results)
    first = next(
        i
        for i, node in enumerate(swapped)
        if "getitem" in str(node) and node.args[1] == 3  # the new running mean
    )
    swapped[first], swapped[first + 1] = swapped[first + 1], swapped[first]
    graph.graph.output_node().args = (swapped,)


def _lost_update(graph: Any) -> None:
    """The buffer is returned as it was: its update is lost."""
    (results,) = graph.graph.output_node().args
    lost = list(results)
    first = next(i for i, node in enumerate(lost) if "getitem" in str(node) and node.args[1] == 3)
    statistics = lost[first].args[0]
    lost[first] = statistics.args[3]
    graph.graph.output_node().args = (lost,)


def _in_inference_mode(graph: Any) -> None:
    """The copy normalizes with the running statistics."""
    node = next(copies_in(graph, "_native_batch_norm_legit_functional"))
    node.args = (*node.args[:5], False, *node.args[6:])


def _saved_for_input(graph: Any) -> None:
    """An argument of the same type stands for a value."""
    copy = next(copies_in(graph, "aten.cos"))
    copy.replace_all_uses_with(
        next(
            node
            for node in graph.graph.nodes
            if node.op == "placeholder" and node.meta["val"].shape == copy.meta["val"].shape
        )
    )


EXPORTER_BUGS: list[tuple[str, Callable[[Any], None]]] = [
    *(
        ("gpt", bug)
        for bug in (
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
            _other_element,
            _lost_gradient,
        )
    ),
    *(
        ("bfloat16", bug)
        for bug in (
            _dropped_cast,
            _other_dtype,
            _integer_for_float,
            _dropped_keyword,
            _dropped_factor,
            _gradient_for_activation,
            _other_operation,
            _late_draw,
            _saved_for_input,
        )
    ),
    *(("batch norm", bug) for bug in (_swapped_updates, _lost_update, _in_inference_mode)),
]


@pytest.mark.parametrize(("name", "bug"), EXPORTER_BUGS)
def test_exporter_bug_is_not_proved(name: str, bug: Callable[[Any], None]) -> None:
    module, original, outputs = exported(name)
    graph = cloned(original)
    assert is_proved(module, graph, outputs)
    bug(graph)
    assert not is_proved(module, graph, outputs)


def test_a_stale_buffer_is_not_proved() -> None:
    """A backward pass that reads statistics after the caller has overwritten them, instead of the saved ones, is not
    proved."""
    module, original, outputs = exported("batch norm")
    graph = cloned(original)
    kept = [node for node in graph.graph.nodes if node.meta.get(importer.KEPT)]
    assert kept
    for node in kept:
        node.meta.pop(importer.KEPT)
        node.replace_all_uses_with(node.args[0])
        graph.graph.erase_node(node)
    assert _reads_overwritten(graph)
    assert not is_proved(module, graph, outputs)


def _reads_overwritten(graph: Any) -> bool:
    written = importer.written_placeholders(graph.graph)
    return any(importer.is_backward(user) for node in written for user in node.users)


_text = importer.text_of


def _operands_are_one(node: Any, args: Any, kwargs: Any, operand: Any) -> str:
    def first(read: Any) -> int:
        operand(read)
        return 0

    return _text(node, args, kwargs, first)


def _swapped(node: Any, args: Any, kwargs: Any, operand: Any) -> str:
    swap = len(args) == 2 and all(isinstance(arg, torch.fx.Node) for arg in args)
    return _text(node, args[::-1] if swap else args, kwargs, operand)


IMPORTER_BUGS: dict[str, tuple[str, str, Any]] = {
    "keywords are lost": ("gpt", "text_of", lambda node, args, kwargs, operand: _text(node, args, {}, operand)),
    "numbers are rounded": ("batch norm", "text_of", lambda *given: _text(*given).replace("1e-05", "0.0")),
    "lists are emptied": ("gpt", "text_of", lambda *given: _text(*given).replace("[256, 32]", "[128, 64]")),
    "overloads are one": ("convolutions", "qualified_name", lambda target: "aten.relu.default"),
    "the first operand is read everywhere": ("gpt", "text_of", _operands_are_one),
    "operands are swapped": ("lstm", "text_of", _swapped),
    "integers for floats": ("bfloat16", "text_of", lambda *given: _text(*given).replace("2.0", "2")),
    "types are lost": ("bfloat16", "text_of", lambda *given: _text(*given).replace("bfloat16", "float16")),
    "the sign is lost": ("gpt", "text_of", lambda *given: _text(*given).replace("-1", "1")),
    "truths for numbers": ("batch norm", "text_of", lambda *given: _text(*given).replace("True", "1")),
}


@pytest.mark.parametrize("bug", IMPORTER_BUGS)
def test_importer_bug_breaks_round_trip(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, attribute, wrong = IMPORTER_BUGS[bug]
    graph, outputs = joint(name)
    monkeypatch.setattr(importer, attribute, wrong)
    try:
        exported = write_joint(read_joint(graph, outputs), graph)
    except (ValueError, IndexError, AttributeError, unsupported.Unsupported):
        return
    assert not same_nodes(graph, exported)


def _items_are_shifted(reader: Any, node: Any) -> None:
    source, index = node.args
    results = reader.values[source]
    reader.values[node] = results[index - 1]


def _outputs_are_reversed(reader: Any, node: Any) -> None:
    outputs = [output for output in node.args[0] if isinstance(output, torch.fx.Node)]
    reader.block.add_op(importer.ReturnOp(*(reader._single(output, node) for output in outputs[::-1])))


def _state_of_the_first(reader: Any, node: Any, target: Any, args: Any, value: Any, known: dict[Any, Any]) -> Any:
    """Every random operation reads the first state that was drawn."""
    state, results = known["original"](reader, node, target, args, value)
    first = known.setdefault(id(reader), state)
    if first is not state:
        for use in list(state.uses):
            use.operation.operands[use.index] = first
    return state, results


READER_BUGS: dict[str, tuple[str, str, Any]] = {
    "elements are shifted": ("gpt", "_item", _items_are_shifted),
    "outputs are reversed": ("gpt", "_output", _outputs_are_reversed),
}


@pytest.mark.parametrize("bug", READER_BUGS)
def test_reader_bug_breaks_round_trip(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, method, wrong = READER_BUGS[bug]
    graph, outputs = joint(name)
    monkeypatch.setattr(importer._Reader, method, wrong)
    try:
        exported = write_joint(read_joint(graph, outputs), graph)
    except (ValueError, IndexError, TypeError, unsupported.Unsupported):
        return
    assert not same_nodes(graph, exported)


def test_one_state_for_all_draws_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[Any, Any] = {"original": importer._Reader._random_operation}
    monkeypatch.setattr(importer._Reader, "_random_operation", lambda *given: _state_of_the_first(*given, known=known))
    graph, outputs = joint("gpt")
    with pytest.raises(
        unsupported.Unsupported, match=r"the random operation does not read the state of the torch.draw just before it"
    ):
        write_joint(read_joint(graph, outputs), graph)


EXECUTED_BUGS: dict[str, tuple[str, str, Any, str | None]] = {
    "writes are not seen": (
        "batch norm",
        "written_placeholders",
        lambda graph: frozenset(),
        "has been modified by an inplace operation",
    ),
    "draws are not seen": ("gpt", "draws", lambda target: False, None),
    "phases are lost": ("gpt", "is_backward", lambda node: False, "no gradient found"),
}
"""Bugs that leave an unmodified round trip as it is, and the error when the step runs with what is recomputed by them;
None if it runs right."""


@pytest.mark.parametrize("bug", EXECUTED_BUGS)
def test_importer_bug_never_changes_a_result(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, attribute, wrong, message = EXECUTED_BUGS[bug]
    model, args = made(name)
    monkeypatch.setattr(importer, attribute, wrong)
    if message is not None:
        with pytest.raises(Exception, match=message):
            compiled(model, args, lambda own: rt.compile(own, budget="min"))
        return
    step, ran = compiled(model, args, lambda own: rt.compile(own, budget="min"))
    (report,) = step.report().graphs
    assert report.copies > 0
    assert ran.same_as(run(model, model, args))
