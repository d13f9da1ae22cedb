"""Scripts with mixed precision, checkpointing, gradient accumulation, or optimizers."""

from __future__ import annotations

import tempfile
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from recompute.benchmarks.torch.scripts.script import Compile, Results, TwoNetworks, batches, final, mlp, script, train


@script
def autocast(compile: Compile) -> Results:
    """Train with `torch.autocast` around the compiled forward pass."""
    torch.manual_seed(60)
    model = mlp()
    step = compile(model)

    def call(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return step(x).float().square().mean()

    return final(model, train(model, call, batches(3, 64, 32)))


@script
def autocast_inside(compile: Compile) -> Results:
    """Train with `torch.autocast` inside the model, around its first half only."""

    class Mixed(TwoNetworks):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.autocast("cpu", torch.bfloat16):
                y = self.first(x)
            return self.second(y.float()).square().mean()

    torch.manual_seed(61)
    model = Mixed()
    return final(model, train(model, compile(model), batches(3, 64, 32)))


@script
def half_weights(compile: Compile) -> Results:
    """Train with bfloat16 weights and a float64 loss."""
    torch.manual_seed(62)
    model = mlp().to(torch.bfloat16)
    step = compile(model)
    return final(model, train(model, lambda x: step(x.bfloat16()).double().square().mean().float(), batches(3, 64, 32)))


@script
def complex_numbers(compile: Compile) -> Results:
    """Train with Fourier layers, which have complex weights and use `rfft` and `irfft`."""

    class Fourier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weights = nn.ParameterList(torch.randn(17, dtype=torch.cfloat) for _ in range(4))
            self.body = mlp(depth=1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for weight in self.weights:
                x = torch.tanh(torch.fft.irfft(torch.fft.rfft(x) * weight, n=32))
            return self.body(x).square().mean()

    torch.manual_seed(63)
    model = Fourier()
    return final(model, train(model, compile(model), batches(3, 64, 32)))


@script
def checkpoint_inside(compile: Compile) -> Results:
    """Train with user-written `torch.utils.checkpoint` around blocks with dropout."""

    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList(mlp(depth=1) for _ in range(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for block in self.blocks:
                x = x + checkpoint(block, x, use_reentrant=False)
            return x.square().mean()

    torch.manual_seed(64)
    model = Checkpointed()
    return final(model, train(model, compile(model), batches(3, 64, 32)))


@script
def selective_checkpoint(compile: Compile) -> Results:
    """Train with selective activation checkpointing, with a policy that saves matrix products."""

    def policy(ctx: Any, operation: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
        products = (torch.ops.aten.mm.default, torch.ops.aten.addmm.default)
        return CheckpointPolicy.MUST_SAVE if operation in products else CheckpointPolicy.PREFER_RECOMPUTE

    class Selective(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList(mlp(depth=1, dropout=0.0) for _ in range(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            contexts = partial(create_selective_checkpoint_contexts, policy)
            for block in self.blocks:
                x = x + checkpoint(block, x, use_reentrant=False, context_fn=contexts)
            return x.square().mean()

    torch.manual_seed(65)
    model = Selective()
    return final(model, train(model, compile(model), batches(3, 64, 32)))


@script
def saved_tensors_hooks(compile: Compile) -> Results:
    """Train with `save_on_cpu` around the compiled step."""
    torch.manual_seed(66)
    model = mlp()
    step = compile(model)

    def call(x: torch.Tensor) -> torch.Tensor:
        with torch.autograd.graph.save_on_cpu():
            return step(x).square().mean()

    return final(model, train(model, call, batches(2, 64, 32)))


@script
def gradient_accumulation(compile: Compile) -> Results:
    """Train with gradients accumulated over four small batches, and clipped by their norm."""
    torch.manual_seed(67)
    model = mlp()
    step = compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(2):
        optimizer.zero_grad()
        for (x,) in batches(4, 16, 32):
            loss = step(x).square().mean() / 4
            loss.backward()
            losses.append(loss)
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
    return final(model, losses)


@script
def compiled_optimizer(compile: Compile) -> Results:
    """Train with an optimizer step that is compiled separately."""
    torch.manual_seed(68)
    model = mlp()
    forward = compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    update = compile(lambda: optimizer.step())
    losses = []
    for (x,) in batches(3, 64, 32):
        optimizer.zero_grad()
        loss = forward(x).square().mean()
        loss.backward()
        update()
        losses.append(loss)
    return final(model, losses)


@script
def whole_step_compiled(compile: Compile) -> Results:
    """Train with forward pass, gradient and update in one compiled function, using `torch.func`."""
    torch.manual_seed(69)
    model = mlp(dropout=0.0)

    def loss(weights: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(model, weights, (x,)).square().mean()

    @compile
    def step(weights: Any, x: torch.Tensor) -> tuple[torch.Tensor, Any]:
        slopes, value = torch.func.grad_and_value(loss)(weights, x)
        return value, {name: weights[name] - 0.05 * slopes[name] for name in weights}

    weights = {name: parameter.detach() for name, parameter in model.named_parameters()}
    losses = []
    for (x,) in batches(3, 64, 32):
        value, weights = step(weights, x)
        losses.append(value)
    return final(model, losses, **{f"trained {name}": weight for name, weight in weights.items()})


@script
def backward_inside(compile: Compile) -> Results:
    """Train with a compiled function that calls `loss.backward()`, which breaks the graph."""
    torch.manual_seed(70)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    @compile
    def step(x: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return final(model, [step(x) for (x,) in batches(3, 64, 32)])


@script
def random_operations(compile: Compile) -> Results:
    """Train with Gumbel softmax, reparametrized noise, random masks and `bernoulli` in one forward pass."""

    class Noisy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encode, self.decode = mlp(depth=2), mlp(depth=2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.encode(x)
            y = y + torch.randn_like(y) * y.sigmoid()
            y = y * torch.bernoulli(torch.full_like(y, 0.9)) + F.gumbel_softmax(y, tau=0.5)
            y = torch.where(torch.rand(y.shape) > 0.1, y, y.detach())
            return self.decode(y).square().mean()

    torch.manual_seed(71)
    model = Noisy()
    return final(model, train(model, compile(model), batches(3, 64, 32)))


@script
def stochastic_depth(compile: Compile) -> Results:
    """Train with random masks that drop whole residual blocks for some samples."""

    class Deep(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList(mlp(depth=1) for _ in range(6))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for block in self.blocks:
                kept = torch.empty(len(x), 1).bernoulli_(0.8)
                x = x + block(x) * kept / 0.8
            return x.square().mean()

    torch.manual_seed(72)
    model = Deep()
    return final(model, train(model, compile(model), batches(3, 64, 32)))


@script
def hugging_face_trainer(compile: Compile) -> Results:
    """Run the `Trainer` of `transformers` with a compiled forward pass."""
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    torch.manual_seed(74)
    model = GPT2LMHeadModel(GPT2Config(n_embd=32, n_layer=2, n_head=2, vocab_size=64, n_positions=32, use_cache=False))
    model.forward = compile(model.forward)
    data = [{"input_ids": tokens, "labels": tokens} for tokens in torch.randint(64, (16, 16))]
    with tempfile.TemporaryDirectory() as folder:
        settings = TrainingArguments(
            folder,
            max_steps=2,
            per_device_train_batch_size=4,
            report_to=[],
            save_strategy="no",
            use_cpu=True,
            disable_tqdm=True,
        )
        trainer = Trainer(model, settings, train_dataset=data)
        loss = trainer.train().training_loss
    return final(model, [torch.tensor(loss)])


@script
def transformers_checkpointing(compile: Compile) -> Results:
    """Train a model of `transformers` with its own gradient checkpointing enabled."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(75)
    config = LlamaConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        intermediate_size=64,
        vocab_size=64,
        max_position_embeddings=32,
        use_cache=False,
    )
    model = LlamaForCausalLM(config).train()
    model.gradient_checkpointing_enable({"use_reentrant": False})
    step = compile(model)
    tokens = [(torch.randint(64, (4, 16)),) for _ in range(2)]
    return final(model, train(model, lambda ids: step(input_ids=ids, labels=ids).loss, tokens))
