"""Scripts with an unusual structure: state outside tensors, writes through views, and results of many kinds."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.func import functional_call, hessian, stack_module_state, vmap
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.checkpoint import checkpoint

from recompute.benchmarks.torch.scripts.script import Compile, Results, batches, final, mlp, script, train


class Clipped(torch.autograd.Function):
    """Clip to a range given as a Python number, and return the number of clipped elements without a gradient."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, limit: float, scale: torch.Tensor) -> Any:
        ctx.limit, ctx.shape = limit, x.shape
        ctx.save_for_backward(x, scale)
        clipped = (x.abs() > limit).sum()
        ctx.mark_non_differentiable(clipped)
        ctx.set_materialize_grads(False)
        return x.clamp(-limit, limit) * scale, clipped

    @staticmethod
    def backward(ctx: Any, gradient: Any, _: Any) -> Any:
        x, scale = ctx.saved_tensors
        assert gradient is not None and gradient.shape == ctx.shape
        inside = (x.abs() <= ctx.limit).to(x.dtype)
        of_scale = (gradient * x.clamp(-ctx.limit, ctx.limit)).sum() if ctx.needs_input_grad[2] else None
        return gradient * inside * scale, None, of_scale


@script
def function_with_state(compile: Compile) -> Results:
    """Train with a `torch.autograd.Function` that stores numbers in its context, and has a result without a
    gradient."""

    class StatefulNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = mlp(depth=2), mlp(depth=2)
            self.scale = nn.Parameter(torch.tensor(1.5))

        def forward(self, x: torch.Tensor) -> Any:
            y, count = Clipped.apply(self.first(x), 0.25, self.scale)
            return self.second(y).square().mean(), count

    torch.manual_seed(70)
    model = StatefulNet()
    step, counts = compile(model), list[torch.Tensor]()

    def loss(x: torch.Tensor) -> torch.Tensor:
        value, count = step(x)
        counts.append(count)
        return value

    losses = train(model, loss, batches(3, 64, 32))
    return final(model, losses, counts=torch.stack(counts))


@script
def packed_lengths(compile: Compile) -> Results:
    """Train with a GRU over packed sequences of different lengths, between two networks."""

    class PackedTagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.before = nn.Embedding(50, 32), mlp(depth=2)
            self.rnn = nn.GRU(32, 16, num_layers=2, bidirectional=True, batch_first=True)
            self.behind, self.head = mlp(depth=2), nn.Linear(32, 5)

        def forward(self, words: torch.Tensor, lengths: torch.Tensor, tags: torch.Tensor) -> torch.Tensor:
            x = self.before(self.embed(words))
            packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            y, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True, total_length=words.shape[1])
            scores = self.head(self.behind(y))
            return F.cross_entropy(scores.flatten(0, 1), tags.flatten(), ignore_index=-1)

    torch.manual_seed(71)
    model = PackedTagger()
    data = []
    for _ in range(3):
        lengths = torch.randint(2, 12, (8,))
        tags = torch.randint(0, 5, (8, 12)).masked_fill(torch.arange(12) >= lengths[:, None], -1)
        data.append((torch.randint(0, 50, (8, 12)), lengths, tags))
    return final(model, train(model, compile(model), data))


@script
def writes_through_views(compile: Compile) -> Results:
    """Train with in-place writes through slices, transposes and diagonals of a value that is read afterwards."""

    def mixed(x: torch.Tensor) -> torch.Tensor:
        y = x.sin().clone()
        y[:, ::2].mul_(1.5)
        y.t()[3:5].add_(x[:, 3:5].t())
        y[:, :10].copy_(y[:, 10:20].exp().tanh())
        y.diagonal().clamp_(max=0.5)
        y.view(2, -1)[1].mul_(0.5)
        y.index_add_(0, torch.tensor([1, 3]), x[:2])
        return y.masked_fill_(y > 0.9, 0.1)

    class ViewWritingNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = mlp(depth=2), mlp(depth=2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (self.second(mixed(self.first(x))) * mixed(x)).mean()

    torch.manual_seed(72)
    model = ViewWritingNet()
    return final(model, train(model, compile(model), batches(3, 64, 32)))


@script
def complex_phases(compile: Compile) -> Results:
    """Train with complex parameters, `polar`, conjugates, angles, and complex views of real values."""

    class ComplexPhaseNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = mlp(depth=3)
            self.mixing = nn.Parameter(torch.randn(16, 16, dtype=torch.cfloat) / 4)
            self.phase = nn.Parameter(torch.randn(16))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            z = torch.view_as_complex(self.net(x).view(-1, 16, 2))
            z = z @ self.mixing * torch.polar(torch.ones(16), self.phase)
            z = z + (z.conj() * z.abs()).tanh()
            y = torch.view_as_real(z).flatten(1)
            return y.square().mean() + z.angle().cos().mean() + torch.linalg.vecdot(z, z).real.mean()

    torch.manual_seed(73)
    model = ComplexPhaseNet()
    return final(model, train(model, compile(model), batches(3, 64, 32), 0.01))


@script
def moving_target(compile: Compile) -> Results:
    """Train with a target network in buffers that the forward pass updates, and a ring buffer of past keys."""

    class Momentum(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.online = mlp(depth=3)
            for name, parameter in self.online.named_parameters():
                self.register_buffer(f"target_{name.replace('.', '_')}", parameter.detach().clone())
            self.register_buffer("keys", F.normalize(torch.randn(48, 32), dim=1))
            self.register_buffer("at", torch.zeros((), dtype=torch.long))

        def target(self) -> dict[str, torch.Tensor]:
            names = [name for name, _ in self.online.named_parameters()]
            return {name: self.get_buffer(f"target_{name.replace('.', '_')}") for name in names}

        def forward(self, x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
            query = F.normalize(self.online(x), dim=1)
            with torch.no_grad():
                for name, parameter in self.online.named_parameters():
                    self.target()[name].lerp_(parameter, 0.1)
                key = F.normalize(functional_call(self.online, self.target(), (other,)), dim=1)
            scores = torch.cat([(query * key).sum(1, keepdim=True), query @ self.keys.clone().t()], dim=1)
            with torch.no_grad():
                places = (self.at + torch.arange(len(key))) % len(self.keys)
                self.keys[places] = key
                self.at.add_(len(key)).remainder_(len(self.keys))
            return F.cross_entropy(scores / 0.2, torch.zeros(len(x), dtype=torch.long))

    torch.manual_seed(74)
    model = Momentum()
    data = [(torch.randn(16, 32), torch.randn(16, 32)) for _ in range(4)]
    return final(model, train(model, compile(model), data))


@script
def scaled_gradients(compile: Compile) -> Results:
    """Train in bfloat16 with `GradScaler`, clipped gradients, and a step whose gradients overflow."""
    torch.manual_seed(75)
    model = mlp(depth=4)
    step = compile(lambda x: model(x).float().square().mean())
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**14, growth_interval=2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for factor in (1.0, 1e30, 1.0, 1.0):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = step(factor * torch.randn(64, 32))
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.detach())
    return final(model, losses, scale=torch.tensor(scaler.get_scale()))


@script
def checkpointed_ensemble(compile: Compile) -> Results:
    """Train an ensemble under `vmap` inside user-written checkpoints, with shared noise."""
    torch.manual_seed(76)
    members = [mlp(depth=2, dropout=0.0) for _ in range(3)]
    parameters, _ = stack_module_state(members)
    leaves = {name: nn.Parameter(value.detach().clone()) for name, value in parameters.items()}
    base = mlp(depth=2, dropout=0.0)

    def all_of(weights: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        return vmap(lambda own, value: functional_call(base, own, (value,)), in_dims=(0, None))(weights, x)

    def loss(x: torch.Tensor) -> torch.Tensor:
        y = checkpoint(all_of, leaves, F.dropout(x, 0.2), use_reentrant=False)
        spread = checkpoint(lambda z: (z - z.mean(0)).square().exp().mean(), y, use_reentrant=False)
        return y.mean(0).square().mean() + 0.1 * spread

    holder = nn.ParameterDict({name.replace(".", "_"): value for name, value in leaves.items()})
    return final(holder, train(holder, compile(loss), batches(3, 64, 32)))


@script
def fixed_point(compile: Compile) -> Results:
    """Train an implicit layer: iterate without gradients, then once with a gradient and a hook on it."""

    class Implicit(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inject, self.body, self.head = nn.Linear(32, 32), mlp(depth=2, dropout=0.0), mlp(depth=2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            given, z = self.inject(x), torch.zeros_like(x)
            with torch.no_grad():
                for _ in range(5):
                    z = torch.tanh(self.body(z) + given)
            z = torch.tanh(self.body(z) + given)
            if z.requires_grad:
                z.register_hook(lambda gradient: 0.5 * gradient + 0.1)
            return self.head(z).square().mean()

    torch.manual_seed(77)
    model = Implicit()
    return final(model, train(model, compile(model), batches(3, 64, 32)))


@script
def differential_equation(compile: Compile) -> Results:
    """Train with second derivatives in the loss, from `hessian` of a network under `vmap`."""
    torch.manual_seed(78)
    net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))

    def loss(points: torch.Tensor) -> torch.Tensor:
        second = vmap(hessian(lambda point: net(point).squeeze()))(points)
        residual = second[:, 0, 0] + second[:, 1, 1] + torch.sin(points).prod(1)
        return residual.square().mean() + net(points).square().mean()

    return final(net, train(net, compile(loss), batches(3, 64, 2), 0.01))


@script
def random_layers(compile: Compile) -> Results:
    """Train with many kinds of random operations: dropout variants, `rrelu`, sampling, and random pooling."""

    class RandomLayerNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
            self.pool, self.head = nn.FractionalMaxPool2d(2, output_ratio=0.7), nn.Linear(8, 10)

        def forward(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            y = F.dropout2d(F.rrelu(self.first(x), training=True), 0.2)
            y = F.alpha_dropout(F.selu(self.second(self.pool(y))), 0.1, training=True)
            scores = self.head(y.mean((2, 3)))
            drawn = torch.multinomial(scores.softmax(1), 2)
            noise = torch.empty_like(scores).exponential_().log()
            return F.cross_entropy(scores - 0.1 * noise, labels) + scores.gather(1, drawn).square().mean()

    torch.manual_seed(79)
    model = RandomLayerNet()
    data = [(torch.randn(4, 3, 12, 12), torch.randint(0, 10, (4,))) for _ in range(3)]
    return final(model, train(model, compile(model), data))


@script
def linear_algebra(compile: Compile) -> Results:
    """Train a Gaussian process on learned features, with a Cholesky factor, solves and determinants."""

    class Process(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net, self.noise = mlp(depth=3, dropout=0.0), nn.Parameter(torch.tensor(0.0))

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            features = self.net(x)
            kernel = torch.exp(-torch.cdist(features, features).square() / 32)
            factor = torch.linalg.cholesky(kernel + (0.1 + self.noise.exp()) * torch.eye(len(x)))
            half = torch.linalg.solve_triangular(factor, y[:, None], upper=False)
            sign, logarithm = torch.linalg.slogdet(torch.eye(32) + features.t() @ features / 64)
            return half.square().sum() + 2 * factor.diagonal().log().sum() + 0.1 * sign * logarithm

    torch.manual_seed(80)
    model = Process()
    data = [(torch.randn(40, 32), torch.randn(40)) for _ in range(3)]
    return final(model, train(model, compile(model), data, 1e-4))


@script
def sequences_and_grids(compile: Compile) -> Results:
    """Train with CTC loss, grid sampling, pooling with indices, sorting, and cumulative operations."""

    class SequenceGridNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.locate, self.conv = nn.Linear(3 * 64, 6), nn.Conv2d(3, 8, 3, padding=1)
            self.up, self.head = nn.ConvTranspose2d(8, 8, 2, stride=2), nn.Linear(8, 12)

        def forward(self, x: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
            theta = self.locate(x.flatten(1)).view(-1, 2, 3) * 0.1 + torch.eye(2, 3)
            x = F.grid_sample(x, F.affine_grid(theta, list(x.shape), align_corners=False), align_corners=False)
            y, places = F.max_pool2d(self.conv(x).relu(), 2, return_indices=True)
            y = F.max_unpool2d(y, places, 2) + F.interpolate(self.up(y), size=(8, 8), mode="bilinear")
            steps = self.head(y.mean(2).permute(2, 0, 1)).log_softmax(-1)
            lengths = torch.full((x.shape[0],), 8, dtype=torch.long)
            loss = F.ctc_loss(steps, targets, lengths, torch.full_like(lengths, targets.shape[1]))
            ordered, _ = y.flatten(1).sort(dim=1)
            return loss + ordered.logcumsumexp(1).mean() + y.flatten(1).topk(5, dim=1).values.mean()

    torch.manual_seed(81)
    model = SequenceGridNet()
    data = [(torch.randn(4, 3, 8, 8), torch.randint(1, 12, (4, 3))) for _ in range(3)]
    return final(model, train(model, compile(model), data, 0.01))


def accumulate_in_process(rank: int, compile: Compile, folder: str) -> None:
    """Run one of two processes, which accumulates gradients of two batches before they are reduced."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/init", rank=rank, world_size=2)
    torch.manual_seed(82)

    class AccumulatingNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net, self.aside = mlp(depth=3), nn.Linear(32, 32)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.net(x)
            return y.square().mean() + (self.aside(y.detach()) - y).abs().mean()

    model = AccumulatingNet()
    parallel = nn.parallel.DistributedDataParallel(model)
    step = compile(parallel)
    torch.manual_seed(rank)
    losses, optimizer = [], torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(2):
        optimizer.zero_grad()
        with parallel.no_sync():
            losses.append(step(torch.randn(32, 32)))
            losses[-1].backward()
        losses.append(step(torch.randn(32, 32)))
        losses[-1].backward()
        optimizer.step()
    graphs = [replace(graph, module=None, rewritten=None) for graph in getattr(compile, "reports", list)()]
    if rank == 0:
        torch.save((final(model, losses), graphs), Path(folder) / "results")
    dist.destroy_process_group()


@script
def accumulated_data_parallel(compile: Compile) -> Results:
    """Train with DistributedDataParallel over two processes, and accumulate gradients with `no_sync`."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(accumulate_in_process, (compile, folder), nprocs=2)
        results, graphs = torch.load(Path(folder) / "results", weights_only=False)
    getattr(compile, "of_workers", []).extend(graphs)
    return results


@script
def own_optimizer(compile: Compile) -> Results:
    """Train two losses that share operations, with a compiled user-written update that overwrites its state."""
    torch.manual_seed(83)
    body, heads = mlp(depth=3), nn.ModuleList([nn.Linear(32, 1), nn.Linear(32, 32)])
    model = nn.ModuleList([body, heads])
    step = compile(lambda x: (heads[0](y := body(x)).square().mean(), (heads[1](y) - x).abs().mean()))
    momenta = [torch.zeros_like(parameter) for parameter in model.parameters()]

    @torch.no_grad()
    def update(parameters: list[Any], gradients: list[Any], averages: list[Any]) -> None:
        for parameter, gradient, average in zip(parameters, gradients, averages, strict=True):
            parameter.mul_(1 - 1e-3).sub_(1e-2 * (0.9 * average + 0.1 * gradient).sign())
            average.lerp_(gradient, 0.1)

    compiled_update, losses = compile(update), []
    for (x,) in batches(3, 64, 32):
        first, second = step(x)
        gradients = torch.autograd.grad(first + 0.5 * second, list(model.parameters()))
        compiled_update(list(model.parameters()), list(gradients), momenta)
        losses += [first.detach(), second.detach()]
    return final(model, losses, **{f"momentum {index}": value for index, value in enumerate(momenta)})
