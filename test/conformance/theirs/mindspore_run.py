"""Run one case in MindSpore's graph mode and print its results as JSON.

    python mindspore_run.py CASE plain|recomputed INPUTS.npz RESULTS.npz

Both runs draw the same inputs. Peak bytes and the graph are in the log and the dump that GLOG_v=1 and
MS_DEV_SAVE_GRAPHS=1 request.
"""

import json
import sys
from functools import partial

import mindspore as ms
import numpy as np
from mindspore import Tensor, ops
from mindspore_nets import Attention, Chain, ConvRelu, Noisy, Normalised, Stack

SIN, EXP = ["Sin", "Exp", "Cos", "Tanh"], ["Exp", "Sqrt", "Exp", "Tanh"]


def draw(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def stack_of(make, shape, **options):
    """Return a run of ten cells that takes the gradient of the input only."""

    def run(recomputed):
        net = Stack(make, recomputed, **options)
        x = draw(*shape)
        gradient = ops.GradOperation()(net)(Tensor(x)).asnumpy()
        arguments = [x, *(parameter.asnumpy() for parameter in net.get_parameters())]
        return arguments, [gradient], {}

    return run


def conv_relu(recomputed):
    x, kernel = np.full((2, 2, 2, 2), 2, np.float32), np.ones((2, 2, 2, 2), np.float32)
    gradient = ops.grad(ConvRelu(recomputed))(Tensor(x)).asnumpy()
    return [x, kernel], [gradient], {"documented": bool((gradient == [[2, 4], [4, 8]]).all())}


def squared(cell):
    """Return the cell, followed by a square, whose gradient reads the cell's result."""

    def net(x):
        value = cell(x)
        return (value * value).sum(), value

    return ops.value_and_grad(net, 0, None, has_aux=True)


def noisy(noise):
    """Return a run that counts the elements with different noise in gradient and value, v = exp(tanh(n))."""

    def run(recomputed):
        cell = Noisy(noise).set_train()
        if recomputed:
            cell.recompute()
        (_, value), gradient = squared(cell)(Tensor(np.ones(4000, np.float32)))
        v, g = value.asnumpy().astype(np.float64), gradient.asnumpy()
        t = np.log(v)
        expected = 2 * v * v * (1 - t * t) * np.arctanh(t)
        return [], [], {"mask_mismatches": int((abs(g - expected) > 1e-2 * (1 + abs(expected))).sum())}

    return run


def batch_norm(recomputed):
    cell = Normalised()
    if recomputed:
        cell.recompute()
    cell.set_train()
    x = draw(4, 3, 5, 5) + 1
    (loss, value), gradient = squared(cell)(Tensor(x))
    mean, variance = cell.norm.moving_mean.asnumpy(), cell.norm.moving_variance.asnumpy()
    return [x], [loss.asnumpy(), value.asnumpy(), mean, variance, gradient.asnumpy()], {}


CASES = {
    "attention": stack_of(partial(Attention, 1.0), (8, 128, 16, 32)),
    "attention_dropout": stack_of(partial(Attention, 0.9), (8, 128, 16, 32)),
    "conv_relu": conv_relu,
    "sin_exp_cos_tanh": stack_of(partial(Chain, SIN), (1024, 1024)),
    "exp_sqrt_exp_tanh": stack_of(partial(Chain, EXP), (1024, 1024)),
    "outputs_recomputed": stack_of(partial(Chain, EXP), (1024, 1024), output_recompute=True),
    "dropout": noisy("dropout"),
    "uniform": noisy("uniform"),
    "batch_norm": batch_norm,
}


def main(case, kind, inputs, results):
    ms.set_context(mode=ms.GRAPH_MODE)
    arguments, result, numbers = CASES[case](kind == "recomputed")
    np.savez(inputs, *arguments)
    np.savez(results, *result)
    print(json.dumps({"version": ms.__version__, **numbers}))


if __name__ == "__main__":
    main(*sys.argv[1:])
