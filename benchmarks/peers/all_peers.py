"""The registry of the compared steps, by name. A framework is imported only when one of its steps is built."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib import import_module

from recompute.benchmarks.peers.peer import Built, Peer, Remat

CHECKPOINT, LINEN = "jax.checkpoint", "nn.remat"


def _later(module: str, name: str, remat: Remat, size: str, **options: bool) -> Built:
    return getattr(import_module(f"{__package__}.{module}"), name)(remat, size, **options)


def _peer(
    remat: str, module: str, name: str = "build", segments: str = "auto", devices: int = 1, **options: bool
) -> Peer:
    return Peer(partial(_later, module, name, **options), remat, segments, devices)


PEERS: Mapping[str, Peer] = {
    "gpt, no scopes": _peer(CHECKPOINT, "plain_gpt", named=False),
    "gpt": _peer(CHECKPOINT, "plain_gpt", segments="block*", named=True),
    "linen gpt": _peer(LINEN, "linen_gpt", segments="Block_*"),
    "linen gpt adamw": _peer(LINEN, "linen_gpt", "build_adamw", "Block_*"),
    "nnx gpt": _peer("nnx.remat", "nnx_gpt"),
    "equinox vit": _peer("eqx.filter_checkpoint", "equinox_vit"),
    "linen resnet": _peer(LINEN, "linen_resnet", segments="ResNetBlock_*"),
    "unet": _peer(CHECKPOINT, "plain_unet", segments="level_*"),
    "lstm scanned": _peer(LINEN, "linen_lstm", segments="Layer_*", unrolled=False),
    "lstm unrolled": _peer(LINEN, "linen_lstm", segments="Layer_*", unrolled=True),
    "moe": _peer(CHECKPOINT, "mixture_of_experts", segments="expert_block*"),
    "mesh automatic": _peer(CHECKPOINT, "meshed", "build_automatic", "block*", 8),
    "mesh shard_map": _peer(CHECKPOINT, "meshed", "build_mapped", "block*", 8),
    "mesh explicit": _peer(CHECKPOINT, "meshed", "build_explicit", "block*", 8),
}
