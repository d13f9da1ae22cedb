"""Scripts: several features in one program: hooks with optimizers, gradients by hand, generators."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from .script import Compile, Results, script


def layers(*sizes: int, act: type[nn.Module] = nn.GELU) -> nn.Sequential:
    """Return linear layers of these sizes, with an activation between them."""
    parts: list[nn.Module] = []
    for inner, outer in itertools.pairwise(sizes):
        parts += [nn.Linear(inner, outer), act()]
    return nn.Sequential(*parts[:-1])


def numbered(tensors: list[Any]) -> Results:
    """Return copies of tensors, named by their position."""
    return {str(index): tensor.detach().clone() for index, tensor in enumerate(tensors)}


class Quantize(torch.autograd.Function):
    """Round to a number of bits, with a straight-through gradient and a learned scale."""

    @staticmethod
    def forward(ctx, x, scale, bits):
        q = torch.round(x / scale).clamp(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        ctx.save_for_backward(x, scale, q)
        ctx.bits = bits
        ctx.mark_non_differentiable(q)
        return q * scale, q

    @staticmethod
    def backward(ctx, g, _):
        x, scale, q = ctx.saved_tensors
        inside = (x.abs() < scale * 2 ** (ctx.bits - 1)).to(g.dtype)
        return g * inside, ((q - x / scale) * g).sum(), None


class ExpSave(torch.autograd.Function):
    """Return the exponential and its sum; the gradient reads the saved result."""

    @staticmethod
    def forward(ctx, x):
        y = torch.exp(x)
        ctx.save_for_backward(y)
        ctx.set_materialize_grads(False)
        return y, y.sum()

    @staticmethod
    def backward(ctx, g, gs):
        (y,) = ctx.saved_tensors
        if g is None and gs is None:
            return None
        out = torch.zeros_like(y)
        if g is not None:
            out = out + g * y
        if gs is not None:
            out = out + gs * y
        return out


@script
def optimizer_in_hooks(compile: Compile) -> Results:
    """Train with hooks that change values and gradients, and an optimizer that steps inside the backward pass."""
    torch.manual_seed(60)
    m = nn.Sequential(*(nn.Sequential(nn.Linear(48, 48), nn.Tanh()) for _ in range(5)))
    m[1].register_forward_hook(lambda mod, a, out: out * 1.5 + out.detach())
    m[2].register_forward_pre_hook(lambda mod, a: (a[0].clamp(-1, 1),))
    norms = []
    opts = {p: torch.optim.SGD([p], lr=1e-2, momentum=0.9) for p in m.parameters()}

    def post(p):
        norms.append(p.grad.norm().item())
        opts[p].step()
        opts[p].zero_grad()

    for p in m.parameters():
        p.register_post_accumulate_grad_hook(post)

    def loss(x):
        h = m[0](x)
        if h.requires_grad:
            h.register_hook(lambda g: g * 0.5 + 0.01)
        for layer in list(m)[1:]:
            h = layer(h)
        return h.pow(2).mean()

    step = compile(loss)
    out = []
    for _k in range(3):
        value = step(torch.randn(64, 48))
        value.backward()
        out.append(value.detach())
    return numbered(out + [p.detach() for p in m.parameters()] + [torch.tensor(sorted(norms))])


@script
def quantized_training(compile: Compile) -> Results:
    """Train with functions that have several results and hand-written gradients: quantized weights with learned
    scales."""
    torch.manual_seed(60)

    class Q(nn.Module):
        def __init__(self):
            super().__init__()
            self.ls = nn.ModuleList(nn.Linear(40, 40) for _ in range(4))
            self.scale = nn.Parameter(torch.full((4,), 0.05))

        def forward(self, x):
            tot = 0
            for i, layer in enumerate(self.ls):
                w, q = Quantize.apply(layer.weight, self.scale[i], 4)
                x = F.linear(x, w, layer.bias)
                e, s = ExpSave.apply(-x.abs())
                x = x * e
                tot = tot + 1e-3 * s + 0 * q.float().mean()
            return F.smooth_l1_loss(x, torch.ones_like(x)) + tot

    m = Q()
    step = compile(m)
    opt = torch.optim.Adam(m.parameters(), 1e-3)
    out = []
    for _ in range(3):
        opt.zero_grad()
        value = step(torch.randn(96, 40))
        value.backward()
        opt.step()
        out.append(value.detach())
    return numbered(out + [p.detach() for p in m.parameters()] + [p.grad for p in m.parameters()])


@script
def tied_recurrence(compile: Compile) -> Results:
    """Train with tied embedding and head, a recurrent cell in a loop, and one normalized layer used six times."""
    torch.manual_seed(60)

    class T(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb = nn.Embedding(64, 32)
            self.head = nn.Linear(32, 64, bias=False)
            self.head.weight = self.emb.weight
            self.block = nn.utils.parametrizations.weight_norm(nn.Linear(32, 32))
            self.norm = nn.LayerNorm(32)
            self.gru = nn.GRUCell(32, 32)

        def forward(self, t, y):
            x = self.emb(t)
            h = torch.zeros_like(x[:, 0])
            hs = []
            for i in range(t.shape[1]):
                h = self.gru(x[:, i], h)
                hs.append(h)
            x = x + torch.stack(hs, 1)
            for _ in range(6):
                x = x + F.silu(self.block(self.norm(x)))
            return F.cross_entropy(self.head(x).flatten(0, 1), y.flatten(), label_smoothing=0.1, ignore_index=3)

    m = T()
    step = compile(m)
    opt = torch.optim.AdamW(m.parameters(), 1e-2)
    out = []
    for _ in range(3):
        opt.zero_grad(set_to_none=True)
        value = step(torch.randint(64, (8, 10)), torch.randint(64, (8, 10)))
        value.backward()
        nn.utils.clip_grad_norm_(m.parameters(), 0.5)
        opt.step()
        out.append(value.detach())
    return numbered(out + [p.detach() for p in m.parameters()])


@script
def adversaries(compile: Compile) -> Results:
    """Train two networks with two losses that share work, and a backward pass from several roots."""
    torch.manual_seed(60)
    g, d = layers(16, 64, 64, 64, 32), layers(32, 64, 64, 64, 1)
    both = compile(
        lambda z, real: (
            lambda fake: (
                F.softplus(-d(fake)).mean(),
                F.softplus(-d(real)).mean() + F.softplus(d(fake.detach())).mean(),
                fake,
            )
        )(g(z))
    )
    og, od = torch.optim.RMSprop(g.parameters(), 1e-3), torch.optim.RMSprop(d.parameters(), 1e-3)
    out = []
    for k in range(3):
        lg, ld, fake = both(torch.randn(64, 16), torch.randn(64, 32))
        og.zero_grad()
        od.zero_grad()
        if k == 1:
            (lg + 2 * ld + fake.square().mean()).backward()
        else:
            torch.autograd.backward([lg, ld], [torch.tensor(1.0), torch.tensor(0.3)])
        og.step()
        od.step()
        out += [lg.detach(), ld.detach(), fake.detach()]
    return numbered(out + [p.detach() for p in (*g.parameters(), *d.parameters())])


@script
def inner_steps_with_jvp(compile: Compile) -> Results:
    """Train with three inner steps by `torch.func.grad_and_value`, and a directional derivative in the outer loss."""
    torch.manual_seed(60)
    net = layers(8, 32, 32, 2, act=nn.Tanh)
    params = dict(net.named_parameters())

    def inner(p, x, y):
        return F.mse_loss(torch.func.functional_call(net, p, (x,)), y)

    def outer(x, y, x2, y2):
        p = params
        for _ in range(3):
            g, aux = torch.func.grad_and_value(inner)(p, x, y)
            p = {k: v - 0.1 * g[k] for k, v in p.items()}
        out, tangent = torch.func.jvp(lambda a: torch.func.functional_call(net, p, (a,)), (x2,), (torch.ones_like(x2),))
        return F.mse_loss(out, y2) + 1e-2 * tangent.square().mean() + aux

    step = compile(outer)
    opt = torch.optim.SGD(net.parameters(), 0.1)
    out = []
    for _ in range(3):
        opt.zero_grad()
        value = step(*(torch.randn(40, n) for n in (8, 2, 8, 2)))
        value.backward()
        opt.step()
        out.append(value.detach())
    return numbered(out + [p.detach() for p in net.parameters()])


@script
def accumulated_statistics(compile: Compile) -> Results:
    """Train with gradients accumulated over batches of changing size, with statistics written in place."""
    torch.manual_seed(60)

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.c = nn.ModuleList(nn.Sequential(nn.Conv1d(6, 6, 3, padding=1), nn.BatchNorm1d(6)) for _ in range(4))
            self.register_buffer("steps", torch.zeros(()))
            self.register_buffer("ema", torch.zeros(6))

        def forward(self, x):
            self.steps += 1
            for c in self.c:
                x = F.leaky_relu_(x + c(x), 0.1)
            with torch.no_grad():
                self.ema.lerp_(x.mean((0, 2)), 0.1)
            return (x - self.ema[:, None]).square().mean() / self.steps

    m = M()
    step = compile(m)
    opt = torch.optim.SGD(m.parameters(), 0.1)
    out = []
    for _k in range(3):
        for b in (16, 16, 8):
            value = step(torch.randn(b, 6, 40))
            (value / 3).backward()
            out.append(value.detach())
        opt.step()
        opt.zero_grad(set_to_none=False)
    return numbered(out + [p.detach() for p in m.parameters()] + list(m.buffers()))


@script
def generators(compile: Compile) -> Results:
    """Train with random numbers by `bernoulli`, `normal` and `randperm`, and a generator outside the step."""
    torch.manual_seed(60)
    gen = torch.Generator().manual_seed(3)
    w = nn.ParameterList(torch.randn(40, 40) / 7 for _ in range(5))

    def loss(x, mask):
        for _i, a in enumerate(w):
            y = torch.sin(x @ a)
            keep = torch.bernoulli(torch.full((x.shape[0], 1), 0.8))
            noise = torch.normal(torch.zeros_like(y), y.abs().detach() + 0.1)
            x = x + keep * (y + 0.1 * noise) / 0.8
            x = F.alpha_dropout(x, 0.1, training=True)
            x = x[torch.randperm(x.shape[0])]
        x = F.rrelu(x, training=True) * mask
        return F.gumbel_softmax(x, tau=0.7).square().sum() / x.shape[0]

    step = compile(loss)
    opt = torch.optim.SGD(w.parameters(), 0.1)
    out = []
    for _ in range(3):
        opt.zero_grad()
        mask = torch.rand(64, 40, generator=gen).round()
        value = step(torch.randn(64, 40), mask)
        value.backward()
        opt.step()
        out.append(value.detach())
    return numbered(out + [p.detach() for p in w] + [torch.get_rng_state(), gen.get_state()])


@script
def generator_as_argument(compile: Compile) -> Results:
    """Train with a generator of its own inside the step, which Dynamo leaves to Python."""
    torch.manual_seed(60)
    gen = torch.Generator().manual_seed(3)
    w = nn.ParameterList(torch.randn(40, 40) / 7 for _ in range(5))

    def loss(x):
        for a in w:
            x = torch.sin(x @ a)
            x = x * (torch.rand(x.shape, generator=gen) > 0.2)
        return x.square().mean()

    step = compile(loss)
    opt = torch.optim.SGD(w.parameters(), 0.1)
    out = []
    for _ in range(3):
        opt.zero_grad()
        value = step(torch.randn(64, 40))
        value.backward()
        opt.step()
        out.append(value.detach())
    return numbered(out + [p.detach() for p in w] + [torch.get_rng_state(), gen.get_state()])
