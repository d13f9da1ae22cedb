"""Registries of both halves of the steps: names → builders. Optional libraries are imported only when used."""

from __future__ import annotations

from importlib import import_module

from .common import Builder, UnseenStep
from .held_back import arithmetic, attentive, images, objectives, pointwise, signals, solvers
from .open import convolutions, dense, dynamics, generative, losses, sequences, transformers, tuning


def lazy_builder(module: str, name: str) -> Builder:
    """Return a builder that imports its module, which needs an optional library, when it is called."""

    def build(checkpoint: bool, scopes: bool) -> UnseenStep:
        builder: Builder = import_module(module, __package__).STEPS[name]
        return builder(checkpoint, scopes)

    return build


OPEN: dict[str, Builder] = {
    **convolutions.STEPS,
    **sequences.STEPS,
    **transformers.STEPS,
    **tuning.STEPS,
    **dense.STEPS,
    **generative.STEPS,
    **losses.STEPS,
    **dynamics.STEPS,
    "linen_resnet": lazy_builder(".open.flax_linen", "linen_resnet"),
    "linen_encoder": lazy_builder(".open.flax_linen", "linen_encoder"),
    "nnx_residual": lazy_builder(".open.flax_nnx", "nnx_residual"),
    "eqx_convnet": lazy_builder(".open.with_equinox", "eqx_convnet"),
    "eqx_deep_mlp": lazy_builder(".open.with_equinox", "eqx_deep_mlp"),
}
HELD_BACK: dict[str, Builder] = {
    **images.STEPS,
    **signals.STEPS,
    **attentive.STEPS,
    **pointwise.STEPS,
    **objectives.STEPS,
    **solvers.STEPS,
    **arithmetic.STEPS,
    "linen_denoiser": lazy_builder(".held_back.flax_linen", "linen_denoiser"),
    "nnx_batch_stats": lazy_builder(".held_back.flax_nnx", "nnx_batch_stats"),
    "nnx_decoder": lazy_builder(".held_back.flax_nnx", "nnx_decoder"),
    "eqx_encoder": lazy_builder(".held_back.with_equinox", "eqx_encoder"),
}
