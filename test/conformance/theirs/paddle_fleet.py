"""Example of `paddle.distributed.fleet.utils.recompute`, unchanged except for the batch and its recorded values.

Runs in Paddle's own environment; see `paddle_run.py`.
"""

import random

import numpy as np
import paddle
from paddle.distributed.fleet.utils import recompute

SIZE, BATCH = 10, 4


def fc_block(last):
    fc = paddle.nn.Linear
    return paddle.nn.Sequential(
        fc(SIZE, SIZE, bias_attr=False),
        paddle.nn.Dropout(p=0.5),
        paddle.nn.ReLU(),
        fc(SIZE, SIZE, bias_attr=False),
        paddle.nn.ReLU(),
        fc(SIZE, 1 if last else SIZE, bias_attr=False),
    )


class Net(paddle.nn.Layer):
    def __init__(self, recomputed):
        super().__init__()
        self.recomputed = recomputed
        self.blocks = paddle.nn.LayerList([fc_block(index == 4) for index in range(5)])

    def forward(self, x):
        for index, block in enumerate(self.blocks):
            x = recompute(block, x, preserve_rng_state=True) if index in self.recomputed else block(x)
        return x


def train(recomputed, batch=BATCH, steps=5):
    """Return the losses of all steps, and weights, input, masks, gradients and forward calls of the first step."""
    paddle.seed(10).manual_seed(10)
    random.seed(10)
    net = Net(recomputed)
    masks, calls = {index: [] for index in range(5)}, []
    for index, block in enumerate(net.blocks):
        block[1].register_forward_post_hook(
            lambda _, into, out, index=index: masks[index].append((out.numpy() != 0) | (into[0].numpy() == 0))
        )
        block.register_forward_pre_hook(lambda _, into, index=index: calls.append(index))
    weights = [parameter.numpy().copy() for parameter in net.parameters()]
    optimizer = paddle.optimizer.SGD(0.01, parameters=net.parameters())
    losses, first = [], None
    for _ in range(steps):
        x = paddle.rand([batch, SIZE])
        loss = net(x).mean()
        loss.backward()
        losses.append(loss.numpy())
        if first is None:
            gradients = [parameter.grad.numpy().copy() for parameter in net.parameters()]
            mismatches = sum(int((seen[0] != seen[-1]).sum()) for seen in masks.values())
            first = [*weights, x.numpy(), *(seen[0] for seen in masks.values())], gradients, mismatches, len(calls)
        optimizer.step()
        optimizer.clear_grad()
    return np.array(losses), *first


def batch_norm(recomputed):
    """Return the running mean after one step of a layer with batch normalization."""
    paddle.seed(1)
    net = paddle.nn.Sequential(paddle.nn.Linear(8, 8), paddle.nn.BatchNorm1D(8), paddle.nn.Tanh())
    x = paddle.to_tensor(np.random.default_rng(0).normal(size=(16, 8)).astype(np.float32), stop_gradient=False)
    (recompute(net, x) if recomputed else net(x)).sum().backward()
    return net[1]._mean.numpy()
