"""Each line of the first table of docs/coming_from_pytorch.md holds for PyTorch's control and for that of this
project."""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import copy
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs PyTorch")
rt = pytest.importorskip("recompute.torch", reason="the PyTorch frontend is not there")

from torch import nn  # noqa: E402
from torch.utils.checkpoint import (  # noqa: E402
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
    set_checkpoint_early_stop,
)

from recompute.benchmarks.torch.training_step import meter_step, training_step  # noqa: E402

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "coming_from_pytorch.md").read_text()
WIDTH = 32
INPUTS = (torch.linspace(-1, 1, 128 * WIDTH).view(128, WIDTH),)
LINES: set[str] = set()


def line(text: str) -> Any:
    """Return the mark of a test of the line whose first cell begins with the text."""
    LINES.add(text)
    return lambda test: test


class Stack(nn.Module):
    """Consecutive blocks, each called through `around`."""

    def __init__(self, block: Any, around: Any = None, count: int = 4):
        super().__init__()
        torch.manual_seed(0)
        self.blocks = nn.ModuleList(block() for _ in range(count))
        self.around = around or (lambda block, x: block(x))

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = self.around(block, x)
        return x.square().mean()


def feed_forward(dropout: float = 0.0) -> nn.Module:
    return nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Dropout(dropout), nn.Linear(4 * WIDTH, WIDTH))


def normalized() -> nn.Module:
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH), nn.Tanh())


NOISY = partial(feed_forward, 0.5)
AROUND = partial(checkpoint, use_reentrant=False)


def run(model: Any, **options: Any) -> tuple[Any, Any, Any]:
    """Return results, measured cost, and the report of the graph, under `rt.compile`; without options those of the
    eager run."""
    torch._dynamo.reset()
    own = copy.deepcopy(model)
    step = rt.compile(own, **options) if options else own
    outcome = training_step(own, step, INPUTS)
    graph = step.report().graphs[0] if options else None
    return outcome, meter_step(own, step, INPUTS), graph


@line("`checkpoint(block, x)`")
def test_checkpointed_blocks_match_segments():
    plain, before, _ = run(Stack(NOISY))
    theirs, their_cost, _ = run(Stack(NOISY, AROUND))
    ours, our_cost, graph = run(Stack(NOISY), segments="blocks.*")
    assert ours.differences(plain) == theirs.differences(plain) == []
    assert graph.copies and our_cost.peak_bytes < before.peak_bytes and their_cost.peak_bytes < before.peak_bytes
    assert before.flops < our_cost.flops <= their_cost.flops


@line("`checkpoint_sequential(layers, 2, x)`")
def test_checkpoint_sequential_matches_two_segments():
    class Sequential(Stack):
        def forward(self, x: Any) -> Any:
            return checkpoint_sequential(self.blocks, 2, x, use_reentrant=False).square().mean()

    plain, before, _ = run(Stack(feed_forward))
    theirs, their_cost, _ = run(Sequential(feed_forward))
    ours, our_cost, graph = run(Stack(feed_forward), segment_count=2)
    assert ours.differences(plain) == theirs.differences(plain) == []
    assert graph.copies
    assert max(our_cost.peak_bytes, their_cost.peak_bytes) < before.peak_bytes


@line("`create_selective_checkpoint_contexts([aten.addmm])`")
@pytest.mark.parametrize("options", [{"save": ["torch.aten.addmm.*"]}, {"policy": "dots_saveable"}])
def test_policy_saves_products(options: dict[str, Any]):
    contexts = partial(create_selective_checkpoint_contexts, [torch.ops.aten.addmm.default])
    plain, before, _ = run(Stack(feed_forward))
    theirs, their_cost, _ = run(Stack(feed_forward, partial(AROUND, context_fn=contexts)))
    ours, our_cost, graph = run(Stack(feed_forward), segments="blocks.*", **options)
    assert ours.differences(plain) == theirs.differences(plain) == []
    assert graph.copies and our_cost.flops == their_cost.flops == before.flops


@line("`activation_memory_budget = 0.5`")
def test_budget_of_60_percent_is_kept():
    model = Stack(partial(feed_forward, 0.5), count=6)
    plain, before, _ = run(model)
    ours, cost, graph = run(model, budget="60%")
    assert ours.differences(plain) == []
    assert cost.peak_bytes <= 0.6 * graph.plain_bytes <= 0.6 * before.peak_bytes
    torch._dynamo.reset()
    with torch._functorch.config.patch(activation_memory_budget=0.5):
        own = copy.deepcopy(model)
        backend = "aot_eager_decomp_partition"
        theirs = training_step(own, torch.compile(own, backend=backend), INPUTS)
    if torch.__version__.startswith("2.13"):
        assert any(name.startswith("grad ") for name in theirs.differences(plain))  # pytorch 190758


@line("`preserve_rng_state=False`")
def test_recomputed_random_numbers_are_equal():
    plain, _, _ = run(Stack(NOISY))
    theirs, _, _ = run(Stack(NOISY, partial(AROUND, preserve_rng_state=False)))
    ours, _, graph = run(Stack(NOISY), segments="blocks.*")
    assert any(name.startswith("grad ") for name in theirs.differences(plain))
    assert graph.copies and ours.differences(plain) == []


@line("`use_reentrant=True`")
@pytest.mark.filterwarnings("ignore:None of the inputs")
def test_reentrant_checkpoint_without_grad_inputs_has_no_tape():
    model = Stack(feed_forward, partial(checkpoint, use_reentrant=True), count=1)
    assert not model(*INPUTS).requires_grad
    ours, _, _ = run(Stack(feed_forward, count=2), segments="blocks.*")
    assert "grad blocks.0.0.weight" in ours.tensors


@line("`set_checkpoint_early_stop(False)`")
def test_tail_of_a_block_is_not_recomputed():
    with set_checkpoint_early_stop(False):
        _, whole, _ = run(Stack(feed_forward, AROUND))
    _, cost, graph = run(Stack(feed_forward), segments="blocks.*")
    assert graph.copies and cost.flops < whole.flops


@line('`determinism_check="default"`')
def test_exported_graph_is_proved():
    runs: list[int] = []

    def drifting(block: Any, x: Any) -> Any:
        runs.append(1)
        return block(x * len(runs))  # another number in the second run, of the same shape

    model = Stack(feed_forward, lambda block, x: checkpoint(drifting, block, x, use_reentrant=False), count=1)
    training_step(model, model, INPUTS)
    assert len(runs) == 2  # and no error
    _, _, graph = run(Stack(feed_forward), segments="blocks.*")
    assert "proved equal" in str(graph)


@line("BatchNorm inside `checkpoint`")
def test_running_statistics_are_updated_once():
    plain, _, _ = run(Stack(normalized))
    theirs, _, _ = run(Stack(normalized, AROUND))
    ours, _, graph = run(Stack(normalized), budget="min")
    counts = [outcome.tensors["buffer blocks.0.1.num_batches_tracked"].item() for outcome in (plain, theirs, ours)]
    assert counts == [1, 2, 1]
    assert graph.copies and ours.differences(plain) == []


class Counting(nn.Module):
    """Module that scales by a buffer, then changes the buffer."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("scale", torch.ones(()))
        self.scale: Any

    def forward(self, x: Any) -> Any:
        y = torch.tanh(torch.sin(self.linear(x)) * self.scale.clone())
        self.scale += 1
        return y


@line("a buffer that the checkpointed block changes")
def test_overwritten_buffers_are_read_before_the_update():
    plain, _, _ = run(Stack(Counting))
    theirs, _, _ = run(Stack(Counting, AROUND))
    ours, _, graph = run(Stack(Counting), budget="min")
    assert any(name.startswith("grad ") for name in theirs.differences(plain))
    assert graph.copies and ours.differences(plain) == []


@line("`region_activation_memory_budget`")
def test_segment_budgets_are_kept():
    assert hasattr(torch.autograd.graph, "region_activation_memory_budget")
    plain, before, _ = run(Stack(feed_forward))
    ours, cost, graph = run(Stack(feed_forward), segment_budgets={"blocks.0": "30%", "blocks.1": "30%"})
    assert ours.differences(plain) == []
    assert graph.copies and cost.flops <= before.flops * 4 / 3


@line("`model.gradient_checkpointing_enable()`")
def test_transformer_blocks_are_recomputed():
    transformers = pytest.importorskip("transformers", reason="builds a model of transformers")
    sizes = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=3, num_attention_heads=2, vocab_size=32)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, use_cache=False, pad_token_id=0)).train()
    tokens = torch.arange(64).view(2, 32) % 32

    def step(call: Any) -> Any:
        return lambda: call(input_ids=tokens, labels=tokens).loss

    own = copy.deepcopy(model)
    plain = training_step(own, step(own), ())
    model.gradient_checkpointing_enable({"use_reentrant": False})
    theirs = training_step(model, step(model), ())
    torch._dynamo.reset()
    compiled = rt.compile(own, segments="layers.*")
    ours = training_step(own, step(compiled), ())
    assert theirs.differences(plain) == ours.differences(plain) == []
    assert compiled.report().graphs[0].copies


@line("`saved_tensors_hooks`")
def test_explain_reports_saved_values():
    saved: list[int] = []
    model = Stack(feed_forward, count=2)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t.nbytes) or t, lambda t: t):
        model(*INPUTS)
    assert saved
    torch._dynamo.reset()
    step = rt.compile(model, segments="blocks.*")
    step(*INPUTS).backward()
    text = str(step.explain())
    assert "blocks.0" in text and "saved" in text


def test_each_line_has_a_test():
    table = PAGE.split("## The same controls in Python")[1].split("\n## ")[0]
    cells = [row.split(" | ")[0].removeprefix("| ") for row in table.splitlines() if row.startswith("| ")]
    assert set(cells) - {"PyTorch"} == LINES


def test_options_named_on_page_exist():
    from recompute.frontends.torch.partition.options import OURS

    options = re.findall(r"rt\.compile\(model, (\w+)=", PAGE)
    assert len(options) >= 3 and set(options) <= OURS
