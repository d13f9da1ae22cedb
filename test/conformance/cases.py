"""Cases of the comparison with MindSpore and Paddle: the net in the real system, the net here, and what they share."""

from __future__ import annotations

from dataclasses import dataclass

# MindSpore's Tanh on the CPU is 1.5e-5 of its value away from the exact one, its Exp 4e-6 (measured against float64),
# and ten blocks add that up; Paddle rounds as numpy does.
TOLERANCE = {"mindspore": 1e-4, "paddle": 1e-5}


@dataclass(frozen=True)
class Case:
    """Case of the comparison.

    Attributes:
        net: File below `nets/`; empty if there is no counterpart here.
        without: Why there is no counterpart.
        compared: Number of results that are loss and gradients, which must agree; 0 if the systems draw their own
            numbers.
        statistics: Indices of the results that are running statistics.
        forced: Whether the segment is marked by hand.
        draws: Whether two runs of the real system draw different numbers.
        outputs: Whether the outputs of segments are also recomputed.
    """

    name: str
    system: str
    words: str
    net: str = ""
    segments: str = "auto"
    compared: int = 0
    statistics: tuple[int, ...] = ()
    forced: bool = False
    draws: bool = False
    outputs: bool = False
    without: str = ""


OWN_NUMBERS = "every run draws its own numbers"

CASES = (
    Case("attention", "mindspore", "tutorial: ten attention blocks, Cell.recompute", "attention", compared=1),
    Case("attention_dropout", "mindspore", "the same with dropout 0.1", "attention_dropout", draws=True),
    Case("conv_relu", "mindspore", "mindspore.recompute of a convolution, then relu", "conv_relu", "cell", compared=1),
    Case("sin_exp_cos_tanh", "mindspore", "ten cells sin, exp, cos, tanh", "sin_exp_cos_tanh", compared=1),
    Case("exp_sqrt_exp_tanh", "mindspore", "ten cells exp, sqrt, exp, tanh", "exp_sqrt_exp_tanh"),
    Case(
        "outputs_recomputed",
        "mindspore",
        "the same with output_recompute=True",
        "exp_sqrt_exp_tanh",
        outputs=True,
    ),
    Case("dropout", "mindspore", "dropout of 4000 numbers in a cell", "dropout", "cell", forced=True),
    Case(
        "uniform",
        "mindspore",
        "UniformReal without a seed, 4000 numbers",
        without="stablehlo.rng is kept, never copied",
    ),
    Case(
        "batch_norm",
        "mindspore",
        "BatchNorm with running statistics in a cell",
        "batch_norm",
        "cell",
        compared=5,
        statistics=(2, 3),
    ),
    Case("fleet", "paddle", "fleet.utils.recompute: five fc/dropout blocks", "fleet", "block[12]", compared=16),
    Case(
        "dynamic_batch_norm",
        "paddle",
        "fleet.utils.recompute of a layer with BatchNorm1D",
        "batch_norm",
        "cell",
        statistics=(2, 3),
    ),
    Case("mlp", "paddle", "RecomputeOptimizer: its example, fc, fc with softmax", "mlp", "segment*", compared=5),
    Case("layers", "paddle", "RecomputeOptimizer: 4 x (fc + relu)", "layers", "segment*", compared=11),
    Case("layers_dropout", "paddle", "the same with dropout 0.5", "layers_dropout", "segment*"),
    Case("gumbel", "paddle", "the same with gumbel_softmax", "gumbel", "segment*"),
    Case("rrelu", "paddle", "the same with rrelu", "rrelu", "segment*"),
    Case(
        "static_batch_norm",
        "paddle",
        "the same with batch_norm",
        "batch_norm",
        "cell",
        statistics=(2, 3),
    ),
    Case("branches", "paddle", "two parallel branches, both tips checkpoints", "branches", "*", compared=11),
    Case("cse", "paddle", "their own CSE after auto_parallel_recompute_pir", "layers", "segment*"),
)
