"""The models of the benchmark, with their inputs and the modules that users would checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

from recompute.benchmarks.torch import issue_models, networks
from recompute.examples.torch.gpt import GPT
from recompute.examples.torch.resnet import ResNet
from recompute.examples.torch.unet import UNet

BERT = {
    "hidden_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 512,
    "vocab_size": 512,
    "max_position_embeddings": 128,
}
LLAMA = {
    "hidden_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 256,
    "vocab_size": 512,
    "max_position_embeddings": 128,
}


@dataclass(frozen=True)
class ModelCase:
    """A model whose forward pass returns the loss.

    Attributes:
        build: Builds the model.
        inputs: Draws the tensors with which the model is called.
        blocks: The pattern of the names of the modules that a user would wrap in `torch.utils.checkpoint`.
    """

    build: Callable[[], nn.Module]
    inputs: Callable[[], tuple[torch.Tensor, ...]]
    blocks: str = "blocks.*"


def words(batch: int, length: int, count: int) -> tuple[torch.Tensor, ...]:
    """Draw tokens and targets of shape (batch, length) from a vocabulary of `count` tokens."""
    return torch.randint(count, (batch, length)), torch.randint(count, (batch, length))


def images(batch: int, size: int) -> tuple[torch.Tensor, ...]:
    """Draw images of shape (batch, 3, size, size), and labels of 10 classes."""
    return torch.randn(batch, 3, size, size), torch.randint(10, (batch,))


CASES: dict[str, ModelCase] = {
    "gpt6 dropout": ModelCase(GPT, partial(words, 4, 128, 512)),
    "gpt6": ModelCase(partial(GPT, dropout=0.0), partial(words, 4, 128, 512)),
    "gpt6 sdpa": ModelCase(partial(GPT, fused=True, dropout=0.0), partial(words, 4, 128, 512)),
    "gpt12 dropout": ModelCase(partial(GPT, layers=12), partial(words, 4, 128, 512)),
    "resnet50": ModelCase(ResNet, partial(images, 16, 32)),
    "unet": ModelCase(UNet, lambda: (torch.randn(4, 3, 64, 64), torch.randn(4, 3, 64, 64)), "*down.?|middle|up.?"),
    "unet shallow": ModelCase(
        partial(UNet, depth=2), lambda: (torch.randn(4, 3, 64, 64), torch.randn(4, 3, 64, 64)), "*down.?|middle|up.?"
    ),
    "vit": ModelCase(networks.ViT, partial(images, 8, 64)),
    "lstm": ModelCase(networks.LSTM, partial(words, 16, 16, 128), "none"),
    "moe": ModelCase(networks.MoE, partial(words, 4, 64, 128)),
    "bert": ModelCase(partial(networks.Bert, **BERT), partial(words, 8, 64, 512), "net.bert.encoder.layer.?"),
    "llama": ModelCase(partial(networks.Llama, **LLAMA), partial(words, 4, 64, 512), "net.model.layers.?"),
    "mlp batchnorm": ModelCase(networks.MlpBatchNorm, lambda: (torch.randn(256, 256), torch.randint(10, (256,)))),
    "pytorch 190758": ModelCase(issue_models.NoisyLayers, lambda: (torch.randn(256, 64),)),
    "pytorch 190717": ModelCase(
        issue_models.DropoutClassifier, lambda: (torch.randn(256, 64), torch.randint(10, (256,)))
    ),
    "pytorch 197838": ModelCase(issue_models.LlamaStyle, partial(words, 4, 64, 128)),
    "shared blocks": ModelCase(issue_models.SharedBlocks, lambda: (*words(8, 64, 64), torch.randn(8, 32, 64))),
}


def make(name: str) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Build the model and the inputs of a case. Every call returns the same values."""
    torch.manual_seed(0)
    case = CASES[name]
    return case.build().train(), case.inputs()
