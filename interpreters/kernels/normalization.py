"""Kernels of batch normalization according to StableHLO's specification. For types smaller than f32, the kernels
compute in f32 and round once."""

from __future__ import annotations

from math import prod

import numpy as np

from ...dialects.stablehlo.normalization import (
    BatchNormGradOp,
    BatchNormInferenceOp,
    BatchNormOp,
    BatchNormTrainingOp,
)
from .arrays import Array, Kernel, as_owned, dtype_at, shape_at, wide
from .conversion import convert


class _Features:
    """The feature dimension of a batch normalization, and computations along it in the working type."""

    def __init__(self, op: BatchNormOp):
        shape = shape_at(op.operand)
        self.dimension, self.dtype = op.feature_index.value.data, dtype_at(op.operand)
        self.working = wide(self.dtype)
        self.others = tuple(dimension for dimension in range(len(shape)) if dimension != self.dimension)
        self.shape = [extent if dimension == self.dimension else 1 for dimension, extent in enumerate(shape)]
        self.epsilon = np.asarray(op.epsilon.value.data, np.float32).astype(self.working)
        self.count = np.asarray(prod(shape[dimension] for dimension in self.others)).astype(self.working)

    def widen(self, values: Array) -> Array:
        return convert(values, self.working)

    def along(self, values: Array) -> Array:
        """Reshape an array with one value for each feature so that it broadcasts along the feature dimension."""
        return self.widen(values).reshape(self.shape)

    def sums(self, values: Array) -> Array:
        """Return the sum of the values of each feature. Each feature is copied to one row, so that the order of
        additions does not depend on the layout."""
        rows = np.ascontiguousarray(np.moveaxis(values, self.dimension, 0)).reshape(values.shape[self.dimension], -1)
        return np.sum(rows, axis=1, dtype=self.working)

    def normalize(self, operand: Array, scale: Array, offset: Array, mean: Array, variance: Array) -> Array:
        deviation = np.sqrt(self.along(variance) + self.epsilon)
        return (self.widen(operand) - self.along(mean)) / deviation * self.along(scale) + self.along(offset)


def batch_norm_inference(op: BatchNormInferenceOp) -> Kernel:
    features = _Features(op)
    return lambda *operands: (as_owned(features.normalize(*operands), features.dtype),)


def batch_norm_training(op: BatchNormTrainingOp) -> Kernel:
    features = _Features(op)

    def run(operand: Array, scale: Array, offset: Array) -> tuple[Array, ...]:
        values = features.widen(operand)
        mean = features.sums(values) / features.count
        variance = features.sums(np.square(values - mean.reshape(features.shape))) / features.count
        output = features.normalize(values, scale, offset, mean, variance)
        return tuple(as_owned(result, features.dtype) for result in (output, mean, variance))

    return run


def batch_norm_grad(op: BatchNormGradOp) -> Kernel:
    features = _Features(op)

    def run(operand: Array, scale: Array, mean: Array, variance: Array, grad: Array) -> tuple[Array, ...]:
        centered = features.widen(operand) - features.along(mean)
        grad_output = features.widen(grad)
        shifted = features.along(variance) + features.epsilon
        deviation = np.sqrt(shifted)
        grad_offset = features.sums(grad_output)
        products = features.sums(grad_output * centered).reshape(features.shape)
        inner = grad_output * features.count - grad_offset.reshape(features.shape) - products * centered / shifted
        grad_operand = features.along(scale) / deviation / features.count * inner
        grad_scale = features.sums(grad_output * (centered / deviation))
        return tuple(as_owned(result, features.dtype) for result in (grad_operand, grad_scale, grad_offset))

    return run
