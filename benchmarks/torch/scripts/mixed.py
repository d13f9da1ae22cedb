"""Scripts that combine several features: optimizers in hooks, hand-written gradients, random generators."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from recompute.benchmarks.torch.scripts.script import Compile, Results, script


def layers(*sizes: int, act: type[nn.Module] = nn.GELU) -> nn.Sequential:
    """Return linear layers of the given sizes, with an activation between them."""
    parts: list[nn.Module] = []
    for inner, outer in itertools.pairwise(sizes):
        parts += [nn.Linear(inner, outer), act()]
    return nn.Sequential(*parts[:-1])


def copies_by_index(tensors: list[Any]) -> Results:
    """Return copies of the tensors, with their indices as names."""
    return {str(index): tensor.detach().clone() for index, tensor in enumerate(tensors)}


class Quantize(torch.autograd.Function):
    """Round to a given number of bits, with a straight-through gradient and a learned scale."""

    @staticmethod
    def forward(ctx, x, scale, bits):
        rounded = torch.round(x / scale).clamp(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        ctx.save_for_backward(x, scale, rounded)
        ctx.bits = bits
        ctx.mark_non_differentiable(rounded)
        return rounded * scale, rounded

    @staticmethod
    def backward(ctx, gradient, _):
        x, scale, rounded = ctx.saved_tensors
        inside = (x.abs() < scale * 2 ** (ctx.bits - 1)).to(gradient.dtype)
        return gradient * inside, ((rounded - x / scale) * gradient).sum(), None


class ExpAndSum(torch.autograd.Function):
    """Return the exponential and its sum, with a gradient that reads the saved exponential."""

    @staticmethod
    def forward(ctx, x):
        y = torch.exp(x)
        ctx.save_for_backward(y)
        ctx.set_materialize_grads(False)
        return y, y.sum()

    @staticmethod
    def backward(ctx, of_result, of_sum):
        (y,) = ctx.saved_tensors
        if of_result is None and of_sum is None:
            return None
        gradient = torch.zeros_like(y)
        if of_result is not None:
            gradient = gradient + of_result * y
        if of_sum is not None:
            gradient = gradient + of_sum * y
        return gradient


@script
def optimizer_in_hooks(compile: Compile) -> Results:
    """Train with hooks that change values and gradients, and with optimizers that run in the backward pass."""
    torch.manual_seed(60)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(48, 48), nn.Tanh()) for _ in range(5)))
    model[1].register_forward_hook(lambda module, inputs, output: output * 1.5 + output.detach())
    model[2].register_forward_pre_hook(lambda module, inputs: (inputs[0].clamp(-1, 1),))
    norms = []
    optimizers = {p: torch.optim.SGD([p], lr=1e-2, momentum=0.9) for p in model.parameters()}

    def update(parameter):
        norms.append(parameter.grad.norm().item())
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(update)

    def loss(x):
        h = model[0](x)
        if h.requires_grad:
            h.register_hook(lambda gradient: gradient * 0.5 + 0.01)
        for layer in list(model)[1:]:
            h = layer(h)
        return h.pow(2).mean()

    step = compile(loss)
    results = []
    for _ in range(3):
        value = step(torch.randn(64, 48))
        value.backward()
        results.append(value.detach())
    return copies_by_index(results + [p.detach() for p in model.parameters()] + [torch.tensor(sorted(norms))])


@script
def quantized_training(compile: Compile) -> Results:
    """Train with quantized weights and learned scales, in a function with two results and a hand-written gradient."""
    torch.manual_seed(60)

    class QuantizedLayers(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(40, 40) for _ in range(4))
            self.scale = nn.Parameter(torch.full((4,), 0.05))

        def forward(self, x):
            penalty = 0
            for index, layer in enumerate(self.layers):
                weight, rounded = Quantize.apply(layer.weight, self.scale[index], 4)
                x = F.linear(x, weight, layer.bias)
                decay, total = ExpAndSum.apply(-x.abs())
                x = x * decay
                penalty = penalty + 1e-3 * total + 0 * rounded.float().mean()
            return F.smooth_l1_loss(x, torch.ones_like(x)) + penalty

    model = QuantizedLayers()
    step = compile(model)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    results = []
    for _ in range(3):
        optimizer.zero_grad()
        value = step(torch.randn(96, 40))
        value.backward()
        optimizer.step()
        results.append(value.detach())
    return copies_by_index(results + [p.detach() for p in model.parameters()] + [p.grad for p in model.parameters()])


@script
def tied_recurrence(compile: Compile) -> Results:
    """Train with a tied embedding and head, a recurrent cell in a loop, and a layer that is used six times."""
    torch.manual_seed(60)

    class TiedRecurrence(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(64, 32)
            self.head = nn.Linear(32, 64, bias=False)
            self.head.weight = self.embedding.weight
            self.block = nn.utils.parametrizations.weight_norm(nn.Linear(32, 32))
            self.norm = nn.LayerNorm(32)
            self.gru = nn.GRUCell(32, 32)

        def forward(self, tokens, targets):
            x = self.embedding(tokens)
            h = torch.zeros_like(x[:, 0])
            states = []
            for i in range(tokens.shape[1]):
                h = self.gru(x[:, i], h)
                states.append(h)
            x = x + torch.stack(states, 1)
            for _ in range(6):
                x = x + F.silu(self.block(self.norm(x)))
            return F.cross_entropy(self.head(x).flatten(0, 1), targets.flatten(), label_smoothing=0.1, ignore_index=3)

    model = TiedRecurrence()
    step = compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    results = []
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        value = step(torch.randint(64, (8, 10)), torch.randint(64, (8, 10)))
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        results.append(value.detach())
    return copies_by_index(results + [p.detach() for p in model.parameters()])


@script
def adversaries(compile: Compile) -> Results:
    """Train two networks whose losses share operations, with a backward pass from several roots."""
    torch.manual_seed(60)
    generator, discriminator = layers(16, 64, 64, 64, 32), layers(32, 64, 64, 64, 1)

    def losses(noise, real):
        fake = generator(noise)
        of_generator = F.softplus(-discriminator(fake)).mean()
        of_discriminator = F.softplus(-discriminator(real)).mean() + F.softplus(discriminator(fake.detach())).mean()
        return of_generator, of_discriminator, fake

    step = compile(losses)
    optimizers = [torch.optim.RMSprop(network.parameters(), 1e-3) for network in (generator, discriminator)]
    results = []
    for iteration in range(3):
        of_generator, of_discriminator, fake = step(torch.randn(64, 16), torch.randn(64, 32))
        for optimizer in optimizers:
            optimizer.zero_grad()
        if iteration == 1:
            (of_generator + 2 * of_discriminator + fake.square().mean()).backward()
        else:
            torch.autograd.backward([of_generator, of_discriminator], [torch.tensor(1.0), torch.tensor(0.3)])
        for optimizer in optimizers:
            optimizer.step()
        results += [of_generator.detach(), of_discriminator.detach(), fake.detach()]
    return copies_by_index(results + [p.detach() for p in (*generator.parameters(), *discriminator.parameters())])


@script
def inner_steps_with_jvp(compile: Compile) -> Results:
    """Train with three inner steps by `torch.func.grad_and_value`, and a directional derivative in the outer loss."""
    torch.manual_seed(60)
    net = layers(8, 32, 32, 2, act=nn.Tanh)
    parameters = dict(net.named_parameters())

    def inner(adapted, x, y):
        return F.mse_loss(torch.func.functional_call(net, adapted, (x,)), y)

    def outer(x, y, new_x, new_y):
        adapted = parameters
        for _ in range(3):
            gradients, value = torch.func.grad_and_value(inner)(adapted, x, y)
            adapted = {name: parameter - 0.1 * gradients[name] for name, parameter in adapted.items()}
        result, tangent = torch.func.jvp(
            lambda x: torch.func.functional_call(net, adapted, (x,)), (new_x,), (torch.ones_like(new_x),)
        )
        return F.mse_loss(result, new_y) + 1e-2 * tangent.square().mean() + value  # pyright: ignore[reportPossiblyUnboundVariable]

    step = compile(outer)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    results = []
    for _ in range(3):
        optimizer.zero_grad()
        value = step(*(torch.randn(40, n) for n in (8, 2, 8, 2)))
        value.backward()
        optimizer.step()
        results.append(value.detach())
    return copies_by_index(results + [p.detach() for p in net.parameters()])


@script
def accumulated_statistics(compile: Compile) -> Results:
    """Train with gradients accumulated over batches of changing size, and running statistics updated in place."""
    torch.manual_seed(60)

    class RunningStatistics(nn.Module):
        def __init__(self):
            super().__init__()
            self.convolutions = nn.ModuleList(
                nn.Sequential(nn.Conv1d(6, 6, 3, padding=1), nn.BatchNorm1d(6)) for _ in range(4)
            )
            self.register_buffer("steps", torch.zeros(()))
            self.register_buffer("ema", torch.zeros(6))

        def forward(self, x):
            self.steps += 1
            for convolution in self.convolutions:
                x = F.leaky_relu_(x + convolution(x), 0.1)
            with torch.no_grad():
                self.ema.lerp_(x.mean((0, 2)), 0.1)
            return (x - self.ema[:, None]).square().mean() / self.steps

    model = RunningStatistics()
    step = compile(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    results = []
    for _ in range(3):
        for batch in (16, 16, 8):
            value = step(torch.randn(batch, 6, 40))
            (value / 3).backward()
            results.append(value.detach())
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
    return copies_by_index(results + [p.detach() for p in model.parameters()] + list(model.buffers()))


@script
def generators(compile: Compile) -> Results:
    """Train with `bernoulli`, `normal` and `randperm` inside the step, and a random generator outside the step."""
    torch.manual_seed(60)
    generator = torch.Generator().manual_seed(3)
    weights = nn.ParameterList(torch.randn(40, 40) / 7 for _ in range(5))

    def loss(x, mask):
        for weight in weights:
            y = torch.sin(x @ weight)
            keep = torch.bernoulli(torch.full((x.shape[0], 1), 0.8))
            noise = torch.normal(torch.zeros_like(y), y.abs().detach() + 0.1)
            x = x + keep * (y + 0.1 * noise) / 0.8
            x = F.alpha_dropout(x, 0.1, training=True)
            x = x[torch.randperm(x.shape[0])]
        x = F.rrelu(x, training=True) * mask
        return F.gumbel_softmax(x, tau=0.7).square().sum() / x.shape[0]

    step = compile(loss)
    optimizer = torch.optim.SGD(weights.parameters(), 0.1)
    results = []
    for _ in range(3):
        optimizer.zero_grad()
        mask = torch.rand(64, 40, generator=generator).round()
        value = step(torch.randn(64, 40), mask)
        value.backward()
        optimizer.step()
        results.append(value.detach())
    return copies_by_index(results + [p.detach() for p in weights] + [torch.get_rng_state(), generator.get_state()])


@script
def generator_as_argument(compile: Compile) -> Results:
    """Train with a random generator inside the step, which Dynamo leaves to Python."""
    torch.manual_seed(60)
    generator = torch.Generator().manual_seed(3)
    weights = nn.ParameterList(torch.randn(40, 40) / 7 for _ in range(5))

    def loss(x):
        for weight in weights:
            x = torch.sin(x @ weight)
            x = x * (torch.rand(x.shape, generator=generator) > 0.2)
        return x.square().mean()

    step = compile(loss)
    optimizer = torch.optim.SGD(weights.parameters(), 0.1)
    results = []
    for _ in range(3):
        optimizer.zero_grad()
        value = step(torch.randn(64, 40))
        value.backward()
        optimizer.step()
        results.append(value.detach())
    return copies_by_index(results + [p.detach() for p in weights] + [torch.get_rng_state(), generator.get_state()])
