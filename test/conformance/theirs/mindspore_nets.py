"""MindSpore nets of the comparison. They run in MindSpore's own environment; see `mindspore_run.py`.

Sources: the recomputation tutorial (`Block`, ten of them), the example of `mindspore.recompute` (`ConvRelu`).
"""

import numpy as np
from mindspore import Parameter, Tensor, nn, ops, recompute

BLOCKS = 10


class Attention(nn.Cell):
    """The tutorial's Block, with keep probability 0.9, or 1.0 for the comparison of gradients."""

    def __init__(self, keep):
        super().__init__()
        self.transpose = ops.Transpose()
        self.divide = ops.RealDiv()
        self.batch_matmul1, self.batch_matmul2 = ops.BatchMatMul(), ops.BatchMatMul()
        self.add, self.sub, self.mul = ops.Add(), ops.Sub(), ops.Mul()
        self.softmax, self.dropout, self.expand_dims = ops.Softmax(-1), ops.Dropout(keep), ops.ExpandDims()
        self.y = Parameter(Tensor(np.ones((8, 128, 128), np.float32)))

    def construct(self, x):
        query = self.divide(self.transpose(x, (0, 2, 1, 3)), Tensor(2.37891))
        key = self.divide(self.transpose(x, (0, 2, 3, 1)), Tensor(2.37891))
        scores = self.batch_matmul1(query, key)
        mask = self.mul(self.sub(Tensor([1.0]), self.expand_dims(self.y, 1)), Tensor([-0.0001]))
        weights = self.dropout(self.softmax(self.add(mask, scores)))
        value = self.transpose(x, (0, 2, 1, 3))
        return self.transpose(self.batch_matmul2(weights[0], value), (0, 2, 1, 3))


class Chain(nn.Cell):
    """Unary operations, one after the other."""

    def __init__(self, names):
        super().__init__()
        self.steps = [getattr(ops, name)() for name in names]

    def construct(self, x):
        for step in self.steps:
            x = step(x)
        return x


class Stack(nn.Cell):
    """Ten consecutive cells, each recomputed separately."""

    def __init__(self, make, recomputed, **options):
        super().__init__()
        self.blocks = nn.CellList([make() for _ in range(BLOCKS)])
        for block in self.blocks if recomputed else ():
            block.recompute(**options)

    def construct(self, x):
        for block in self.blocks:
            x = block(x)
        return x


class ConvRelu(nn.Cell):
    """Example of `mindspore.recompute`, in which only the convolution is recomputed."""

    def __init__(self, recomputed):
        super().__init__(auto_prefix=False)
        self.conv = nn.Conv2d(2, 2, 2, has_bias=False, weight_init="ones")
        self.relu = ops.ReLU()
        self.recomputed = recomputed

    def construct(self, x):
        y = recompute(self.conv, x) if self.recomputed else self.conv(x)
        return self.relu(y)


class Noisy(nn.Cell):
    """exp of noise times x, for x = 1; value and gradient are equal if they used the same noise."""

    def __init__(self, noise):
        super().__init__()
        self.noise = noise
        self.uniform, self.dropout, self.exp = ops.UniformReal(), nn.Dropout(p=0.5), ops.Exp()

    def construct(self, x):
        if self.noise == "uniform":
            return self.exp(ops.tanh(x * self.uniform((4000,))))
        return self.exp(ops.tanh(self.dropout(x)))


class Normalised(nn.Cell):
    """BatchNorm followed by two functions whose gradients read its result."""

    def __init__(self):
        super().__init__()
        self.norm, self.exp, self.tanh = nn.BatchNorm2d(3, momentum=0.9), ops.Exp(), ops.Tanh()

    def construct(self, x):
        return self.exp(self.tanh(self.norm(x)))
