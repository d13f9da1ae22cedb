"""Registries that map the names of the steps to their builders. Optional libraries are imported only when used."""

from __future__ import annotations

from importlib import import_module

from recompute.benchmarks.unseen.gradient_loops import LOOPS
from recompute.benchmarks.unseen.held_back import arithmetic, attentive, images, objectives, pointwise, signals, solvers
from recompute.benchmarks.unseen.open import (
    convolutions,
    dense_steps,
    dynamics,
    generative,
    losses,
    sequence_steps,
    transformers,
    tuning,
)
from recompute.benchmarks.unseen.step_parts import Builder, UnseenStep


def lazy_builder(module: str, name: str) -> Builder:
    """Return a builder that imports its module, which needs an optional library, when it is called."""

    def build(checkpoint: bool, scopes: bool) -> UnseenStep:
        builder: Builder = import_module(module, __package__).STEPS[name]
        return builder(checkpoint, scopes)

    return build


OPEN: dict[str, Builder] = {
    **convolutions.STEPS,
    **sequence_steps.STEPS,
    **transformers.STEPS,
    **tuning.STEPS,
    **dense_steps.STEPS,
    **generative.STEPS,
    **losses.STEPS,
    **dynamics.STEPS,
    "linen_resnet": lazy_builder(".open.linen_steps", "linen_resnet"),
    "linen_encoder": lazy_builder(".open.linen_steps", "linen_encoder"),
    "nnx_residual": lazy_builder(".open.nnx_steps", "nnx_residual"),
    "eqx_convnet": lazy_builder(".open.equinox_steps", "eqx_convnet"),
    "eqx_deep_mlp": lazy_builder(".open.equinox_steps", "eqx_deep_mlp"),
}
HELD_BACK: dict[str, Builder] = {
    **images.STEPS,
    **signals.STEPS,
    **attentive.STEPS,
    **pointwise.STEPS,
    **objectives.STEPS,
    **solvers.STEPS,
    **arithmetic.STEPS,
    "linen_denoiser": lazy_builder(".held_back.linen_denoiser", "linen_denoiser"),
    "nnx_batch_stats": lazy_builder(".held_back.flax_nnx", "nnx_batch_stats"),
    "nnx_decoder": lazy_builder(".held_back.flax_nnx", "nnx_decoder"),
    "eqx_encoder": lazy_builder(".held_back.with_equinox", "eqx_encoder"),
}
GROUPS: dict[str, dict[str, Builder]] = {"open": OPEN, "held_back": HELD_BACK, "loops": LOOPS}
"""The groups of steps: those that authors of the passes could always read, those held back from them, and steps whose
gradients are inside a loop or a mapped function."""
